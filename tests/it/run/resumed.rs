//! Runs that another process resumes: `pml serve`, or a second `pml run`, after whatever killed the first.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::scene::{PATIENCE, Scene, nothing_is_left_of};
use super::{CHOSEN, bash, question};
use crate::serve::Served;
use crate::support::eventually;
use crate::support::messages_api::{Gate, Turn};

/// A run that was parked with one question.
fn parked(script: impl IntoIterator<Item = Turn>) -> Option<Scene> {
    let scene = Scene::scripted(script)?;
    scene.run(&["--patience", "1s", "ask me"]).with(75);
    Some(scene)
}

/// Waits until the only run is done.
fn done(scene: &Scene) {
    eventually("the run is done", PATIENCE, || scene.is("done"));
}

fn results(scene: &Scene) -> Vec<String> {
    let results = scene.api.tool_results();
    results.into_iter().map(|result| result.text).collect()
}

#[test]
fn a_parked_run_is_resumed_by_the_running_server() {
    let Some(scene) = parked([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let _served = Served::start(&scene.world);
    scene.say(&["answer", &scene.code(), "pg"]);
    done(&scene);
    assert_eq!(results(&scene), [CHOSEN]);
}

#[test]
fn a_run_whose_host_is_killed_is_resumed_by_the_running_server() {
    let Some(scene) = Scene::scripted([Turn::text("Ready.")]) else {
        return;
    };
    scene.api.then([question(), Turn::text("Postgres it is.")]);
    scene.run(&["hello"]).with(0);
    let served = Served::start(&scene.world);
    let run = scene.start(&["--resume", &scene.id(), "ask me"]);
    let code = scene.asking();
    scene.wait_until_written();
    run.signal(Signal::KILL);
    run.ended();
    nothing_is_left_of(&scene.record().id);
    scene.say(&["answer", &code, "pg"]);
    done(&scene);
    drop(served);
    let said = scene.api.user_texts();
    assert!(
        said.iter().any(|text| text.contains("The user answered: pg.")),
        "{said:?}"
    );
}

#[test]
fn a_parked_run_outlives_the_machine() {
    let Some(scene) = parked([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let mut served = Served::start(&scene.world);
    served.end(Signal::KILL);
    // Nothing runs; the state is all there is.
    nothing_is_left_of(&scene.record().id);
    scene.say(&["answer", &scene.code(), "pg"]);
    assert_eq!(scene.told_state()["name"], "parked");
    let _served = Served::start(&scene.world);
    done(&scene);
    assert_eq!(results(&scene), [CHOSEN]);
}

#[test]
fn of_the_server_and_a_person_who_resume_a_run_exactly_one_does() {
    let gate = Gate::new();
    let script = [question(), Turn::held(&gate).and_text("Postgres it is.")];
    let Some(scene) = parked(script) else {
        return;
    };
    let _served = Served::start(&scene.world);
    let code = scene.code();
    let id = scene.id();
    scene.say(&["answer", &code, "pg"]);
    let run = scene.start(&["--resume", &id]);
    gate.wait_until_reached();
    gate.release();
    let ended = run.ended();
    done(&scene);
    // The one that came too late says so, or finds that there is nothing left to do.
    assert!(matches!(ended.code, Some(0..=2)), "{ended:?}");
    assert_eq!(results(&scene), [CHOSEN]);
    assert_eq!(scene.api.requests().len(), 2);
}

/// A program in place of the agent that ends at once, and counts how often it was started.
fn ends_at_once(scene: &Scene) -> PathBuf {
    let program = scene.world.home().join("ends-at-once");
    let starts = starts(scene);
    std::fs::write(
        &program,
        format!("#!/bin/sh\necho x >> {}\nexit 3\n", starts.display()),
    )
    .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    scene.world.set("PML_CLAUDE", program.to_str().unwrap());
    starts
}

fn starts(scene: &Scene) -> PathBuf {
    scene.world.home().join("starts")
}

fn count(scene: &Scene) -> usize {
    std::fs::read_to_string(starts(scene)).map_or(0, |text| text.lines().count())
}

#[test]
fn a_run_whose_agent_always_ends_at_once_is_not_resumed_for_ever() {
    let Some(scene) = parked([question()]) else {
        return;
    };
    scene.say(&["answer", &scene.code(), "pg"]);
    ends_at_once(&scene);
    let ended = scene.run(&["--resume", &scene.id()]).with(1);
    assert_eq!(count(&scene), 3);
    for word in [
        "the agent ended 3 times before it took the answer",
        &format!("pml run --resume {}", scene.id()),
    ] {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
    let listed = scene.world.run(&["runs"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("the agent ended 3 times"), "{listed}");
    // The server leaves it alone as well, until a person wants it.
    let served = Served::start(&scene.world);
    served.script("GET", "/api/inbox").send();
    drop(served);
    assert_eq!(count(&scene), 3);
}

#[test]
fn a_run_that_rests_between_two_starts_ends_with_a_signal() {
    let Some(scene) = parked([question()]) else {
        return;
    };
    scene.say(&["answer", &scene.code(), "pg"]);
    ends_at_once(&scene);
    let run = scene.start(&["--resume", &scene.id()]);
    eventually("it was started", PATIENCE, || count(&scene) >= 2);
    run.signal(Signal::TERM);
    run.ended().with(75);
    assert!(count(&scene) <= 3);
}

#[test]
fn an_answer_is_told_before_what_a_person_says_when_they_resume() {
    let Some(scene) = Scene::scripted([Turn::text("Ready.")]) else {
        return;
    };
    scene.api.then([question(), Turn::text("As you like.")]);
    scene.run(&["hello"]).with(0);
    let run = scene.start(&["--resume", &scene.id(), "ask me"]);
    let code = scene.asking();
    scene.wait_until_written();
    run.signal(Signal::KILL);
    run.ended();
    scene.say(&["answer", &code, "pg"]);
    scene.run(&["--resume", &scene.id(), "and use port 1"]).with(0);
    let said = scene.api.user_texts().join("\n");
    let (answer, more) = (said.find("The user answered: pg."), said.find("and use port 1"));
    assert!(answer.is_some() && answer < more, "{said}");
    assert!(scene.record().asks.is_empty());
}

#[test]
fn a_question_that_its_person_goes_on_without_is_withdrawn() {
    let Some(scene) = Scene::scripted([Turn::text("Ready.")]) else {
        return;
    };
    scene.api.then([question(), Turn::text("Forgotten.")]);
    scene.run(&["hello"]).with(0);
    let run = scene.start(&["--resume", &scene.id(), "ask me"]);
    scene.asking();
    scene.wait_until_written();
    run.signal(Signal::KILL);
    run.ended();
    assert_eq!(scene.pending().len(), 1);
    scene.run(&["--resume", &scene.id(), "forget it"]).with(0);
    assert_eq!(scene.pending(), Vec::<Value>::new());
    assert!(scene.record().asks.is_empty());
}

#[test]
fn a_lost_run_does_not_count_itself_where_only_one_may_be() {
    let Some(scene) = Scene::scripted([Turn::text("Ready.")]) else {
        return;
    };
    scene.configure_user(&json!({ "run": { "most": 1 } }));
    scene.api.then([question(), Turn::text("Postgres it is.")]);
    scene.run(&["hello"]).with(0);
    let run = scene.start(&["--resume", &scene.id(), "ask me"]);
    let code = scene.asking();
    scene.wait_until_written();
    run.signal(Signal::KILL);
    run.ended();
    nothing_is_left_of(&scene.record().id);
    scene.say(&["answer", &code, "pg"]);
    scene.run(&["--resume", &scene.id()]).with(0);
}

#[test]
fn an_approval_whose_call_was_cut_off_is_told_and_not_used_again() {
    let gate = "while test ! -e go; do sleep 0.05; done; echo ran >> made";
    let Some(scene) = Scene::scripted([Turn::text("Ready.")]) else {
        return;
    };
    scene.api.then([bash(gate), Turn::text("I see.")]);
    scene.run(&["hello"]).with(0);
    let run = scene.start(&["--resume", &scene.id(), "run it"]);
    scene.say(&["approve", &scene.asking()]);
    eventually("the call runs", PATIENCE, || scene.is("running"));
    scene.wait_until_written();
    scene.signal_agent(Signal::KILL);
    run.ended().with(0);
    let said = scene.api.user_texts().join("\n");
    assert!(said.contains("whether it ran is not known"), "{said}");
    assert!(!scene.world.path("made").exists());
    assert!(scene.record().asks.is_empty());
}

#[test]
fn a_run_whose_record_cannot_be_written_ends_with_its_agent() {
    let Some(scene) =
        Scene::scripted(
            [question().and_tool("AskUserQuestion", json!({ "questions": [super::database()] }))],
        )
    else {
        return;
    };
    let run = scene.start(&["ask me"]);
    eventually("it asks", PATIENCE, || !scene.pending().is_empty());
    let record = scene.record();
    std::fs::remove_dir_all(scene.runs().directory(&record.id)).unwrap();
    let code = scene.pending()[0]["code"].as_str().unwrap().to_owned();
    scene.say(&["answer", &code, "pg"]);
    let ended = run.ended();
    assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
    nothing_is_left_of(&record.id);
}
