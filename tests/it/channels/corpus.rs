//! What a model might write, on WhatsApp and ntfy, whose apps cannot be told to leave a text alone: it stays a text, and
//! what is too long is not cut.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::injections::{INJECTIONS, ask_long, assert_no_link, assert_nothing_hidden};
use super::{stands, whatsapp, write_user_file};
use crate::serve::Served;
use crate::support::fake_ntfy::FakeNtfy;
use crate::support::world::{Client, World};
use crate::support::{DEADLINE, eventually};

const TOPIC: &str = "canary-topic-of-ada";

/// Asks everything of the corpus on a channel, then what is too long for any.
fn ask_all(client: &mut Client, channel: &str) {
    for (at, injection) in INJECTIONS.iter().enumerate() {
        let option = |text: &str| json!({ "label": text, "description": injection });
        let asking = client.call(
            "ask_user",
            &json!({
                "channel": channel, "question": format!("{injection} {at}"),
                "options": [option(injection), option("other")],
            }),
        );
        assert_eq!(
            asking["structuredContent"]["status"], "pending",
            "{injection:?}: {asking}"
        );
    }
    ask_long(client);
}

/// A world with these channels, whose questions return an id at once.
fn world(channels: &Value) -> World {
    let world = World::new();
    world.configure(&json!({ "approvals": { "by": "human" } }));
    write_user_file(&world, &json!({ "channels": channels }).to_string());
    world
}

/// Waits until everything was told, and returns the texts.
fn told(texts: impl Fn() -> Vec<String>) -> Vec<String> {
    eventually("everything is told", DEADLINE, || {
        texts().len() > INJECTIONS.len()
    });
    texts()
}

/// Checks the texts of the corpus, and returns what stands for the long one.
fn check(mut texts: Vec<String>) -> String {
    assert_eq!(texts.len(), INJECTIONS.len() + 1);
    let long = texts.pop().unwrap();
    for text in &texts {
        assert_no_link(text);
    }
    assert!(long.contains("open the inbox on your computer"), "{long}");
    // A glance of it, marked as one.
    assert!(!long.contains("evil.example") && long.len() < 1_000, "{long}");
    long
}

#[test]
fn on_whatsapp_a_text_is_neither_a_link_nor_markup() {
    let meta = whatsapp::meta();
    let world = world(&json!({ "whatsapp": whatsapp::settings(&meta) }));
    whatsapp::set_secrets(&world);
    let _served = Served::start(&world);
    stands(&world, "whatsapp", "connected");
    let mut client = world.legacy();
    ask_all(&mut client, "whatsapp");
    let text = |body: &Value| {
        let text = body["text"]["body"]
            .as_str()
            .or(body["interactive"]["body"]["text"].as_str());
        text.unwrap_or_else(|| panic!("{body}")).to_owned()
    };
    let texts = told(|| meta.asked().iter().map(|sent| text(&sent.body)).collect());
    for text in &texts {
        for markup in ["*bold", "_it_", "~no~", "`", "\n> ", "\n- ", "\n* "] {
            assert!(!text.contains(markup), "`{markup}` in {text}");
        }
    }
    for sent in meta.asked() {
        assert_nothing_hidden(&sent.body);
        if sent.body["type"] == "text" {
            assert_eq!(sent.body["text"]["preview_url"], false, "{}", sent.body);
        }
    }
    assert!(check(texts).contains("This is too long for WhatsApp"));
}

#[test]
fn on_ntfy_a_text_is_neither_a_link_nor_a_button() {
    let ntfy = FakeNtfy::start();
    let settings = json!({ "server": ntfy.url(), "topic": "${NTFY_TOPIC}" });
    let world = world(&json!({ "ntfy": settings }));
    world.set("NTFY_TOPIC", TOPIC);
    let _served = Served::start(&world);
    stands(&world, "ntfy", "connected");
    let mut client = world.legacy();
    ask_all(&mut client, "ntfy");
    let texts = told(|| {
        let told = ntfy.notifications(TOPIC);
        let texts = told
            .iter()
            .map(|told| told["message"].as_str().unwrap().to_owned());
        texts.collect()
    });
    for told in ntfy.notifications(TOPIC) {
        assert_nothing_hidden(&told);
        let mut members: Vec<&String> = told.as_object().unwrap().keys().collect();
        members.retain(|member| *member != "actions");
        members.sort();
        assert_eq!(members, ["click", "message", "priority", "title", "topic"]);
        for action in told["actions"].as_array().into_iter().flatten() {
            assert_no_link(action["label"].as_str().unwrap());
            let url = action["url"].as_str().unwrap();
            assert!(url.starts_with(&format!("{}/pml", ntfy.url())), "{url}");
            assert!(action["body"].as_str().unwrap().starts_with("p1:"), "{action}");
        }
    }
    assert!(check(texts).contains("This is too long for a notification"));
}
