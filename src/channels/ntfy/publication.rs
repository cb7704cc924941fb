//! What a notice is on ntfy: a notification, with buttons where they can answer it. Pure.

use serde_json::{Value, json};

use crate::card::{Card, Choice, Decision};
use crate::channels::inert::{Reading, inert};
use crate::channels::notice::{Notice, Standing};
use crate::channels::press::{Button, Press};
use crate::channels::text::{Piece, Text, Voice, label};
use crate::protocol::question::Selection;

/// A longer message would be sent as a file.
const BYTES: usize = 4096;

/// The most buttons.
const ACTIONS: usize = 3;

/// What a phone shows on a button; the whole label stands in the message.
const LABEL: usize = 30;

/// Makes the notification of a notice.
pub(super) fn of(notice: &Notice, topic: &str, reply_url: &str) -> Value {
    let Standing::Open { choices } = &notice.standing else {
        return json!({ "topic": topic, "title": "pml", "message": written(&Text::of(notice, "")), "priority": 2 });
    };
    let title = if notice.card.questions.is_empty() {
        "pml: an approval waits"
    } else {
        "pml: a question waits"
    };
    let mut message = json!({ "topic": topic, "title": title, "priority": 4 });
    if let Some(inbox) = &notice.inbox {
        message["click"] = json!(inbox);
    }
    let (whole, buttons) = (written(&Text::of(notice, "")), buttons(&notice.card, choices));
    if buttons.is_empty() || whole.len() > BYTES {
        let why = if whole.len() > BYTES {
            "This is too long for a notification"
        } else {
            "Buttons cannot answer this"
        };
        message["message"] = json!(written(&Text::glance(notice, why)));
        return message;
    }
    message["message"] = json!(whole);
    let actions = buttons.into_iter().map(|(text, button)| {
        let press = Press {
            code: notice.card.code.to_string(),
            rev: notice.card.rev,
            button,
            nonce: notice.nonce.clone(),
        };
        json!({
            "action": "http", "label": text, "url": reply_url, "method": "POST",
            "body": press.to_string(), "clear": true,
        })
    });
    message["actions"] = actions.collect();
    message
}

/// Makes the notification that tells what came of a press.
pub(super) fn of_reply(text: &str, topic: &str) -> Value {
    let shown = crate::protocol::Shown::block(text).to_string();
    let piece = Piece {
        voice: Voice::Foreign,
        text: label(&shown, BYTES / 4),
    };
    let message = inert(&piece, Reading::Links);
    json!({ "topic": topic, "title": "pml", "message": message, "priority": 2 })
}

/// Lists the buttons that answer a card; none where they cannot.
///
/// What lasts is not decided by one press on a locked screen: those decisions are taken in the inbox.
fn buttons(card: &Card, choices: &[Choice]) -> Vec<(String, Button)> {
    let buttons: Vec<(String, Button)> = match card.questions.as_slice() {
        [] => choices
            .iter()
            .filter(|choice| matches!(choice.decision, Decision::Once | Decision::Abort))
            .map(|choice| (choice.label.to_owned(), Button::Decision(choice.decision)))
            .collect(),
        [only] if only.shown.selection == Selection::One => {
            let options = only.shown.options.iter().enumerate();
            options
                .map(|(option, offered)| {
                    let text = inert(
                        &Piece {
                            voice: Voice::Foreign,
                            text: label(&offered.label, LABEL),
                        },
                        Reading::Links,
                    );
                    (text, Button::Option { question: 0, option })
                })
                .collect()
        }
        _ => Vec::new(),
    };
    if buttons.len() > ACTIONS {
        return Vec::new();
    }
    buttons
}

fn written(text: &Text) -> String {
    text.write(|piece| inert(piece, Reading::Links))
}
