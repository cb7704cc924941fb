//! What a notice is on WhatsApp: reply buttons, a list, or numbered text. Pure.
//!
//! Buttons and lists show an option whole or are not used. Several questions are one numbered text, answered by one line
//! each: several messages would be answered out of order, and no answer would say which question it is for.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::card::{Card, Choice, Decision};
use crate::channels::channel::Unsupported;
use crate::channels::inert::{Reading, inert};
use crate::channels::notice::{Notice, Standing};
use crate::channels::press::{Button, Press};
use crate::channels::text::{Piece, Text, Voice};
use crate::protocol::question::Selection;

/// The most characters of the text above buttons or a list.
const BODY: usize = 1024;

/// The most characters of a text.
const TEXT: usize = 4096;

/// The most buttons, and the most characters of one.
const BUTTONS: usize = 3;
const BUTTON: usize = 20;

/// The most rows of a list, and the most characters of a row and of what stands below it.
const ROWS: usize = 10;
const ROW: usize = 24;
const DESCRIPTION: usize = 72;

/// How a card is answered on WhatsApp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// By one of up to three buttons.
    Buttons,
    /// By a row of a list.
    List,
    /// In words or numbers.
    Text,
}

/// An option of a list or a button.
struct Row {
    button: Button,
    title: String,
    description: Option<String>,
}

/// Makes the message of a notice, without the one it goes to.
pub(super) fn of(notice: &Notice) -> Value {
    let Standing::Open { choices } = &notice.standing else {
        return text(&written(&Text::of(notice, "")));
    };
    let card = &notice.card;
    if fits_with(card, choices).is_err() {
        return text(&written(&Text::glance(notice, "This is too long for WhatsApp")));
    }
    let rows = rows(card, choices);
    let (shape, hint) = shape(card, choices, &rows);
    let body = written(&Text::of(notice, hint));
    let id = |row: &Row| {
        let press = Press {
            code: card.code.to_string(),
            rev: card.rev,
            button: row.button,
            nonce: notice.nonce.clone(),
        };
        press.to_string()
    };
    match shape {
        Shape::Text => text(&body),
        Shape::Buttons => {
            let buttons = rows
                .iter()
                .map(|row| json!({ "type": "reply", "reply": { "id": id(row), "title": row.title } }));
            let action = json!({ "buttons": buttons.collect::<Vec<_>>() });
            interactive("button", &body, &action)
        }
        Shape::List => {
            let rows = rows.iter().map(|row| {
                let mut written = json!({ "id": id(row), "title": row.title });
                if let Some(description) = &row.description {
                    written["description"] = json!(description);
                }
                written
            });
            let sections = json!([{ "title": "Options", "rows": rows.collect::<Vec<_>>() }]);
            interactive(
                "list",
                &body,
                &json!({ "button": "Choose", "sections": sections }),
            )
        }
    }
}

/// Makes the message that tells what came of something that was said.
pub(super) fn of_reply(words: &str) -> Value {
    let shown = crate::protocol::Shown::block(words).to_string();
    let piece = Piece {
        voice: Voice::Foreign,
        text: shown.chars().take(TEXT).collect(),
    };
    text(&inert(&piece, Reading::LinksAndMarkup))
}

/// Checks that a card has room here, with all that it offers.
pub(super) fn fits(card: &Card) -> Result<(), Unsupported> {
    fits_with(card, &card.choices)
}

fn fits_with(card: &Card, choices: &[Choice]) -> Result<(), Unsupported> {
    let too_much = |what, limit, found| Unsupported::TooMuch {
        channel: "WhatsApp",
        what,
        limit,
        found,
    };
    let rows = rows(card, choices);
    let (shape, hint) = shape(card, choices, &rows);
    let found = length(card, choices, hint);
    match shape {
        Shape::Buttons | Shape::List if found > BODY => Err(too_much("characters", BODY, found)),
        Shape::Text if found > TEXT => Err(too_much("characters", TEXT, found)),
        // What is decided cannot be typed: a number would be an approval that was not read.
        Shape::Text if card.questions.is_empty() && !choices.is_empty() => {
            Err(too_much("decisions", ROWS, choices.len()))
        }
        Shape::Buttons | Shape::List | Shape::Text => Ok(()),
    }
}

/// Chooses how a card is answered, and says it.
fn shape(card: &Card, choices: &[Choice], rows: &[Row]) -> (Shape, &'static str) {
    let titles: BTreeSet<&str> = rows.iter().map(|row| row.title.as_str()).collect();
    let within = |limit: usize| {
        let mut all = rows.iter();
        titles.len() == rows.len() && all.all(|row| (1..=limit).contains(&row.title.chars().count()))
    };
    let described = |row: &Row| {
        let description = row.description.as_deref().unwrap_or_default();
        description.chars().count() <= DESCRIPTION
    };
    let fitting = if rows.is_empty() {
        Shape::Text
    } else if rows.len() <= BUTTONS && within(BUTTON) {
        Shape::Buttons
    } else if rows.len() <= ROWS && within(ROW) && rows.iter().all(described) {
        Shape::List
    } else {
        Shape::Text
    };
    let pressed = match (card.questions.as_slice(), fitting) {
        ([], Shape::List) => {
            "Choose below. To say why not, reply to this message with /refuse and the reason."
        }
        ([], _) => "To say why not, reply to this message with /refuse and the reason.",
        (_, _) => "Choose below, or reply in your own words.",
    };
    // A text has four times the room of what stands above buttons.
    match fitting {
        Shape::Buttons | Shape::List if card.questions.is_empty() => (fitting, pressed),
        Shape::Buttons | Shape::List if length(card, choices, pressed) <= BODY => (fitting, pressed),
        Shape::Buttons | Shape::List | Shape::Text => (Shape::Text, typed(card)),
    }
}

/// Says how a card is answered by a text.
fn typed(card: &Card) -> &'static str {
    match card.questions.as_slice() {
        [] => "",
        [only] if only.shown.options.is_empty() => "Reply in your own words.",
        [only] if only.shown.selection == Selection::Several => {
            "Reply with the numbers, or in your own words."
        }
        [_] => "Reply with the number, or in your own words.",
        _ => "Reply with one line for each question: its numbers, or your own words.",
    }
}

/// Lists what can be pressed: the decisions, or the options of an only question that takes one.
fn rows(card: &Card, choices: &[Choice]) -> Vec<Row> {
    match card.questions.as_slice() {
        [] => choices
            .iter()
            .map(|choice| Row {
                button: Button::Decision(choice.decision),
                title: match choice.decision {
                    Decision::Session => "Only this session".to_owned(),
                    Decision::Once | Decision::Always | Decision::Abort => choice.label.to_owned(),
                },
                description: Some(choice.grants.clone()),
            })
            .collect(),
        [only] if only.shown.selection == Selection::One => {
            let options = only.shown.options.iter().enumerate();
            options
                .map(|(option, offered)| Row {
                    button: Button::Option { question: 0, option },
                    title: offered.label.clone(),
                    description: offered.description.clone(),
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

fn length(card: &Card, choices: &[Choice], hint: &str) -> usize {
    let text = written(&Text::open(card, choices));
    text.chars().count() + 1 + hint.chars().count()
}

fn written(text: &Text) -> String {
    text.write(|piece| inert(piece, Reading::LinksAndMarkup))
}

fn text(body: &str) -> Value {
    json!({ "type": "text", "text": { "preview_url": false, "body": body } })
}

fn interactive(kind: &str, body: &str, action: &Value) -> Value {
    json!({
        "type": "interactive",
        "interactive": { "type": kind, "body": { "text": body }, "action": action },
    })
}
