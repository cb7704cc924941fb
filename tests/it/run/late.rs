//! A run whose agent is gone while it asks: what was answered meanwhile is told by a message.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::scene::{PATIENCE, Running, Scene, nothing_is_left_of};
use super::{OUTCOME_UNKNOWN, bash, question};
use crate::serve::Served;
use crate::support::eventually;
use crate::support::messages_api::{Gate, Turn};
use crate::support::world::state;

/// A run in its second turn, which asks; the session is on disk.
fn asking(script: impl IntoIterator<Item = Turn>) -> Option<(Scene, Running, String)> {
    let scene = Scene::scripted([Turn::text("Ready.")])?;
    scene.api.then(script);
    scene.run(&["hello"]).with(0);
    let run = scene.start(&["--resume", &scene.id(), "ask me"]);
    let code = scene.asking();
    scene.wait_until_written();
    Some((scene, run, code))
}

/// What the user told the model of what it asked before.
fn told(scene: &Scene) -> Vec<String> {
    let mut said = scene.api.user_texts();
    said.retain(|text| text.contains("You previously asked"));
    said
}

/// How an ask stands in the store: whether a call waits for its answer, and its phase.
fn stored(scene: &Scene, code: &str) -> (i64, String) {
    let store = rusqlite::Connection::open(state(&scene.world).join("workflows.db")).unwrap();
    let row = "SELECT attended, phase FROM workflow WHERE code = ?1";
    store
        .query_row(row, [code], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
}

/// Checks that the only result is the one that says that nothing is known.
fn outcome_is_unknown(scene: &Scene) {
    let results = scene.api.tool_results();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert!(
        results[0].is_error && results[0].text.starts_with(OUTCOME_UNKNOWN),
        "{results:#?}"
    );
}

#[test]
fn an_agent_that_is_killed_while_it_asks_is_told_the_answer_by_a_message() {
    let Some((scene, run, code)) = asking([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    scene.signal_agent(Signal::KILL);
    let ended = run.ended().with(75);
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert!(shown.contains("the agent is gone"), "{shown}");
    assert_eq!(scene.told_state(), json!({ "name": "lost" }));
    let record = scene.record();
    nothing_is_left_of(&record.id);
    let id = record.id.to_string();
    scene.run(&["--resume", &id]).with(75);
    scene.say(&["answer", &code, "pg"]);
    let resumed = scene.run(&["--resume", &id]).with(0);
    assert!(resumed.stdout.contains("Postgres it is."), "{}", resumed.stdout);
    assert_eq!(
        told(&scene),
        ["You previously asked: Which database? The user answered: pg.\nContinue."]
    );
    outcome_is_unknown(&scene);
    assert_eq!(scene.told_state(), json!({ "name": "ended", "outcome": "done" }));
    assert!(scene.record().asks.is_empty());
    assert_eq!(
        stored(&scene, &code).1,
        "final",
        "no later question gets the answer once more"
    );
    scene.run(&["--resume", &id]).with(2);
    assert_eq!(scene.api.requests().len(), 3, "what was told is not told again");
}

#[test]
fn a_host_that_is_killed_takes_its_agent_along_and_the_run_is_lost() {
    let Some((scene, run, code)) = asking([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    let id = scene.record().id;
    run.signal(Signal::KILL);
    assert_eq!(run.ended().code, None);
    nothing_is_left_of(&id);
    assert_eq!(scene.told_state(), json!({ "name": "lost" }));
    scene.say(&["answer", &code, "pg"]);
    scene.run(&["--resume", id.as_str()]).with(0);
    assert_eq!(
        told(&scene),
        ["You previously asked: Which database? The user answered: pg.\nContinue."]
    );
}

#[test]
fn a_refusal_that_comes_late_is_told_with_its_reason() {
    let Some((scene, run, code)) = asking([question(), Turn::text("I decide.")]) else {
        return;
    };
    scene.signal_agent(Signal::KILL);
    run.ended().with(75);
    scene.say(&["refuse", &code, "--reason", "decide yourself"]);
    scene.run(&["--resume", &scene.id()]).with(0);
    assert_eq!(
        told(&scene),
        ["You previously asked: Which database? The user would not answer: decide yourself\nContinue."]
    );
}

#[test]
fn an_answer_that_is_there_before_the_agent_is_gone_resumes_it_in_the_same_process() {
    let Some((scene, run, code)) = asking([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    // The agent stands still, so that the answer cannot reach it.
    scene.signal_agent(Signal::STOP);
    scene.say(&["answer", &code, "pg"]);
    eventually("the answer is on its way", PATIENCE, || scene.is("running"));
    scene.signal_agent(Signal::KILL);
    run.ended().with(0);
    assert_eq!(
        told(&scene),
        ["You previously asked: Which database? The user answered: pg.\nContinue."]
    );
    outcome_is_unknown(&scene);
}

#[test]
fn a_late_approval_lets_the_very_same_call_run_once_and_no_other() {
    let add = "echo once >> made";
    let script = [
        bash(add),
        bash(add),
        bash(add),
        bash("touch other"),
        Turn::text("Done."),
    ];
    let Some((scene, run, code)) = asking(script) else {
        return;
    };
    run.signal(Signal::TERM);
    run.ended().with(75);
    assert_eq!(scene.told_state(), json!({ "name": "lost" }));
    let id = scene.record().id;
    nothing_is_left_of(&id);
    assert!(!scene.world.path("made").exists());
    scene.say(&["approve", &code]);

    let run = scene.start(&["--resume", id.as_str()]);
    let second = scene.asking();
    assert_ne!(second, code);
    assert_eq!(
        scene.world.read("made"),
        "once\n",
        "the approved call ran, and only it"
    );
    scene.say(&["refuse", &second, "--reason", "once is enough"]);
    eventually("the other command is asked about", PATIENCE, || {
        let pending = scene.pending();
        pending.len() == 1 && pending[0]["code"] != *second
    });
    scene.say(&["refuse", &scene.code(), "--reason", "not that"]);
    run.ended().with(0);
    assert_eq!(scene.world.read("made"), "once\n");
    assert!(!scene.world.path("other").exists());
    let told = told(&scene);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("You previously asked for permission to use Bash."),
        "{told:?}"
    );
    let results: Vec<_> = scene.api.tool_results();
    let results: Vec<Value> = results
        .iter()
        .map(|result| json!([result.input["command"], result.is_error]))
        .collect();
    assert_eq!(
        results,
        [
            json!([add, true]),
            json!([add, false]),
            json!([add, true]),
            json!(["touch other", true]),
        ]
    );
}

#[test]
fn a_late_refusal_of_a_call_is_told_and_the_call_does_not_run() {
    let Some((scene, run, code)) = asking([bash("touch made"), Turn::text("As you like.")]) else {
        return;
    };
    run.signal(Signal::TERM);
    run.ended().with(75);
    scene.say(&["refuse", &code, "--reason", "use the other folder"]);
    scene.run(&["--resume", &scene.id()]).with(0);
    let told = told(&scene);
    assert!(
        told.len() == 1 && told[0].contains("the user refused it: use the other folder"),
        "{told:?}"
    );
    assert!(!scene.world.path("made").exists());
}

#[test]
fn what_was_asked_in_the_moment_its_host_was_killed_is_answered_all_the_same() {
    for by_the_server in [false, true] {
        let Some(scene) = Scene::scripted([question(), Turn::text("Postgres it is.")]) else {
            return;
        };
        let run = scene.start(&["ask me"]);
        let code = scene.asking();
        scene.wait_until_written();
        let id = scene.id();
        run.signal(Signal::KILL);
        drop(run);
        nothing_is_left_of(&scene.record().id);
        // As it stands where the host had put the ask and not written it down: the store has it, the record has not.
        let path = scene.runs().directory(&scene.record().id).join("run.json");
        let mut record: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        record.as_object_mut().unwrap().remove("asks");
        std::fs::write(&path, record.to_string()).unwrap();
        if by_the_server {
            let _served = Served::start(&scene.world);
            eventually("the run knows its ask", PATIENCE, || {
                !scene.record().asks.is_empty()
            });
            scene.say(&["answer", &code, "pg"]);
            eventually("the run is over", PATIENCE, || scene.is("done"));
        } else {
            scene.say(&["answer", &code, "pg"]);
            scene.run(&["--resume", &id]).with(0);
        }
        let said = scene.api.user_texts().join("\n");
        assert!(
            said.contains("You previously asked: Which database? The user answered: pg."),
            "{said}"
        );
        assert_eq!(scene.pending(), Vec::<Value>::new());
    }
}

#[test]
fn an_approval_of_a_lost_run_is_free_for_the_very_same_call_at_once() {
    let gate = Gate::new();
    let held = gate.clone();
    // An agent whose host is killed may still say something before it ends.
    let again = Turn::respond(move |request| {
        let mut messages = request.messages().iter().rev();
        let last = messages.find(|message| message["role"] == "user");
        if last.is_some_and(|last| last.to_string().contains("make the very same call again")) {
            let call = json!({ "command": "touch made", "description": "a command" });
            Turn::held(&held).and_tool("Bash", call)
        } else {
            Turn::text("Done.")
        }
    });
    let script = [bash("touch made"), again.clone(), again.clone(), again];
    let Some((scene, run, code)) = asking(script) else {
        return;
    };
    run.signal(Signal::KILL);
    drop(run);
    nothing_is_left_of(&scene.record().id);
    scene.say(&["approve", &code]);
    let run = scene.start(&["--resume", &scene.id()]);
    gate.wait_until_reached();
    // Otherwise the answer is left to the call that asked for two seconds, and an agent that is faster asks again.
    assert_eq!(stored(&scene, &code), (0, "approved".to_owned()));
    gate.release();
    run.ended().with(0);
    assert!(scene.world.path("made").exists());
}
