//! JSON that some readers refuse wherever it stands: halves of surrogate pairs, and numbers beyond a double.
//!
//! The grammar allows both. `JavaScript` reads both, but the readers of the Python and the Rust client give up the
//! whole message for them, also in a member that no client knows.

use std::ops::Range;

use bytes::Bytes;

use crate::protocol::Splice;
use crate::protocol::object::place_of;
use crate::protocol::scan::{Key, Opened, Scanner, SyntaxError};

/// Shorter numbers without an exponent are within a double.
const SHORT: usize = 300;

/// Returns a text that all readers take; `None` where they take it as it is, or where it is no JSON.
pub(super) fn mended(text: &str) -> Option<String> {
    let mut mending = Mending { text, splice: None };
    mending.value(&mut Scanner::new(text)).ok()?;
    mending.splice.map(Splice::into_text)
}

/// A text and what is replaced in it.
struct Mending<'a> {
    text: &'a str,
    splice: Option<Splice>,
}

impl<'a> Mending<'a> {
    /// Looks at the value that comes next; the scanner bounds how deep this recurses.
    fn value(&mut self, scanner: &mut Scanner<'a>) -> Result<(), SyntaxError> {
        match scanner.open()? {
            Opened::Scalar(json) if json.get().starts_with('"') => self.string(json.get()),
            Opened::Scalar(json) => self.word(json.get()),
            Opened::Array => {
                while scanner.element()? {
                    self.value(scanner)?;
                }
            }
            Opened::Object => {
                while let Some(key) = scanner.key()? {
                    if let Key::Escaped(written) = key {
                        self.string(written);
                    }
                    self.value(scanner)?;
                }
            }
        }
        Ok(())
    }

    /// Replaces each half of a pair that has no other half.
    fn string(&mut self, written: &'a str) {
        let bytes = written.as_bytes();
        let start = place_of(written, self.text).start;
        let mut at = 0;
        while let Some(found) = memchr::memchr(b'\\', bytes.get(at..).unwrap_or_default()) {
            at += found;
            match unit(bytes, at) {
                Some(0xd800..=0xdbff) if matches!(unit(bytes, at + 6), Some(0xdc00..=0xdfff)) => at += 12,
                Some(0xd800..=0xdfff) => {
                    self.replace(start + at..start + at + 6, r"\ufffd");
                    at += 6;
                }
                _ => at += 2,
            }
        }
    }

    /// Replaces a number that is beyond a double.
    fn word(&mut self, word: &'a str) {
        let may_be_too_large = word.len() > SHORT || word.contains(['e', 'E']);
        if may_be_too_large && word.parse().is_ok_and(f64::is_infinite) {
            self.replace(place_of(word, self.text), "null");
        }
    }

    fn replace(&mut self, place: Range<usize>, instead: &'static str) {
        self.splice
            .get_or_insert_with(|| Splice::new(Bytes::copy_from_slice(self.text.as_bytes())))
            .replace(place, instead);
    }
}

/// Reads the UTF-16 unit that is escaped at a place.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(br"\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Json;
    use proptest::prelude::*;

    #[test]
    fn halves_of_pairs_and_numbers_without_an_end_are_replaced() {
        for (text, expected) in [
            (r#""\ud800""#, r#""\ufffd""#),
            (
                r#"{"\uDC00\ud83e\udd80":"\ud800\ud83e\udd80\\ud800"}"#,
                r#"{"\ufffd\ud83e\udd80":"\ufffd\ud83e\udd80\\ud800"}"#,
            ),
            ("[1e999,-1E+400,1e5]", "[null,null,1e5]"),
        ] {
            assert_eq!(mended(text).as_deref(), Some(expected), "{text}");
        }
        let long = "1".repeat(400);
        assert_eq!(mended(&format!("[{long},0]")).unwrap(), "[null,0]");
        for text in [
            r#""\u00e4\\ud800 1e999 \"1e999""#,
            "[12345678901234567890123,1e-999,0.1e300]",
            r#"{"a":"\ud83e\udd80"}"#,
        ] {
            assert_eq!(mended(text), None, "{text}");
        }
    }
    fn texts() -> impl Strategy<Value = String> {
        let string = r#""([a1e\u{e4}{,:]|\\["\\n]|\\ud83e\\udd80|\\u(d800|DC00|00e4)){0,5}""#;
        let leaf = prop_oneof![
            string,
            r"-?[1-9](\.5)?([eE][+-]?(2|999))?",
            Just("null".to_owned())
        ];
        leaf.prop_recursive(3, 16, 4, move |inner| {
            let member = (string, inner.clone()).prop_map(|(name, value)| format!("{name} : {value}"));
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(|all| format!("[{}]", all.join(", "))),
                proptest::collection::vec(member, 0..4).prop_map(|all| format!("{{{}}}", all.join(","))),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_text_is_changed_exactly_where_serde_json_cannot_read_it(text in texts()) {
            prop_assert!(Json::parse(&text).is_some());
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
            match mended(&text) {
                None => prop_assert!(read(&text), "{}", text),
                Some(mended) => {
                    prop_assert!(!read(&text) && read(&mended), "{} {}", text, mended);
                    prop_assert_eq!(super::mended(&mended), None);
                }
            }
        }
    }
}
