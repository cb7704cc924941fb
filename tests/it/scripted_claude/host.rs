//! A host of Claude Code: its command line and its lines, nothing else. It answers nothing by itself.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::claude::{claude_environment, claude_program};
use crate::support::eventually;
use crate::support::messages_api::{MessagesApi, Turn};
use crate::support::world::World;

/// A line of a busy machine comes within this; reaching it is a failure.
const PATIENCE: Duration = Duration::from_mins(1);

/// A conversation that outlives its processes.
pub(super) struct Session {
    pub(super) world: World,
    pub(super) api: Arc<MessagesApi>,
    pub(super) id: String,
}

/// How a process takes up the conversation.
#[derive(Clone, Copy)]
pub(super) enum Start {
    New,
    Resumed,
}

impl Session {
    /// A conversation with a script; `None` where there is no Claude Code.
    pub(super) fn scripted(script: impl IntoIterator<Item = Turn>) -> Option<Self> {
        Self::with(MessagesApi::start(script))
    }

    /// A conversation with this API; `None` where there is no Claude Code.
    pub(super) fn with(api: impl Into<Arc<MessagesApi>>) -> Option<Self> {
        claude_program()?;
        Some(Self {
            world: World::new(),
            api: api.into(),
            id: uuid::Uuid::new_v4().to_string(),
        })
    }

    /// Starts a process.
    pub(super) fn start(&self, start: Start) -> Host {
        self.start_with(start, &[])
    }

    /// Starts a process with further arguments.
    pub(super) fn start_with(&self, start: Start, arguments: &[&str]) -> Host {
        let program = claude_program().unwrap();
        let start = match start {
            Start::New => "--session-id",
            Start::Resumed => "--resume",
        };
        let mut command = self.world.program(&program);
        command
            .envs(claude_environment(self.world.home(), &self.api.url()))
            .args([
                "-p",
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
            ])
            .args([
                "--verbose",
                "--include-partial-messages",
                "--replay-user-messages",
            ])
            .args(["--permission-prompt-tool", "stdio", "--permission-mode", "manual"])
            .args([start, &self.id])
            .args(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Host {
            stdin: child.stdin.take(),
            child,
            lines,
            seen: Vec::new(),
            aside: Vec::new(),
        }
    }

    /// Where Claude Code keeps the conversation: by the path of the project, with a dash for all but letters and digits.
    pub(super) fn transcript(&self) -> PathBuf {
        let project = std::fs::canonicalize(self.world.project()).unwrap();
        let project = project.to_str().unwrap();
        let folder = project.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let home = self.world.home().join(".claude/projects");
        home.join(folder).join(format!("{}.jsonl", self.id))
    }
}

/// A process of Claude Code with the pipes of its host.
pub(super) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// All lines that were read, in their order.
    pub(super) seen: Vec<Value>,
    /// Those of them that nobody waited for yet.
    aside: Vec<Value>,
}

impl Host {
    /// Writes a line.
    pub(super) fn send(&mut self, line: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Says something as the user; returns the id of the line.
    pub(super) fn user(&mut self, text: &str) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        let message = json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
        self.send(&json!({ "type": "user", "uuid": id, "message": message, "parent_tool_use_id": null }));
        id
    }

    /// Asks Claude Code for something and returns its answer.
    pub(super) fn control(&mut self, request: &Value) -> Value {
        let id = uuid::Uuid::new_v4().to_string();
        self.send(&json!({ "type": "control_request", "request_id": id, "request": request }));
        let answer = self.until("an answer", |line| {
            line["type"] == "control_response" && line["response"]["request_id"] == *id
        });
        answer["response"].clone()
    }

    /// Opens the conversation, with a hook before each use of the tools that `matcher` names.
    pub(super) fn initialize(&mut self, matcher: Option<&str>) -> Value {
        let mut hook = json!({ "hookCallbackIds": ["ask"], "timeout": 86400 });
        if let Some(matcher) = matcher {
            hook["matcher"] = matcher.into();
        }
        self.control(&json!({ "subtype": "initialize", "hooks": { "PreToolUse": [hook] } }))
    }

    /// Answers what Claude Code asked.
    pub(super) fn reply(&mut self, request: &Value, response: &Value) {
        let response =
            json!({ "subtype": "success", "request_id": request["request_id"], "response": response });
        self.send(&json!({ "type": "control_response", "response": response }));
    }

    /// Answers a hook with a decision.
    pub(super) fn decide(&mut self, hook: &Value, decision: &str, more: &Value) {
        let mut output = json!({ "hookEventName": "PreToolUse", "permissionDecision": decision });
        for (name, value) in more.as_object().unwrap() {
            output[name] = value.clone();
        }
        self.reply(hook, &json!({ "hookSpecificOutput": output }));
    }

    /// Reads the next line; `None` once there are no more. A held hook has a heartbeat: lines alone are no progress.
    fn line(&mut self, until: Instant) -> Option<Value> {
        match self
            .lines
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            Ok(line) => {
                self.seen.push(line.clone());
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("not within {PATIENCE:?}: {:#?}", self.summary()),
        }
    }

    /// Waits for a line, which may have come already; whatever else comes is kept aside.
    pub(super) fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.aside.iter().position(&wanted) {
            return self.aside.remove(place);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let Some(line) = self.line(until) else {
                panic!("it ended without {what}: {:#?}", self.summary());
            };
            if wanted(&line) {
                return line;
            }
            self.aside.push(line);
        }
    }

    /// Waits for a request of Claude Code.
    pub(super) fn asked(&mut self, subtype: &str) -> Value {
        self.until(subtype, |line| {
            line["type"] == "control_request" && line["request"]["subtype"] == *subtype
        })
    }

    /// Waits for the end of a turn.
    pub(super) fn result(&mut self) -> Value {
        self.until("a result", |line| line["type"] == "result")
    }

    /// Waits until a line of the user got there.
    pub(super) fn lifecycle(&mut self, id: &str, state: &str) {
        self.until(state, |line| {
            line["command_uuid"] == *id && line["state"] == *state
        });
    }

    /// Where a line of the user got to so far.
    pub(super) fn states(&self, id: &str) -> Vec<&str> {
        let of = self.seen.iter().filter(|line| line["command_uuid"] == *id);
        of.filter_map(|line| line["state"].as_str()).collect()
    }

    /// Waits until a tool has returned.
    pub(super) fn returned(&mut self, tool_use_id: &str) -> Value {
        self.until("a tool result", |line| {
            line["type"] == "user" && line["message"]["content"][0]["tool_use_id"] == *tool_use_id
        })
    }

    /// What the lines were, without the deltas, which are as many as the model likes.
    pub(super) fn summary(&self) -> Vec<String> {
        let lines = self.seen.iter().filter(|line| line["type"] != "stream_event");
        lines.map(named).collect()
    }

    pub(super) fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(id, signal).unwrap();
    }

    /// Reads what still comes and waits for the end.
    pub(super) fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        while self.line(until).is_some() {}
        let mut status = None;
        eventually("Claude Code ends", PATIENCE, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Closes the input and waits for the end.
    pub(super) fn close(&mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.ended()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line in short: what it is, and of which tool or state.
fn named(line: &Value) -> String {
    let kind = line["type"].as_str().unwrap_or_default();
    let request = &line["request"];
    let block = &line["message"]["content"][0];
    let parts = [
        &line["subtype"],
        &line["state"],
        &request["subtype"],
        &request["tool_name"],
        &request["input"]["tool_name"],
        &block["type"],
        &block["name"],
        &block["tool_use_id"],
    ];
    let parts = parts.iter().filter_map(|part| part.as_str());
    parts.fold(kind.to_owned(), |told, part| format!("{told} {part}"))
}
