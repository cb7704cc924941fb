//! Where a JSON string ends: the part of the scanner in which most bytes of most messages are passed.
//!
//! Bytes are looked at by the word: arithmetic marks the special ones of eight at once, and over a few words the
//! compiler makes vector instructions of it. Nothing here is machine-specific.

use super::{SyntaxError, wrong};

/// How many bytes of a string are looked at in one step: a register.
pub(super) const WORD: usize = 8;

/// How many bytes of a long string are looked at in one step: a few vector registers.
pub(super) const BLOCK: usize = 32;

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
    loop {
        at = special(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = escape(bytes, at + 1)?,
            Some(_) => return wrong("a control character in a string", at),
            None => return wrong("a string without an end", at),
        }
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
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>)
        && is_plain(block)
    {
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

/// Tells whether nothing in a block is special: without a branch, so that it becomes vector instructions.
#[inline]
fn is_plain(block: &[u8; BLOCK]) -> bool {
    let (words, _) = block.as_chunks::<WORD>();
    let marked = words
        .iter()
        .fold(0, |marked, word| marked | marks(u64::from_le_bytes(*word)));
    marked == 0
}
