//! `pml serve` with a Slack: asks arrive there, and what is pressed there counts.

use pretty_assertions::assert_eq;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::channels::standing;
use crate::serve::Served;
use crate::support::fake_slack::{APP_TOKEN, BOT_TOKEN, FakeSlack, Filled};
use crate::support::world::{Client, World, texts};
use crate::support::{DEADLINE, eventually};

/// A world whose person is asked in a Slack, and whose questions hold their call.
pub(super) fn world(slack: &FakeSlack) -> World {
    let world = World::new();
    person_in_slack(&world, slack, &json!({}));
    world.configure(&json!({
        "askUser": { "mode": "blocking", "timeoutSeconds": 60 },
        "approvals": { "by": "human" },
        "permissions": { "ask": ["*"] },
        "mcpServers": { "fake": world.fake(&[]) },
    }));
    world
}

/// Has the person of a world asked in a Slack, with these settings besides.
pub(crate) fn person_in_slack(world: &World, slack: &FakeSlack, more: &Value) {
    world.set("SLACK_APP_TOKEN", APP_TOKEN);
    world.set("SLACK_BOT_TOKEN", BOT_TOKEN);
    let mut settings = json!({
        "appToken": "${SLACK_APP_TOKEN}", "botToken": "${SLACK_BOT_TOKEN}", "people": ["U1"],
        "apiUrl": slack.api_url(),
    });
    settings
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let user = world.home().join(".config/pml");
    std::fs::create_dir_all(&user).unwrap();
    let settings = json!({ "channels": { "slack": settings } });
    std::fs::write(user.join("pml.json"), settings.to_string()).unwrap();
}

pub(crate) fn connected(slack: &FakeSlack, connection: u64) {
    eventually("pml is connected", DEADLINE, || {
        slack.happened(&format!("hello {connection}"))
    });
}

/// Asks something, and waits for its message.
pub(super) fn asked(client: &mut Client, slack: &FakeSlack, messages: usize) -> (u64, String) {
    let arguments = json!({
        "question": "Which colour? <!channel>", "options": [{ "label": "Red" }, { "label": "Blue" }],
    });
    let call = client.send(
        "tools/call",
        &json!({ "name": "ask_user", "arguments": arguments }),
    );
    eventually("the question is sent", DEADLINE, || {
        slack.messages().len() == messages
    });
    let ts = slack.messages()[messages - 1]["ts"].as_str().unwrap().to_owned();
    (call, ts)
}

/// Waits until a message has no button, and returns its text.
pub(crate) fn edited(slack: &FakeSlack, ts: &str) -> String {
    eventually("the message is edited", DEADLINE, || {
        !slack.message(ts).to_string().contains("\"button\"")
    });
    slack.message(ts).to_string()
}

/// What a person was told beside a message.
pub(super) fn told(slack: &FakeSlack, count: usize) -> Value {
    eventually("the person is told", DEADLINE, || {
        slack.requests("chat.postEphemeral").len() == count
    });
    slack.requests("chat.postEphemeral")[count - 1].clone()
}

#[test]
fn a_question_is_answered_in_slack_and_no_token_is_left_anywhere() {
    let slack = FakeSlack::start();
    let world = world(&slack);
    let _served = Served::start(&world);
    connected(&slack, 1);
    let mut client = world.legacy();
    let (call, ts) = asked(&mut client, &slack, 1);

    // A stranger is told so, and changes nothing.
    let blue = Filled::nothing().options(0, &["1"]);
    slack.press("U2", &ts, "send", &blue);
    let stranger = told(&slack, 1);
    assert_eq!(stranger["user"], "U2");
    assert!(stranger.to_string().contains("nothing was changed"), "{stranger}");
    // Nothing chosen is no answer.
    slack.press("U1", &ts, "send", &Filled::nothing());
    assert_eq!(told(&slack, 2)["user"], "U1");

    slack.press("U1", &ts, "send", &blue);
    let answer = client.answer(call);
    assert_eq!(texts(&answer["result"]), ["User selected: Blue"]);
    let message = edited(&slack, &ts);
    assert!(message.contains("Answered in Slack: Blue"), "{message}");

    // What is typed in the thread of a message is an answer, too.
    let (call, ts) = asked(&mut client, &slack, 2);
    slack.write("U1", "green &amp; grey", Some(&ts));
    let answer = client.answer(call);
    assert_eq!(texts(&answer["result"]), ["User answered: green & grey"]);
    edited(&slack, &ts);

    assert_eq!(slack.broken_limits(), Vec::<String>::new());
    assert_eq!(slack.messages().len(), 2);
    for file in world.files() {
        let bytes = std::fs::read(world.home().join(&file)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        for token in [APP_TOKEN, BOT_TOKEN] {
            assert!(!text.contains(token), "{}", file.display());
        }
    }
}

#[test]
fn an_approval_is_refused_in_slack_with_a_reason_and_another_one_given() {
    let slack = FakeSlack::start();
    let world = world(&slack);
    let _served = Served::start(&world);
    connected(&slack, 1);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    eventually("the approval is sent", DEADLINE, || slack.messages().len() == 1);
    let ts = slack.messages()[0]["ts"].as_str().unwrap().to_owned();
    let message = slack.message(&ts).to_string();
    // What lasts is not offered: the settings do not say so.
    assert!(
        !message.contains("\"session\"") && !message.contains("\"always\""),
        "{message}"
    );
    slack.press("U1", &ts, "reason", &Filled::nothing());
    eventually("the form is opened", DEADLINE, || {
        slack.requests("views.open").len() == 1
    });
    slack.submit("U1", "not on a Friday");
    let message = edited(&slack, &ts);
    assert!(message.contains("Refused in Slack: not on a Friday"), "{message}");

    client.call("fake__connect", &json!({}));
    eventually("the next one is sent", DEADLINE, || slack.messages().len() == 2);
    let ts = slack.messages()[1]["ts"].as_str().unwrap().to_owned();
    slack.press("U1", &ts, "once", &Filled::nothing());
    let message = edited(&slack, &ts);
    assert!(message.contains("Approved in Slack"), "{message}");
}

#[test]
fn a_press_counts_after_a_restart_and_nothing_is_sent_twice() {
    let slack = FakeSlack::start();
    let world = world(&slack);
    let mut served = Served::start(&world);
    connected(&slack, 1);
    let mut client = world.legacy();
    let (call, ts) = asked(&mut client, &slack, 1);
    // What is killed earlier may have sent it, and does not know.
    eventually("it is recorded as sent", DEADLINE, || {
        standing(&world, "slack")["open"] == 1
    });
    served.end(Signal::KILL);
    eventually("the connection is gone", DEADLINE, || slack.sockets().is_empty());
    let _served = Served::start(&world);
    connected(&slack, 2);
    slack.press("U1", &ts, "send", &Filled::nothing().options(0, &["0"]));
    let answer = client.answer(call);
    assert_eq!(texts(&answer["result"]), ["User selected: Red"]);
    let message = edited(&slack, &ts);
    assert!(message.contains("Answered in Slack: Red"), "{message}");
    assert_eq!(slack.requests("chat.postMessage").len(), 1);
}
