//! Texts in blocks: `plain_text` and preformatted text only, neither of which knows mentions, links or markup.

use serde_json::{Value, json};

use super::limits::{BLOCKS, HEADER, SECTION, TEXT, length};
use crate::channels::channel::Unsupported;
use crate::channels::slack::TITLE;

/// The blocks of a message, and how much text they hold.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Value>,
    length: usize,
}

impl Blocks {
    /// Adds a header; as a section where it is too long for one.
    pub(super) fn header(&mut self, text: &str) {
        if length(text) > HEADER {
            self.text(text);
        } else {
            self.push(json!({ "type": "header", "text": plain(text) }), length(text));
        }
    }

    /// Adds a text, in as many sections as it needs.
    pub(super) fn text(&mut self, text: &str) {
        for piece in pieces(text, SECTION) {
            self.push(json!({ "type": "section", "text": plain(piece) }), length(piece));
        }
    }

    /// Adds a text of one section that has an id, and what does not fit into it as further ones.
    pub(super) fn named_text(&mut self, id: &str, text: &str) {
        for (place, piece) in pieces(text, SECTION).enumerate() {
            let id = if place == 0 {
                id.to_owned()
            } else {
                format!("{id}:{place}")
            };
            let block = json!({ "type": "section", "block_id": id, "text": plain(piece) });
            self.push(block, length(piece));
        }
    }

    /// Adds a text whose every character counts: a command, arguments.
    pub(super) fn preformatted(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let inner = json!({ "type": "text", "text": text });
        let block = json!({
            "type": "rich_text",
            "elements": [{ "type": "rich_text_preformatted", "elements": [inner] }],
        });
        self.push(block, length(text));
    }

    /// Adds a line of small print.
    pub(super) fn note(&mut self, text: &str) {
        self.push(
            json!({ "type": "context", "elements": [plain(text)] }),
            length(text),
        );
    }

    /// Adds any block, with the length of the text in it.
    pub(super) fn push(&mut self, block: Value, length: usize) {
        self.blocks.push(block);
        self.length += length;
    }

    /// Returns the blocks if a message can hold them.
    pub(super) fn finish(self) -> Result<Vec<Value>, Unsupported> {
        let too_much = |what, limit, found| Unsupported::TooMuch {
            channel: TITLE,
            what,
            limit,
            found,
        };
        if self.length > TEXT {
            return Err(too_much("characters in a message", TEXT, self.length));
        }
        if self.blocks.len() > BLOCKS {
            return Err(too_much("blocks in a message", BLOCKS, self.blocks.len()));
        }
        Ok(self.blocks)
    }
}

/// Writes a text that Slack shows as it is: no markup, no emoji of colons.
pub(super) fn plain(text: &str) -> Value {
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

/// Escapes a text for the place where Slack reads markup: the line of a notification.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Cuts a text into pieces of at most `limit`, behind a line or a word where there is one; blank pieces are left out, as
/// Slack refuses them.
fn pieces(text: &str, limit: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, remaining) = rest.split_at(cut(rest, limit));
        rest = remaining;
        Some(piece)
    })
    .filter(|piece| !piece.trim().is_empty())
}

/// Finds where the first piece of a text ends.
fn cut(text: &str, limit: usize) -> usize {
    let (mut counted, mut line, mut word) = (0, None, None);
    for (place, letter) in text.char_indices() {
        counted += letter.len_utf16();
        if counted > limit {
            return line.or(word).unwrap_or(place);
        }
        match letter {
            '\n' => line = Some(place + 1),
            ' ' => word = Some(place + 1),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_behind_a_line_else_a_word_else_anywhere_and_nothing_is_lost() {
        let cut_at = |text| pieces(text, 8).collect::<Vec<_>>();
        assert_eq!(cut_at("ab\ncd ef gh"), ["ab\n", "cd ef gh"]);
        assert_eq!(cut_at("abcd ef gh"), ["abcd ef ", "gh"]);
        assert_eq!(cut_at("abcdefghijk"), ["abcdefgh", "ijk"]);
        assert_eq!(cut_at("🦀🦀🦀🦀🦀"), ["🦀🦀🦀🦀", "🦀"]);
        assert_eq!(cut_at("12345678"), ["12345678"]);
        let text = "a b\nc".repeat(10_000);
        assert_eq!(pieces(&text, SECTION).collect::<String>(), text);
        assert!(pieces(&text, SECTION).all(|piece| length(piece) <= SECTION));
    }

    #[test]
    fn a_text_without_words_is_no_block() {
        let mut blocks = Blocks::default();
        blocks.text("");
        blocks.text(" \n");
        blocks.preformatted("\t");
        assert_eq!(blocks.finish(), Ok(Vec::new()));
    }

    #[test]
    fn what_a_message_cannot_hold_is_said_and_not_cut() {
        let mut blocks = Blocks::default();
        blocks.text(&"x".repeat(TEXT + 1));
        assert_eq!(
            blocks.finish().unwrap_err().to_string(),
            "Slack takes at most 10000 characters in a message, and this has 10001"
        );
        let mut blocks = Blocks::default();
        (0..=BLOCKS).for_each(|_| blocks.text("x"));
        assert_eq!(
            blocks.finish().unwrap_err().to_string(),
            "Slack takes at most 50 blocks in a message, and this has 51"
        );
    }
}
