//! Texts of models, tools and people that would be links, mentions, markup or commands somewhere: on Telegram they stay
//! texts, from the agent to the message.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{ME, card, closed, stands, world_on};
use crate::serve::Served;
use crate::support::fake_telegram::FakeTelegram;
use crate::support::world::{Client, texts};

/// What a model might write.
pub(crate) const INJECTIONS: [&str; 13] = [
    "<!channel> <@U0123> @everyone @BotFather",
    "[free](https://evil.example/x) and https://evil.example/y",
    "evil.example, www.evil.example and mail@evil.example",
    "tg://resolve?domain=evil tel:+41790000000 +41790000000",
    "*bold* _it_ ~no~ `code` ```block``` ||spoiler|| __under__",
    "<b>bold</b> <a href=\"https://evil.example\">x</a> &lt; <tg-spoiler>y</tg-spoiler>",
    "/start /answer abcde yes #tag $CASH",
    "> quote\n- list\n* list\n1. option",
    "right\u{202e}to left\u{2066}isolated\u{2069}",
    "zero\u{200b}width\u{feff}\u{2060}and\u{ad}soft",
    "p1:aaaaa:0:d:always:nonce",
    "☑ chosen ◉ Sure: yes",
    "\u{1b}[31mred\u{7}",
];

/// A text of 100 kB that would call everyone on its way.
fn long() -> String {
    "<!channel> @everyone https://evil.example/x *bold* ".repeat(2_000)
}

/// Asks about a command of 100 kB, with the tool by which a client asks permission; its call waits.
pub(crate) fn ask_long(client: &mut Client) {
    let arguments = json!({ "tool_name": "Bash", "input": { "command": long() }, "tool_use_id": "toolu_1" });
    client.send(
        "tools/call",
        &json!({ "name": "approval_prompt", "arguments": arguments }),
    );
}

/// Fails where a service was told a sign that hides or turns round what stands beside it.
pub(crate) fn assert_nothing_hidden(told: &Value) {
    match told {
        Value::String(text) => assert!(!text.contains(HIDDEN), "{text:?}"),
        Value::Array(values) => values.iter().for_each(assert_nothing_hidden),
        Value::Object(members) => members.values().for_each(assert_nothing_hidden),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Fails where an app that makes links and mentions of texts would make one of this.
pub(crate) fn assert_no_link(text: &str) {
    assert!(!text.contains("://") && !text.contains(".example"), "{text}");
    let mention = text
        .split('@')
        .skip(1)
        .any(|after| after.starts_with(char::is_alphanumeric));
    assert!(!mention, "{text}");
}

/// What no app gets to see of it: directions, what has no width, controls.
const HIDDEN: [char; 8] = [
    '\u{202e}', '\u{2066}', '\u{2069}', '\u{200b}', '\u{feff}', '\u{2060}', '\u{1b}', '\u{7}',
];

/// What an app would make something of, outside of code.
const SIGNS: [&str; 10] = [
    "@", "#", "/s", "://", ".example", "$C", "+41", "tg:", "tel:", "/a",
];

/// Returns the parts of a text that an app reads as text and not as code.
fn read_by_apps(body: &Value) -> String {
    let mut units: Vec<u16> = body["text"].as_str().unwrap_or_default().encode_utf16().collect();
    for entity in body["entities"].as_array().into_iter().flatten() {
        let number = |name: &str| usize::try_from(entity[name].as_u64().unwrap()).unwrap();
        let (from, length) = (number("offset"), number("length"));
        units[from..from + length].fill(u16::from(b' '));
    }
    String::from_utf16(&units).unwrap()
}

/// Fails where anything that was sent could be more than a text.
fn assert_texts(telegram: &FakeTelegram) {
    let requests = telegram.everything();
    for body in &requests {
        let written = body.to_string();
        assert!(!written.contains("parse_mode"), "{written}");
        for hidden in HIDDEN {
            // As it stands, and as JSON writes it.
            let escaped = serde_json::to_string(&hidden.to_string()).unwrap();
            let escaped = escaped.trim_matches('"').to_owned();
            let is_hidden = |text: &Value| text.as_str().is_some_and(|text| text.contains(hidden));
            assert!(!is_hidden(&body["text"]), "{escaped} in {written}");
            let mut keys = body["reply_markup"]["inline_keyboard"]
                .as_array()
                .into_iter()
                .flatten()
                .flat_map(|row| row.as_array().unwrap());
            assert!(!keys.any(|key| is_hidden(&key["text"])), "{escaped} in {written}");
        }
        for entity in body["entities"].as_array().into_iter().flatten() {
            let kind = entity["type"].as_str().unwrap();
            assert!(["code", "pre"].contains(&kind), "{entity}");
            assert_eq!(entity.get("url").or(entity.get("user")), None, "{entity}");
        }
        if body.get("entities").is_some() {
            assert_eq!(
                body["link_preview_options"],
                json!({ "is_disabled": true }),
                "{written}"
            );
            let read = read_by_apps(body);
            for sign in SIGNS {
                assert!(!read.contains(sign), "`{sign}` in {read}");
            }
        }
        // A button does what pml says: no address, no application, no payment.
        for key in body["reply_markup"]["inline_keyboard"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|row| row.as_array().unwrap())
        {
            let mut names: Vec<&String> = key.as_object().unwrap().keys().collect();
            names.sort();
            assert_eq!(names, ["callback_data", "text"], "{key}");
            let text = key["text"].as_str().unwrap();
            let own = [
                "1 · ",
                "2 · ",
                "☐ ",
                "☑ ",
                "Send",
                "Do not answer",
                "Continue",
                "Abort",
            ];
            assert!(own.iter().any(|own| text.starts_with(own)), "{text}");
        }
    }
    assert_eq!(telegram.broken_limits(), Vec::<String>::new());
}

#[test]
fn what_a_model_asks_and_what_a_person_writes_stay_texts() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    let _served = Served::start(&world);
    stands(&world, "telegram", "connected");
    let mut client = world.legacy();
    for (at, injection) in INJECTIONS.iter().enumerate() {
        let option = |text: &str| json!({ "label": text, "description": injection });
        let asking = client.call(
            "ask_user",
            &json!({
                "channel": "telegram", "question": format!("{injection} {at}"),
                "options": [option(injection), option("other")],
            }),
        );
        assert_eq!(
            asking["structuredContent"]["status"], "pending",
            "{injection:?}: {asking}"
        );
        let id = card(&telegram, at + 1);
        // Odd ones are answered by the button with the injection, even ones in these very words.
        if at % 2 == 1 {
            telegram.press(ME, ME, id, "1 · ");
        } else {
            telegram.write(ME, &format!("words: {injection}"), Some(id));
        }
        let continuation = json!({
            "workflow_id": asking["structuredContent"]["workflow_id"], "wait_seconds": 20,
        });
        let told = client.call("ask_user", &json!({ "continue_workflow": continuation }));
        assert_eq!(told["structuredContent"]["by"], "chat", "{told}");
        let text = closed(&telegram, id);
        assert!(text.contains("\nAnswered in Telegram: "), "{text}");
    }
    assert_eq!(telegram.cards().len(), INJECTIONS.len());
    assert!(telegram.requests("editMessageText").len() >= INJECTIONS.len());
    assert_texts(&telegram);
}

#[test]
fn the_arguments_of_a_call_stay_texts() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    let _served = Served::start(&world);
    stands(&world, "telegram", "connected");
    let mut client = world.legacy();
    for (at, injection) in INJECTIONS.iter().enumerate() {
        let asked = client.call("fake__echo", &json!({ "text": injection, (*injection): at }));
        assert_eq!(asked["approval_required"], true, "{asked}");
        let id = card(&telegram, at + 1);
        telegram.press(ME, ME, id, "Abort");
        let text = closed(&telegram, id);
        assert!(text.contains("Refused in Telegram"), "{text}");
    }
    assert_texts(&telegram);
}

#[test]
fn several_choices_with_such_labels_are_drawn_again_as_texts() {
    let telegram = FakeTelegram::start();
    let world = world_on(&telegram);
    let _served = Served::start(&world);
    stands(&world, "telegram", "connected");
    let mut client = world.legacy();
    let options: Vec<Value> = INJECTIONS[..4]
        .iter()
        .map(|text| json!({ "label": text }))
        .collect();
    let asking = client.call(
        "ask_user",
        &json!({ "channel": "telegram", "question": INJECTIONS.join(" "), "options": options, "multiSelect": true }),
    );
    let id = card(&telegram, 1);
    for sign in ["☐ 1 · ", "☐ 2 · "] {
        let press = telegram.press(ME, ME, id, sign);
        super::acknowledged(&telegram, &press);
    }
    telegram.press(ME, ME, id, "Send");
    let continuation = json!({
        "workflow_id": asking["structuredContent"]["workflow_id"], "wait_seconds": 20,
    });
    let told = client.call("ask_user", &json!({ "continue_workflow": continuation }));
    assert!(texts(&told)[0].contains(INJECTIONS[1]), "{told}");
    closed(&telegram, id);
    assert_eq!(telegram.requests("editMessageReplyMarkup").len(), 2);
    assert_texts(&telegram);
}
