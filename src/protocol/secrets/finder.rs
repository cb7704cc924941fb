//! Finds values in a text, in every spelling: one pass over the text as it is, and one over it decoded, twice.
//!
//! Decoding the text rather than encoding the values: which characters an encoder touches differs by program, what they
//! mean does not. Base64 alone is searched for by its letters, because where it begins cannot be told.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::EVERYWHERE;

/// A string within a string, such as an error object in a log line, is escaped twice; further is not looked.
const DECODINGS: usize = 2;

/// Looks for all values at once, in time linear in the text.
pub(super) struct Finder {
    /// `None` if there is nothing to look for.
    spellings: Option<AhoCorasick>,
    /// What each spelling is of, in the order of the automaton.
    meanings: Vec<Meaning>,
}

struct Meaning {
    secret: usize,
    place: SpellingBoundary,
}

/// Where a spelling counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SpellingBoundary {
    Anywhere,
    /// Not as a part of a longer word.
    AsAWord,
}

/// Where a secret stands in a text.
pub(super) struct SecretPlace {
    pub(super) range: Range<usize>,
    /// The number of the secret.
    pub(super) secret: usize,
}

impl Finder {
    pub(super) fn new<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let mut spellings = Vec::new();
        let mut meanings = Vec::new();
        for (secret, value) in values.enumerate() {
            for spelling in spelled(value) {
                let place = if spelling.chars().count() < EVERYWHERE {
                    SpellingBoundary::AsAWord
                } else {
                    SpellingBoundary::Anywhere
                };
                spellings.push(spelling);
                meanings.push(Meaning { secret, place });
            }
        }
        let built = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(&spellings);
        Self {
            spellings: built.ok().filter(|_| !spellings.is_empty()),
            meanings,
        }
    }

    /// Returns where secrets stand, in order and apart from each other.
    pub(super) fn places(&self, text: &str) -> Vec<SecretPlace> {
        let Some(spellings) = &self.spellings else {
            return Vec::new();
        };
        let mut found = Vec::new();
        self.look(spellings, text.as_bytes(), |at| at, &mut found);
        let mut view = Decoded::of(text.as_bytes(), |at| at);
        for _ in 0..DECODINGS {
            let Some(decoded) = view else { break };
            let origin = |at: usize| decoded.origins[at];
            self.look(spellings, &decoded.bytes, origin, &mut found);
            view = Decoded::of(&decoded.bytes, origin);
        }
        joined(found)
    }

    /// Looks through `bytes`, of which each comes from the `origin` of its place.
    fn look(
        &self,
        spellings: &AhoCorasick,
        bytes: &[u8],
        origin: impl Fn(usize) -> usize,
        found: &mut Vec<SecretPlace>,
    ) {
        for hit in spellings.find_overlapping_iter(bytes) {
            let meaning = &self.meanings[hit.pattern().as_usize()];
            let within = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            let before = hit.start().checked_sub(1).and_then(|at| bytes.get(at));
            let in_a_word = within(before) || within(bytes.get(hit.end()));
            if meaning.place == SpellingBoundary::Anywhere || !in_a_word {
                found.push(SecretPlace {
                    range: origin(hit.start())..origin(hit.end()),
                    secret: meaning.secret,
                });
            }
        }
    }
}

/// Joins places that touch the same text; the longest of them gives the name.
fn joined(mut found: Vec<SecretPlace>) -> Vec<SecretPlace> {
    found.sort_by_key(|place| (place.range.start, std::cmp::Reverse(place.range.end)));
    let mut joined: Vec<(SecretPlace, usize)> = Vec::new();
    for place in found {
        let length = place.range.len();
        match joined.last_mut() {
            Some((last, longest)) if place.range.start < last.range.end => {
                last.range.end = last.range.end.max(place.range.end);
                if length > *longest {
                    (last.secret, *longest) = (place.secret, length);
                }
            }
            _ => joined.push((place, length)),
        }
    }
    joined.into_iter().map(|(place, _)| place).collect()
}

/// Returns the spellings of a value that decoding does not lead back to it.
fn spelled(value: &str) -> Vec<String> {
    let mut spellings = vec![value.to_owned()];
    if value.contains(' ') {
        // As forms write a blank.
        spellings.push(value.replace(' ', "+"));
    }
    if value.contains('\\') {
        // As an address writes a backslash in its path.
        spellings.push(value.replace('\\', "/"));
    }
    if value.len() < EVERYWHERE {
        // Too short to be told from other letters in the middle of base64.
        spellings.push(STANDARD_NO_PAD.encode(value));
    } else {
        // Three bytes are four letters: what stands before the value shifts it by none, one or two bytes. The letters
        // at both ends that also depend on the neighbours are left out.
        for before in 0..3 {
            let shifted = [&[0; 2][..before], value.as_bytes()].concat();
            let (first, last) = ((before * 8).div_ceil(6), shifted.len() * 8 / 6);
            for encoded in [STANDARD_NO_PAD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)] {
                spellings.push(encoded[first..last].to_owned());
            }
        }
    }
    spellings.sort();
    spellings.dedup();
    spellings
}

/// What a text says once decoded, with the place in the text that each byte comes from.
struct Decoded {
    bytes: Vec<u8>,
    /// One more than there are bytes: the last is the end of the text.
    origins: Vec<usize>,
}

impl Decoded {
    /// Returns what percent signs and backslashes stand for; `None` if there are none.
    fn of(bytes: &[u8], origin: impl Fn(usize) -> usize) -> Option<Self> {
        memchr::memchr2(b'%', b'\\', bytes)?;
        let mut decoded = Self {
            bytes: Vec::with_capacity(bytes.len()),
            origins: Vec::with_capacity(bytes.len() + 1),
        };
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            let (meant, length) = match byte {
                b'%' => percent(&bytes[at..]).map(|byte| (Meant::Byte(byte), 3)),
                b'\\' => escape(&bytes[at..]),
                _ => None,
            }
            .unwrap_or((Meant::Byte(*byte), 1));
            decoded.push(meant, origin(at));
            at += length;
        }
        decoded.origins.push(origin(bytes.len()));
        Some(decoded)
    }

    fn push(&mut self, meant: Meant, origin: usize) {
        let mut room = [0; 4];
        let bytes: &[u8] = match &meant {
            Meant::Byte(byte) => std::slice::from_ref(byte),
            Meant::Character(found) => found.encode_utf8(&mut room).as_bytes(),
        };
        for byte in bytes {
            self.bytes.push(*byte);
            self.origins.push(origin);
        }
    }
}

#[derive(Clone, Copy)]
enum Meant {
    Byte(u8),
    Character(char),
}

fn percent(rest: &[u8]) -> Option<u8> {
    u8::try_from(hexadecimal(rest.get(1..3)?)?).ok()
}

/// Reads an escape of JSON, Rust, Python or [`crate::protocol::Shown`] and tells how long it is.
fn escape(rest: &[u8]) -> Option<(Meant, usize)> {
    let byte = |byte| Some((Meant::Byte(byte), 2));
    match rest.get(1)? {
        b'n' => byte(b'\n'),
        b'r' => byte(b'\r'),
        b't' => byte(b'\t'),
        b'b' => byte(8),
        b'f' => byte(12),
        b'0' => byte(0),
        quoted @ (b'"' | b'\'' | b'\\' | b'/') => byte(*quoted),
        b'x' => {
            let found = hexadecimal(rest.get(2..4)?)?;
            Some((Meant::Byte(u8::try_from(found).ok()?), 4))
        }
        b'u' if rest.get(2) == Some(&b'{') => {
            // At most six digits name a character.
            let digits = rest[3..].iter().take(7).position(|byte| *byte == b'}')?;
            let found = char::from_u32(hexadecimal(&rest[3..3 + digits])?)?;
            Some((Meant::Character(found), digits + 4))
        }
        b'u' => {
            let first = hexadecimal(rest.get(2..6)?)?;
            if let Some(found) = char::from_u32(first) {
                return Some((Meant::Character(found), 6));
            }
            // Characters beyond the first 65,536 are written as two halves.
            let second = (rest.get(6..8)? == br"\u").then(|| hexadecimal(rest.get(8..12)?))??;
            let units = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
            let found = char::decode_utf16(units).next()?.ok()?;
            Some((Meant::Character(found), 12))
        }
        _ => None,
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(digits).ok()?;
    digits
        .bytes()
        .all(|digit| digit.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(digits, 16).ok())?
}
