//! Cuts a text that ought to be JSON into its tokens, however broken it is.
//!
//! What is shown to a person and what secrets are hidden in may be no JSON, too deep or cut off, so that the scanner,
//! which gives up at the first error, would leave the rest unshown or unhidden. No grammar is checked here: every byte
//! but white space is in exactly one token.

use std::ops::Range;

use super::scan::blank;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lexeme {
    /// A bracket, a comma or a colon.
    Sign(u8),
    /// A string with its quotes; the closing one is missing where the text ends before it.
    String,
    /// A number, a literal, or anything that stands where one could.
    Word,
}

/// The tokens of a text and where they stand, in order.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
        }
    }

    /// Returns the byte that the next token begins with.
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(blank(self.bytes, self.at)).copied()
    }
}

impl Iterator for Lexer<'_> {
    type Item = (Lexeme, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = blank(self.bytes, self.at);
        let (lexeme, end) = match *self.bytes.get(start)? {
            sign @ (b'{' | b'}' | b'[' | b']' | b',' | b':') => (Lexeme::Sign(sign), start + 1),
            b'"' => (Lexeme::String, end_of_string(self.bytes, start + 1)),
            _ => (Lexeme::Word, end_of_word(self.bytes, start)),
        };
        self.at = end;
        Some((lexeme, start..end))
    }
}

/// Returns the place behind a string; `at` is behind its opening quote.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// Returns the place behind a word, which all signs, quotes and white space end.
fn end_of_word(bytes: &[u8], at: usize) -> usize {
    let rest = bytes[at..].iter();
    at + rest.take_while(|byte| !b"\",:{}[] \t\r\n".contains(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Json;
    use crate::protocol::scan::{Key, Opened, Scanner};
    use proptest::prelude::*;
    use serde_json::Value;

    /// Collects the strings, numbers and words of a text as the scanner reads them, names among them.
    fn scanned(scanner: &mut Scanner<'_>, found: &mut Vec<String>) {
        match scanner.open().unwrap() {
            Opened::Scalar(json) => found.push(json.get().to_owned()),
            Opened::Array => {
                while scanner.element().unwrap() {
                    scanned(scanner, found);
                }
            }
            Opened::Object => {
                while let Some(key) = scanner.key().unwrap() {
                    found.push(match key {
                        Key::Plain(name) => format!("\"{name}\""),
                        Key::Escaped(written) => written.to_owned(),
                    });
                    scanned(scanner, found);
                }
            }
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a\"\\\\{},: \u{e4}\n]{0,5}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec(("[ab\"\\\\{\n]{0,3}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn of_a_text_that_is_json_the_tokens_are_those_of_the_scanner(value in values()) {
            let text = serde_json::to_string_pretty(&value).unwrap();
            prop_assert!(Json::parse(&text).is_some());
            let mut expected = Vec::new();
            scanned(&mut Scanner::new(&text), &mut expected);
            let found: Vec<String> = Lexer::of(&text)
                .filter(|(lexeme, _)| matches!(lexeme, Lexeme::String | Lexeme::Word))
                .map(|(_, place)| text[place].to_owned())
                .collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn of_any_text_every_byte_but_white_space_is_in_one_token(text in r#"[\[\]{}:,"\\ \t\né0-2a\f]{0,24}"#) {
            let mut behind = 0;
            for (_, place) in Lexer::of(&text) {
                prop_assert!(text[behind..place.start].trim_ascii().is_empty());
                prop_assert!(place.start < place.end);
                behind = place.end;
            }
            prop_assert!(text[behind..].trim_ascii().is_empty());
        }
    }
}
