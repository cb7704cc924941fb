//! The errors of suspending, finding and moving a workflow.

use std::path::PathBuf;

use super::{Cap, Code, TransitionError, WorkflowId};
use crate::protocol::{Shown, ToolName, shell};
use crate::report::Hint;

/// The error of a database of any kind.
pub type DatabaseFault = Box<dyn std::error::Error + Send + Sync>;

/// Says why an operation on workflows failed; after any of these no call may run.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowError {
    /// No workflow has this id.
    #[error("no workflow has the id `{id}`")]
    Unknown {
        /// The id that was asked for.
        id: WorkflowId,
    },
    /// Nothing matches what a person typed.
    #[error("no workflow has the code or the id `{text}`")]
    NoMatch {
        /// What was typed, escaped.
        text: String,
    },
    /// More than one workflow matches what a person typed.
    #[error("`{text}` could mean {matches} workflows")]
    Ambiguous {
        /// What was typed, escaped.
        text: String,
        /// How many it could mean.
        matches: usize,
    },
    /// The continuation came in on another tool; the workflow stays as it was.
    #[error("workflow `{code}` belongs to `{}`", shown(.expected))]
    WrongTool {
        /// The workflow.
        code: Code,
        /// The tool it belongs to.
        expected: ToolName,
    },
    /// The machine does not allow the move.
    #[error("workflow `{code}` {refusal}")]
    Refused {
        /// The workflow.
        code: Code,
        /// Why it did not move.
        refusal: TransitionError,
    },
    /// The answer is not one to what was asked.
    #[error("workflow `{code}` asks for {wanted}")]
    Unfit {
        /// The workflow.
        code: Code,
        /// What would be an answer to it.
        wanted: &'static str,
    },
    /// The answer counted when it was given, and did not any more when it was to be recorded; nothing was.
    #[error("workflow `{code}` does not take this answer any more")]
    Vetoed {
        /// The workflow.
        code: Code,
        /// Why not.
        #[source]
        reason: DatabaseFault,
    },
    /// Too many calls wait already.
    #[error("{} {cap} already wait for an answer, and no more may", .cap.limit())]
    Full {
        /// The limit that is reached.
        cap: Cap,
    },
    /// A finished call was to be suspended again.
    #[error("the arguments of `{}` are gone: a finished call cannot be suspended again", shown(.tool))]
    Erased {
        /// The tool it called.
        tool: ToolName,
    },
    /// The directory of the database cannot be made private.
    #[error("cannot prepare `{}` for pml alone", Shown::path(.path))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The database file cannot be created or made private.
    #[error("cannot create `{}`", Shown::path(.path))]
    Create {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a database, or a broken one; it is left as it is.
    #[error("the workflows in `{}` cannot be read", Shown::path(.path))]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What the database said.
        #[source]
        source: DatabaseFault,
    },
    /// An approval that an older pml kept in a file cannot be read; no approval counts until it can be or is gone.
    #[error(
        "the approval `{}` of an older pml cannot be read, so no approval counts",
        Shown::path(.path)
    )]
    OldApproval {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: DatabaseFault,
    },
    /// The file was written by a later pml; it is left as it is.
    #[error("`{}` has format {found}; this pml knows formats up to {known}", Shown::path(.path))]
    Future {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format this pml knows.
        known: i64,
    },
    /// The database refused.
    #[error("cannot {attempted} in `{}`", Shown::path(.path))]
    Database {
        /// What was attempted.
        attempted: &'static str,
        /// The file.
        path: PathBuf,
        /// What the database said.
        #[source]
        source: DatabaseFault,
    },
    /// The thread that owns the database could not be started.
    #[error("cannot start the thread that keeps `{}`", Shown::path(.path))]
    Thread {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The thread that owns the database ended before it answered.
    #[error("the thread that keeps `{}` has stopped", Shown::path(.path))]
    Stopped {
        /// The file.
        path: PathBuf,
    },
}

impl WorkflowError {
    /// Tells whether the store failed, rather than that it refused what was asked of it.
    #[must_use]
    pub fn is_of_the_store(&self) -> bool {
        match self {
            Self::Unknown { .. }
            | Self::NoMatch { .. }
            | Self::Ambiguous { .. }
            | Self::WrongTool { .. }
            | Self::Refused { .. }
            | Self::Unfit { .. }
            | Self::Vetoed { .. }
            | Self::Full { .. }
            | Self::Erased { .. } => false,
            Self::Directory { .. }
            | Self::Create { .. }
            | Self::Corrupt { .. }
            | Self::OldApproval { .. }
            | Self::Future { .. }
            | Self::Database { .. }
            | Self::Thread { .. }
            | Self::Stopped { .. } => true,
        }
    }
}

fn shown(tool: &ToolName) -> String {
    Shown::line(&tool.to_string()).to_string()
}

impl Hint for WorkflowError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoMatch { .. } | Self::Ambiguous { .. } => {
                Some("to see what waits: pml pending".to_owned())
            }
            Self::Full { .. } => {
                Some("to see what waits: pml pending\nto make room for another: pml refuse CODE".to_owned())
            }
            Self::WrongTool { expected, .. } => Some(format!("continue it by calling `{}`", shown(expected))),
            Self::Corrupt { path, .. } => {
                let file = shell::path(path);
                let aside = shell::path(&path.with_extension("broken"));
                // With its log: a log left behind would be replayed into the next file of that name.
                Some(format!(
                    "to set it aside and begin anew (what waits in it is lost):\n  mkdir {aside} && mv {file}* {aside}"
                ))
            }
            Self::OldApproval { path, .. } => Some(format!(
                "to be asked again for what it approved: rm {}",
                shell::path(path)
            )),
            Self::Future { .. } => {
                Some("update this pml, or restart the client that runs an older one".to_owned())
            }
            Self::Directory { path, .. } => Some(format!("to see who owns it: ls -ld {}", shell::path(path))),
            Self::Create { path, .. } => {
                let directory = shell::path(path.parent().unwrap_or(path));
                Some(format!("to see who owns its directory: ls -ld {directory}"))
            }
            Self::Unknown { .. }
            | Self::Refused { .. }
            | Self::Erased { .. }
            | Self::Unfit { .. }
            | Self::Vetoed { .. }
            | Self::Database { .. }
            | Self::Thread { .. }
            | Self::Stopped { .. } => None,
        }
    }
}
