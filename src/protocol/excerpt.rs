//! Excerpts of a call's arguments for the person who decides about it.
//!
//! A dialog has room for a line or two and a terminal for a page, but arguments may hold megabytes. An excerpt keeps
//! the names of all members as long as it can, shows short texts whole and gives what room is left to the long ones in
//! equal parts; each keeps its beginning and its end and says how many characters are left out. Secrets are hidden.
//! The work is linear in the arguments.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::Shown;
use run::{Run, mark_width, push_mark};
use shares::{Need, divide};
use token::{Token, Tokens};

mod cell;
mod run;
mod secret;
mod shares;
mod token;
mod wrap;

pub use run::shortened;
pub use secret::is_secret_name;
pub use wrap::{fold, wrap};

/// A member's name gets so many columns before texts get any: names are read, not compared.
const NAME: usize = 40;

/// The columns that an error repeats of a name: those of tools have 64 characters at most, and of a URI this is enough
/// to find it again.
const REPEATED: usize = 200;

/// A hidden token longer than this is unusual: the longest keys of well-known services have 164 characters.
const USUAL_SECRET: usize = 200;

/// A piece of JSON, escaped, in the room that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The text to show.
    pub text: String,
    /// Whether anything is left out.
    pub extent: Extent,
    /// How many characters are hidden in one place at most.
    hidden: usize,
}

/// How much of its source an excerpt shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Everything, secrets apart.
    Whole,
    /// Less than everything; the text says how much is left out.
    Shortened,
}

impl Excerpt {
    /// Shows a JSON text on one line, in at most `room` columns.
    #[must_use]
    pub fn of_json(json: &str, room: usize) -> Self {
        Pieces::of(json, room).excerpt(room)
    }

    /// Shows a JSON text whole, on one line.
    #[must_use]
    pub fn whole(json: &str) -> Self {
        let (mut text, mut hidden) = (String::with_capacity(json.len()), 0);
        for token in Tokens::of(json) {
            let piece = Piece::of(token, usize::MAX);
            piece.push_to(&mut text, usize::MAX);
            hidden = hidden.max(piece.most_hidden());
        }
        Self {
            text,
            extent: Extent::Whole,
            hidden,
        }
    }

    /// Shows a text that holds no secrets and is escaped, in at most `room` columns.
    #[must_use]
    pub fn of_text(text: &str, room: usize) -> Self {
        let shown = shortened(text, room);
        let extent = match &shown {
            Cow::Borrowed(_) => Extent::Whole,
            Cow::Owned(_) => Extent::Shortened,
        };
        Self {
            text: shown.into_owned(),
            extent,
            hidden: 0,
        }
    }

    /// Returns how many characters are hidden in one place, where that is more than a usual secret has.
    #[must_use]
    pub fn unusually_hidden(&self) -> Option<usize> {
        Some(self.hidden).filter(|hidden| *hidden > USUAL_SECRET)
    }
}

/// Shows a JSON text whole over several lines: one for each member, and one for each line of a text.
#[must_use]
pub fn lines_of_json(json: &str) -> Vec<String> {
    let mut out = String::new();
    let mut depth = 0_usize;
    for token in Tokens::of(json) {
        match Piece::of(token, usize::MAX) {
            Piece::Run(run, _) => run.push_lines_to(&mut out),
            Piece::Sign(", ") if depth <= 1 => out.push_str(",\n "),
            Piece::Sign(sign) => {
                match sign {
                    "{" | "[" => depth += 1,
                    "}" | "]" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                out.push_str(sign);
            }
        }
    }
    out.split('\n').map(str::to_owned).collect()
}

/// A part of an excerpt.
#[derive(Debug)]
enum Piece<'a> {
    /// A bracket, a comma or a colon.
    Sign(&'static str),
    /// What stands between them.
    Run(Run<'a>, Role),
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Name,
    Value,
}

impl<'a> Piece<'a> {
    fn of(token: Token<'a>, room: usize) -> Self {
        match token {
            Token::Sign(sign) => Self::Sign(sign),
            Token::Name(raw) => Self::Run(Run::name(raw), Role::Name),
            Token::Text(raw, named) => Self::Run(Run::text(raw, named, room), Role::Value),
            Token::Word(raw, named) => Self::Run(Run::word(raw, named), Role::Value),
        }
    }

    /// Returns the columns that it takes whatever its share is.
    fn fixed(&self) -> usize {
        match self {
            Self::Sign(sign) => sign.len(),
            Self::Run(run, _) => run.quotes(),
        }
    }

    /// Returns the columns that it can use besides.
    fn need(&self) -> Need {
        match self {
            Self::Sign(_) => Need { least: 0, most: 0 },
            Self::Run(run, _) => run.need(),
        }
    }

    /// Returns the need of a name before texts get any room.
    fn first_need(&self) -> Need {
        let need = self.need();
        let most = match self {
            Self::Run(_, Role::Name) => need.most.min(NAME).max(need.least),
            Self::Run(_, Role::Value) | Self::Sign(_) => need.least,
        };
        Need { most, ..need }
    }

    fn characters(&self) -> usize {
        match self {
            Self::Sign(sign) => sign.len(),
            Self::Run(run, _) => run.characters(),
        }
    }

    fn most_hidden(&self) -> usize {
        match self {
            Self::Sign(_) => 0,
            Self::Run(run, _) => run.most_hidden(),
        }
    }

    /// Writes it, and says whether that is all of it.
    fn push_to(&self, out: &mut String, share: usize) -> bool {
        match self {
            Self::Sign(sign) => {
                out.push_str(sign);
                true
            }
            Self::Run(run, _) => run.push_to(out, share),
        }
    }
}

/// The pieces of a JSON text, or those at both its ends where there are more than could be shown.
#[derive(Debug)]
struct Pieces<'a> {
    head: Vec<Piece<'a>>,
    tail: VecDeque<Piece<'a>>,
    /// How many characters lie between head and tail.
    between: usize,
}

impl<'a> Pieces<'a> {
    /// Reads a JSON text; none of its tokens takes less than a column.
    fn of(json: &'a str, room: usize) -> Self {
        let mut pieces = Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            between: 0,
        };
        for token in Tokens::of(json) {
            let piece = Piece::of(token, room);
            if pieces.head.len() <= room {
                pieces.head.push(piece);
                continue;
            }
            pieces.tail.push_back(piece);
            if pieces.tail.len() > room {
                let lost = pieces.tail.pop_front();
                pieces.between += lost.map_or(0, |piece| piece.characters());
            }
        }
        pieces
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &Piece<'a>> {
        self.head.iter().chain(&self.tail)
    }

    fn excerpt(&self, room: usize) -> Excerpt {
        let mut out = String::new();
        let is_whole = if let Some(shares) = self.shares(room) {
            let pieces = self.head.iter().zip(shares);
            // Not `all`, which would stop at the first that is cut.
            pieces.fold(true, |whole, (piece, share)| {
                piece.push_to(&mut out, share) && whole
            })
        } else {
            self.push_ends_to(&mut out, room);
            false
        };
        Excerpt {
            text: out,
            extent: if is_whole {
                Extent::Whole
            } else {
                Extent::Shortened
            },
            hidden: self.all().map(Piece::most_hidden).max().unwrap_or(0),
        }
    }

    /// Divides the room: what must be, then names, then everything; `None` where not even the first fits.
    fn shares(&self, room: usize) -> Option<Vec<usize>> {
        let fixed = |piece: &Piece<'_>| piece.fixed().saturating_add(piece.need().least);
        let least = self
            .all()
            .fold(0_usize, |sum, piece| sum.saturating_add(fixed(piece)));
        if least > room || !self.tail.is_empty() {
            return None;
        }
        let room = room - self.head.iter().map(Piece::fixed).sum::<usize>();
        let first: Vec<Need> = self.head.iter().map(Piece::first_need).collect();
        let first = divide(&first, room).into_iter().zip(&self.head);
        let second: Vec<Need> = first
            .map(|(least, piece)| Need {
                least,
                most: piece.need().most,
            })
            .collect();
        Some(divide(&second, room))
    }

    /// Writes the first and the last pieces, each as short as can be, and how many characters lie between them.
    fn push_ends_to(&self, out: &mut String, room: usize) {
        let all = self.between + self.all().map(Piece::characters).sum::<usize>();
        let kept = room.saturating_sub(mark_width(all));
        let fitting = |room: usize| {
            let mut taken = 0;
            move |piece: &&Piece<'_>| {
                taken += piece.fixed() + piece.need().least;
                taken <= room
            }
        };
        let head: Vec<_> = self.all().take_while(fitting(kept.div_ceil(2))).collect();
        let tail: Vec<_> = self.all().rev().take_while(fitting(kept / 2)).collect();
        let shown: usize = head.iter().chain(&tail).map(|piece| piece.characters()).sum();
        for piece in head {
            piece.push_to(out, piece.need().least);
        }
        push_mark(out, all.saturating_sub(shown), room);
        for piece in tail.iter().rev() {
            piece.push_to(out, piece.need().least);
        }
    }
}

/// Returns a name or URI that a client sent as an error repeats it: escaped, and shortened where it is long.
#[must_use]
pub fn repeated(name: &str) -> String {
    Shown::line(&shortened(name, REPEATED)).to_string()
}

#[cfg(test)]
mod tests;
