//! Answers that come after their call has returned: the same question of another conversation gets them, or `pml_status`.

use serde_json::{Value, json};

use crate::support::world::{Client, World, state, texts};
use crate::support::{DEADLINE, eventually};

fn which() -> Value {
    json!({ "question": "Which way?", "options": [{ "label": "Left" }, { "label": "Right" }] })
}

/// Asks, lets the call return, and answers in a terminal.
fn answered_late(world: &World, client: &mut Client, label: &str) -> Value {
    let pending = client.call("ask_user", &which())["structuredContent"].clone();
    assert_eq!(pending["status"], "pending");
    let told = world.run(&["answer", pending["code"].as_str().unwrap(), label]);
    assert!(told.status.success());
    pending
}

/// Lets everything in the store have happened some days ago.
fn age(world: &World, days: i64) {
    let store = rusqlite::Connection::open(state(world).join("workflows.db")).unwrap();
    let millis = days * 24 * 60 * 60 * 1000;
    let changed = store.execute(
        "UPDATE workflow SET created_at = created_at - ?1, expires_at = expires_at - ?1",
        [millis],
    );
    assert!(changed.unwrap() > 0);
}

/// Asks for the status until it tells a late answer: for two seconds it is left to the call that asked.
fn told_late(client: &mut Client) -> Value {
    let mut told = Value::Null;
    eventually("the late answer is told", DEADLINE, || {
        let status = client.call("pml_status", &json!({}));
        told = status["structuredContent"]["answered"].clone();
        told != json!([])
    });
    told
}

#[test]
fn another_conversation_that_repeats_the_question_days_later_gets_the_answer() {
    let world = World::new();
    let mut first = world.legacy();
    answered_late(&world, &mut first, "Left");
    age(&world, 5);
    let mut second = world.legacy();
    // The first conversation is still open: for two seconds the answer is left to it.
    let mut told = Value::Null;
    eventually("the kept answer is told", DEADLINE, || {
        told = second.call("ask_user", &which());
        told["structuredContent"]["status"] == "answered"
    });
    assert_eq!(texts(&told), ["User selected: Left"]);
    assert_eq!(told["structuredContent"]["by"], "cli");
    let again = second.call("ask_user", &json!({ "question": "Another?" }));
    assert_eq!(again["structuredContent"]["status"], "pending");
}

#[test]
fn an_answer_outlives_the_process_that_asked() {
    let world = World::new();
    let mut first = world.legacy();
    let pending = first.call("ask_user", &which())["structuredContent"].clone();
    first.close();
    let told = world.run(&["answer", pending["code"].as_str().unwrap(), "Right"]);
    assert!(told.status.success());
    let mut second = world.legacy();
    let mut told = Value::Null;
    eventually("the kept answer is told", DEADLINE, || {
        told = second.call("ask_user", &which());
        told["structuredContent"]["status"] == "answered"
    });
    assert_eq!(texts(&told), ["User selected: Right"]);
}

#[test]
fn the_status_tells_a_late_answer_once_and_its_id_tells_it_again() {
    let world = World::new();
    let mut first = world.legacy();
    let pending = answered_late(&world, &mut first, "Left");
    first.close();
    let mut second = world.legacy();
    let told = told_late(&mut second);
    let expected = json!([{
        "code": pending["code"], "workflow_id": pending["workflow_id"],
        "answers": { "Which way?": ["Left"] }, "by": "cli",
    }]);
    assert_eq!(told, expected);
    let status = second.call("pml_status", &json!({}));
    assert_eq!(
        status["structuredContent"]["answered"],
        json!([]),
        "it counts as taken"
    );
    let continuation = json!({ "continue_workflow": { "workflow_id": pending["workflow_id"] } });
    assert_eq!(
        texts(&second.call("ask_user", &continuation)),
        ["User selected: Left"]
    );
    // Asked anew it is a new question.
    let again = second.call("ask_user", &which());
    assert_eq!(again["structuredContent"]["status"], "pending");
}

#[test]
fn the_status_tells_no_answer_of_another_project_and_no_refusal() {
    let world = World::new();
    world.configure(&json!({}));
    let mut here = world.legacy();
    answered_late(&world, &mut here, "Left");
    let refused = here.call("ask_user", &json!({ "question": "Refused?" }))["structuredContent"].clone();
    let told = world.run(&["refuse", refused["code"].as_str().unwrap()]);
    assert!(told.status.success());
    let other = world.home().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join(".pml.json"), "{}").unwrap();
    let mut command = world.command(&["stdio"]);
    command.current_dir(&other);
    let mut there = Client::start(command);
    there.initialize("2025-06-18");
    let told = told_late(&mut here);
    assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    // By then it would have been told there too.
    answered_late(&world, &mut here, "Right");
    let status = |client: &mut Client| {
        let status = client.call("pml_status", &json!({}));
        status["structuredContent"]["answered"].clone()
    };
    eventually("it is told here, and not there", DEADLINE, || {
        assert_eq!(status(&mut there), json!([]));
        status(&mut here) != json!([])
    });
}
