//! The program of Claude Code, which alone writes its own file: running sessions rewrite that, and would lose an edit.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::{CommandContext, interruption, output};
use crate::clients::{ClientError, ClientFile, Scope, client, place_of};
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
    fn words(&self, scope: Scope) -> Vec<&str> {
        let (verb, name) = match self {
            Self::Put { name, .. } => ("add-json", name),
            Self::Remove { name } => ("remove", name),
        };
        let mut words = vec!["mcp", verb, "-s", scope.as_str()];
        // The name of a server may begin as an option does.
        words.extend(name.starts_with('-').then_some("--"));
        words.push(name);
        if let Self::Put { entry, .. } = self {
            words.push(entry);
        }
        words
    }

    /// Returns the command as a person types it.
    pub(crate) fn line(&self, scope: Scope) -> String {
        let words = self.words(scope).into_iter().map(shell::word);
        std::iter::once("claude".to_owned())
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Tells whether the file of Claude Code says it.
    fn is_done(&self, context: &CommandContext, scope: Scope, directory: &Path) -> Result<bool, ClientError> {
        let claude = client("claude");
        let place = claude.and_then(|claude| place_of(claude, scope, &context.environment, directory));
        let file = place.map(ClientFile::read).transpose()?;
        let mut servers = file.iter().flat_map(|file| &file.servers);
        Ok(match self {
            Self::Put { name, .. } => servers.any(|server| server.name == *name),
            Self::Remove { name } => !servers.any(|server| server.name == *name),
        })
    }
}

/// Asks the program of Claude Code, and looks whether its file says it then; returns the commands that a person has to type.
pub(crate) fn carry_out(
    context: &CommandContext,
    orders: &[ClaudeOrder],
    scope: Scope,
    directory: &Path,
) -> anyhow::Result<Vec<String>> {
    let lines = |orders: &[ClaudeOrder]| orders.iter().map(|order| order.line(scope)).collect();
    let Some(claude) = ClaudeProgram::find(context) else {
        return Ok(lines(orders));
    };
    for (at, order) in orders.iter().enumerate() {
        let ran = interruption::until_interrupted(claude.run(order, scope, directory))?;
        let trouble = match ran {
            None => Some("it was interrupted".to_owned()),
            Some(Err(reason)) => Some(reason),
            Some(Ok(())) if order.is_done(context, scope, directory)? => None,
            Some(Ok(())) => Some("`claude mcp` reports success, and its file is as before".to_owned()),
        };
        if let Some(trouble) = trouble {
            output::note(&trouble);
            return Ok(lines(&orders[at..]));
        }
    }
    Ok(Vec::new())
}

/// Says what a person has to type, and where.
pub(crate) fn say_left(context: &CommandContext, file: &Path, directory: &Path, lines: &[String]) {
    output::say(&format!(
        "{} is written by Claude Code alone; in {}, type:",
        context.path(file),
        shell::path(directory)
    ));
    for line in lines {
        output::say(&format!("  {line}"));
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
