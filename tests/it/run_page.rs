//! The page of a run and the API behind it: what is told of a run, what a person says to it, and who may not.

mod api;
mod chromium;
mod own_server;
mod real;

use std::io::Write as _;

use pml::host::{RunInput, RunLock, RunRecord, RunState, Runs};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::world::{World, state};

/// A run that this process drives, so that it counts as driven; what happens in it is what a test writes.
struct Run {
    runs: Runs,
    record: RunRecord,
    lock: Option<RunLock>,
    written: u64,
}

impl Run {
    fn begin(world: &World, title: &str) -> Self {
        let runs = Runs::new(&state(world));
        let now = pml::proxy::now().millis();
        let (record, lock) = runs
            .create(|id| RunRecord {
                id,
                session: Uuid::new_v4(),
                directory: "/home/me/shop".into(),
                config: None,
                title: title.to_owned(),
                prompt: "a prompt that is told in its message alone".to_owned(),
                created_at: now - 95_000,
                changed_at: now,
                state: RunState::Running,
                process: None,
                asks: Vec::new(),
                answered: Vec::new(),
                put_off: None,
                resumed_in_vain: 0,
                trouble: None,
                transcript: Some("/home/me/.claude/secret-transcript".into()),
                model: Some("claude-opus-5".to_owned()),
                cost: Some(0.0421),
                agent_arguments: vec!["--secret-argument".to_owned()],
                patience_seconds: 600,
            })
            .unwrap();
        Self {
            runs,
            record,
            lock: Some(lock),
            written: 0,
        }
    }

    fn id(&self) -> &str {
        self.record.id.as_str()
    }

    fn path(&self, more: &str) -> String {
        format!("/api/runs/{}{more}", self.id())
    }

    /// Appends a line to the log, as the driver does.
    fn log(&mut self, line: &Value) {
        self.log_at(pml::proxy::now().millis(), line);
    }

    fn log_at(&mut self, at: i64, line: &Value) {
        self.written += 1;
        let mut file = std::fs::OpenOptions::new();
        let path = self.runs.directory(&self.record.id).join("events");
        let mut file = file.append(true).create(true).open(path).unwrap();
        let event = json!({ "n": self.written, "at": at, "line": line });
        file.write_all(format!("{event}\n").as_bytes()).unwrap();
    }

    /// Stands elsewhere, as the driver writes it.
    fn stand(&mut self, state: RunState) {
        self.record.state = state;
        self.record.changed_at = pml::proxy::now().millis();
        self.runs.write(&self.record).unwrap();
        let line = json!({ "type": "pml", "event": "state", "state": self.record.state });
        self.log(&line);
    }

    /// What persons said to it since it was last asked.
    fn inputs(&self) -> Vec<RunInput> {
        self.runs.take_inputs(&self.record.id)
    }
}
