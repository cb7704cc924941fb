//! A decision as blocks: what would run, what each choice grants, a row of buttons.

use serde_json::{Value, json};

use super::limits::{CONFIRMATION, length};
use super::text::{Blocks, plain};
use super::{Form, button};
use crate::card::{Card, Choice, Decision, LineStyle};
use crate::channels::press::Button;

/// Adds what a person must know, and the choices that they have here.
pub(super) fn add(blocks: &mut Blocks, card: &Card, choices: &[Choice], form: &Form) {
    blocks.text(&card.title);
    add_lines(blocks, card);
    let grants: Vec<String> = choices
        .iter()
        .map(|choice| format!("{}: {}", choice.label, choice.grants))
        .collect();
    blocks.text(&grants.join("\n"));
    let offers_always = choices.iter().any(|choice| choice.decision == Decision::Always);
    if let Some(rule) = card.always_writes.as_ref().filter(|_| offers_always) {
        blocks.text("Always writes this rule, into this file:");
        blocks.preformatted(&format!("{}\n{}", rule.rule, rule.file));
    }
    if !choices.is_empty() {
        let buttons: Vec<Value> = choices.iter().flat_map(|choice| buttons(choice, form)).collect();
        blocks.push(
            json!({ "type": "actions", "block_id": form.id("decide"), "elements": buttons }),
            0,
        );
    }
}

/// Adds the facts: commands, arguments and differences preformatted, the rest as text.
fn add_lines(blocks: &mut Blocks, card: &Card) {
    let mut text = String::new();
    let mut lines = card.lines.iter().peekable();
    while let Some(line) = lines.next() {
        if !text.is_empty() {
            text.push('\n');
        }
        match line.style {
            LineStyle::Plain | LineStyle::Hash => {
                text.push_str(&labelled(line.label, &line.text));
            }
            LineStyle::Warning => {
                text.push_str("⚠ ");
                text.push_str(&labelled(line.label, &line.text));
            }
            LineStyle::Command | LineStyle::Arguments | LineStyle::Change => {
                if !line.label.is_empty() {
                    text.push_str(line.label);
                    text.push(':');
                }
                blocks.text(&std::mem::take(&mut text));
                let mut whole = line.text.clone();
                // What belongs to the line above has no label of its own.
                while let Some(next) = lines.next_if(|next| next.style == line.style && next.label.is_empty())
                {
                    whole.push('\n');
                    whole.push_str(&next.text);
                }
                blocks.preformatted(&whole);
            }
        }
    }
    blocks.text(&text);
}

fn labelled(label: &str, text: &str) -> String {
    if label.is_empty() {
        text.to_owned()
    } else {
        format!("{label}: {text}")
    }
}

/// Makes the button of a choice; a refusal has a second one, which asks for the reason.
fn buttons(choice: &Choice, form: &Form) -> Vec<Value> {
    let value = form.press(Button::Decision(choice.decision));
    let id = choice.decision.to_string();
    match choice.decision {
        Decision::Once => vec![button(&id, choice.label, &value, Some("primary"))],
        Decision::Session | Decision::Always => {
            let mut lasting = button(&id, choice.label, &value, None);
            lasting["confirm"] = confirmation(choice);
            vec![lasting]
        }
        Decision::Abort => vec![
            button(&id, choice.label, &value, Some("danger")),
            button("reason", "Abort, and say why", &value, None),
        ],
    }
}

/// Asks once more before something is granted that lasts.
fn confirmation(choice: &Choice) -> Value {
    let text = format!("{}: {}", choice.label, choice.grants);
    // What does not fit stands above the button, whole.
    let text = if length(&text) > CONFIRMATION {
        "This grants what stands above the button.".to_owned()
    } else {
        text
    };
    json!({
        "title": plain("Are you sure?"), "text": plain(&text),
        "confirm": plain("Yes"), "deny": plain("Back"),
    })
}
