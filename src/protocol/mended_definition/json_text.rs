//! JSON that some readers refuse wherever it stands: halves of surrogate pairs, and numbers beyond a double.
//!
//! The grammar allows both. `JavaScript` reads both, but the readers of the Python and the Rust client give up the
//! whole message for them, also in a member that no client knows.

use std::ops::Range;

use bytes::Bytes;

use crate::protocol::Splice;

/// Shorter numbers without an exponent are within a double.
const SHORT: usize = 300;

/// Returns a text that all readers take; `None` where they take it as it is.
pub(super) fn mended(text: &str) -> Option<String> {
    let mut splice: Option<Splice> = None;
    let mut replace = |range: Range<usize>, instead: &'static str| {
        splice
            .get_or_insert_with(|| Splice::new(Bytes::copy_from_slice(text.as_bytes())))
            .replace(range, instead);
    };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string(bytes, at + 1, |half| replace(half, r"\ufffd")),
            b'-' | b'0'..=b'9' => {
                let start = at;
                let is_part = |byte: &&u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                at += bytes[at..].iter().take_while(is_part).count();
                let number = &text[start..at];
                let may_be_too_large = number.len() > SHORT || number.contains(['e', 'E']);
                if may_be_too_large && number.parse().is_ok_and(f64::is_infinite) {
                    replace(start..at, "null");
                }
            }
            _ => at += 1,
        }
    }
    splice.map(Splice::into_text)
}

/// Passes a string from behind its opening quote; reports the place of each half of a pair that has no other half.
fn string(bytes: &[u8], mut at: usize, mut half: impl FnMut(Range<usize>)) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        match unit(bytes, at) {
            Some(0xd800..=0xdbff) if matches!(unit(bytes, at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                half(at..at + 6);
                at += 6;
            }
            _ => at += 2,
        }
    }
    bytes.len()
}

/// Reads the UTF-16 unit that is escaped at a place.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(br"\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
