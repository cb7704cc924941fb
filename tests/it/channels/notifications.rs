//! ntfy and the webhook from the agent to the person and back: notifications with buttons, signed cards.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{stands, write_user_file};
use crate::serve::Served;
use crate::support::fake_ntfy::FakeNtfy;
use crate::support::web::{Answer, Web};
use crate::support::world::{Client, World, texts};
use crate::support::{DEADLINE, eventually};

const TOPIC: &str = "canary-topic-of-ada";
const SECRET: &str = "canary of the webhook";

/// A world with channels whose questions hold their call.
fn world(channels: &Value, variables: &[(&str, &str)]) -> World {
    let world = World::new();
    for (name, value) in variables {
        world.set(name, value);
    }
    world.configure(&json!({ "askUser": { "mode": "blocking", "timeoutSeconds": 120 } }));
    write_user_file(&world, &json!({ "channels": channels }).to_string());
    world
}

/// Asks, and returns the id of the call that waits.
fn ask(client: &mut Client, question: &str) -> u64 {
    let options = json!([{ "label": "Red" }, { "label": "Blue" }]);
    let arguments = json!({ "question": question, "options": options });
    client.send(
        "tools/call",
        &json!({ "name": "ask_user", "arguments": arguments }),
    )
}

/// Waits until a topic got so many notifications, and returns them.
fn notified(ntfy: &FakeNtfy, count: usize) -> Vec<Value> {
    eventually(&format!("{count} notifications"), DEADLINE, || {
        ntfy.notifications(TOPIC).len() >= count
    });
    ntfy.notifications(TOPIC)
}

#[test]
fn a_button_of_a_notification_decides_once_and_its_outcome_is_told() {
    let ntfy = FakeNtfy::start();
    let channels = json!({ "ntfy": { "server": ntfy.url(), "topic": "${NTFY_TOPIC}" } });
    let world = world(&channels, &[("NTFY_TOPIC", TOPIC)]);
    let _served = Served::start(&world);
    stands(&world, "ntfy", "connected");
    let mut client = world.legacy();
    let call = ask(&mut client, "Which colour?");
    let question = notified(&ntfy, 1).remove(0);
    let text = question["message"].as_str().unwrap();
    assert!(text.contains("Which colour?\n1. Red\n2. Blue"), "{text}");
    assert!(
        question["click"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:"),
        "{question}"
    );

    ntfy.press(&question, "Blue");
    let answer = client.answer(call);
    assert_eq!(texts(&answer["result"]), ["User selected: Blue"]);
    let told = notified(&ntfy, 2).remove(1);
    let outcome = told["message"].as_str().unwrap();
    assert!(outcome.starts_with("Answered in ntfy: Blue · "), "{told}");
    assert_eq!(told["actions"], Value::Null);

    // Pressed again, on the other button: it is told what was first, and nothing changes.
    ntfy.press(&question, "Red");
    let late = notified(&ntfy, 3).remove(2);
    assert_eq!(late["message"], outcome);

    // The next ask comes after all that was to be told of this one, which was told once for each press.
    ask(&mut client, "Which way?");
    let all = notified(&ntfy, 4);
    assert!(
        all[3]["message"].as_str().unwrap().contains("Which way?"),
        "{all:#?}"
    );
    assert_eq!(all.len(), 4);
    let recorded = world.recorded("answer");
    assert_eq!(recorded.len(), 1, "{recorded:#?}");
    // The topic is a password: it stands in no file.
    for file in world.files() {
        let bytes = std::fs::read(world.home().join(&file)).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&bytes).contains(TOPIC),
            "{}",
            file.display()
        );
    }
}

/// Checks the signature of what was posted, over its very bytes.
fn assert_signed(request: &crate::support::web::Request) {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = ring::hmac::sign(&key, request.text.as_bytes());
    let hex: Vec<String> = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = format!("sha256={}", hex.concat());
    assert_eq!(request.header("x-pml-signature"), Some(expected.as_str()));
}

#[test]
fn a_webhook_gets_a_signed_card_that_the_api_answers_and_its_outcome_once() {
    let hook = Web::start(|_request| Answer::status(204));
    let channels = json!({ "webhook": { "url": hook.url("/pml"), "secret": "${HOOK_SECRET}" } });
    let world = world(&channels, &[("HOOK_SECRET", SECRET)]);
    let served = Served::start(&world);
    stands(&world, "webhook", "connected");
    let posted = |count: usize| {
        eventually(&format!("{count} posts"), DEADLINE, || {
            hook.asked().len() >= count
        });
        hook.asked()
    };
    let mut client = world.legacy();
    let call = ask(&mut client, "Which colour?");
    let open = posted(1).remove(0);
    assert_signed(&open);
    assert_eq!((open.method.as_str(), open.path.as_str()), ("POST", "/pml"));
    let card = &open.body["card"];
    assert_eq!(card["questions"][0]["question"], "Which colour?");
    assert_eq!(open.body["closed"], Value::Null);

    // Answered by what the card holds, with the token of the user.
    let answered = served.answer(card, &json!({ "answers": [{ "labels": ["Blue"] }] }));
    assert_eq!(answered.status, 200, "{answered:?}");
    let answer = client.answer(call);
    assert_eq!(texts(&answer["result"]), ["User selected: Blue"]);
    let closed = posted(2).remove(1);
    assert_signed(&closed);
    assert_eq!(closed.body["card"]["id"], card["id"]);
    let line = closed.body["closed"].as_str().unwrap();
    assert!(line.contains(": Blue · "), "{line}");
    let second = served.answer(card, &json!({ "answers": [{ "labels": ["Red"] }] }));
    assert_eq!(second.status, 409, "{second:?}");

    // The next ask comes after all that was to be told of this one.
    ask(&mut client, "Which way?");
    let all = posted(3);
    assert_eq!(
        all[2].body["card"]["questions"][0]["question"], "Which way?",
        "{:?}",
        all[2]
    );
    assert_eq!(all.len(), 3);
}
