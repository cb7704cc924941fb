//! The characters of a text as they are shown: escaped where they could deceive, hidden where they are a secret.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use unicode_width::UnicodeWidthChar as _;

use super::super::shown::deceives;

/// One character of a text, or a token that is hidden as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    /// A character outside of quotes.
    Bare(char),
    /// A character between the quotes of a JSON string.
    Quoted(char),
    /// A secret of so many characters.
    Hidden(usize),
}

impl Cell {
    /// Returns how many columns it takes.
    pub(super) fn width(self) -> usize {
        match self {
            Self::Hidden(count) => "[hidden: ]".len() + digits(count),
            Self::Quoted('"' | '\\' | '\n' | '\r' | '\t') => 2,
            Self::Bare(found) | Self::Quoted(found) if deceives(found) => 6 * found.len_utf16(),
            Self::Bare(found) | Self::Quoted(found) => found.width().unwrap_or(0),
        }
    }

    /// Returns how many characters of the source it stands for.
    pub(super) fn characters(self) -> usize {
        match self {
            Self::Hidden(count) => count,
            Self::Bare(_) | Self::Quoted(_) => 1,
        }
    }

    /// Writes it as it is shown.
    pub(super) fn push_to(self, out: &mut String) {
        match self {
            Self::Hidden(count) => {
                let _ = write!(out, "[hidden: {count}]");
            }
            Self::Quoted('"') => out.push_str("\\\""),
            Self::Quoted('\\') => out.push_str("\\\\"),
            Self::Quoted('\n') => out.push_str("\\n"),
            Self::Quoted('\r') => out.push_str("\\r"),
            Self::Quoted('\t') => out.push_str("\\t"),
            Self::Bare(found) | Self::Quoted(found) if deceives(found) => {
                for unit in found.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            Self::Bare(found) | Self::Quoted(found) => out.push(found),
        }
    }
}

/// Returns how many digits a number has.
pub(super) fn digits(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// A text and what of it is hidden.
#[derive(Debug, Clone)]
pub(super) struct VeiledText<'a> {
    text: Cow<'a, str>,
    of: fn(char) -> Cell,
    spans: Vec<Span>,
}

/// A part that is shown, and how many characters are hidden behind it.
#[derive(Debug, Clone)]
struct Span {
    shown: Range<usize>,
    hidden: usize,
}

impl<'a> VeiledText<'a> {
    /// Hides these parts of a text, which are in order and apart; `of` says how its characters are written.
    pub(super) fn new(
        text: Cow<'a, str>,
        of: fn(char) -> Cell,
        hidden: impl IntoIterator<Item = Range<usize>>,
    ) -> Self {
        let mut spans = Vec::new();
        let mut at = 0;
        for range in hidden {
            spans.push(Span {
                shown: at..range.start,
                hidden: text[range.clone()].chars().count(),
            });
            at = range.end;
        }
        spans.push(Span {
            shown: at..text.len(),
            hidden: 0,
        });
        Self { text, of, spans }
    }

    /// Returns its characters as they are shown, from both ends.
    pub(super) fn cells(&self) -> impl DoubleEndedIterator<Item = Cell> {
        self.spans.iter().flat_map(|span| {
            let hidden = (span.hidden > 0).then_some(Cell::Hidden(span.hidden));
            self.text[span.shown.clone()].chars().map(self.of).chain(hidden)
        })
    }

    /// Returns how many characters are hidden in one place at most.
    pub(super) fn most_hidden(&self) -> usize {
        self.spans.iter().map(|span| span.hidden).max().unwrap_or(0)
    }
}

/// Reads what a JSON string means; what is no character becomes U+FFFD.
pub(super) fn decoded(raw: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\\', raw.as_bytes()) else {
        return Cow::Borrowed(raw);
    };
    let mut out = String::with_capacity(raw.len());
    out.push_str(&raw[..first]);
    let mut rest = &raw[first..];
    loop {
        let (found, length) = escape(rest);
        out.push(found);
        rest = &rest[length..];
        let plain = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
        out.push_str(&rest[..plain]);
        rest = &rest[plain..];
        if rest.is_empty() {
            return Cow::Owned(out);
        }
    }
}

/// Counts the characters that a JSON string means.
pub(super) fn count(raw: &str) -> usize {
    let mut count = raw.chars().count();
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (_, length) = escape(&rest[at..]);
        let written = rest[at..at + length].chars().count();
        count -= written - 1;
        rest = &rest[at + length..];
    }
    count
}

/// Reads the escape that `text` begins with, and returns its length.
fn escape(text: &str) -> (char, usize) {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let digits = digits
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then_some(digits)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let plain = |found| (found, 2);
    match text.as_bytes().get(1) {
        Some(b'n') => plain('\n'),
        Some(b'r') => plain('\r'),
        Some(b't') => plain('\t'),
        Some(b'b') => plain('\u{8}'),
        Some(b'f') => plain('\u{c}'),
        Some(found @ (b'"' | b'\\' | b'/')) => plain(char::from(*found)),
        Some(b'u') => {
            let Some(first) = unit(0) else {
                return ('\u{fffd}', 2);
            };
            let pair = unit(6).and_then(|second| char::decode_utf16([first, second]).next()?.ok());
            match char::from_u32(u32::from(first)) {
                Some(found) => (found, 6),
                None => pair.map_or(('\u{fffd}', 6), |found| (found, 12)),
            }
        }
        _ => ('\u{fffd}', 1),
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    #[test]
    fn what_a_string_means_is_read_and_counted() {
        for (raw, meant) in [
            ("plain é", "plain é"),
            (r#"\u002fetc\/pass\"wd\n"#, "/etc/pass\"wd\n"),
            (r"\ud83e\udd80 \ud800 \udd80x", "🦀 \u{fffd} \u{fffd}x"),
            (r"\ud800\u0041", "\u{fffd}A"),
            (r"a\", "a\u{fffd}"),
            (r"\u00", "\u{fffd}00"),
            (r"\é", "\u{fffd}é"),
        ] {
            assert_eq!(decoded(raw), meant);
            assert_eq!(count(raw), meant.chars().count(), "{raw}");
        }
    }

    #[test]
    fn a_cell_is_as_wide_as_it_is_written() {
        for found in [
            'a',
            '"',
            '\\',
            '\n',
            '\u{1b}',
            '\u{202e}',
            '漢',
            '🦀',
            '\u{e0041}',
            '\u{301}',
        ] {
            for cell in [Cell::Quoted(found), Cell::Bare(found)] {
                let mut out = String::new();
                cell.push_to(&mut out);
                assert_eq!(out.width(), cell.width(), "{found:?}");
            }
        }
        for count in [1, 9, 10, 4_711] {
            let mut out = String::new();
            Cell::Hidden(count).push_to(&mut out);
            assert_eq!(out.width(), Cell::Hidden(count).width());
        }
    }

    #[test]
    fn cells_are_read_from_both_ends() {
        let veiled = VeiledText::new("ab secret c".into(), Cell::Quoted, Some(3..9));
        let cells: Vec<Cell> = veiled.cells().collect();
        let mut reversed: Vec<Cell> = veiled.cells().rev().collect();
        reversed.reverse();
        assert_eq!(cells, reversed);
        assert_eq!((cells.len(), veiled.most_hidden()), (6, 6));
    }
}
