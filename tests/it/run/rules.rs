//! The rules of the project decide about the agent's own tools, and a person about the rest.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::bash;
use super::scene::{PATIENCE, Scene};
use crate::support::eventually;
use crate::support::messages_api::Turn;
use crate::support::world::stdout;

#[test]
fn a_tool_that_a_rule_allows_runs_without_a_question() {
    let Some(scene) = Scene::scripted([bash("touch made"), Turn::text("Made.")]) else {
        return;
    };
    let scene = scene.permissions(&json!({ "allow": ["client:Bash"] }));
    let ended = scene.run(&["--json", "make it"]).with(0);
    assert!(scene.world.path("made").exists());
    assert!(
        !ended.lines().iter().any(|line| line["event"] == "ask"),
        "{}",
        ended.stdout
    );
    assert!(!scene.api.tool_results()[0].is_error);
}

#[test]
fn a_tool_that_a_rule_denies_tells_the_model_the_rule_and_the_file() {
    let Some(scene) = Scene::scripted([bash("touch made"), Turn::text("I see.")]) else {
        return;
    };
    let scene = scene.permissions(&json!({ "deny": ["client:Bash"] }));
    let ended = scene.run(&["make it"]).with(0);
    assert!(!scene.world.path("made").exists());
    let results = scene.api.tool_results();
    let [denied] = results.as_slice() else {
        panic!("{results:#?}")
    };
    assert!(denied.is_error);
    for word in [
        "`client:Bash` is denied by rule `client:Bash`",
        ".pml.json, line ",
    ] {
        assert!(denied.text.contains(word), "{}", denied.text);
    }
    assert!(ended.stdout.contains("I see."), "{}", ended.stdout);
    assert_eq!(scene.pending(), Vec::<Value>::new());
}

#[test]
fn an_approved_call_runs_and_the_run_goes_on() {
    let Some(scene) = Scene::scripted([bash("touch made"), Turn::text("Made.")]) else {
        return;
    };
    let run = scene.start(&["make it"]);
    let code = scene.asking();
    assert_eq!(scene.pending()[0]["tool"], "client:Bash");
    assert!(!scene.world.path("made").exists());
    scene.say(&["approve", &code]);
    let ended = run.ended().with(0);
    assert!(scene.world.path("made").exists());
    assert!(!scene.api.tool_results()[0].is_error);
    let told = format!("{}{}", ended.stdout, ended.stderr);
    for word in [
        code.as_str(),
        "touch made",
        "> Bash  touch made",
        "Bash done in",
        "Made.",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert!(scene.record().asks.is_empty());
}

#[test]
fn a_refusal_reaches_the_model_with_its_reason() {
    let Some(scene) = Scene::scripted([bash("touch made"), Turn::text("As you like.")]) else {
        return;
    };
    let run = scene.start(&["make it"]);
    let code = scene.asking();
    scene.say(&["refuse", &code, "--reason", "use the other folder"]);
    run.ended().with(0);
    assert!(!scene.world.path("made").exists());
    let results = scene.api.tool_results();
    assert!(
        results[0].is_error
            && results[0]
                .text
                .contains("The person refused: use the other folder"),
        "{results:#?}"
    );
}

#[test]
fn an_approval_for_the_session_covers_what_the_agent_proposed_and_no_more() {
    let script = [
        bash("touch one"),
        bash("touch one two"),
        bash("touch three"),
        Turn::text("Made two of them."),
        bash("touch one four"),
        Turn::text("Not made."),
    ];
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    let run = scene.start(&["make them"]);
    let code = scene.asking();
    let shown = stdout(&scene.world.run(&["pending", &code]));
    assert!(shown.contains("Bash(touch one *)"), "{shown}");
    assert!(!shown.contains("every edit"), "{shown}");
    scene.say(&["approve", &code, "--session"]);
    // What begins as it was shown runs without a question, the next one does not.
    eventually("another use is asked about", PATIENCE, || {
        let pending = scene.pending();
        pending.len() == 1 && pending[0]["code"] != code.as_str()
    });
    assert!(scene.world.path("one").exists() && scene.world.path("two").exists());
    scene.say(&["refuse", &scene.code()]);
    run.ended().with(0);
    assert!(!scene.world.path("three").exists());
    let again = scene.start(&["make another"]);
    scene.say(&["refuse", &scene.code()]);
    again.ended().with(0);
    assert!(!scene.world.path("four").exists());
    assert!(!scene.world.path(".claude").exists(), "a rule was kept in a file");
}

#[test]
fn an_approval_for_always_writes_a_rule_that_the_next_run_obeys() {
    let script = [
        bash("touch one"),
        bash("touch two"),
        Turn::text("Made."),
        bash("touch three"),
        Turn::text("Made."),
    ];
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    let run = scene.start(&["make them"]);
    scene.say(&["approve", &scene.asking(), "--always"]);
    run.ended().with(0);
    let config: Value = serde_json::from_str(&scene.world.read(".pml.json")).unwrap();
    assert_eq!(config["permissions"]["allow"], json!(["client:Bash"]));
    scene.run(&["make another"]).with(0);
    for made in ["one", "two", "three"] {
        assert!(scene.world.path(made).exists(), "{made}");
    }
}

#[test]
fn two_calls_of_one_message_are_asked_and_each_gets_its_own_answer() {
    let both = bash("touch one").and_tool("Bash", super::command_input("touch two"));
    let Some(scene) = Scene::scripted([both, Turn::text("Done.")]) else {
        return;
    };
    let run = scene.start(&["make them"]);
    scene.say(&["refuse", &scene.asking(), "--reason", "not the first"]);
    scene.say(&["approve", &scene.asking()]);
    run.ended().with(0);
    let results = scene.api.tool_results();
    assert_eq!(results.len(), 2, "{results:#?}");
    let made = [scene.world.path("one").exists(), scene.world.path("two").exists()];
    let refused = results
        .iter()
        .filter(|result| result.text.contains("not the first"));
    let refused: Vec<_> = refused.map(|result| result.input["command"].clone()).collect();
    assert_eq!((made, refused), ([false, true], vec![json!("touch one")]));
}

#[test]
fn rules_that_cannot_be_read_any_more_refuse_every_use() {
    let script = [bash("touch made"), Turn::text("I see.")];
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    // The agent's own rules would let it run without a question.
    let settings = scene.world.home().join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let allowed = json!({ "permissions": { "allow": ["Bash(touch made)"] } });
    std::fs::write(&settings, allowed.to_string()).unwrap();
    scene.world.write(".pml.json", "{ \"permissions\": ");
    scene.run(&["make it"]).with(0);
    assert!(!scene.world.path("made").exists());
    let results = scene.api.tool_results();
    assert!(
        results[0].is_error && results[0].text.contains(".pml.json"),
        "{results:#?}"
    );
}

#[test]
fn two_identical_calls_of_one_message_are_two_asks() {
    let both = bash("echo x >> made").and_tool("Bash", super::command_input("echo x >> made"));
    let Some(scene) = Scene::scripted([both, Turn::text("Done.")]) else {
        return;
    };
    let run = scene.start(&["make them"]);
    let first = scene.asking();
    scene.say(&["approve", &first]);
    eventually("the other is asked about", PATIENCE, || {
        let pending = scene.pending();
        pending.len() == 1 && pending[0]["code"] != first.as_str()
    });
    scene.say(&["approve", &scene.code()]);
    run.ended().with(0);
    assert_eq!(scene.world.read("made"), "x\nx\n");
    let results = scene.api.tool_results();
    assert!(results.iter().all(|result| !result.is_error), "{results:#?}");
}

#[test]
fn an_agent_does_not_approve_its_own_call() {
    let approving = |code: &str| {
        let program = crate::support::pml().display().to_string();
        bash(&format!("{program} approve {code} < /dev/null 2>&1; true"))
    };
    let Some(scene) = Scene::scripted([Turn::text("Ready.")]) else {
        return;
    };
    let scene = scene.permissions(&json!({ "ask": ["client:WebFetch"], "allow": ["client:Bash"] }));
    scene.run(&["hello"]).with(0);
    let fetch = json!({ "url": "http://127.0.0.1:9/", "prompt": "read it" });
    scene.api.then([Turn::tool("WebFetch", fetch)]);
    let id = scene.id();
    scene
        .run(&["--resume", &id, "--patience", "1s", "fetch it"])
        .with(75);
    let code = scene.code();
    scene.api.then([approving(&code), Turn::text("Tried.")]);
    scene.run(&["try it"]).with(0);
    let results = scene.api.tool_results();
    let tried = results.last().unwrap();
    assert!(tried.text.contains("is for a person"), "{results:#?}");
    assert_eq!(scene.pending().len(), 1, "it still waits");
}

/// What Claude Code takes for harmless by itself (`git status`) and what it does not (`touch`): the rule covers the very
/// words, and a command that goes on behind them is asked about.
#[test]
fn a_rule_by_its_words_covers_the_command_and_nothing_behind_it() {
    for (rule, command, more) in [
        ("client:Bash(git status)", "git status", "git status; rm precious"),
        (
            "client:Bash(touch made)",
            "touch made",
            "touch made && rm precious",
        ),
    ] {
        let script = [bash(command), bash(more), Turn::text("One of them.")];
        let Some(scene) = Scene::scripted(script) else {
            return;
        };
        let scene = scene.permissions(&json!({ "allow": [rule], "ask": ["*"] }));
        let made = scene
            .world
            .program("git".as_ref())
            .args(["init", "--quiet"])
            .status()
            .unwrap();
        assert!(made.success());
        scene.world.write("precious", "");
        let run = scene.start(&["go on"]);
        let code = scene.asking();
        let shown = stdout(&scene.world.run(&["pending", &code]));
        assert!(shown.contains(more), "{shown}");
        let results = scene.api.tool_results();
        assert_eq!(
            results.len(),
            1,
            "the command of the rule ran unasked: {results:#?}"
        );
        assert!(!results[0].is_error, "{results:#?}");
        scene.say(&["refuse", &code]);
        run.ended().with(0);
        assert!(scene.world.path("precious").exists(), "{more}");
        assert_eq!(scene.world.path("made").exists(), command == "touch made");
    }
}
