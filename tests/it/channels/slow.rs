//! A service that is slow, or wants to be left alone, keeps no agent waiting; and what an agent gives up is withdrawn.

use std::process::Stdio;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{closed, stands, world_on};
use crate::serve::Served;
use crate::support::fake_telegram::FakeTelegram;
use crate::support::world::{World, hold_database, json_of, state, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually};

fn arguments(question: &str) -> Value {
    json!({ "question": question, "options": [{ "label": "Red" }, { "label": "Blue" }], "channel": "telegram" })
}

fn pending(world: &World) -> usize {
    let pending = json_of(&world.run(&["pending", "--json"]));
    pending["pending"].as_array().unwrap().len()
}

#[test]
fn a_service_that_does_not_answer_keeps_no_agent_waiting_and_what_arrives_late_is_closed() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    let _served = Served::start(&world);
    stands(&world, "telegram", "connected");
    let mut client = world.legacy();
    telegram.hold("sendMessage");
    // It is told although the service says nothing: nothing releases it before.
    let result = client.call("ask_user", &arguments("Which colour?"));
    assert_eq!(
        texts(&result)[0],
        "`telegram` did not send the question within 5 seconds. Nobody was asked."
    );
    assert_eq!(pending(&world), 0);
    assert_eq!(telegram.requests("sendMessage").len(), 1);
    telegram.release("sendMessage");
    let id = super::card(&telegram, 1);
    let text = closed(&telegram, id);
    assert!(
        text.contains("The agent does not wait for this any more"),
        "{text}"
    );
}

#[test]
fn a_service_that_wants_to_be_left_alone_is_and_its_agents_are_told_at_once() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    let _served = Served::start(&world);
    stands(&world, "telegram", "connected");
    let mut client = world.legacy();
    telegram.delay("sendMessage", 600);
    for question in ["Which colour?", "Which way?"] {
        let result = client.call("ask_user", &arguments(question));
        let told = texts(&result)[0];
        assert!(
            told.starts_with("the question was not sent by `telegram`: Telegram wants pml to wait for "),
            "{told}"
        );
        assert_eq!(pending(&world), 0);
    }
    // It was asked once.
    assert_eq!(telegram.requests("sendMessage").len(), 1);
}

#[test]
fn a_call_that_is_cancelled_while_its_question_is_recorded_leaves_none_behind() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    let _served = Served::start(&world);
    stands(&world, "telegram", "connected");
    let mut client = world.legacy();
    // The history is there once something was asked.
    let first = client.call("ask_user", &arguments("Which colour?"));
    assert_eq!(first["structuredContent"]["status"], "pending", "{first}");
    let history = std::fs::File::open(state(&world).join("history")).unwrap();
    history.lock().unwrap();
    let call = client.send(
        "tools/call",
        &json!({ "name": "ask_user", "arguments": arguments("Which way?") }),
    );
    // It stands in the store, is sent, and its call waits for the history still.
    eventually("both questions are sent", DEADLINE, || {
        telegram.cards().len() == 2
    });
    client.notify("notifications/cancelled", &json!({ "requestId": call }));
    // What is said after it is answered after it.
    client.request("ping", &json!({}));
    history.unlock().unwrap();
    let text = closed(&telegram, telegram.cards()[1]);
    assert!(
        text.contains("The agent does not wait for this any more"),
        "{text}"
    );
    assert_eq!(pending(&world), 1, "the other one waits still");
}

#[test]
fn an_agent_that_asks_while_pml_serve_opens_its_channels_waits_a_moment() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    // The store is there.
    let mut client = world.legacy();
    let first = client.call("ask_user", &json!({ "question": "Why?" }));
    assert_eq!(first["structuredContent"]["status"], "pending", "{first}");
    let held = hold_database(&world);
    // It runs, and cannot say yet how its channels stand.
    let _served = Served::start(&world);
    let call = client.send(
        "tools/call",
        &json!({ "name": "ask_user", "arguments": arguments("Which colour?") }),
    );
    client.request("ping", &json!({}));
    drop(held);
    let answer = client.answer(call);
    assert_eq!(
        answer["result"]["structuredContent"]["status"], "pending",
        "{answer}"
    );
}

#[test]
fn a_test_of_a_channel_waits_a_moment_while_pml_serve_opens_it() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    // The store is there.
    let asked = world.legacy().call("ask_user", &json!({ "question": "Why?" }));
    assert_eq!(asked["structuredContent"]["status"], "pending", "{asked}");
    let held = hold_database(&world);
    let _served = Served::start(&world);
    let testing = world
        .command(&["channels", "test", "telegram"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let files = format!("/proc/{}/fd", testing.id());
    eventually("it has read the store", DEADLINE, || {
        let files = std::fs::read_dir(&files).into_iter().flatten().flatten();
        let mut open = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        open.any(|file| file.ends_with("workflows.db"))
    });
    drop(held);
    // The question that waited already, and the one of the test.
    super::card(&telegram, 2);
    let of_test = telegram.cards().into_iter().find(|id| {
        let text = telegram.message(*id)["text"].to_string();
        text.contains("This is a test of pml")
    });
    telegram.press(super::ME, super::ME, of_test.unwrap(), "Yes");
    let tested = testing.wait_with_output().unwrap();
    assert!(tested.status.success(), "{}", stderr(&tested));
    assert!(
        stdout(&tested).starts_with("answered: Yes (by chat:telegram:"),
        "{}",
        stdout(&tested)
    );
}
