//! What happens in a run, on its way to the log and to the surface of this process.
//!
//! The pieces of a text come many a second: the log gets them together, a few times a second, so that a stream is not slowed
//! by the disk. Whatever else comes takes along what was collected, so the order stays.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::error::RunError;
use super::event_log::{EventLog, bounded};
use super::line::{AgentLine, AgentRequest};
use super::run_line::{OwnLine, RunLine};
use super::run_lines::RunLineSender;

/// How long pieces of text are collected for the log: a reader sees them as a stream.
const COLLECTED_FOR: Duration = Duration::from_millis(50);

/// How many lines may wait for the disk before the agent is read more slowly; each is bounded.
const WAITING: usize = 128;

/// How many lines are written at once.
const AT_ONCE: usize = 64;

/// Passes on what happens in a run.
pub(super) struct Journal {
    log: mpsc::Sender<LogEntry>,
    writing: JoinHandle<()>,
    surface: RunLineSender,
}

enum LogEntry {
    /// A whole line.
    Line(String),
    /// A piece of text.
    Text(String),
}

impl Journal {
    /// Opens the log of a run.
    pub(super) async fn open(directory: PathBuf, surface: RunLineSender) -> Result<Self, RunError> {
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
        let raw = without_contents(&raw, &meaning).unwrap_or(raw);
        let entry = match &meaning {
            AgentLine::TextDelta(text) => Some(LogEntry::Text(text.clone())),
            AgentLine::MessageBegan | AgentLine::MessageEnded => None,
            // Their text comes as pieces, and whole.
            AgentLine::Other if raw.contains(r#""type":"stream_event""#) => None,
            _ => Some(LogEntry::Line(bounded(raw.clone()))),
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
        let _ = self.log.send(LogEntry::Line(bounded(line.json()))).await;
        let _ = self.surface.send(RunLine::Own(line)).await;
    }

    /// Waits until everything is written.
    pub(super) async fn close(self) {
        drop((self.log, self.surface));
        let _ = self.writing.await;
    }
}

/// Returns a line of the conversation between agent and host without what was asked and answered in it: forms and answers
/// may hold what no log is to keep. `None` where it is no such line.
fn without_contents(raw: &str, meaning: &AgentLine) -> Option<String> {
    let line = match meaning {
        AgentLine::Request { id, request } => {
            let request = match request {
                AgentRequest::Permission(asked) => {
                    json!({ "subtype": "can_use_tool", "tool_name": asked.tool, "tool_use_id": asked.tool_use })
                }
                AgentRequest::Hook { tool, tool_use, .. } => {
                    json!({ "subtype": "hook_callback", "tool_name": tool, "tool_use_id": tool_use })
                }
                AgentRequest::Elicitation { server, .. } => {
                    json!({ "subtype": "elicitation", "mcp_server_name": server })
                }
                AgentRequest::Unknown { subtype } => json!({ "subtype": subtype }),
            };
            json!({ "type": "control_request", "request_id": id, "request": request })
        }
        AgentLine::Response { id, error } => {
            let response = match error {
                Some(error) => json!({ "subtype": "error", "request_id": id, "error": error }),
                None => json!({ "subtype": "success", "request_id": id }),
            };
            json!({ "type": "control_response", "response": response })
        }
        AgentLine::Other => {
            let line: Typed<'_> = serde_json::from_str(raw).ok()?;
            if !line.kind.starts_with("control_") {
                return None;
            }
            json!({ "type": line.kind })
        }
        _ => return None,
    };
    Some(line.to_string())
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
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
        for _ in 0..AT_ONCE {
            let Ok(more) = entries.try_recv() else { break };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_and_answered_on_the_way_to_the_host_is_left_out() {
        let lines = [
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"action":"accept","content":{"pin":"hunter2"}}}}"#,
            r#"{"type":"control_request","request_id":"r","request":{"subtype":"hook_callback","input":{"tool_name":"Bash","tool_input":{"command":"hunter2"},"tool_use_id":"t","transcript_path":"/hunter2"}}}"#,
            r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"hunter2"}}}"#,
            r#"{"type":"control_request","request":{"subtype":"of_next_year","x":"hunter2"}}"#,
        ];
        for raw in lines {
            let kept = without_contents(raw, &AgentLine::read(raw).unwrap()).unwrap();
            assert!(!kept.contains("hunter2"), "{kept}");
            assert_eq!(
                kept.contains("control_response"),
                raw.contains("control_response")
            );
        }
        let said = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"control_request"}]}}"#;
        assert_eq!(without_contents(said, &AgentLine::read(said).unwrap()), None);
    }
}
