//! What a model might write, in Slack: no mention, no link, no markup, and nothing is cut.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::serve::{connected, world};
use crate::channels::injections::{INJECTIONS, ask_long, assert_nothing_hidden};
use crate::serve::Served;
use crate::support::fake_slack::FakeSlack;
use crate::support::{DEADLINE, eventually};

/// Fails where a part of a message is read as more than text.
fn assert_plain(part: &Value) {
    let live = [
        "mrkdwn",
        "link",
        "user",
        "usergroup",
        "channel",
        "broadcast",
        "emoji",
        "image",
        "color",
        "date",
    ];
    match part {
        Value::Array(parts) => parts.iter().for_each(assert_plain),
        Value::Object(members) => {
            let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
            assert!(!live.contains(&kind), "{part}");
            if kind == "plain_text" {
                assert_eq!(members.get("emoji"), Some(&json!(false)), "{part}");
            }
            // No button leads elsewhere.
            assert_eq!(members.get("url"), None, "{part}");
            members.values().for_each(assert_plain);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn in_slack_a_text_calls_no_one_and_what_is_too_long_leads_to_the_inbox() {
    let slack = FakeSlack::start();
    let world = world(&slack);
    // Questions return an id at once.
    world.configure(&json!({ "approvals": { "by": "human" } }));
    let _served = Served::start(&world);
    connected(&slack, 1);
    let mut client = world.legacy();
    for (at, injection) in INJECTIONS.iter().enumerate() {
        let option = |text: &str| json!({ "label": text, "description": injection });
        let asking = client.call(
            "ask_user",
            &json!({
                "channel": "slack", "question": format!("{injection} {at}"),
                "options": [option(injection), option("other")],
            }),
        );
        assert_eq!(
            asking["structuredContent"]["status"], "pending",
            "{injection:?}: {asking}"
        );
    }
    ask_long(&mut client);
    let count = INJECTIONS.len() + 1;
    eventually("everything is sent", DEADLINE, || {
        slack.requests("chat.postMessage").len() == count
    });
    let sent = slack.requests("chat.postMessage");
    for message in &sent {
        for (member, expected) in [
            ("parse", json!("none")),
            ("link_names", json!(false)),
            ("mrkdwn", json!(false)),
            ("unfurl_links", json!(false)),
            ("unfurl_media", json!(false)),
        ] {
            assert_eq!(message[member], expected, "{member}: {message}");
        }
        // The line of a notification is read as markup, unless it is escaped.
        let line = message["text"].as_str().unwrap();
        assert!(!line.contains(['<', '>']), "{line}");
        assert_plain(&message["blocks"]);
        assert_nothing_hidden(message);
    }
    let last = sent[count - 1].to_string();
    assert!(last.contains("too long for Slack. Open the inbox"), "{last}");
    assert!(
        !last.contains("evil.example") && !last.contains("\"button\""),
        "{last}"
    );
    assert_eq!(slack.broken_limits(), Vec::<String>::new());
}
