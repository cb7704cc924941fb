//! What happened in a run, one numbered line each: what a page draws again after a reload.
//!
//! Appended by the one process that drives the run, read by any. Two files of a bounded size take turns, so that a run of
//! days stays small; what came before is gone, and a reader that was further back begins anew.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

/// The size at which a file is put aside: a day of work without pictures.
const FILE_LIMIT: u64 = 8 * 1024 * 1024;

/// A longer line (a picture, a large file that was read) is told by its length.
const LINE_LIMIT: usize = 256 * 1024;

/// How much is written at once: a file may exceed its limit by this at most.
const BATCH: usize = 1024 * 1024;

/// Appends what happens in a run.
#[derive(Debug)]
pub(super) struct EventLog {
    path: PathBuf,
    file: File,
    length: u64,
    next: u64,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its number, from 1 on.
    pub number: u64,
    /// When it was written, in milliseconds since 1970.
    pub at: Option<i64>,
    /// What happened: a line of the agent, or one of pml's.
    pub line: String,
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "n")]
    number: u64,
    #[serde(default)]
    at: Option<i64>,
    #[serde(borrow)]
    line: &'a RawValue,
}

impl EventLog {
    /// Opens the log of a run to append to it.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join("events");
        let newest = read(&path, 0)?.last().map(|event| event.number);
        let newest = match newest {
            Some(newest) => newest,
            None => read(&aside(&path), 0)?.last().map_or(0, |event| event.number),
        };
        let mut file = append_to(&path)?;
        let length = file.metadata()?.len();
        if length > 0 {
            // A line that a killed process left unfinished is closed, so that it does not swallow the next.
            file.write_all(b"\n")?;
        }
        Ok(Self {
            file,
            length: length + 1,
            next: newest + 1,
            path,
        })
    }

    /// Appends lines, and returns the number of the newest.
    pub(super) fn append<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) -> io::Result<u64> {
        let mut text = Vec::new();
        let at = crate::proxy::now().millis();
        for line in lines {
            let number = self.next;
            self.next += 1;
            if line.len() > LINE_LIMIT {
                let line = omitted(line.len());
                writeln!(text, r#"{{"n":{number},"at":{at},"line":{line}}}"#)?;
            } else {
                writeln!(text, r#"{{"n":{number},"at":{at},"line":{line}}}"#)?;
            }
            if text.len() > BATCH {
                self.write(&text)?;
                text.clear();
            }
        }
        self.write(&text)?;
        Ok(self.next - 1)
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.length + text.len() as u64 > FILE_LIMIT {
            crate::disk::rename(&self.path, &aside(&self.path))?;
            self.file = append_to(&self.path)?;
            self.length = 0;
        }
        self.file.write_all(text)?;
        self.length += text.len() as u64;
        Ok(())
    }
}

/// Returns a line, or its length in place of one that is too long to be kept: it must not wait for the disk either.
pub(super) fn bounded(line: String) -> String {
    if line.len() > LINE_LIMIT {
        omitted(line.len())
    } else {
        line
    }
}

fn omitted(length: usize) -> String {
    format!(r#"{{"type":"pml","event":"omitted","bytes":{length}}}"#)
}

/// Reads what happened in a run after a number.
pub fn events_after(directory: &Path, number: u64) -> io::Result<Vec<LoggedEvent>> {
    let path = directory.join("events");
    let newest = read(&path, number)?;
    if newest.first().is_some_and(|event| event.number == number + 1) {
        return Ok(newest);
    }
    let mut events = read(&aside(&path), number)?;
    let reached = events.last().map_or(number, |event| event.number);
    events.extend(newest.into_iter().filter(|event| event.number > reached));
    Ok(events)
}

fn read(path: &Path, after: u64) -> io::Result<Vec<LoggedEvent>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut events = Vec::new();
    for line in BufReader::new(file).lines() {
        // A line that is being written, or was never finished, is none yet.
        let line = line?;
        events.extend(LoggedEvent::read(line.as_bytes()).filter(|event| event.number > after));
    }
    Ok(events)
}

impl LoggedEvent {
    /// Reads a line of the file; `None` where it is not whole.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let RawEvent { number, at, line } = serde_json::from_slice(line).ok()?;
        Some(Self {
            number,
            at,
            line: line.get().to_owned(),
        })
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

pub(super) fn aside(path: &Path) -> PathBuf {
    path.with_extension("old")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(directory: &Path, after: u64) -> Vec<u64> {
        let events = events_after(directory, after).unwrap();
        events.into_iter().map(|event| event.number).collect()
    }

    #[test]
    fn numbers_go_on_after_a_restart_and_a_line_that_was_cut_off() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        EventLog::open(directory)
            .unwrap()
            .append([r#"{"a":1}"#, r#"{"a":2}"#])
            .unwrap();
        let mut file = append_to(&directory.join("events")).unwrap();
        file.write_all(br#"{"n":3,"line":{"a"#).unwrap();
        assert_eq!(
            EventLog::open(directory).unwrap().append([r#"{"a":4}"#]).unwrap(),
            3
        );
        assert_eq!(numbers(directory, 0), [1, 2, 3]);
        assert_eq!(numbers(directory, 2), [3]);
        assert_eq!(events_after(directory, 2).unwrap()[0].line, r#"{"a":4}"#);
    }

    #[test]
    fn a_long_run_keeps_its_newest_lines_and_stays_small() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let mut log = EventLog::open(directory).unwrap();
        let line = format!("\"{}\"", "x".repeat(200_000));
        for _ in 0..150 {
            log.append([line.as_str()]).unwrap();
        }
        let kept = numbers(directory, 0);
        assert_eq!(*kept.last().unwrap(), 150);
        assert!(
            kept.windows(2).all(|pair| pair[0] + 1 == pair[1]),
            "without a gap"
        );
        let size: u64 = ["events", "events.old"]
            .iter()
            .map(|name| directory.join(name).metadata().unwrap().len())
            .sum();
        assert!(size <= 2 * FILE_LIMIT, "{size}");
    }

    #[test]
    fn a_line_that_is_too_long_is_told_by_its_length() {
        let directory = tempfile::tempdir().unwrap();
        let long = format!("\"{}\"", "x".repeat(LINE_LIMIT));
        EventLog::open(directory.path())
            .unwrap()
            .append([long.as_str()])
            .unwrap();
        let events = events_after(directory.path(), 0).unwrap();
        assert_eq!(
            events[0].line,
            format!(r#"{{"type":"pml","event":"omitted","bytes":{}}}"#, long.len())
        );
    }
}
