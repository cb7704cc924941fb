//! The program of Claude Code, which alone writes its own file: running sessions rewrite that, and would lose an edit.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::CommandContext;
use crate::clients::Scope;
use crate::loader::{ErrandEnd, Exit, LaunchLine, find_program, run_errand};
use crate::protocol::{Secrets, shell};

/// It starts a whole runtime before it edits its file.
const LIMIT: Duration = Duration::from_mins(1);

/// The program `claude` of the user.
#[derive(Debug, Clone)]
pub(crate) struct ClaudeProgram {
    program: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

/// Something that is asked of it.
#[derive(Debug, Clone)]
pub(crate) enum ClaudeOrder {
    /// Writes a server.
    Put { name: String, entry: String },
    /// Takes a server out.
    Remove { name: String },
}

impl ClaudeOrder {
    /// Returns the words of the command.
    fn words(&self, scope: Scope) -> Vec<String> {
        let words = match self {
            Self::Put { name, entry } => vec!["mcp", "add-json", "-s", scope.as_str(), name, entry],
            Self::Remove { name } => vec!["mcp", "remove", "-s", scope.as_str(), name],
        };
        words.into_iter().map(str::to_owned).collect()
    }

    /// Returns the command as a person types it.
    pub(crate) fn line(&self, scope: Scope) -> String {
        let words: Vec<_> = self
            .words(scope)
            .iter()
            .map(|word| shell::operand(word))
            .collect();
        format!("claude {}", words.join(" ").replace("'-s'", "-s"))
    }
}

impl ClaudeProgram {
    /// Finds it on the user's `PATH`.
    pub(crate) fn find(context: &CommandContext) -> Option<Self> {
        let variables = context.environment.variables();
        Some(Self {
            program: find_program("claude", &context.environment)?,
            variables: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        })
    }

    /// Asks it for one thing, in a directory; an error says how it failed, without the words that were given.
    pub(crate) async fn run(
        &self,
        order: &ClaudeOrder,
        scope: Scope,
        directory: &Path,
    ) -> Result<(), String> {
        let line = LaunchLine {
            program: self.program.clone(),
            arguments: order.words(scope).into_iter().map(OsString::from).collect(),
            variables: self.variables.iter().cloned().collect(),
            directory: directory.to_owned(),
            secrets: Secrets::default(),
        };
        match run_errand(&line, LIMIT).await {
            Ok(ErrandEnd::Exited(Exit::Code(0))) => Ok(()),
            Ok(ErrandEnd::Exited(exit)) => Err(format!("`claude mcp` ended with {exit}")),
            Ok(ErrandEnd::Overdue) => Err("`claude mcp` did not end within a minute".to_owned()),
            Err(error) => Err(format!("`claude` could not be started: {error}")),
        }
    }
}
