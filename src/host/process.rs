//! The process of an agent: its lines, what is written to it, and its end.
//!
//! It runs under a supervisor as a server does, so it dies with this process and takes along what it started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::RunError;
use crate::protocol::{DependencyName, Line};
use crate::proxy::{AgentProcess, Exit, LaunchLine, Stderr, Urgency, spawn, supervisor_program};
use crate::wire::{DrainPolicy, LineReader, Outbox};

/// The longest line that is read: a picture of a screen in base64, or a large file that was read, several times over.
const LINE_LIMIT: usize = 64 * 1024 * 1024;

/// How long an agent that was told to end by its input, or closed its output, may take before it is ended: it writes its session.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(10);

/// An agent that runs.
pub(super) struct Agent {
    lines: LineReader<tokio::process::ChildStdout>,
    /// What is written to it; `None` once its input is closed.
    input: Option<Outbox>,
    process: Option<AgentProcess>,
    stderr: Stderr,
    ended: CancellationToken,
    stopping: TaskTracker,
}

impl Agent {
    /// Starts an agent.
    pub(super) fn start(
        program: &Path,
        arguments: Vec<OsString>,
        variables: BTreeMap<OsString, OsString>,
        directory: &Path,
    ) -> Result<Self, RunError> {
        let failed = |source| RunError::Start {
            program: program.to_owned(),
            source,
        };
        let line = LaunchLine {
            program: program.to_owned(),
            arguments,
            secrets: super::claude::secrets(&variables),
            variables,
            directory: directory.to_owned(),
        };
        let (process, pipes) = spawn(
            &DependencyName::client(),
            &line,
            &supervisor_program().map_err(failed)?,
        )
        .map_err(|error| failed(std::io::Error::other(error)))?;
        let stopping = TaskTracker::new();
        let input = Outbox::open(pipes.stdin, DrainPolicy::UntilItIsGone, &stopping);
        Ok(Self {
            lines: LineReader::new(pipes.stdout, LINE_LIMIT),
            input: Some(input),
            stderr: process.stderr(),
            process: Some(process),
            ended: CancellationToken::new(),
            stopping,
        })
    }

    /// Returns the next line; `None` when the agent has closed its output. Cancel safe.
    pub(super) async fn next_line(&mut self) -> Option<String> {
        loop {
            match self.lines.next_line().await {
                Ok(Some(Line::Whole(line))) => match std::str::from_utf8(&line) {
                    Ok(text) if text.trim().is_empty() => {}
                    Ok(text) => return Some(text.to_owned()),
                    Err(_) => tracing::warn!("a line of the agent is no text, and is left out"),
                },
                Ok(Some(_)) => {
                    tracing::warn!("a line of the agent is longer than {LINE_LIMIT} bytes, and is left out");
                }
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Writes a line to the agent; one that is gone is noticed by the end of its output.
    pub(super) fn write(&self, line: String) {
        if let Some(input) = &self.input {
            let _ = input.send_now(bytes::Bytes::from(line));
        }
    }

    /// Closes the agent's input, so that it ends when it is done.
    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// Ends the agent now: a signal that it answers by writing its session.
    pub(super) fn terminate(&mut self) {
        if let Some(process) = self.process.take() {
            let ended = self.ended.clone();
            self.stopping.spawn(async move {
                process.stop(Urgency::AtOnce).await;
                ended.cancel();
            });
        }
    }

    /// Waits until the agent and everything it started is gone.
    pub(super) async fn exited(&mut self) {
        let Some(mut process) = self.process.take() else {
            // It was told to end, and that is awaited elsewhere.
            self.ended.cancelled().await;
            return;
        };
        self.input = None;
        match tokio::time::timeout(LAST_WORDS, process.exited()).await {
            Ok(Exit::NotStarted(reason)) => tracing::warn!("{reason}"),
            Ok(_) => {}
            // One that closed its output and lives on says nothing more.
            Err(_) => {
                process.stop(Urgency::AtOnce).await;
            }
        }
        self.ended.cancel();
    }

    /// Returns a token that is cancelled when the agent is gone.
    pub(super) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Returns the end of what the agent complained about.
    pub(super) fn complaint(&self) -> String {
        self.stderr.tail()
    }
}
