//! A run that asks nothing: what it prints, and how it ends.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::scene::{Scene, no_program, nothing_is_left_of};
use crate::support::messages_api::Turn;
use crate::support::world::World;

#[test]
fn a_turn_of_text_ends_with_zero_and_its_text_on_stdout() {
    let Some(scene) = Scene::scripted([Turn::streamed("All done, nothing to fix.", 5)]) else {
        return;
    };
    let ended = scene.run(&["fix the failing test"]).with(0);
    assert_eq!(ended.stdout, "All done, nothing to fix.\n");
    let record = scene.record();
    assert!(
        ended.stderr.contains(&format!("run {} · ", record.id)),
        "{}",
        ended.stderr
    );
    assert_eq!(scene.told_state(), json!({ "name": "ended", "outcome": "done" }));
    assert_eq!(record.title, "fix the failing test");
    assert!(record.model.is_some() && record.cost.is_some(), "{record:?}");
    let said = scene.api.user_texts();
    assert!(said.contains(&"fix the failing test".to_owned()), "{said:?}");
    nothing_is_left_of(&record.id);
    let listed = scene.world.run(&["runs"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains("done") && listed.contains("fix the failing test"),
        "{listed}"
    );
}

#[test]
fn a_prompt_can_be_piped_in_and_a_run_that_is_over_can_be_told_more() {
    let Some(scene) = Scene::scripted([Turn::text("One."), Turn::text("Two.")]) else {
        return;
    };
    scene.world.write("task.md", "count\nto two\n");
    let mut command = scene.world.command(&["run", "-"]);
    let task = std::fs::File::open(scene.world.path("task.md")).unwrap();
    let first = command.stdin(task).output().unwrap();
    assert_eq!(String::from_utf8(first.stdout).unwrap(), "One.\n");
    let ended = scene.run(&["--resume", &scene.id(), "and on"]).with(0);
    assert_eq!(ended.stdout, "Two.\n");
    let requests = scene.api.requests();
    assert!(requests[1].began_with("count\nto two\n"), "{requests:#?}");
    assert!(
        requests[1].user_texts().contains(&"and on".to_owned()),
        "{requests:#?}"
    );
}

#[test]
fn json_has_the_lines_of_the_agent_as_they_are_and_those_of_pml_between_them() {
    let Some(scene) = Scene::scripted([Turn::streamed("Hello.", 3)]) else {
        return;
    };
    let lines = scene.run(&["--json", "say hello"]).with(0).lines();
    let has = |what: &str, found: bool| assert!(found, "{what}: {lines:#?}");
    let of = |kind: &str| {
        lines
            .iter()
            .filter(|line| line["type"] == kind)
            .collect::<Vec<_>>()
    };
    has("init", lines.iter().any(|line| line["subtype"] == "init"));
    let deltas = of("stream_event");
    let deltas = deltas
        .iter()
        .filter_map(|line| line["event"]["delta"]["text"].as_str());
    assert_eq!(deltas.collect::<Vec<_>>(), ["Hel", "lo."]);
    assert_eq!(of("assistant")[0]["message"]["content"][0]["text"], "Hello.");
    assert_eq!(of("result")[0]["result"], "Hello.");
    let own = of("pml");
    let states = own.iter().filter(|line| line["event"] == "state");
    let states: Vec<_> = states.map(|line| line["state"]["name"].clone()).collect();
    assert_eq!(states, ["starting", "running", "ended"]);
    has(
        "the message",
        own.iter()
            .any(|line| line["event"] == "message" && line["text"] == "say hello"),
    );
}

#[test]
fn an_agent_that_fails_ends_with_one() {
    let Some(scene) = Scene::scripted([Turn::fails(400, "nobody is at home")]) else {
        return;
    };
    let ended = scene.run(&["hello"]).with(1);
    let told = format!("{}{}", ended.stdout, ended.stderr);
    assert!(
        told.contains("the agent failed") && told.contains("nobody is at home"),
        "{told}"
    );
    assert_eq!(
        scene.told_state(),
        json!({ "name": "ended", "outcome": "failed" })
    );
}

#[test]
fn a_missing_agent_is_an_error_that_says_how_to_get_it() {
    let world = World::new();
    world.set("PATH", "/nowhere");
    let refused = || {
        let refused = world.run(&["run", "hello"]);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{told}");
        told
    };
    let told = refused();
    assert!(
        told.contains("there is no program `claude` on the PATH"),
        "{told}"
    );
    // Neither what is not there nor what is no program, wherever it is.
    let text = world.home().join("text");
    std::fs::write(&text, "no program").unwrap();
    for named in [world.home().join("missing"), text, world.home().to_owned()] {
        world.set("PML_CLAUDE", named.to_str().unwrap());
        assert!(refused().contains("as `PML_CLAUDE` says"), "{}", named.display());
    }
    world.set("PML_CLAUDE", no_program(&world).to_str().unwrap());
    let told = refused();
    for word in [
        "as `PML_CLAUDE` says",
        "hint: to install it: npm install --global @anthropic-ai/claude-code",
        "\"run\": {\"claude\": ",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert!(!world.home().join(".local/state/pml/runs").exists());
}

#[test]
fn nothing_to_do_is_refused_with_the_ways_to_say_it() {
    let Some(scene) = Scene::scripted([]) else {
        return;
    };
    let ended = scene.run(&[]).with(2);
    for word in [
        "nothing for the agent to do",
        "hint: say it: pml run",
        "pml run - < task.md",
    ] {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
    let unknown = scene.run(&["--resume", "zzzzz", "more"]).with(2);
    assert!(
        unknown.stderr.contains("there is no run `zzzzz`")
            && unknown.stderr.contains("hint: to list the runs: pml runs"),
        "{}",
        unknown.stderr
    );
    scene.run(&["--patience", "soon", "hello"]).with(2);
    assert!(scene.records().is_empty());
    assert!(scene.api.requests().is_empty());
}
