//! The search for the end of a JSON string: the part of the scanner that passes most bytes of most messages.
//!
//! Short strings are looked at by the word: arithmetic marks the special bytes of eight at once. Long ones are looked
//! at by blocks, with vectors that every machine has, and no block is looked at again for each escape in it.

use wide::u8x16;

use super::{SyntaxError, wrong};

/// How many bytes of a string are looked at in one step: a register.
pub(super) const WORD: usize = 8;

/// How many bytes of a long string are looked at in one step: a bit of a register for each.
pub(super) const BLOCK: usize = 64;

/// How many of them a vector register holds on every machine.
const VECTOR: usize = 16;

/// The letters that are a whole escape; a table, because texts are full of them and a jump for each would be slow.
const ESCAPES: [bool; 256] = {
    let mut letters = [false; 256];
    let known = b"\"\\/bfnrt";
    let mut next = 0;
    while next < known.len() {
        letters[known[next] as usize] = true;
        next += 1;
    }
    letters
};

/// Returns the place behind the closing quote of a string; `at` is behind the opening one.
#[inline]
pub(super) fn string(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    let stop = near(bytes, at);
    match bytes.get(stop) {
        Some(b'"') => Ok(stop + 1),
        _ => rest_of_string(bytes, stop),
    }
}

/// Looks at the first step of a string, which most names and words do not outgrow.
///
/// Returns the place of its first special byte, or a place before it.
#[inline]
pub(super) fn near(bytes: &[u8], at: usize) -> usize {
    word(bytes, at).map_or(at, |word| at + first_mark(marks(word)))
}

/// Returns the place behind the closing quote of a string; `at` is anywhere inside of it.
#[inline(never)]
pub(super) fn rest_of_string(bytes: &[u8], mut at: usize) -> Result<usize, SyntaxError> {
    while let Some(block) = block_at(bytes, at) {
        let mut specials = specials(block);
        let mut next = at + BLOCK;
        while specials != 0 {
            let place = at + specials.trailing_zeros() as usize;
            let end = match ending(bytes, place)? {
                Special::Quote => return Ok(place + 1),
                Special::Escape { end } => end,
            };
            // What an escape covers is passed with it, also where that is in the next block.
            specials = match end - at {
                passed @ 0..BLOCK => specials >> passed << passed,
                BLOCK.. => 0,
            };
            next = next.max(end);
        }
        at = next;
    }
    loop {
        at = special(bytes, at);
        match ending(bytes, at)? {
            Special::Quote => return Ok(at + 1),
            Special::Escape { end } => at = end,
        }
    }
}

/// What stands in a string and is not plain.
enum Special {
    Quote,
    Escape { end: usize },
}

/// Reads the special byte of a string at `at`.
#[inline]
fn ending(bytes: &[u8], at: usize) -> Result<Special, SyntaxError> {
    match bytes.get(at) {
        Some(b'"') => Ok(Special::Quote),
        Some(b'\\') => Ok(Special::Escape {
            end: escape(bytes, at + 1)?,
        }),
        Some(_) => wrong("a control character in a string", at),
        None => wrong("a string without an end", at),
    }
}

/// Returns the end of an escape; `at` is behind its backslash. Halves of surrogate pairs pass, as they are only bytes.
#[inline]
fn escape(bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
    let Some(letter) = bytes.get(at) else {
        return wrong("a string without an end", at);
    };
    if ESCAPES[usize::from(*letter)] {
        return Ok(at + 1);
    }
    match (letter, bytes.get(at + 1..at + 5)) {
        (b'u', Some(digits)) if digits.iter().all(u8::is_ascii_hexdigit) => Ok(at + 5),
        (b'u', _) => wrong("expected four hexadecimal digits", at + 1),
        _ => wrong("an unknown escape", at),
    }
}

/// Finds the first byte from `at` on that ends a plain run of a string: a quote, a backslash or a control character.
#[inline]
pub(super) fn special(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = block_at(bytes, at) {
        let specials = specials(block);
        if specials != 0 {
            return at + specials.trailing_zeros() as usize;
        }
        at += BLOCK;
    }
    while let Some(word) = word(bytes, at) {
        let marks = marks(word);
        if marks != 0 {
            return at + first_mark(marks);
        }
        at += WORD;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let plain = rest
        .iter()
        .take_while(|byte| !matches!(byte, 0..0x20 | b'"' | b'\\'));
    at + plain.count()
}

/// Returns the block that begins at `at`, if all of it is there.
#[inline]
fn block_at(bytes: &[u8], at: usize) -> Option<&[u8; BLOCK]> {
    bytes.get(at..)?.first_chunk()
}

/// Marks every special byte of a block by a bit, that of the first byte lowest.
#[inline]
fn specials(block: &[u8; BLOCK]) -> u64 {
    let (vectors, _) = block.as_chunks::<VECTOR>();
    vectors.iter().rev().fold(0, |marks, bytes| {
        let bytes = u8x16::new(*bytes);
        let special = bytes.simd_eq(u8x16::splat(b'"'))
            | bytes.simd_eq(u8x16::splat(b'\\'))
            | bytes.simd_eq(bytes.min(u8x16::splat(0x1f)));
        marks << VECTOR | u64::from(special.to_bitmask())
    })
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk::<WORD>()?;
    Some(u64::from_le_bytes(*word))
}

/// Sets the high bit of every special byte of a word. Bits above the first one may be wrong: they are borrowed from.
#[inline]
fn marks(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; WORD]);
    const HIGH: u64 = ONES << 7;
    let quotes = (word ^ (ONES * 0x22)).wrapping_sub(ONES);
    let backslashes = (word ^ (ONES * 0x5c)).wrapping_sub(ONES);
    let controls = word.wrapping_sub(ONES * 0x20);
    (quotes | backslashes | controls) & !word & HIGH
}

/// Returns how many bytes stand before the first mark: all of the word, where there is none.
#[inline]
fn first_mark(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}
