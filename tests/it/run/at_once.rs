//! Several runs at once, and one run that several processes want.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::scene::{Ended, PATIENCE, Running, Scene};
use super::{CHOSEN, asked, question};
use crate::support::eventually;
use crate::support::messages_api::{Gate, MessagesApi, Turn};

fn api() -> Arc<MessagesApi> {
    let port = asked("Which port?", "Port", &["one", "two"]);
    let scripts = [
        ("apples", vec![question(), Turn::text("About apples.")]),
        (
            "pears",
            vec![
                Turn::tool("AskUserQuestion", json!({ "questions": [port] })),
                Turn::text("About pears."),
            ],
        ),
    ];
    Arc::new(MessagesApi::scripted_by_prompt(scripts))
}

#[test]
fn two_runs_of_one_user_ask_at_once_and_each_gets_its_own_answer() {
    let Some(scene) = Scene::with(api()) else {
        return;
    };
    let (apples, pears) = (
        scene.start(&["tell me of apples"]),
        scene.start(&["tell me of pears"]),
    );
    eventually("both ask", PATIENCE, || scene.pending().len() == 2);
    let pending = scene.pending();
    let code = |text: &str| {
        let found = pending.iter().find(|ask| ask.to_string().contains(text));
        found.unwrap()["code"].as_str().unwrap().to_owned()
    };
    scene.say(&["answer", &code("Which port?"), "two"]);
    scene.say(&["answer", &code("Which database?"), "pg"]);
    assert!(apples.ended().with(0).stdout.contains("About apples."));
    assert!(pears.ended().with(0).stdout.contains("About pears."));
    let result = |text: &str| scene.api.requests_of(text)[1].last_result();
    assert_eq!(result("apples"), CHOSEN);
    assert!(
        result("pears").contains(r#""Which port?"="two""#),
        "{}",
        result("pears")
    );
    let records = scene.records();
    assert_eq!(records.len(), 2);
    assert_ne!(records[0].session, records[1].session);
}

#[test]
fn two_users_at_once_know_nothing_of_each_other() {
    let api = api();
    let Some(one) = Scene::with(Arc::clone(&api)) else {
        return;
    };
    let other = Scene::with(api).unwrap();
    let (apples, pears) = (
        one.start(&["tell me of apples"]),
        other.start(&["tell me of pears"]),
    );
    one.say(&["answer", &one.asking(), "pg"]);
    other.say(&["answer", &other.asking(), "one"]);
    assert!(apples.ended().with(0).stdout.contains("About apples."));
    assert!(pears.ended().with(0).stdout.contains("About pears."));
    assert_eq!((one.records().len(), other.records().len()), (1, 1));
}

#[test]
fn more_runs_than_the_user_wants_are_refused_with_the_way_to_allow_more() {
    let Some(scene) = Scene::with(api()) else {
        return;
    };
    scene.configure_user(&json!({ "run": { "most": 1 } }));
    let apples = scene.start(&["tell me of apples"]);
    let code = scene.asking();
    let refused = scene.run(&["tell me of pears"]).with(2);
    for word in [
        "1 runs are under way, and 1 may be at once",
        "hint: to see them: pml runs",
        "\"run\": {\"most\": ",
    ] {
        assert!(refused.stderr.contains(word), "{word}: {}", refused.stderr);
    }
    assert_eq!(scene.records().len(), 1);
    scene.say(&["answer", &code, "pg"]);
    apples.ended().with(0);
    // The place is free again.
    let pears = scene.start(&["tell me of pears"]);
    scene.say(&["answer", &scene.code(), "one"]);
    pears.ended().with(0);
}

/// Lets two processes resume the same run; returns how the one ended that was refused, and the other one.
fn race(scene: &Scene, id: &str) -> (Ended, Running) {
    let (mut one, mut other) = (scene.start(&["--resume", id]), scene.start(&["--resume", id]));
    let mut first = false;
    eventually("one of them is refused", PATIENCE, || {
        first = one.has_ended();
        first || other.has_ended()
    });
    if first {
        (one.ended(), other)
    } else {
        (other.ended(), one)
    }
}

#[test]
fn of_two_processes_that_resume_a_run_exactly_one_drives_it() {
    let gate = Gate::new();
    let script = [question(), Turn::held(&gate).and_text("Postgres it is.")];
    let Some(scene) = Scene::scripted(script) else {
        return;
    };
    scene.run(&["--patience", "1s", "ask me"]).with(75);
    scene.say(&["answer", &scene.code(), "pg"]);
    let id = scene.id();
    let (refused, winner) = race(&scene, &id);
    let refused = refused.with(2);
    assert!(
        refused
            .stderr
            .contains(&format!("run `{id}` is driven by another process"))
            && refused
                .stderr
                .contains(&format!("hint: to watch it: pml run --attach {id}")),
        "{}",
        refused.stderr
    );
    gate.wait_until_reached();
    gate.release();
    assert!(winner.ended().with(0).stdout.contains("Postgres it is."));
    let results = scene.api.tool_results();
    assert_eq!(results.len(), 1, "{results:#?}");
    assert_eq!(
        (results[0].text.as_str(), scene.api.requests().len()),
        (CHOSEN, 2)
    );
}
