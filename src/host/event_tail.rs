//! Follows the log of a run as it grows; blocks.
//!
//! The file stays open between looks, so that a look costs what is new, not what the log holds. A file that was put aside
//! meanwhile is read to its end before the next one.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::event_log::{LoggedEvent, aside};

/// How much one look reads: a reader that begins at the beginning gets the log in parts.
const PORTION: u64 = 512 * 1024;

/// A reader of the log of a run.
#[derive(Debug)]
pub struct EventTail {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of a line that is not whole yet.
    rest: Vec<u8>,
    /// The newest number that was returned, or asked for.
    reached: u64,
    /// The newest number that was read, also of what the reader has already.
    seen: u64,
}

/// What a look found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TailedEvents {
    /// What was asked for is gone, or was never there: the reader begins anew after this number.
    pub reset: Option<u64>,
    /// What happened, in order.
    pub events: Vec<LoggedEvent>,
    /// Whether the log holds more, which the next look returns.
    pub more: bool,
}

impl EventTail {
    /// Follows the log of the run in a directory after a number; opens nothing.
    #[must_use]
    pub fn after(directory: &Path, number: u64) -> Self {
        Self {
            path: directory.join("events"),
            file: None,
            rest: Vec::new(),
            reached: number,
            seen: 0,
        }
    }

    /// Returns what is new, a bounded part of it.
    pub fn look(&mut self) -> io::Result<TailedEvents> {
        let mut found = TailedEvents::default();
        let Some(mut file) = self
            .file
            .take()
            .map_or_else(|| self.first(), |file| Ok(Some(file)))?
        else {
            return Ok(found);
        };
        // Asked before the file is read: what is written to it afterwards would be missed otherwise.
        let put_aside = !is_same(&file, &self.path)?;
        let begin = self.rest.len();
        let read = (&mut file).take(PORTION).read_to_end(&mut self.rest)?;
        let whole = self.rest.get(begin..).unwrap_or_default();
        let whole = whole.iter().rposition(|byte| *byte == b'\n');
        if let Some(end) = whole {
            let mut lines: Vec<u8> = self.rest.drain(..=begin + end).collect();
            lines.pop();
            for event in lines.split(|byte| *byte == b'\n').filter_map(LoggedEvent::read) {
                self.take(event, &mut found);
            }
        }
        found.more = read as u64 == PORTION;
        if found.more {
            self.file = Some(file);
        } else if put_aside {
            self.rest.clear();
            self.file = open(&self.path)?;
            found.more = self.file.is_some();
        } else if self.seen < self.reached {
            // A number that this log has never had: the next look opens it at its beginning.
            (self.reached, self.seen) = (0, 0);
            self.rest.clear();
            found.reset = Some(0);
            found.more = self.path.exists();
        } else {
            self.file = Some(file);
        }
        Ok(found)
    }

    fn take(&mut self, event: LoggedEvent, found: &mut TailedEvents) {
        self.seen = self.seen.max(event.number);
        if event.number <= self.reached {
            return;
        }
        if event.number > self.reached + 1 && found.events.is_empty() {
            found.reset = Some(event.number - 1);
        }
        self.reached = event.number;
        found.events.push(event);
    }

    /// Opens the file in which the next event stands, or the oldest.
    fn first(&self) -> io::Result<Option<File>> {
        let Some(mut newest) = open(&self.path)? else {
            return open(&aside(&self.path));
        };
        if first_number(&mut newest)?.is_some_and(|first| first <= self.reached.saturating_add(1)) {
            return Ok(Some(newest));
        }
        Ok(open(&aside(&self.path))?.or(Some(newest)))
    }
}

/// Reads the number of the first event of a file, and goes back to its beginning.
fn first_number(file: &mut File) -> io::Result<Option<u64>> {
    let mut head = Vec::new();
    file.take(PORTION).read_to_end(&mut head)?;
    file.rewind()?;
    let mut events = head.split(|byte| *byte == b'\n').filter_map(LoggedEvent::read);
    Ok(events.next().map(|event| event.number))
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Tells whether a path still names an open file.
fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        named => named.map(|named| (named.dev(), named.ino()) == (own.dev(), own.ino())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::event_log::EventLog;
    use super::*;

    /// Looks until nothing more is there.
    fn all(tail: &mut EventTail) -> (Option<u64>, Vec<u64>) {
        let (mut reset, mut numbers) = (None, Vec::new());
        loop {
            let found = tail.look().unwrap();
            reset = found.reset.or(reset);
            numbers.extend(found.events.iter().map(|event| event.number));
            if !found.more {
                return (reset, numbers);
            }
        }
    }

    #[test]
    fn each_event_comes_once_as_it_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let mut tail = EventTail::after(directory.path(), 0);
        assert_eq!(all(&mut tail), (None, vec![]));
        let mut log = EventLog::open(directory.path()).unwrap();
        log.append(["1", "2"]).unwrap();
        assert_eq!(all(&mut tail), (None, vec![1, 2]));
        assert_eq!(all(&mut tail), (None, vec![]));
        log.append(["3"]).unwrap();
        assert_eq!(all(&mut tail), (None, vec![3]));
        assert_eq!(all(&mut EventTail::after(directory.path(), 2)), (None, vec![3]));
        assert_eq!(all(&mut EventTail::after(directory.path(), 3)), (None, vec![]));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn a_line_that_is_being_written_comes_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events");
        std::fs::write(&path, "{\"n\":1,\"line\":1}\n{\"n\":2,").unwrap();
        let mut tail = EventTail::after(directory.path(), 0);
        assert_eq!(all(&mut tail), (None, vec![1]));
        std::fs::write(&path, "{\"n\":1,\"line\":1}\n{\"n\":2,\"at\":5,\"line\":2}\n").unwrap();
        let event = LoggedEvent {
            number: 2,
            at: Some(5),
            line: "2".to_owned(),
        };
        assert_eq!(tail.look().unwrap().events, [event]);
    }

    #[test]
    fn a_log_whose_files_take_turns_is_followed_without_a_gap() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = EventLog::open(directory.path()).unwrap();
        let mut tail = EventTail::after(directory.path(), 0);
        let line = format!("\"{}\"", "x".repeat(200_000));
        let mut numbers = Vec::new();
        for _ in 0..100 {
            log.append([line.as_str(), line.as_str()]).unwrap();
            let (reset, new) = all(&mut tail);
            assert_eq!(reset, None);
            numbers.extend(new);
        }
        assert_eq!(numbers, (1..=200).collect::<Vec<_>>());
    }

    #[test]
    fn a_reader_that_asks_for_what_is_gone_or_never_was_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = EventLog::open(directory.path()).unwrap();
        let line = format!("\"{}\"", "x".repeat(200_000));
        for _ in 0..150 {
            log.append([line.as_str()]).unwrap();
        }
        let (reset, numbers) = all(&mut EventTail::after(directory.path(), 3));
        assert_eq!(reset, Some(numbers[0] - 1));
        assert!(numbers[0] > 4, "{numbers:?}");
        assert_eq!(numbers.last(), Some(&150));
        let (reset, again) = all(&mut EventTail::after(directory.path(), u64::MAX));
        assert_eq!((reset, again), (Some(numbers[0] - 1), numbers));
    }
}
