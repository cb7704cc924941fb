//! The text of a message with what is to be drawn as code in it. Pure.
//!
//! Nothing is parsed as markup. What is not pml's own and looks like a link, a mention or a command of a bot is marked as
//! code, of which the apps make nothing; commands and arguments are marked whole.

use serde_json::{Value, json};

use super::keyboard::{BUTTONS, Form, Keyboard};
use crate::card::Card;
use crate::channels::channel::Unsupported;
use crate::channels::notice::Notice;
use crate::channels::text::{Piece, Text, Voice};

/// The most that a message holds, in UTF-16 units.
pub(super) const LENGTH: usize = 4096;

/// The most marks of a message; Telegram drops what is more.
const ENTITIES: usize = 100;

/// A longer command gets a block of its own.
const INLINE: usize = 40;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// The text.
    pub(super) text: String,
    /// What is drawn as code, counted in UTF-16 units.
    pub(super) entities: Vec<Value>,
}

impl Message {
    /// Writes a notice.
    pub(super) fn of(notice: &Notice) -> Self {
        Self::written(&Text::of(notice, hint(&notice.card)))
    }

    /// Writes a notice that has no room here.
    pub(super) fn glance(notice: &Notice) -> Self {
        Self::written(&Text::glance(notice, "This is too long for Telegram"))
    }

    /// Writes what came of something that was said; its words are in part those that were said.
    pub(super) fn of_reply(text: &str) -> Self {
        let mut message = Self {
            text: text.chars().take(LENGTH / 2).collect(),
            entities: Vec::new(),
        };
        message.entities = suspicious(&message.text, 0);
        message
    }

    fn written(text: &Text) -> Self {
        let whole = text.plain();
        let mut pieces = Vec::new();
        let mut at = 0;
        for piece in text.pieces() {
            pieces.push((at, piece));
            at += units(&piece.text);
        }
        let by_word = pieces.iter().flat_map(|(at, piece)| marked(piece, *at));
        let mut entities: Vec<Value> = by_word.collect();
        if entities.len() > ENTITIES {
            // Whole pieces are fewer than words.
            let whole = pieces.iter().filter(|(_, piece)| piece.voice != Voice::Own);
            entities = whole
                .map(|(at, piece)| code(*at, units(piece.text.trim_end())))
                .collect();
        }
        if entities.len() > ENTITIES {
            entities = vec![code(0, units(&whole))];
        }
        Self {
            text: whole,
            entities,
        }
    }
}

/// Checks that a card has room in a message, with all that it offers.
pub(super) fn fits(card: &Card) -> Result<(), Unsupported> {
    let too_much = |what, limit, found| Unsupported::TooMuch {
        channel: "Telegram",
        what,
        limit,
        found,
    };
    let buttons = Keyboard::count(card);
    if buttons > BUTTONS {
        return Err(too_much("buttons", BUTTONS, buttons));
    }
    let text = units(&Text::open(card, &card.choices).plain());
    let found = text + units(hint(card)) + 1;
    if found > LENGTH {
        return Err(too_much("characters", LENGTH, found));
    }
    Ok(())
}

/// Says how a card is answered here.
fn hint(card: &Card) -> &'static str {
    match (card.questions.as_slice(), Form::of(&card.questions)) {
        ([], _) => "To say why not, reply to this message with /refuse and the reason.",
        (_, Form::OnePress) => "Press one, or reply to this message in your own words.",
        ([_], Form::Sent) => "Choose, then press Send; or reply to this message in your own words.",
        (_, Form::Sent) => {
            "Choose, then press Send; or reply to this message with one line for each question: numbers, or your own words."
        }
        ([_], Form::Words) => "Reply to this message in your own words.",
        (_, Form::Words) => {
            "Reply to this message with one line for each question: numbers, or your own words."
        }
    }
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn code(offset: usize, length: usize) -> Value {
    json!({ "type": "code", "offset": offset, "length": length })
}

/// Marks what of a piece is drawn as code.
fn marked(piece: &Piece, at: usize) -> Vec<Value> {
    match piece.voice {
        Voice::Own => Vec::new(),
        Voice::Foreign => suspicious(&piece.text, at),
        Voice::Verbatim => match units(piece.text.trim_end()) {
            0 => Vec::new(),
            length if length <= INLINE => vec![code(at, length)],
            length => vec![json!({ "type": "pre", "offset": at, "length": length })],
        },
    }
}

/// Marks each word that an app could make a link, a mention, a tag or a command of.
fn suspicious(text: &str, at: usize) -> Vec<Value> {
    let mut marks = Vec::new();
    let mut offset = at;
    for word in text.split_inclusive(char::is_whitespace) {
        let whole = units(word);
        let word = word.trim_end();
        if is_suspicious(word) {
            marks.push(code(offset, units(word)));
        }
        offset += whole;
    }
    marks
}

fn is_suspicious(word: &str) -> bool {
    let inside = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let digits = inside.chars().filter(char::is_ascii_digit).count();
    // Telephone and card numbers have as many digits.
    // A time of day has a colon, too.
    let named = inside.contains(':') && inside.chars().any(char::is_alphabetic);
    digits >= 5 || named || inside.contains(['@', '#', '/', '.', '$', '+', '\\'])
}
