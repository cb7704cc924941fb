use std::path::Path;

use pretty_assertions::assert_eq;

use super::samples::{HOSTILE, call, ended, install, payloads, question, questions, three, waiting};
use super::*;
use crate::channels::slack::tests::fake_slack::complaints;
use crate::protocol::question::Selection;

/// Every text object and every preformatted text of a payload.
fn texts<'a>(value: &'a Value, found: &mut Vec<(&'a str, &'a str)>) {
    match value {
        Value::Object(members) => {
            if let (Some(kind), Some(text)) = (value["type"].as_str(), value["text"].as_str()) {
                found.push((kind, text));
            }
            members.values().for_each(|member| texts(member, found));
        }
        Value::Array(members) => members.iter().for_each(|member| texts(member, found)),
        _ => {}
    }
}

fn blocks(notice: &Notice) -> Value {
    Value::Array(Message::of(notice).blocks)
}

/// The members of every element that has them.
fn elements<'a>(blocks: &'a Value, kind: &str) -> Vec<&'a Value> {
    let blocks = blocks.as_array().unwrap().iter();
    let elements = blocks.flat_map(|block| {
        let several = block["elements"].as_array().into_iter().flatten();
        several.chain(block.get("element"))
    });
    elements.filter(|element| element["type"] == kind).collect()
}

fn action_ids(blocks: &Value) -> Vec<&str> {
    let buttons = elements(blocks, "button");
    let ids = buttons.iter().map(|button| button["action_id"].as_str().unwrap());
    ids.collect()
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a payload that changed is written beside the one that is kept"
)]
fn every_payload_is_as_it_is_kept_and_breaks_no_limit() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/slack");
    let mut changed = Vec::new();
    for (name, payload) in payloads() {
        assert_eq!(complaints(&payload["blocks"], 50), Vec::<String>::new(), "{name}");
        let file = folder.join(format!("{name}.json"));
        let text = format!("{payload:#}\n");
        if std::fs::read_to_string(&file).ok().as_deref() != Some(text.as_str()) {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(file.with_extension("json.new"), text).unwrap();
            changed.push(name);
        }
    }
    assert!(
        changed.is_empty(),
        "look at tests/fixtures/slack/*.new and take them over: {changed:?}"
    );
}

#[test]
fn texts_of_others_are_inert_wherever_they_stand() {
    let hostile = |text: &str| {
        let options: Vec<(&str, Option<&str>)> = vec![(text, Some(text)), ("b", None)];
        [
            waiting(questions(vec![question(text, Selection::One, &options)])),
            waiting(questions(vec![question(text, Selection::Several, &options)])),
            waiting(call(&json!({ "x": text }).to_string())),
            ended(questions(vec![question(text, Selection::One, &[])]), text),
        ]
    };
    for text in HOSTILE.into_iter().flat_map(hostile) {
        let message = Message::of(&text);
        let shown = Value::Array(message.blocks);
        let mut found = Vec::new();
        texts(&shown, &mut found);
        assert!(found.len() > 2);
        for (kind, text) in found {
            // `text` is a piece of preformatted text here, which has no members for links or mentions.
            assert!(matches!(kind, "plain_text" | "text"), "{kind}: {text}");
            let deceiving = ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{1b}', '\u{7}'];
            assert!(!text.contains(deceiving), "{text}");
        }
        assert!(!shown.to_string().contains("\"emoji\":true"));
        assert!(!shown.to_string().contains("mrkdwn\":"), "{shown}");
        for kind in [
            "link",
            "user",
            "usergroup",
            "channel",
            "broadcast",
            "emoji",
            "image",
        ] {
            assert!(
                !shown.to_string().contains(&format!("{{\"type\":\"{kind}\"")),
                "{shown}"
            );
        }
        // The one text in which Slack reads markup has no bracket that opens any.
        assert!(!message.text.contains(['<', '>']), "{}", message.text);
        assert_eq!(complaints(&shown, 50), Vec::<String>::new());
    }
}

#[test]
fn the_line_of_a_notification_is_escaped_and_short() {
    let card = questions(vec![question("<!channel> & <@U1>", Selection::One, &[])]);
    assert_eq!(
        Message::of(&waiting(card)).text,
        "shop: claude asks: &lt;!channel&gt; &amp; &lt;@U1&gt;"
    );
    let card = questions(vec![question(&"x".repeat(300), Selection::One, &[])]);
    assert_eq!(
        Message::of(&waiting(card)).text,
        "pml: a question waits for you (aaaaa)"
    );
}

#[test]
fn one_option_of_a_question_is_a_radio_button_and_can_be_let_go_again() {
    let blocks = blocks(&waiting(questions(vec![question(
        "Which db?",
        Selection::One,
        &[("pg", Some("Postgres")), ("sqlite", None)],
    )])));
    assert_eq!(
        *elements(&blocks, "radio_buttons")[0],
        json!({ "type": "radio_buttons", "action_id": "choice", "options": [
            { "text": plain("pg"), "value": "0", "description": plain("Postgres") },
            { "text": plain("sqlite"), "value": "1" },
            { "text": plain("Other, as written below"), "value": "other" },
        ] })
    );
    assert_eq!(elements(&blocks, "plain_text_input").len(), 1);
    assert_eq!(action_ids(&blocks), ["send", "refuse"]);
    assert_eq!(
        elements(&blocks, "button")[0]["value"],
        "p1:aaaaa:0:s::AAAAAAAAAAAA"
    );
}

#[test]
fn several_questions_share_one_button() {
    let blocks = blocks(&waiting(three()));
    assert_eq!(action_ids(&blocks), ["send", "refuse"]);
    let ids = blocks.as_array().unwrap().iter();
    let ids: Vec<&str> = ids.filter_map(|block| block["block_id"].as_str()).collect();
    assert_eq!(
        ids,
        [
            "pml:aaaaa:0:q0",
            "pml:aaaaa:0:0",
            "pml:aaaaa:0:0:other",
            "pml:aaaaa:0:q1",
            "pml:aaaaa:0:1",
            "pml:aaaaa:0:1:other",
            "pml:aaaaa:0:q2",
            "pml:aaaaa:0:2:other",
            "pml:aaaaa:0:of:3",
        ]
    );
    assert_eq!(blocks[7]["text"]["text"], "3. Time\nHow long?");
}

#[test]
fn options_that_are_too_long_are_numbered_and_shown_whole() {
    for (length, numbered) in [(limits::OPTION, false), (limits::OPTION + 1, true)] {
        let label = "x".repeat(length);
        for options in [
            [(label.as_str(), None), ("b", Some("why"))],
            [("a", Some(label.as_str())), ("b", Some("why"))],
        ] {
            let blocks = blocks(&waiting(questions(vec![question("?", Selection::One, &options)])));
            let radio = elements(&blocks, "radio_buttons")[0];
            let first = radio["options"][0]["text"]["text"].as_str().unwrap();
            assert_eq!(first == "1", numbered);
            let preformatted = blocks.as_array().unwrap().iter();
            let mut preformatted = preformatted.filter(|block| block["type"] == "rich_text");
            let whole = preformatted
                .next()
                .map(|block| block["elements"][0]["elements"][0]["text"].as_str().unwrap());
            assert_eq!(whole.is_some(), numbered);
            assert!(whole.is_none_or(|whole| whole.contains(&label) && whole.ends_with("2. b\n   why")));
        }
    }
}

#[test]
fn more_options_than_a_group_takes_are_a_menu_or_several_groups() {
    let labels: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let first = |count: usize, selection| {
        let options: Vec<(&str, Option<&str>)> = labels[..count]
            .iter()
            .map(|label| (label.as_str(), None))
            .collect();
        blocks(&waiting(questions(vec![question("?", selection, &options)])))
    };
    assert_eq!(elements(&first(9, Selection::One), "radio_buttons").len(), 1);
    assert_eq!(elements(&first(10, Selection::One), "static_select").len(), 1);
    assert_eq!(elements(&first(10, Selection::Several), "checkboxes").len(), 1);
    let blocks = first(20, Selection::Several);
    let groups = elements(&blocks, "checkboxes");
    let ids: Vec<&Value> = groups.iter().map(|group| &group["action_id"]).collect();
    assert_eq!(ids, ["choice", "choice1"]);
    assert_eq!(groups[1]["options"][9]["value"], "19");
}

#[test]
fn an_approval_has_the_choices_of_its_reader_and_asks_twice_about_what_lasts() {
    let blocks = blocks(&waiting(install()));
    assert_eq!(
        action_ids(&blocks),
        ["once", "session", "always", "abort", "reason"]
    );
    for button in elements(&blocks, "button") {
        let id = button["action_id"].as_str().unwrap();
        assert_eq!(
            button.get("confirm").is_some(),
            matches!(id, "session" | "always")
        );
    }
    let mut narrow = waiting(install());
    let Standing::Open { choices } = &mut narrow.standing else {
        panic!("it is open")
    };
    choices.retain(|choice| matches!(choice.decision, crate::card::Decision::Abort));
    let narrow = super::tests::blocks(&narrow);
    assert_eq!(action_ids(&narrow), ["abort", "reason"]);
    // What `always` writes is told to those who may.
    let file = "/project/.pml.json";
    assert!(blocks.to_string().contains(file) && !narrow.to_string().contains(file));
}

#[test]
fn a_command_is_preformatted_and_whole() {
    let blocks = blocks(&waiting(install()));
    let command = json!({
        "type": "rich_text",
        "elements": [{
            "type": "rich_text_preformatted",
            "elements": [{ "type": "text", "text": "npm install serena@0.5.0" }],
        }],
    });
    assert!(blocks.as_array().unwrap().contains(&command), "{blocks:#}");
    // The project is told by its name, not by where it lies.
    assert_eq!(blocks[0]["text"]["text"], "shop: an agent asks");
}

#[test]
fn what_is_too_long_is_refused_or_sent_to_the_inbox_without_a_button() {
    let fitting = call(&json!({ "x": "y".repeat(limits::TEXT - 1_000) }).to_string());
    assert_eq!(fits(&fitting), Ok(()));
    let long = call(&json!({ "x": "y".repeat(100_000) }).to_string());
    let error = fits(&long).unwrap_err().to_string();
    assert!(
        error.starts_with("Slack takes at most 10000 characters in a message, and this has 100"),
        "{error}"
    );
    let blocks = blocks(&waiting(long));
    assert_eq!(action_ids(&blocks), Vec::<&str>::new());
    assert!(
        blocks.to_string().contains("http://127.0.0.1:7777/"),
        "{blocks:#}"
    );
    assert!(!blocks.to_string().contains("yyy"));
    // Four times twenty options of some hundred characters.
    let label = |number: usize| format!("{number}{}", "z".repeat(180));
    let labels: Vec<String> = (0..20).map(label).collect();
    let options: Vec<(&str, Option<&str>)> = labels
        .iter()
        .map(|label| (label.as_str(), Some(label.as_str())))
        .collect();
    let many = questions(vec![question("?", Selection::One, &options); 4]);
    assert!(fits(&many).is_err());
}

#[test]
fn what_is_closed_has_no_button_and_no_argument() {
    let blocks = blocks(&ended(
        call(r#"{"command":"canary"}"#),
        "Approved in Slack · 14:03",
    ));
    assert_eq!(action_ids(&blocks), Vec::<&str>::new());
    assert!(!blocks.to_string().contains("canary"));
    assert!(blocks.to_string().contains("Approved in Slack · 14:03"));
    let blocks = super::tests::blocks(&ended(install(), &"x".repeat(50_000)));
    assert_eq!(complaints(&blocks, 50), Vec::<String>::new());
}

#[test]
fn names_of_any_length_fit() {
    for length in [1, limits::HEADER, 255, 4_000] {
        let mut card = install();
        card.asker.project = format!("/{}", "p".repeat(length));
        card.asker.client = Some("c".repeat(length.min(200)));
        let blocks = blocks(&waiting(card));
        assert_eq!(complaints(&blocks, 50), Vec::<String>::new());
        assert!(blocks.to_string().contains(&"p".repeat(length.min(2_900))));
    }
}

#[test]
fn the_form_for_a_reason_fits() {
    let press = format!("p1:abcde:{}:d:abort:AAAAAAAAAAAA", u64::MAX);
    let form = reason("abcde", u64::MAX, &json!({ "press": press, "channel": "D1" }));
    assert_eq!(complaints(&form["blocks"], 100), Vec::<String>::new());
    for member in ["title", "submit", "close"] {
        assert!(form[member]["text"].as_str().unwrap().len() <= 24);
    }
}
