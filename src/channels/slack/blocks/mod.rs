//! Notices as Block Kit: pure, and nothing is ever cut: what does not fit is said, and answered in the inbox.
//!
//! Texts of models and servers stand in `plain_text` and preformatted text only. The one member that Slack reads as markup
//! is `text`, the line of a notification: there they are escaped, and reading of names and links is switched off.

mod approval;
pub(super) mod limits;
mod modal;
mod question;
#[cfg(test)]
pub(super) mod samples;
#[cfg(test)]
mod tests;
mod text;

use serde_json::{Value, json};

use self::limits::{HEADER, length};
pub(super) use self::modal::{CALLBACK, reason};
pub(super) use self::question::OTHER;
use self::text::{Blocks, escaped, plain};
use crate::card::{Card, Choice};
use crate::channels::channel::Unsupported;
use crate::channels::notice::{Notice, Standing};
use crate::channels::press::{Button, Nonce, Press};
use crate::protocol::Shown;

/// The content of a message, as the Web API takes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    /// The line of a notification, escaped.
    pub text: String,
    /// What is shown.
    pub blocks: Vec<Value>,
}

impl Message {
    /// Writes a notice as it stands; what is too long for Slack says where it can be seen whole.
    pub(super) fn of(notice: &Notice) -> Self {
        let card = &notice.card;
        match &notice.standing {
            Standing::Open { choices } => {
                let blocks = open(card, choices, &notice.nonce).unwrap_or_else(|_too_long| elsewhere(notice));
                Self {
                    text: headline(card),
                    blocks,
                }
            }
            Standing::Closed(outcome) => {
                let outcome = Shown::block(outcome).to_string();
                Self {
                    text: ended(card, &outcome),
                    blocks: closed(card, &outcome),
                }
            }
        }
    }

    /// Writes words of pml to a person.
    pub(super) fn words(text: &str) -> Self {
        let mut blocks = Blocks::default();
        blocks.text(&Shown::block(text).to_string());
        let blocks = blocks.finish().unwrap_or_else(|_too_long| {
            let mut blocks = Blocks::default();
            blocks.text("There is more to say than Slack takes; see the inbox of pml.");
            blocks.finish().unwrap_or_default()
        });
        Self {
            text: "pml".to_owned(),
            blocks,
        }
    }
}

/// Checks that a card can be shown whole.
pub(super) fn fits(card: &Card) -> Result<(), Unsupported> {
    open(card, &card.choices, &Nonce::fresh()).map(drop)
}

/// Ties what is pressed to a card and a message.
struct Form<'a> {
    code: &'a str,
    rev: u64,
    nonce: &'a Nonce,
}

impl Form<'_> {
    /// Names a block: an updated message needs other names than before, so the revision is in them.
    fn id(&self, part: &str) -> String {
        format!("pml:{}:{}:{part}", self.code, self.rev)
    }

    fn press(&self, button: Button) -> String {
        Press {
            code: self.code.to_owned(),
            rev: self.rev,
            button,
            nonce: self.nonce.clone(),
        }
        .to_string()
    }
}

/// Writes a card that can be answered.
fn open(card: &Card, choices: &[Choice], nonce: &Nonce) -> Result<Vec<Value>, Unsupported> {
    let form = Form {
        code: card.code.as_str(),
        rev: card.rev,
        nonce,
    };
    let mut blocks = Blocks::default();
    blocks.header(&asker(card));
    if card.questions.is_empty() {
        approval::add(&mut blocks, card, choices, &form);
    } else {
        question::add(&mut blocks, card, &form)?;
    }
    blocks.note(&format!("{} · {}", card.code, card.keeps_text));
    blocks.finish()
}

/// Writes that a card is too long, and where it is not: without buttons, as what is not seen must not be decided.
fn elsewhere(notice: &Notice) -> Vec<Value> {
    let mut blocks = Blocks::default();
    blocks.header(&asker(&notice.card));
    blocks.text(
        "What is asked is too long for Slack. Open the inbox to see it whole and to answer it: `pml inbox`.",
    );
    if let Some(page) = &notice.inbox {
        blocks.preformatted(page);
    }
    blocks.finish().unwrap_or_default()
}

/// Writes what became of a card; no argument of it is left.
fn closed(card: &Card, outcome: &str) -> Vec<Value> {
    let mut blocks = Blocks::default();
    blocks.header(&asker(card));
    blocks.text(&card.title);
    blocks.text(outcome);
    blocks.finish().unwrap_or_else(|_too_long| {
        let mut blocks = Blocks::default();
        blocks.header(&asker(card));
        blocks.text("This cannot be answered any more; `pml inbox` tells what became of it.");
        blocks.finish().unwrap_or_default()
    })
}

/// Tells who asks and for which project: its name, not where it lies.
fn asker(card: &Card) -> String {
    let project = card.asker.project.rsplit('/').find(|part| !part.is_empty());
    let client = card.asker.client.as_deref().unwrap_or("an agent");
    match project {
        Some(project) => format!("{project}: {client} asks"),
        None => format!("{client} asks"),
    }
}

/// Writes the line of a notification.
fn headline(card: &Card) -> String {
    let line = format!("{}: {}", asker(card), card.title);
    if length(&line) <= HEADER {
        return escaped(&line);
    }
    let what = if card.questions.is_empty() {
        "an approval"
    } else {
        "a question"
    };
    format!("pml: {what} waits for you ({})", card.code)
}

/// Writes what became of a card as the line of a notification.
fn ended(card: &Card, outcome: &str) -> String {
    if length(outcome) <= HEADER {
        escaped(outcome)
    } else {
        format!("pml: {} cannot be answered any more", card.code)
    }
}

fn button(id: &str, text: &str, value: &str, style: Option<&str>) -> Value {
    let mut button = json!({ "type": "button", "action_id": id, "text": plain(text), "value": value });
    if let Some(style) = style {
        button["style"] = style.into();
    }
    button
}
