//! Cards and settings for the tests of the channels' core.

use std::path::Path;

use crate::card::{Card, samples};
use crate::config::{self, ChannelSettings};
use crate::protocol::question::{Choice, Question, Selection};
use crate::workflow::samples::{NOON, new};
use crate::workflow::{Ask, Timestamp};

/// The moment at which the sample cards were asked.
pub(super) const ASKED: Timestamp = NOON;

/// A question with two options.
pub(super) fn question() -> Card {
    card(vec![pick("Which db?", &["pg", "sqlite"])])
}

/// Several questions.
pub(super) fn questions() -> Card {
    card(vec![pick("Which db?", &["pg", "sqlite"]), pick("Why?", &[])])
}

/// An approval.
pub(super) fn approval() -> Card {
    samples::card(&samples::workflow(new("{}").ask))
}

pub(super) fn pick(text: &str, labels: &[&str]) -> Question {
    let options = labels.iter().map(|label| Choice {
        label: (*label).to_owned(),
        description: None,
    });
    Question {
        question: text.to_owned(),
        header: None,
        options: options.collect(),
        selection: Selection::One,
    }
}

fn card(questions: Vec<Question>) -> Card {
    let mut workflow = samples::workflow(Ask::Questions { questions });
    workflow.project = "/home/ada/other".into();
    samples::card(&workflow)
}

/// Slack, Telegram and WhatsApp with one or two people each, and these routes.
pub(super) fn settings(route: &str) -> ChannelSettings {
    let text = format!(
        r#"{{"channels": {{
            "slack": {{ "appToken": "a", "botToken": "b", "people": ["U1", "U2"] }},
            "telegram": {{ "token": "t", "people": [1] }},
            "whatsapp": {{ "token": "w", "phoneNumberId": "1", "people": ["41"] }},
            "route": {route}
        }}}}"#
    );
    config::check(Path::new("/home/pml.json"), &text)
        .unwrap()
        .channels
}
