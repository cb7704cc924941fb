//! The commands by which a person sets Slack up and tries it, and what an old message is good for.

use std::process::Stdio;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::serve::{asked, connected, edited, told, world};
use crate::serve::Served;
use crate::support::fake_slack::{FakeSlack, Filled};
use crate::support::world::{World, json_of, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually};

#[test]
fn the_manifest_is_json_that_slack_takes_and_needs_no_settings() {
    let manifest = json_of(&World::new().run(&["channels", "slack", "manifest"]));
    assert_eq!(manifest["settings"]["socket_mode_enabled"], true);
    assert_eq!(manifest["settings"]["interactivity"]["is_enabled"], true);
    assert_eq!(
        manifest["settings"]["event_subscriptions"]["bot_events"],
        json!(["message.im"])
    );
    assert_eq!(
        manifest["oauth_config"]["scopes"]["bot"],
        json!(["chat:write", "im:write", "im:history"])
    );
}

#[test]
fn a_test_of_the_channel_puts_a_question_there_and_prints_its_answer() {
    let slack = FakeSlack::start();
    let world = world(&slack);
    let unserved = world.run(&["channels", "test", "slack"]);
    assert_eq!(unserved.status.code(), Some(1));
    let complaint = stderr(&unserved);
    assert!(
        complaint.contains("`slack` is not connected: `pml serve` does not run")
            && complaint.contains("hint: in another terminal: pml serve"),
        "{complaint}"
    );
    let _served = Served::start(&world);
    connected(&slack, 1);
    let testing = world
        .command(&["channels", "test", "slack"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the test is in Slack", DEADLINE, || slack.messages().len() == 1);
    let ts = slack.messages()[0]["ts"].as_str().unwrap().to_owned();
    slack.press("U1", &ts, "send", &Filled::nothing().options(0, &["0"]));
    let tested = testing.wait_with_output().unwrap();
    assert!(tested.status.success(), "{}", stderr(&tested));
    assert_eq!(stdout(&tested), "answered: Yes (by chat:slack:T1/U1)\n");
    let message = edited(&slack, &ts);
    assert!(message.contains("Answered in Slack: Yes"), "{message}");
}

#[test]
fn a_press_on_a_message_that_is_over_says_who_was_first_and_changes_nothing() {
    let slack = FakeSlack::start();
    let world = world(&slack);
    let _served = Served::start(&world);
    connected(&slack, 1);
    let mut client = world.legacy();
    let (call, ts) = asked(&mut client, &slack, 1);
    let before = slack.message(&ts);
    let pending = json_of(&world.run(&["pending", "--json"]));
    let code = pending["pending"][0]["code"].as_str().unwrap();
    let answered = world.run(&["answer", code, "Red"]);
    assert!(answered.status.success(), "{}", stderr(&answered));
    assert_eq!(texts(&client.answer(call)["result"]), ["User selected: Red"]);
    let after = edited(&slack, &ts);
    // The person has not seen the edit yet.
    slack.press_old("U1", &before, "send", &Filled::nothing().options(0, &["1"]));
    let reply = told(&slack, 1);
    assert_eq!(reply["user"], "U1");
    assert!(
        reply.to_string().contains("Answered in a terminal: Red"),
        "{reply}"
    );
    assert_eq!(slack.message(&ts).to_string(), after);
    let recorded: Vec<Value> = world.recorded("answer");
    assert_eq!(recorded.len(), 1, "{recorded:#?}");
}
