//! The verification of a history: finds lines that were removed, edited, repeated or moved, and says where.
//!
//! Pure: the parts are given to it one after the other. After a fault it goes on from what it found, so that one change
//! is told as one or two faults and not as thousands.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::chain::{Link, ReadLine, hash};

/// How many faults are told: the first few say where a person has to look.
const FAULTS: usize = 20;

/// The last line that was written, as a file beside the parts names it: without it, a chain whose end was cut off would
/// look whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// There is none.
    Missing,
    /// It cannot be read.
    Unreadable,
    /// It is this line. A crash may leave it behind the lines, never before them.
    At(Link),
}

impl Head {
    /// The longest number, so that every head has the same length.
    const DIGITS: usize = 20;

    /// Writes it down.
    #[must_use]
    pub fn text(link: &Link) -> String {
        format!("{:0width$} {}\n", link.n, link.hash, width = Self::DIGITS)
    }

    /// Reads what was written down.
    #[must_use]
    pub fn read(text: &[u8]) -> Self {
        let read = || {
            let (n, hash) = std::str::from_utf8(text)
                .ok()?
                .strip_suffix('\n')?
                .split_once(' ')?;
            let link = Link {
                n: n.parse().ok()?,
                hash: hash.to_owned(),
            };
            (Self::text(&link).as_bytes() == text && hash.len() == 64).then_some(link)
        };
        read().map_or(Self::Unreadable, Self::At)
    }
}

/// One thing that is wrong with a history, or worth knowing, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The file.
    pub file: String,
    /// The line in it, from 1; 0 where it is about the whole file.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// The outcome of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// How many parts there are.
    pub parts: usize,
    /// How many lines there are.
    pub lines: u64,
    /// What was removed, edited, repeated or moved; the first few.
    pub faults: Vec<Fault>,
    /// What is no fault: lines that a crash cut off, parts that were pruned.
    pub notes: Vec<Fault>,
}

impl Verdict {
    /// Tells whether every line is as it was written.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Looks at the parts of a history in their order.
#[derive(Debug)]
pub struct Verifier {
    head: Head,
    verdict: Verdict,
    /// The last line; `None` before the first, and after a line that cannot be read.
    last: Option<Link>,
    /// The place of the last line.
    place: Option<(String, usize)>,
    /// What the first line continues from, and its place.
    origin: Option<(Link, String)>,
    /// What the `prune` lines say that the chain goes on from.
    pruned: Vec<Link>,
    /// The fragment at the end of the newest part.
    fragment: Option<(String, usize)>,
}

impl Verifier {
    /// Begins with the line that is said to be the last.
    #[must_use]
    pub fn new(head: Head) -> Self {
        Self {
            head,
            verdict: Verdict::default(),
            last: None,
            place: None,
            origin: None,
            pruned: Vec::new(),
            fragment: None,
        }
    }

    /// Looks at the next part.
    pub fn part(&mut self, number: u64, file: &str, bytes: &[u8]) {
        if let Some((file, line)) = self.fragment.take() {
            self.fault(&file, line, "it is cut off");
            self.last = None;
        }
        self.verdict.parts += 1;
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let rest = lines.pop().unwrap_or_default();
        if lines.is_empty() {
            self.fault(file, 0, "it is empty");
        }
        for (index, line) in lines.iter().enumerate() {
            let next = lines.get(index + 1).copied();
            let whole = self.line(file, index + 1, line, next);
            if let (0, Some(read)) = (index, &whole)
                && (read.event != "part" || read.part != Some(number))
            {
                self.fault(file, 1, "a part does not begin here");
            }
        }
        if !rest.is_empty() {
            self.fragment = Some((file.to_owned(), lines.len() + 1));
        }
    }

    /// Looks at a line; returns it if it is no fragment.
    fn line(&mut self, file: &str, at: usize, line: &[u8], next: Option<&[u8]>) -> Option<ReadLine> {
        self.verdict.lines += 1;
        let own = hash(line);
        let closed = next.and_then(ReadLine::of).filter(|next| {
            let follows = |last: &Link| next.after.as_ref() == Some(&last.hash) && next.n == last.n + 1;
            next.event == "torn" && next.prev == own && self.last.as_ref().is_none_or(follows)
        });
        if let Some(closed) = closed {
            self.verdict.notes.push(Fault {
                file: file.to_owned(),
                line: at,
                what: "a crash cut it off, and the next line says so".to_owned(),
            });
            // The line that closes it counts on from the last whole one.
            self.last = Some(Link {
                n: closed.n.saturating_sub(1),
                hash: own,
            });
            self.place = Some((file.to_owned(), at));
            return None;
        }
        let Some(read) = ReadLine::of(line) else {
            self.fault(file, at, "it cannot be read");
            self.last = None;
            self.place = Some((file.to_owned(), at));
            return None;
        };
        self.compare(file, at, &read);
        let reached = Link { n: read.n, hash: own };
        if let Head::At(head) = &self.head
            && head.n == reached.n
            && head.hash != reached.hash
        {
            self.fault(file, at, "it was changed after it was written");
        }
        if let ("prune", Some(through)) = (read.event.as_str(), &read.through) {
            self.pruned.push(through.clone());
        }
        if read.event == "lost" {
            self.fault(
                file,
                at,
                "as it was written, lines before it were missing or changed",
            );
        }
        self.last = Some(reached);
        self.place = Some((file.to_owned(), at));
        Some(read)
    }

    /// Compares a line with the one before it.
    fn compare(&mut self, file: &str, at: usize, read: &ReadLine) {
        let Some(last) = self.last.take() else {
            if self.place.is_none() {
                // The first of all: what it continues from may have been pruned.
                let from = Link {
                    n: read.n.saturating_sub(1),
                    hash: read.prev.clone(),
                };
                self.origin = Some((from, file.to_owned()));
            }
            return;
        };
        let expected = last.n + 1;
        if read.n == expected && read.prev == last.hash {
            return;
        }
        match read.n.cmp(&expected) {
            Ordering::Equal => {
                let (file, at) = self.place.clone().unwrap_or_else(|| (file.to_owned(), at));
                let what = "it was changed after it was written, or the line after it was";
                self.fault(&file, at, what);
            }
            Ordering::Greater => {
                let missing = match read.n - 1 {
                    only if only == expected => {
                        format!("line number {only} of the history is missing before it")
                    }
                    to => format!("the line numbers {expected} to {to} of the history are missing before it"),
                };
                self.fault(file, at, &missing);
            }
            Ordering::Less => self.fault(file, at, "it is there twice, or not in its place"),
        }
    }

    /// Looks at the end.
    #[must_use]
    pub fn finish(mut self) -> Verdict {
        if let Some((from, file)) = self.origin.take()
            && from != Link::start()
        {
            // Where a crash left a part that was to go, the chain begins before the place that was named.
            let covers = |pruned: &Link| *pruned == from || pruned.n > from.n;
            if self.pruned.iter().any(covers) {
                self.verdict.notes.push(Fault {
                    file,
                    line: 1,
                    what: format!("the {} lines before it were pruned", from.n),
                });
            } else {
                // The first line of all: whatever else is wrong comes after it.
                let beginning = Fault {
                    file,
                    line: 1,
                    what: "what was before it is gone, and no line says that it was pruned".to_owned(),
                };
                self.verdict.faults.insert(0, beginning);
                self.verdict.faults.truncate(FAULTS);
            }
        }
        let (file, line) = self.place.clone().unwrap_or_else(|| ("head".to_owned(), 0));
        let last = self.last.as_ref().map_or(0, |last| last.n);
        match self.head.clone() {
            Head::At(head) if head.n > last && self.verdict.parts == 0 => {
                self.fault("head", 0, &format!("all {} lines are gone", head.n));
            }
            Head::At(head) if head.n > last => {
                self.fault(
                    &file,
                    line,
                    &format!("the lines after it, up to number {}, are gone", head.n),
                );
            }
            Head::At(_) => {}
            Head::Missing if self.verdict.parts == 0 => {}
            Head::Missing => self.fault("head", 0, "it is gone, so that the last lines may be gone too"),
            Head::Unreadable => {
                self.fault("head", 0, "it cannot be read, so that the last lines may be gone");
            }
        }
        if let Some((file, line)) = self.fragment.take() {
            // Had it ever been whole, the head would name it, and it would be missing above.
            self.verdict.notes.push(Fault {
                file,
                line,
                what: "a crash cut it off; whatever is recorded next will say so".to_owned(),
            });
        }
        self.verdict
    }

    fn fault(&mut self, file: &str, line: usize, what: &str) {
        if self.verdict.faults.len() < FAULTS {
            self.verdict.faults.push(Fault {
                file: file.to_owned(),
                line,
                what: what.to_owned(),
            });
        }
    }
}
