//! Percent-encoding: taken off and put on, one character at a time.

use std::fmt::Write as _;

/// Takes the percent-encoding off the characters of a kind; other encodings are written in upper case.
pub(super) fn decoded(text: &str, takes: impl Fn(char) -> bool) -> String {
    let mut bytes = text.as_bytes();
    let mut plain = String::with_capacity(text.len());
    while !bytes.is_empty() {
        let Some(encoded) = character(bytes) else {
            let rest = std::str::from_utf8(bytes).unwrap_or_default();
            let next = rest.char_indices().nth(1).map_or(rest.len(), |(next, _)| next);
            plain.push_str(&rest[..next]);
            bytes = &bytes[next..];
            continue;
        };
        let (length, found) = encoded;
        match found {
            Some(found) if takes(found) && !found.is_control() => plain.push(found),
            _ => plain.push_str(&String::from_utf8_lossy(&bytes[..length]).to_ascii_uppercase()),
        }
        bytes = &bytes[length..];
    }
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

/// Writes every character beyond ASCII percent-encoded.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for found in text.chars() {
        if found.is_ascii() {
            encoded.push(found);
        } else {
            for byte in found.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}
