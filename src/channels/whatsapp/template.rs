//! The approved template that is sent where the window of 24 hours is closed, and what it stands for.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::channels::inert::{Reading, inert};
use crate::channels::notice::Notice;
use crate::channels::text::{Text, label};

/// Messages that are remembered until Meta has said whether they arrived: it does within minutes.
const REMEMBERED: usize = 64;

/// A variable of a template has 1,024 characters at most, with the fixed text around it.
const VARIABLE: usize = 900;

/// What is told where pml was started again meanwhile.
const FORGOTTEN: &str = "pml waits for your answer; open the inbox on your computer";

/// What was sent lately.
#[derive(Default)]
pub(super) struct Templates {
    /// The messages, with the words that a template would tell.
    sent: VecDeque<(String, String)>,
    /// Templates, with the message that each stands for.
    replaced: VecDeque<(String, String)>,
}

impl Templates {
    /// Remembers a message.
    pub(super) fn sent(&mut self, id: &str, words: String) {
        remember(&mut self.sent, id.to_owned(), words);
    }

    /// Returns the words for a message.
    pub(super) fn words(&self, id: &str) -> String {
        find(&self.sent, id).unwrap_or_else(|| FORGOTTEN.to_owned())
    }

    /// Remembers what a template stands for.
    pub(super) fn replaced(&mut self, original: &str, template: String) {
        remember(&mut self.replaced, template, original.to_owned());
    }

    /// Returns the message that a template stands for.
    pub(super) fn original(&self, template: &str) -> Option<String> {
        find(&self.replaced, template)
    }
}

fn remember(kept: &mut VecDeque<(String, String)>, key: String, value: String) {
    kept.push_back((key, value));
    if kept.len() > REMEMBERED {
        kept.pop_front();
    }
}

fn find(kept: &VecDeque<(String, String)>, key: &str) -> Option<String> {
    let found = kept.iter().find(|(known, _)| known == key);
    found.map(|(_, value)| value.clone())
}

/// Writes a notice into the variable of a template: one line, whole or a glance that says so.
pub(super) fn words(notice: &Notice) -> String {
    let hint = if notice.card.questions.is_empty() {
        "Decide in the inbox on your computer"
    } else {
        "Reply with numbers, or in your own words"
    };
    let line = |text: &Text| {
        let written = text.write(|piece| inert(piece, Reading::LinksAndMarkup));
        // No line breaks and no long gaps may stand in a variable.
        let words: Vec<&str> = written.split_whitespace().collect();
        words.join(" ")
    };
    let whole = line(&Text::of(notice, hint));
    if whole.chars().count() <= VARIABLE {
        return whole;
    }
    label(
        &line(&Text::glance(notice, "This is too long for WhatsApp")),
        VARIABLE,
    )
}

/// Makes the message of a template with one variable.
pub(super) fn message(name: &str, words: &str) -> Value {
    json!({
        "type": "template",
        "template": {
            "name": name,
            "language": { "code": "en" },
            "components": [{ "type": "body", "parameters": [{ "type": "text", "text": words }] }],
        },
    })
}
