//! Percent-encoding: taken off and put on, one character at a time.

use std::fmt::Write as _;

/// Takes the percent-encoding off the characters of a kind; other encodings are written in upper case.
pub(super) fn decoded(text: &str, takes: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let (length, found) = character(rest.as_bytes()).unwrap_or((1, None));
        match found {
            Some(found) if takes(found) && !found.is_control() => plain.push(found),
            _ => plain.push_str(&rest[..length].to_ascii_uppercase()),
        }
        rest = &rest[length..];
    }
    plain.push_str(rest);
    plain
}

/// Reads one percent-encoded character: how many bytes it is written in, and which it is, if it is one.
fn character(bytes: &[u8]) -> Option<(usize, Option<char>)> {
    let first = byte(bytes)?;
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let all: Option<Vec<u8>> = (0..length).map(|at| byte(bytes.get(at * 3..)?)).collect();
    let found = all.and_then(|all| std::str::from_utf8(&all).ok()?.chars().next());
    Some(match found {
        Some(found) => (length * 3, Some(found)),
        None => (3, None),
    })
}

fn byte(bytes: &[u8]) -> Option<u8> {
    match bytes {
        [b'%', high, low, ..] => {
            let digit = |digit: u8| {
                (digit as char)
                    .to_digit(16)
                    .and_then(|digit| u8::try_from(digit).ok())
            };
            Some(digit(*high)? * 16 + digit(*low)?)
        }
        _ => None,
    }
}

/// Writes blanks and every character beyond ASCII percent-encoded.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for found in text.chars() {
        if found.is_ascii() && found != ' ' {
            encoded.push(found);
        } else {
            for byte in found.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}
