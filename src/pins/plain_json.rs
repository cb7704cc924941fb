//! The text of a lock as plain JSON: what people may write besides, comments and last commas, is blanked.

/// Returns a text with blanks in place of comments and of commas before a closing bracket; lines and columns stay.
///
/// It reads bytes once, forwards: what is not JSON then is an error of whoever parses it.
pub(super) fn without_comments(text: &str) -> String {
    let mut plain = text.as_bytes().to_vec();
    let mut blanked = |from: usize, to: usize| {
        for byte in &mut plain[from..to] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    let bytes = text.as_bytes();
    let mut last_comma = None;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let end = match byte {
            b'"' => at + end_of_string(rest),
            b'/' if rest.starts_with(b"//") => at + memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
            b'/' if rest.starts_with(b"/*") => {
                at + memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |found| found + 4)
            }
            _ => at + 1,
        };
        match byte {
            b'/' if end > at + 1 => blanked(at, end),
            b',' => last_comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = last_comma.take() {
                    blanked(comma, comma + 1);
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => last_comma = None,
        }
        at = end;
    }
    // Blanks stand in place of whole characters only: every byte of a comment is replaced.
    String::from_utf8_lossy(&plain).into_owned()
}

/// Returns the length of a string with its quotation marks; the whole rest where it has no end.
fn end_of_string(rest: &[u8]) -> usize {
    let mut at = 1;
    loop {
        match rest.get(at) {
            None => return rest.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_last_commas_count_as_blanks_and_strings_stay_as_they_are() {
        let text = "{ // \u{e4}, }\n\"a//b\": [1, /* ,] */ 2 , ], \"c\\\",}\": {},\n}";
        assert_eq!(
            without_comments(text),
            "{         \n\"a//b\": [1,          2   ], \"c\\\",}\": {} \n}"
        );
        for broken in ["\"", "\"\\", "/*", "//", "/", ",}", "[1,,]"] {
            assert_eq!(without_comments(broken).len(), broken.len(), "{broken}");
        }
        // A stroke alone is no comment, and an escaped quotation mark ends no string wherever it stands.
        for text in ["[1 / 2]", "\"\\\"//\"", "\"a\\\"//\""] {
            assert_eq!(without_comments(text), text);
        }
    }
}
