//! What happens in a run, on its way to the log and to the surface of this process.
//!
//! The pieces of a text come many a second: the log gets them together, a few times a second, so that a stream is not slowed
//! by the disk. Whatever else comes takes along what was collected, so the order stays.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::error::RunError;
use super::event_log::EventLog;
use super::line::AgentLine;
use super::run_line::{OwnLine, RunLine};

/// How long pieces of text are collected for the log: a reader sees them as a stream.
const COLLECTED_FOR: Duration = Duration::from_millis(50);

/// How many lines may wait for the disk before the agent is read more slowly.
const WAITING: usize = 1_024;

/// Passes on what happens in a run.
pub(super) struct Journal {
    log: mpsc::Sender<LogEntry>,
    writing: JoinHandle<()>,
    surface: mpsc::Sender<RunLine>,
}

enum LogEntry {
    /// A whole line.
    Line(String),
    /// A piece of text.
    Text(String),
}

impl Journal {
    /// Opens the log of a run.
    pub(super) async fn open(directory: PathBuf, surface: mpsc::Sender<RunLine>) -> Result<Self, RunError> {
        let (log, entries) = mpsc::channel(WAITING);
        let path = directory.clone();
        let opened = tokio::task::spawn_blocking(move || EventLog::open(&directory)).await;
        let opened = opened.map_err(std::io::Error::other).and_then(|opened| opened);
        let opened = opened.map_err(RunError::file("open the events of", &path))?;
        Ok(Self {
            log,
            writing: tokio::spawn(write(opened, entries)),
            surface,
        })
    }

    /// Passes on a line of the agent.
    pub(super) async fn agent(&self, raw: String, meaning: AgentLine) {
        let entry = match &meaning {
            AgentLine::TextDelta(text) => Some(LogEntry::Text(text.clone())),
            // Their text comes as pieces, and whole.
            AgentLine::Other if raw.contains(r#""type":"stream_event""#) => None,
            _ => Some(LogEntry::Line(raw.clone())),
        };
        if let Some(entry) = entry {
            let _ = self.log.send(entry).await;
        }
        let meaning = Box::new(meaning);
        // A surface that went away is not told.
        let _ = self.surface.send(RunLine::Agent { raw, meaning }).await;
    }

    /// Passes on a line of pml.
    pub(super) async fn own(&self, line: OwnLine) {
        let _ = self.log.send(LogEntry::Line(line.json())).await;
        let _ = self.surface.send(RunLine::Own(line)).await;
    }

    /// Waits until everything is written.
    pub(super) async fn close(self) {
        drop((self.log, self.surface));
        let _ = self.writing.await;
    }
}

/// Writes entries as they come, and collects pieces of text.
async fn write(log: EventLog, mut entries: mpsc::Receiver<LogEntry>) {
    let mut log = Some(log);
    let mut text = String::new();
    let mut lines = Vec::new();
    loop {
        let entry = if text.is_empty() {
            entries.recv().await
        } else if let Ok(entry) = tokio::time::timeout(COLLECTED_FOR, entries.recv()).await {
            entry
        } else {
            let text = std::mem::take(&mut text);
            lines.push(OwnLine::Text { text }.json());
            append(&mut log, &mut lines).await;
            continue;
        };
        let ended = entry.is_none();
        let mut take = |entry| match entry {
            LogEntry::Text(piece) => text.push_str(&piece),
            LogEntry::Line(line) => {
                if !text.is_empty() {
                    lines.push(
                        OwnLine::Text {
                            text: std::mem::take(&mut text),
                        }
                        .json(),
                    );
                }
                lines.push(line);
            }
        };
        entry.into_iter().for_each(&mut take);
        while let Ok(more) = entries.try_recv() {
            take(more);
        }
        if ended && !text.is_empty() {
            lines.push(
                OwnLine::Text {
                    text: std::mem::take(&mut text),
                }
                .json(),
            );
        }
        append(&mut log, &mut lines).await;
        if ended {
            return;
        }
    }
}

/// Appends lines off the runtime's thread; a log that cannot be written costs the run nothing but its log.
async fn append(log: &mut Option<EventLog>, lines: &mut Vec<String>) {
    if lines.is_empty() {
        return;
    }
    let Some(mut open) = log.take() else {
        lines.clear();
        return;
    };
    let taken = std::mem::take(lines);
    let written = tokio::task::spawn_blocking(move || {
        let written = open.append(taken.iter().map(String::as_str));
        (open, written)
    });
    match written.await {
        Ok((open, Ok(_))) => *log = Some(open),
        Ok((_, Err(error))) => tracing::warn!("the events of the run cannot be written any more: {error}"),
        Err(panicked) => tracing::warn!("the events of the run cannot be written any more: {panicked}"),
    }
}
