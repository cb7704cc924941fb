//! Slack: the one of the tests is Slack for the official Bolt, and what pml sends is judged by the models of the official
//! SDK.

mod commands;
mod injections;
mod seed_001;
pub(crate) mod serve;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::fake_slack::{APP_TOKEN, BOT_TOKEN, FakeSlack, Filled, Trouble, complaints};
use crate::support::world::World;
use crate::support::{DEADLINE, eventually, have, sdk};

/// An app on the official Bolt; killed when it is dropped.
struct Bolt {
    process: Child,
    lines: Receiver<Value>,
}

impl Bolt {
    fn start(world: &World, slack: &FakeSlack) -> Self {
        let mut process = world
            .program(std::path::Path::new("node"))
            .arg(sdk::script("bolt.mjs"))
            .arg(sdk::bolt())
            .args([&slack.api_url(), APP_TOKEN, BOT_TOKEN])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "printed": line }));
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        Self { process, lines }
    }

    /// What reached it next.
    fn says(&self) -> Value {
        let line = self.lines.recv_timeout(Duration::from_mins(1));
        line.expect("Bolt says nothing more")
    }
}

impl Drop for Bolt {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_official_bolt_takes_the_slack_of_the_tests_for_slack() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = World::new();
    let slack = FakeSlack::start();
    // A wait that the service asks for is one to Bolt, too.
    slack.trouble("conversations.open", Trouble::TooFast(1));
    let bolt = Bolt::start(&world, &slack);
    let sent = bolt.says();
    assert_eq!(sent["channel"], "DU1", "{sent}");
    let ts = sent["sent"].as_str().unwrap();
    assert_eq!(slack.requests("conversations.open").len(), 2);

    slack.press("U1", ts, "reason", &Filled::nothing());
    assert_eq!(bolt.says(), json!({ "form": "V1" }));
    slack.submit("U1", "not now");
    assert_eq!(bolt.says(), json!({ "reason": "not now", "user": "U1" }));

    slack.write("U1", "hello", Some(ts));
    assert_eq!(bolt.says(), json!({ "message": "hello", "thread": ts }));
    assert_eq!(slack.requests("chat.postEphemeral")[0]["text"], "heard");

    slack.disconnect("warning");
    eventually("Bolt connects again", DEADLINE, || slack.happened("hello 2"));
    eventually("Bolt closes the first", DEADLINE, || slack.sockets() == [2]);

    let filled = Filled::nothing().options(0, &["1"]).text(0, "mine");
    let pressed = slack.press("U1", ts, "send", &filled);
    let option = json!({ "text": { "type": "plain_text", "text": "sqlite" }, "value": "1" });
    assert_eq!(
        bolt.says(),
        json!({ "action": "yes", "user": "U1", "values": {
            "pml:abcde:3:0": { "choice": { "type": "radio_buttons", "selected_option": option } },
            "pml:abcde:3:0:other": { "text": { "type": "plain_text_input", "value": "mine" } },
        } })
    );
    assert!(slack.happened(&format!("ack {pressed} on 2")));
    assert_eq!(slack.message(ts)["text"], "Answered");
    assert_eq!(slack.broken_limits(), Vec::<String>::new());
}

/// What the models of the official SDK say about files with payloads.
fn judged(world: &World, files: &[PathBuf]) -> Value {
    let output = world
        .program(&sdk::slack_sdk())
        .arg(sdk::script("block_kit.py"))
        .args(files)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_payload_is_one_for_the_official_models_and_within_the_limits_that_they_miss() {
    if !have(&["uv"]) {
        return;
    }
    let world = World::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/slack");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let files: Vec<PathBuf> = files.collect();
    assert!(files.len() > 15, "{files:?}");
    let judged = judged(&world, &files);
    for file in &files {
        let judgement = &judged[file.to_str().unwrap()];
        assert_eq!(
            *judgement,
            json!({ "complaints": [], "different": [] }),
            "{file:?}"
        );
        let payload: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        assert_eq!(
            complaints(&payload["blocks"], 50),
            Vec::<String>::new(),
            "{file:?}"
        );
    }
}

#[test]
fn a_payload_beyond_a_limit_is_found_by_the_models_or_by_the_slack_of_the_tests() {
    if !have(&["uv"]) {
        return;
    }
    let world = World::new();
    let plain = |length: usize| json!({ "type": "plain_text", "text": "x".repeat(length) });
    let option = |text: usize, description: usize| json!({ "text": plain(text), "value": "0", "description": plain(description) });
    let button = |text: usize| json!({ "type": "button", "action_id": uuid::Uuid::new_v4(), "text": plain(text), "value": "x" });
    let radio = |options: Vec<Value>| json!({ "type": "actions", "elements": [{ "type": "radio_buttons", "action_id": "a", "options": options }] });
    // What is wrong, the block, and whether the models see it.
    let wrong = [
        ("section", json!({ "type": "section", "text": plain(3001) }), true),
        ("header", json!({ "type": "header", "text": plain(151) }), true),
        (
            "button",
            json!({ "type": "actions", "elements": [button(76)] }),
            true,
        ),
        (
            "elements",
            json!({ "type": "actions", "elements": vec![button(1); 26] }),
            true,
        ),
        (
            "block_id",
            json!({ "type": "section", "block_id": "x".repeat(256), "text": plain(1) }),
            true,
        ),
        ("options", radio(vec![option(1, 1); 11]), false),
        ("option", radio(vec![option(76, 1)]), false),
        ("description", radio(vec![option(1, 76)]), false),
    ];
    let mut files = Vec::new();
    for (name, block, _) in &wrong {
        let file = world.home().join(format!("{name}.json"));
        std::fs::write(&file, json!({ "blocks": [block] }).to_string()).unwrap();
        files.push(file);
    }
    let judged = judged(&world, &files);
    for ((name, block, by_models), file) in wrong.iter().zip(&files) {
        let seen = &judged[file.to_str().unwrap()]["complaints"];
        assert_eq!(!seen.as_array().unwrap().is_empty(), *by_models, "{name}: {seen}");
        assert!(!complaints(&json!([block]), 50).is_empty(), "{name}");
    }
}
