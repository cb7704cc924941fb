//! What Slack documents of messages and forms, checked block by block: also what the models of its SDKs do not check.

use std::collections::HashSet;

use serde_json::Value;

/// The limits that a message breaks.
pub(super) fn message(body: &Value) -> Vec<String> {
    let mut broken = complaints(&body["blocks"], 50);
    if body["text"]
        .as_str()
        .is_some_and(|text| text.chars().count() > 4_000)
    {
        broken.push("text: more than 4000 characters".to_owned());
    }
    broken
}

/// The limits that a form breaks.
pub(super) fn form(view: &Value) -> Vec<String> {
    let mut broken = complaints(&view["blocks"], 100);
    for member in ["title", "submit", "close"] {
        if let Some(found) = view.get(member) {
            text(&mut broken, &format!("view.{member}"), found, 24);
        }
    }
    for (member, most) in [("callback_id", 255), ("private_metadata", 3_000)] {
        if let Some(found) = view.get(member) {
            string(&mut broken, &format!("view.{member}"), found, most);
        }
    }
    broken
}

/// The limits that blocks break.
pub(crate) fn complaints(blocks: &Value, most: usize) -> Vec<String> {
    let mut broken = Vec::new();
    let Some(blocks) = blocks.as_array() else {
        return broken;
    };
    if blocks.len() > most {
        broken.push(format!("{} blocks", blocks.len()));
    }
    let mut ids = HashSet::new();
    let mut total = 0;
    for (place, block) in blocks.iter().enumerate() {
        let at = format!("blocks[{place}]");
        if let Some(id) = block["block_id"].as_str() {
            string(&mut broken, &at, &block["block_id"], 255);
            if !ids.insert(id) {
                broken.push(format!("{at}: `{id}` stands twice"));
            }
        }
        total += length(block);
        match block["type"].as_str().unwrap_or_default() {
            "header" => text(&mut broken, &at, &block["text"], 150),
            "section" => text(&mut broken, &at, &block["text"], 3_000),
            "context" => elements(&mut broken, &at, block, 10, |broken, at, element| {
                text(broken, at, element, 3_000);
            }),
            "actions" => elements(&mut broken, &at, block, 25, element),
            "input" => {
                text(&mut broken, &at, &block["label"], 2_000);
                element(&mut broken, &at, &block["element"]);
            }
            "rich_text" => {
                for part in block["elements"].as_array().into_iter().flatten() {
                    if part["elements"].as_array().is_none_or(Vec::is_empty) {
                        broken.push(format!("{at}: nothing in it"));
                    }
                }
            }
            "divider" => {}
            kind => broken.push(format!("{at}: `{kind}` is no block")),
        }
    }
    if total > 12_000 {
        broken.push(format!("{total} characters in all blocks"));
    }
    broken
}

fn elements(
    broken: &mut Vec<String>,
    at: &str,
    block: &Value,
    most: usize,
    check: impl Fn(&mut Vec<String>, &str, &Value),
) {
    let elements = block["elements"].as_array().map_or(&[][..], Vec::as_slice);
    if !(1..=most).contains(&elements.len()) {
        broken.push(format!("{at}: {} elements", elements.len()));
    }
    let ids = elements
        .iter()
        .filter_map(|element| element["action_id"].as_str());
    let ids: Vec<&str> = ids.collect();
    if ids.iter().collect::<HashSet<_>>().len() != ids.len() {
        broken.push(format!("{at}: an action_id stands twice"));
    }
    for (place, element) in elements.iter().enumerate() {
        check(broken, &format!("{at}.elements[{place}]"), element);
    }
}

fn element(broken: &mut Vec<String>, at: &str, element: &Value) {
    string(broken, &format!("{at}.action_id"), &element["action_id"], 255);
    let most = match element["type"].as_str().unwrap_or_default() {
        "button" => {
            text(broken, at, &element["text"], 75);
            string(broken, &format!("{at}.value"), &element["value"], 2_000);
            if let Some(confirm) = element.get("confirm") {
                for (member, most) in [("title", 100), ("text", 300), ("confirm", 30), ("deny", 30)] {
                    text(broken, &format!("{at}.confirm.{member}"), &confirm[member], most);
                }
            }
            return;
        }
        "plain_text_input" => {
            if element["max_length"]
                .as_u64()
                .is_some_and(|most| !(1..=3_000).contains(&most))
            {
                broken.push(format!("{at}: max_length"));
            }
            return;
        }
        "radio_buttons" | "checkboxes" => 10,
        "static_select" => 100,
        kind => {
            broken.push(format!("{at}: `{kind}` is no element of these blocks"));
            return;
        }
    };
    let options = element["options"].as_array().map_or(&[][..], Vec::as_slice);
    if !(1..=most).contains(&options.len()) {
        broken.push(format!("{at}: {} options", options.len()));
    }
    for (place, option) in options.iter().enumerate() {
        let at = format!("{at}.options[{place}]");
        text(broken, &at, &option["text"], 75);
        string(broken, &format!("{at}.value"), &option["value"], 150);
        if let Some(description) = option.get("description") {
            text(broken, &format!("{at}.description"), description, 75);
        }
    }
}

fn text(broken: &mut Vec<String>, at: &str, text: &Value, most: usize) {
    if !matches!(text["type"].as_str(), Some("plain_text" | "mrkdwn")) {
        broken.push(format!("{at}: no text"));
        return;
    }
    string(broken, at, &text["text"], most);
    if text["text"].as_str().is_some_and(|text| text.trim().is_empty()) {
        broken.push(format!("{at}: a blank text"));
    }
}

fn string(broken: &mut Vec<String>, at: &str, text: &Value, most: usize) {
    let Some(text) = text.as_str() else {
        broken.push(format!("{at}: no text"));
        return;
    };
    let found = text.encode_utf16().count();
    if found > most {
        broken.push(format!("{at}: {found} characters, {most} are allowed"));
    }
}

/// The length of all text of a block.
fn length(value: &Value) -> usize {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| match (name.as_str(), member.as_str()) {
                ("text", Some(text)) => text.encode_utf16().count(),
                _ => length(member),
            })
            .sum(),
        Value::Array(members) => members.iter().map(length).sum(),
        _ => 0,
    }
}
