//! The one writer of the history: appends under a lock that all processes of the user share. All of it blocks.
//!
//! The lines are confirmed by the disk before the head names them, so that after a crash the head is behind or right. A
//! part is created whole, with the line that begins it; parts are removed once a line says so.

use std::io;
use std::path::Path;

use super::chain::{ChainEvent, Lines, Link, ReadLine, hash};
use super::parts::{self, PART_AGE_MS, PART_BYTES, Part};
use super::record::Record;
use super::verification::{Head, Verdict, Verifier};
use crate::disk::{self, AppendedFile, Audience, DiskError, LockedDirectory};
use crate::protocol::Shown;

/// Several times the longest line: where the last one begins is within this.
const TAIL: u64 = 128 * 1024;

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// How many parts.
    pub parts: usize,
    /// How many lines.
    pub lines: u64,
}

/// The history as its writer finds it.
struct Opened<'a> {
    directory: &'a Path,
    parts: Vec<Part>,
    /// The newest part; `None` in a new history.
    newest: Option<Newest>,
    head: Head,
}

struct Newest {
    number: u64,
    file: AppendedFile,
    /// When its first line was written; `None` where that cannot be read.
    began: Option<i64>,
    end: End,
}

/// How a part ends.
enum End {
    /// With a whole line.
    Whole(Link),
    /// With a fragment after a whole line.
    Torn { last: Link, fragment: Vec<u8> },
    /// With something that is no line of a history.
    Unreadable { hash: String, line: LineEnd },
}

/// Whether a line feed ends the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    There,
    Missing,
}

/// Appends records, all or none, and makes the disk confirm them.
pub fn append(directory: &Path, at: i64, records: &[Record]) -> Result<(), DiskError> {
    let _locked = LockedDirectory::lock(directory, Audience::Owner)?;
    let mut opened = Opened::read(directory)?;
    let (mut lines, is_new) = opened.begin(at)?;
    for record in records {
        push(&mut lines, directory, at, record)?;
    }
    opened.write(lines, is_new)
}

/// Removes the oldest parts in which every line was written before `older_than`, and records that.
pub fn prune(directory: &Path, at: i64, older_than: i64) -> Result<Pruned, DiskError> {
    let Some(_locked) = LockedDirectory::lock_existing(directory)? else {
        return Ok(Pruned::default());
    };
    let mut opened = Opened::read(directory)?;
    let mut old = 0;
    for part in &opened.parts {
        let last = last_line(&part.path)?;
        if last.is_none_or(|(_, written)| written >= older_than) {
            break;
        }
        old += 1;
    }
    if old == 0 {
        return Ok(Pruned::default());
    }
    if old == opened.parts.len() {
        // There must be a part that says what was removed.
        opened.rotate(at)?;
    }
    opened.remove_oldest(old, at)
}

/// Verifies the whole history; nothing is written meanwhile.
pub fn verify(directory: &Path) -> Result<Verdict, DiskError> {
    let Some(_locked) = LockedDirectory::lock_existing(directory)? else {
        return Ok(Verdict::default());
    };
    let mut verifier = Verifier::new(read_head(directory)?);
    for part in list(directory)? {
        let bytes = std::fs::read(&part.path).map_err(DiskError::step("read", &part.path))?;
        let name = part.path.file_name().unwrap_or_default();
        verifier.part(part.number, &Shown::path(Path::new(name)), &bytes);
    }
    Ok(verifier.finish())
}

impl<'a> Opened<'a> {
    fn read(directory: &'a Path) -> Result<Self, DiskError> {
        let parts = list(directory)?;
        let newest = match parts.last() {
            None => None,
            Some(part) => {
                let file = AppendedFile::open(&part.path)?;
                let end = End::of(&file.tail(TAIL)?);
                let began = first_line(&part.path)?.map(|line| line.at);
                Some(Newest {
                    number: part.number,
                    file,
                    began,
                    end,
                })
            }
        };
        Ok(Self {
            directory,
            head: read_head(directory)?,
            parts,
            newest,
        })
    }

    /// Begins the lines that are to be written, with what must be said first; a part that is full is left.
    fn begin(&mut self, at: i64) -> Result<(Lines, NewPart), DiskError> {
        let Some(newest) = &self.newest else {
            let mut lines = Lines::after(Link::start());
            push(&mut lines, self.directory, at, &ChainEvent::Part { part: 1 })?;
            if let Head::At(Link { n: 1.., .. }) | Head::Unreadable = &self.head {
                self.say_lost(&mut lines, at)?;
            }
            return Ok((lines, NewPart::Number(1)));
        };
        let is_full = newest.file.length() >= PART_BYTES;
        let is_old = newest
            .began
            .is_some_and(|began| at.saturating_sub(began) >= PART_AGE_MS);
        if is_full || is_old {
            self.rotate(at)?;
            let gone = parts::surplus(&self.parts);
            // The part that is written to stays.
            let gone = gone.min(self.parts.len().saturating_sub(1));
            if gone > 0 {
                self.remove_oldest(gone, at)?;
            }
        }
        Ok((self.continued(at)?, NewPart::None))
    }

    /// Continues the newest part; says first what is wrong with its end.
    fn continued(&mut self, at: i64) -> Result<Lines, DiskError> {
        let directory = self.directory;
        let Some(newest) = &self.newest else {
            return Ok(Lines::after(Link::start()));
        };
        let mut lines = match &newest.end {
            End::Whole(last) => Lines::after(last.clone()),
            End::Torn { last, fragment } => {
                let mut lines = Lines::after(Link {
                    n: last.n,
                    hash: hash(fragment),
                });
                lines.bytes.push(b'\n');
                let torn = ChainEvent::Torn {
                    after: last.hash.clone(),
                    bytes: fragment.len(),
                };
                push(&mut lines, directory, at, &torn)?;
                lines
            }
            End::Unreadable { hash, line } => {
                let n = match &self.head {
                    Head::At(head) => head.n,
                    Head::Missing | Head::Unreadable => 0,
                };
                let mut lines = Lines::after(Link {
                    n,
                    hash: hash.clone(),
                });
                if *line == LineEnd::Missing {
                    lines.bytes.push(b'\n');
                }
                lines
            }
        };
        let is_lost = match (&self.head, &newest.end) {
            (Head::At(head), End::Whole(last) | End::Torn { last, .. }) => {
                head.n > last.n || (head.n == last.n && head.hash != last.hash)
            }
            (Head::Missing | Head::Unreadable, _) | (_, End::Unreadable { .. }) => true,
        };
        if is_lost {
            self.say_lost(&mut lines, at)?;
        }
        Ok(lines)
    }

    fn say_lost(&self, lines: &mut Lines, at: i64) -> Result<(), DiskError> {
        let last = match &self.head {
            Head::At(head) => Some(head.clone()),
            Head::Missing | Head::Unreadable => None,
        };
        push(lines, self.directory, at, &ChainEvent::Lost { last })
    }

    /// Begins another part, and closes the last one first where its end is not as it should be.
    fn rotate(&mut self, at: i64) -> Result<(), DiskError> {
        let lines = self.continued(at)?;
        let end = lines.end.clone();
        let number = self.newest.as_ref().map_or(1, |newest| newest.number + 1);
        if !lines.bytes.is_empty() {
            self.write(lines, NewPart::None)?;
        }
        let mut lines = Lines::after(end);
        push(&mut lines, self.directory, at, &ChainEvent::Part { part: number })?;
        self.write(lines, NewPart::Number(number))
    }

    /// Says which parts go, then removes them.
    fn remove_oldest(&mut self, count: usize, at: i64) -> Result<Pruned, DiskError> {
        let mut lines = self.continued(at)?;
        let first = first_line(&self.parts[0].path)?.map_or(1, |line| line.n);
        let through = match last_line(&self.parts[count - 1].path)? {
            Some((link, _)) => link,
            // What cannot be read cannot be named; the verification will say that something is gone.
            None => Link::start(),
        };
        let pruned = Pruned {
            parts: count,
            lines: (through.n + 1).saturating_sub(first),
        };
        let event = ChainEvent::Prune {
            through,
            parts: count,
        };
        push(&mut lines, self.directory, at, &event)?;
        self.write(lines, NewPart::None)?;
        for part in self.parts.drain(..count) {
            disk::remove_file(&part.path).map_err(DiskError::step("remove", &part.path))?;
        }
        disk::sync_directory(self.directory).map_err(|source| DiskError::Unconfirmed {
            path: self.directory.to_owned(),
            source,
        })?;
        Ok(pruned)
    }

    /// Writes lines to the newest part or as a new one, then moves the head on.
    fn write(&mut self, lines: Lines, part: NewPart) -> Result<(), DiskError> {
        let Lines { bytes, end } = lines;
        match (part, &mut self.newest) {
            (NewPart::None, Some(newest)) => {
                newest.file.append(&bytes)?;
                newest.end = End::Whole(end.clone());
            }
            (NewPart::None, None) => {}
            (NewPart::Number(number), newest) => {
                if self.head == Head::Missing && newest.is_none() {
                    // Before the first line: a history without a head has lost it.
                    let path = parts::head_of(self.directory);
                    disk::replace(&path, Head::text(&Link::start()).as_bytes())
                        .map_err(DiskError::step("write", &path))?;
                }
                let path = parts::path_of(self.directory, number);
                disk::replace(&path, &bytes).map_err(DiskError::step("write", &path))?;
                disk::sync_directory(self.directory)
                    .map_err(DiskError::step("sync the directory", self.directory))?;
                let file = AppendedFile::open(&path)?;
                self.parts.push(Part {
                    number,
                    bytes: file.length(),
                    path,
                });
                *newest = Some(Newest {
                    number,
                    file,
                    began: None,
                    end: End::Whole(end.clone()),
                });
            }
        }
        disk::overwrite(&parts::head_of(self.directory), Head::text(&end).as_bytes())?;
        self.head = Head::At(end);
        Ok(())
    }
}

/// Whether lines begin a part.
#[derive(Debug, Clone, Copy)]
enum NewPart {
    /// They go on with the newest one.
    None,
    /// They are the first of this one.
    Number(u64),
}

impl End {
    fn of(tail: &[u8]) -> Self {
        let whole = tail
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let (lines, fragment) = tail.split_at(whole);
        let lines = lines.strip_suffix(b"\n").unwrap_or(lines);
        let line = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        match ReadLine::of(line) {
            None if fragment.is_empty() => Self::Unreadable {
                hash: hash(line),
                line: LineEnd::There,
            },
            None => Self::Unreadable {
                hash: hash(fragment),
                line: LineEnd::Missing,
            },
            Some(read) => {
                let last = Link {
                    n: read.n,
                    hash: hash(line),
                };
                if fragment.is_empty() {
                    Self::Whole(last)
                } else {
                    Self::Torn {
                        last,
                        fragment: fragment.to_owned(),
                    }
                }
            }
        }
    }
}

fn push(
    lines: &mut Lines,
    directory: &Path,
    at: i64,
    event: &impl serde::Serialize,
) -> Result<(), DiskError> {
    lines
        .push(at, event)
        .map_err(|error| DiskError::step("write", directory)(error.into()))
}

fn list(directory: &Path) -> Result<Vec<Part>, DiskError> {
    parts::list(directory).map_err(DiskError::step("read the directory", directory))
}

fn read_head(directory: &Path) -> Result<Head, DiskError> {
    let path = parts::head_of(directory);
    match std::fs::read(&path) {
        Ok(text) => Ok(Head::read(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Head::Missing),
        Err(error) => Err(DiskError::step("read", &path)(error)),
    }
}

/// Returns the first line of a part; `None` if it cannot be understood.
fn first_line(path: &Path) -> Result<Option<ReadLine>, DiskError> {
    use std::io::Read as _;
    let mut start = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(TAIL).read_to_end(&mut start))
        .map_err(DiskError::step("read", path))?;
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(ReadLine::of(line))
}

/// Returns the last whole line of a part and when it was written; `None` if it cannot be understood.
fn last_line(path: &Path) -> Result<Option<(Link, i64)>, DiskError> {
    let tail = AppendedFile::open(path)?.tail(TAIL)?;
    let lines = tail.strip_suffix(b"\n").unwrap_or(&tail);
    let line = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(ReadLine::of(line).map(|read| {
        let last = Link {
            n: read.n,
            hash: hash(line),
        };
        (last, read.at)
    }))
}
