//! A name, a text or a word of a JSON text, to be written whole or cut in its middle.

use std::borrow::Cow;

use super::cell::{Cell, VeiledText, count, decoded, digits};
use super::secret;
use super::shares::Need;
use super::token::NameMeaning;

/// As many bytes of each end of a long text are read at least: far more than is kept of it.
const WINDOW: usize = 1 << 10;

/// A run of characters between signs.
#[derive(Debug)]
pub(super) struct Run<'a> {
    /// What stands before and behind it.
    quote: &'static str,
    head: VeiledText<'a>,
    /// The end of a text that is too long to be read whole; without it the head is all.
    tail: Option<VeiledText<'a>>,
    /// How many characters the whole has.
    characters: usize,
    /// How many columns the whole takes, without quotes.
    width: usize,
    /// How many characters of an end are shown at most: no secret is seen whole beyond them.
    reach: usize,
}

impl<'a> Run<'a> {
    /// Reads a string, as much as can be shown of it in `room` columns.
    pub(super) fn text(raw: &'a str, named: NameMeaning, room: usize) -> Self {
        let hidden = |text: &str| match named {
            NameMeaning::Secret => secret::in_named_value(text),
            NameMeaning::Otherwise => secret::in_text(text),
        };
        let window = room.saturating_mul(4).max(WINDOW);
        if raw.len() <= window.saturating_mul(2) {
            let text = decoded(raw);
            let hidden = hidden(&text);
            return Self::whole("\"", VeiledText::new(text, Cell::Quoted, hidden));
        }
        let token = secret::named_token(raw).filter(|_| named == NameMeaning::Secret);
        if let Some(token) = token {
            return Self::whole("\"", VeiledText::new(raw.into(), Cell::Quoted, Some(token)));
        }
        let end = |raw: &'a str| {
            let text = decoded(raw);
            let hidden = secret::in_text(&text);
            VeiledText::new(text, Cell::Quoted, hidden)
        };
        Self {
            quote: "\"",
            head: end(&raw[..raw.floor_char_boundary(window)]),
            tail: Some(end(&raw[raw.ceil_char_boundary(raw.len() - window)..])),
            characters: count(raw),
            width: usize::MAX,
            reach: window / 2,
        }
    }

    /// Reads the name of a member.
    pub(super) fn name(raw: &'a str) -> Self {
        Self::whole("\"", VeiledText::new(decoded(raw), Cell::Quoted, None))
    }

    /// Reads a number or a literal.
    pub(super) fn word(raw: &'a str, named: NameMeaning) -> Self {
        let is_number = raw.bytes().all(|byte| byte.is_ascii_digit());
        let hidden = (named == NameMeaning::Secret && is_number).then_some(0..raw.len());
        Self::whole("", VeiledText::new(Cow::Borrowed(raw), Cell::Bare, hidden))
    }

    fn whole(quote: &'static str, head: VeiledText<'a>) -> Self {
        let (characters, width) = head.cells().fold((0, 0), |(characters, width), cell| {
            (characters + cell.characters(), width + cell.width())
        });
        Self {
            quote,
            head,
            tail: None,
            characters,
            width,
            reach: usize::MAX,
        }
    }

    /// Returns the columns that it needs between its quotes: all of it, or what says how much is left out.
    pub(super) fn need(&self) -> Need {
        Need {
            least: self.width.min(mark_width(self.characters)),
            most: self.width,
        }
    }

    /// Returns how many columns its quotes take.
    pub(super) fn quotes(&self) -> usize {
        2 * self.quote.len()
    }

    /// Returns how many characters it is written with if nothing is left out.
    pub(super) fn characters(&self) -> usize {
        self.characters + self.quotes()
    }

    /// Returns how many characters are hidden in one place at most.
    pub(super) fn most_hidden(&self) -> usize {
        let tail = self.tail.as_ref().map_or(0, VeiledText::most_hidden);
        self.head.most_hidden().max(tail)
    }

    /// Writes it in at most `share` columns between its quotes; says whether that is all of it.
    pub(super) fn push_to(&self, out: &mut String, share: usize) -> bool {
        out.push_str(self.quote);
        let is_whole = share >= self.width;
        if is_whole {
            self.head.cells().for_each(|cell| cell.push_to(out));
        } else {
            let tail = self.tail.as_ref().unwrap_or(&self.head);
            let head = within(self.head.cells(), self.reach);
            let tail = within(tail.cells().rev(), self.reach);
            cut(out, head, tail, self.characters, share);
        }
        out.push_str(self.quote);
        is_whole
    }

    /// Writes all of it, and a line break behind each that it holds.
    pub(super) fn push_lines_to(&self, out: &mut String) {
        out.push_str(self.quote);
        let mut cells = self.head.cells().peekable();
        while let Some(cell) = cells.next() {
            cell.push_to(out);
            if cell == Cell::Quoted('\n') && cells.peek().is_some() {
                out.push('\n');
            }
        }
        out.push_str(self.quote);
    }
}

/// Returns `text` in at most `room` columns: its beginning, how many characters are left out, and its end.
#[must_use]
pub fn shortened(text: &str, room: usize) -> Cow<'_, str> {
    let cells = || text.chars().map(Cell::Bare);
    // What is shorter in bytes is no wider, and what is much longer is not looked at.
    let width = || cells().map(Cell::width).sum::<usize>();
    if text.len() <= room || (text.len() <= room.saturating_mul(8) && width() <= room) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    cut(&mut out, cells(), cells().rev(), text.chars().count(), room);
    Cow::Owned(out)
}

/// Returns how wide a mark is at most that stands for a part of so many characters.
pub(super) fn mark_width(characters: usize) -> usize {
    ".(+).".len() + digits(characters)
}

/// Writes the mark for so many characters that are left out, or what `room` columns hold of it.
pub(super) fn push_mark(out: &mut String, left_out: usize, room: usize) {
    let mark = format!("\u{2026}(+{left_out})\u{2026}");
    out.extend(mark.chars().take(room));
}

/// Writes both ends of a text of `all` characters, and between them how many are left out.
///
/// Each end has half the room: with more room neither gets less.
fn cut(
    out: &mut String,
    head: impl Iterator<Item = Cell>,
    tail: impl Iterator<Item = Cell>,
    all: usize,
    room: usize,
) {
    let kept = room.saturating_sub(mark_width(all));
    let head: Vec<Cell> = fitting(head, kept.div_ceil(2)).collect();
    let tail: Vec<Cell> = fitting(tail, kept / 2).collect();
    let shown: usize = head.iter().chain(&tail).map(|cell| cell.characters()).sum();
    for cell in head {
        cell.push_to(out);
    }
    push_mark(out, all.saturating_sub(shown), room);
    for cell in tail.iter().rev() {
        cell.push_to(out);
    }
}

/// Takes the cells that fit into so many columns.
fn fitting(cells: impl Iterator<Item = Cell>, room: usize) -> impl Iterator<Item = Cell> {
    let mut width = 0;
    cells.take_while(move |cell| {
        width += cell.width();
        width <= room
    })
}

/// Takes the cells that stand for the first characters.
fn within(cells: impl Iterator<Item = Cell>, characters: usize) -> impl Iterator<Item = Cell> {
    let mut count = 0_usize;
    cells.take_while(move |cell| {
        count = count.saturating_add(cell.characters());
        count <= characters
    })
}
