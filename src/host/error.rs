//! Why a run cannot be begun, reached or resumed.

use std::io;
use std::path::{Path, PathBuf};

use crate::protocol::Shown;
use crate::report::Hint;

/// Says why a run cannot be begun, reached or resumed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of a run cannot be used.
    #[error("cannot {action} `{}`", Shown::path(path))]
    File {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The record of a run cannot be read.
    #[error("the record of the run in `{}` cannot be read", Shown::path(path))]
    Record {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// No run has this name.
    #[error("there is no run `{text}`")]
    Unknown {
        /// What was asked for, escaped.
        text: String,
    },
    /// Several runs begin with this.
    #[error("`{text}` is the beginning of {count} runs")]
    Ambiguous {
        /// What was asked for, escaped.
        text: String,
        /// How many there are.
        count: usize,
    },
    /// Another process drives the run.
    #[error("run `{id}` is driven by another process")]
    Driven {
        /// The run.
        id: String,
    },
    /// No process drives the run.
    #[error("no process drives run `{id}`")]
    NotDriven {
        /// The run.
        id: String,
    },
    /// The session is open elsewhere.
    #[error("the session of run `{id}` is open in another {agent}, process {pid}")]
    SessionOpen {
        /// The run.
        id: String,
        /// The name of the agent.
        agent: &'static str,
        /// Its process.
        pid: u32,
    },
    /// As many runs as may be are there.
    #[error("{running} runs are under way, and {most} may be at once")]
    TooMany {
        /// How many there are.
        running: usize,
        /// How many may be.
        most: usize,
    },
    /// The agent's program is not there.
    #[error("Claude Code is not there: {reason}")]
    NoAgent {
        /// Where it was looked for, escaped.
        reason: String,
    },
    /// The agent could not be started.
    #[error("the agent `{}` could not be started", Shown::path(program))]
    Start {
        /// Its program.
        program: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// What decides about asks refused.
    #[error("the asks of the run cannot be kept")]
    Asks {
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl RunError {
    /// Names a file and what was attempted with it.
    pub(super) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}

impl Hint for RunError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoAgent { .. } => {
                "to install it: npm install --global @anthropic-ai/claude-code\n\
                 to name one that is installed: \"run\": {\"claude\": \"/path/to/claude\"} in your own file, or PML_CLAUDE"
            }
            Self::Unknown { .. } | Self::Ambiguous { .. } => "to list the runs: pml runs",
            Self::TooMany { .. } => {
                "to see them: pml runs\nto allow more: \"run\": {\"most\": 8} in your own file"
            }
            Self::Driven { id } => return Some(format!("to watch it: pml run --attach {id}")),
            Self::NotDriven { id } => return Some(format!("to go on: pml run --resume {id}")),
            Self::SessionOpen { .. } => "end it there, then try again; what was answered is kept",
            Self::File { .. } | Self::Record { .. } | Self::Start { .. } | Self::Asks { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
