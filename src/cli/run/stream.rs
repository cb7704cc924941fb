//! A run in plain lines: what the agent says as it comes, each tool call in one line with its state and its time.
//!
//! Pure: lines and moments go in, text comes out. Everything is escaped, because an agent repeats what it reads.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::file_change;
use crate::host::claude::ASKING_TOOLS;
use crate::host::{
    AgentLine, Block, OwnLine, ReceiptState, RunLine, RunState, ToolOutcome, ToolResult, TurnResult,
};
use crate::protocol::Shown;

/// How much of a tool's input is shown: a line of a terminal.
const INPUT: usize = 100;

/// How much of a line of the person its receipts show.
const EXCERPT: usize = 40;

/// How many lines of the person may wait for their receipts.
const MESSAGES: usize = 100;

/// How much of what went wrong is shown.
const COMPLAINT: usize = 200;

/// What is written of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Output {
    /// Words of the agent, as they come.
    Said(String),
    /// A line about what it does.
    Line(String),
    /// A line of a file that it changes, with its sign first.
    Change(String),
}

/// Turns the lines of a run into text.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Whether the message that is coming was written piece by piece.
    in_pieces: bool,
    /// The calls that run: their tool, and when they began.
    calls: HashMap<String, (String, Instant)>,
    /// The lines of the person that the agent has not read to their end, by their names.
    messages: HashMap<String, String>,
    /// Whether a line of the person has come: the first is what the run is for, and is not told of again.
    begun: bool,
}

impl Stream {
    /// Returns what is written of a line that came at this moment.
    pub(super) fn read(&mut self, line: &RunLine, at: Instant) -> Vec<Output> {
        match line {
            RunLine::Agent { meaning, .. } => self.agent(meaning, at),
            RunLine::Own(OwnLine::Text { text }) => self.piece(text),
            RunLine::Own(line) => {
                self.take_note(line);
                own(line).into_iter().map(Output::Line).collect()
            }
        }
    }

    fn agent(&mut self, line: &AgentLine, at: Instant) -> Vec<Output> {
        match line {
            AgentLine::TextDelta(text) => self.piece(text),
            AgentLine::Receipt { uuid, state } => self.receipt(uuid, *state).into_iter().collect(),
            AgentLine::Assistant { blocks, parent } => {
                let mut written = Vec::new();
                for block in blocks {
                    match block {
                        Block::Text(_) if std::mem::take(&mut self.in_pieces) => {
                            written.push(Output::Said("\n".to_owned()));
                        }
                        Block::Text(_) if parent.is_some() => {}
                        Block::Text(text) => written.push(Output::Said(format!("{}\n", Shown::block(text)))),
                        // What it asks is shown by the ask itself.
                        Block::ToolUse { name, .. } if ASKING_TOOLS.contains(&name.as_str()) => {}
                        Block::ToolUse { id, name, input } => {
                            let name = Shown::line(name).to_string();
                            let indent = if parent.is_some() { "  " } else { "" };
                            written.push(Output::Line(format!("{indent}> {name}{}", gist(input))));
                            written.extend(file_change::folded(&name, input).into_iter().map(Output::Change));
                            self.calls.insert(id.clone(), (name, at));
                        }
                    }
                }
                written
            }
            AgentLine::ToolResults(results) => results
                .iter()
                .filter_map(|result| self.finished(result, at))
                .collect(),
            AgentLine::Result(result) if result.outcome == ToolOutcome::Failed => {
                let text = Shown::block(&result.text).to_string();
                let failed = format!("! the agent failed: {}", cut(&text, COMPLAINT));
                [Some(failed), turn_over(result)]
                    .into_iter()
                    .flatten()
                    .map(Output::Line)
                    .collect()
            }
            AgentLine::Result(result) => turn_over(result).into_iter().map(Output::Line).collect(),
            AgentLine::Init { .. }
            | AgentLine::MessageBegan
            | AgentLine::MessageEnded
            | AgentLine::Replay { .. }
            | AgentLine::Request { .. }
            | AgentLine::RequestCancelled { .. }
            | AgentLine::Response { .. }
            | AgentLine::Other => Vec::new(),
        }
    }

    fn piece(&mut self, text: &str) -> Vec<Output> {
        self.in_pieces = true;
        vec![Output::Said(Shown::block(text).to_string())]
    }

    fn take_note(&mut self, line: &OwnLine) {
        if let OwnLine::Message { uuid, text, .. } = line
            && std::mem::replace(&mut self.begun, true)
            && self.messages.len() < MESSAGES
        {
            let first = text.trim().lines().next().unwrap_or_default();
            let excerpt = cut(&Shown::line(first).to_string(), EXCERPT);
            self.messages.insert(uuid.clone(), excerpt);
        }
    }

    fn receipt(&mut self, uuid: &str, state: ReceiptState) -> Option<Output> {
        let text = self.messages.get(uuid)?.clone();
        let state = match state {
            ReceiptState::Queued => "queued",
            ReceiptState::Started => "started",
            ReceiptState::Completed => "done",
            ReceiptState::Cancelled => "dropped",
        };
        if matches!(state, "done" | "dropped") {
            self.messages.remove(uuid);
        }
        Some(Output::Line(format!("  {state}: {text}")))
    }

    fn finished(&mut self, result: &ToolResult, at: Instant) -> Option<Output> {
        let (tool, began) = self.calls.remove(&result.tool_use)?;
        let time = seconds(at.saturating_duration_since(began));
        Some(Output::Line(match result.outcome {
            ToolOutcome::Done => format!("  {tool} done in {time}"),
            ToolOutcome::Failed => {
                let first = result.excerpt.trim().lines().next().unwrap_or_default();
                let why = cut(&Shown::line(first).to_string(), COMPLAINT);
                format!("  {tool} failed in {time}: {why}")
            }
        }))
    }
}

fn turn_over(result: &TurnResult) -> Option<String> {
    Some(format!("= turn over · ${:.4}", result.cost?))
}

fn own(line: &OwnLine) -> Option<String> {
    match line {
        OwnLine::State { state } => match state {
            RunState::Parked { .. } => {
                Some("= parked: nobody answered, so the agent was put aside; an answer resumes it".to_owned())
            }
            RunState::Lost => Some("= the agent is gone; an answer to what it asked resumes it".to_owned()),
            RunState::Starting
            | RunState::Running
            | RunState::Asking
            | RunState::Idle
            | RunState::Ended { .. } => None,
        },
        OwnLine::Ask { .. } | OwnLine::Answered { .. } | OwnLine::Text { .. } => None,
        OwnLine::Message { text, images, .. } => {
            let images = if *images == 0 {
                String::new()
            } else {
                format!(" (+{images} images)")
            };
            let first = text.trim().lines().next().unwrap_or_default();
            Some(format!(
                "< {}{images}",
                cut(&Shown::line(first).to_string(), INPUT)
            ))
        }
        OwnLine::Note { text } => Some(format!("! {text}")),
    }
}

/// Returns the member of an input that says most, in one line.
fn gist(input: &str) -> String {
    let members: Map<String, Value> = serde_json::from_str(input).unwrap_or_default();
    let told = [
        "command",
        "file_path",
        "path",
        "pattern",
        "url",
        "query",
        "prompt",
        "question",
        "description",
    ];
    let told = told
        .iter()
        .find_map(|name| members.get(*name).and_then(Value::as_str));
    let text = match told {
        Some(told) => told.to_owned(),
        None if members.is_empty() => return String::new(),
        None => Value::Object(members).to_string(),
    };
    format!("  {}", cut(&Shown::line(&text).to_string(), INPUT))
}

/// Shortens a text, and says by how much.
fn cut(text: &str, limit: usize) -> String {
    let length = text.chars().count();
    if length <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit).collect();
    format!("{kept}…(+{})", length - limit)
}

fn seconds(duration: Duration) -> String {
    if duration < Duration::from_mins(1) {
        return format!("{:.1} s", duration.as_secs_f64());
    }
    format!("{} min {} s", duration.as_secs() / 60, duration.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(raw: &serde_json::Value) -> RunLine {
        let raw = raw.to_string();
        let meaning = Box::new(AgentLine::read(&raw).unwrap());
        RunLine::Agent { raw, meaning }
    }

    fn piece(text: &str) -> RunLine {
        agent(
            &serde_json::json!({ "type": "stream_event", "event": { "type": "content_block_delta", "delta": { "text": text } } }),
        )
    }

    #[test]
    fn text_comes_in_pieces_and_is_not_written_twice() {
        let (mut stream, at) = (Stream::default(), Instant::now());
        let whole = agent(
            &serde_json::json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": "Hello." }] } }),
        );
        let said = |text: &str| vec![Output::Said(text.to_owned())];
        assert_eq!(stream.read(&piece("Hel"), at), said("Hel"));
        assert_eq!(stream.read(&piece("lo."), at), said("lo."));
        assert_eq!(stream.read(&whole, at), said("\n"));
        assert_eq!(
            stream.read(&whole, at),
            said("Hello.\n"),
            "without pieces it comes whole"
        );
    }

    #[test]
    fn a_call_is_one_line_when_it_begins_and_one_when_it_ends() {
        let (mut stream, at) = (Stream::default(), Instant::now());
        let call = |id: &str| {
            agent(
                &serde_json::json!({ "type": "assistant", "message": { "content": [
                { "type": "tool_use", "id": id, "name": "Bash", "input": { "description": "d", "command": "ls\n\u{1b}[2Jx" } },
            ] } }),
            )
        };
        let result = |id: &str, failed: bool| {
            agent(&serde_json::json!({ "type": "user", "message": { "content": [
                { "type": "tool_result", "tool_use_id": id, "is_error": failed, "content": "no such file\nmore" },
            ] } }))
        };
        let line = |text: &str| vec![Output::Line(text.to_owned())];
        assert_eq!(stream.read(&call("t1"), at), line("> Bash  ls\\n\\u{1b}[2Jx"));
        let later = at + Duration::from_millis(1_230);
        assert_eq!(
            stream.read(&result("t1", false), later),
            line("  Bash done in 1.2 s")
        );
        stream.read(&call("t2"), at);
        let long = at + Duration::from_secs(75);
        assert_eq!(
            stream.read(&result("t2", true), long),
            line("  Bash failed in 1 min 15 s: no such file")
        );
        assert!(stream.read(&result("t3", true), long).is_empty());
    }

    #[test]
    fn what_is_shortened_says_by_how_much() {
        assert_eq!(cut("abcdef", 4), "abcd…(+2)");
        assert_eq!(gist("{}"), "");
        assert_eq!(gist(r#"{"n":1}"#), r#"  {"n":1}"#);
    }
}
