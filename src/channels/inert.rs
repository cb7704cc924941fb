//! Texts that stay texts where a service has no way to say so.
//!
//! WhatsApp and the apps of ntfy make links of what looks like one, and WhatsApp reads `*bold*` in every text; neither can
//! be told not to. So the few characters that begin such a thing are written as others that look like them. Pure, and
//! linear in the text.

use super::text::{Piece, Voice};

/// What the apps of a service make of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Links.
    Links,
    /// Links and markup: `*`, `_`, `~`, backticks, lists and quotes.
    LinksAndMarkup,
}

/// Writes a piece so that the apps of a service make nothing of it.
pub(super) fn inert(piece: &Piece, reading: Reading) -> String {
    match (piece.voice, reading) {
        (Voice::Own, _) => piece.text.clone(),
        (Voice::Foreign | Voice::Verbatim, Reading::Links) => unlinked(&piece.text),
        (Voice::Foreign | Voice::Verbatim, Reading::LinksAndMarkup) => unformatted(&unlinked(&piece.text)),
    }
}

/// Replaces what makes a link: the `:` of a scheme, the dot of a host, the sign of a mention.
fn unlinked(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let after = letters.peek().copied().unwrap_or(' ');
        written.push(match letter {
            // Of a scheme; a tool (`serena:analyze`) has no slash.
            ':' if before.is_alphanumeric() && after == '/' => '∶',
            // A host ends in letters; `1.2.3` is a version.
            '.' if before.is_alphanumeric() && after.is_alphabetic() => '․',
            '@' if after.is_alphanumeric() => '＠',
            letter => letter,
        });
        before = letter;
    }
    written
}

/// Replaces what begins markup: a sign before a word, and a sign at the beginning of a line.
fn unformatted(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut before = '\n';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let after = letters.peek().copied().unwrap_or('\n');
        let begins_word = !before.is_alphanumeric() && !after.is_whitespace();
        let begins_line = before == '\n';
        written.push(match letter {
            '*' if begins_word || begins_line => '＊',
            '_' if begins_word => '＿',
            '~' if begins_word => '～',
            '`' => '｀',
            '>' if begins_line => '＞',
            '-' if begins_line => '－',
            letter => letter,
        });
        before = letter;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(text: &str, reading: Reading) -> String {
        let piece = Piece {
            voice: Voice::Foreign,
            text: text.to_owned(),
        };
        inert(&piece, reading)
    }

    #[test]
    fn what_looks_like_a_link_or_a_mention_is_none() {
        for (text, expected) in [
            ("see https://evil.example/x", "see https∶//evil․example/x"),
            ("evil.example", "evil․example"),
            ("a@evil.example", "a＠evil․example"),
            ("tel:+41790000000", "tel:+41790000000"),
            ("@everyone", "＠everyone"),
            ("npx -y x@1.2.3", "npx -y x＠1.2.3"),
            ("Postgres. Fast.", "Postgres. Fast."),
        ] {
            assert_eq!(foreign(text, Reading::Links), expected);
        }
    }

    #[test]
    fn what_looks_like_markup_is_none_and_names_stay() {
        for (text, expected) in [
            ("*bold* _it_ ~no~ `code`", "＊bold* ＿it_ ～no~ ｀code｀"),
            ("> quote\n- list\n* list", "＞ quote\n－ list\n＊ list"),
            ("my_own_name and 2 * 3", "my_own_name and 2 * 3"),
            ("--flag", "－-flag"),
            ("run --flag", "run --flag"),
        ] {
            assert_eq!(foreign(text, Reading::LinksAndMarkup), expected);
        }
    }

    #[test]
    fn words_of_pml_stay_as_they_are() {
        let piece = Piece {
            voice: Voice::Own,
            text: "*a* http://127.0.0.1".to_owned(),
        };
        assert_eq!(inert(&piece, Reading::LinksAndMarkup), "*a* http://127.0.0.1");
    }
}
