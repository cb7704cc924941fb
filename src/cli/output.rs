//! The output of commands: data to stdout, messages about it to stderr.

use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;

use owo_colors::OwoColorize as _;
use serde_json::{Value, json};

use super::CommandContext;
use crate::config::{FilePosition, Rule};
use crate::permissions::writer::WriteDurability;
use crate::protocol::Shown;

/// Says that data could not be written to stdout.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to stdout")]
pub(crate) struct StdoutError(#[from] std::io::Error);

impl StdoutError {
    /// Tells whether the reader went away, which is no failure of ours.
    pub(crate) fn has_no_reader(&self) -> bool {
        self.0.kind() == ErrorKind::BrokenPipe
    }
}

/// Writes data to stdout.
pub(crate) fn data(text: &str) -> Result<(), StdoutError> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Writes one JSON value to stdout, on several lines, without anything that deceives a terminal.
pub(crate) fn json(value: &Value) -> Result<(), StdoutError> {
    data(&Shown::json(&format!("{value:#}")))
}

/// Returns the exit code of a command whose code is an answer: it is the same where the data has no reader.
pub(crate) fn verdict(code: u8, written: Result<(), StdoutError>) -> Result<ExitCode, StdoutError> {
    match written {
        Err(error) if !error.has_no_reader() => Err(error),
        Ok(()) | Err(_) => Ok(ExitCode::from(code)),
    }
}

/// Says something to the person.
///
/// Where it cannot be written, as on a full disk, that is no failure: what was done is done, and the exit code says so.
pub(crate) fn say(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Says that a power cut may undo what was written, where that is so.
pub(crate) fn warn(durability: &WriteDurability) {
    if let Some(warning) = durability.warning() {
        note(&warning);
    }
}

/// Says something the person may not expect.
pub(crate) fn note(text: &str) {
    say(&format!("{} {text}", "note:".yellow().bold()));
}

impl CommandContext {
    /// Shows a path from the working directory where it lies below it, else from the home directory, else whole.
    pub(crate) fn path(&self, path: &Path) -> String {
        let home = self.environment.variable("HOME").map(Path::new);
        // Below `/` lies everything: there the whole path says more.
        let below = |base: &Path| base.parent().and_then(|_| path.strip_prefix(base).ok());
        let shown = match (below(self.environment.working_directory()), home.and_then(below)) {
            (Some(rest), _) => rest.display().to_string(),
            (None, Some(rest)) => format!("~/{}", rest.display()),
            (None, None) => path.display().to_string(),
        };
        Shown::line(&shown).to_string()
    }

    /// Shows where a rule stands.
    pub(crate) fn place(&self, source: Option<&FilePosition>) -> String {
        source.map_or_else(
            || "built in".to_owned(),
            |source| format!("{}:{}", self.path(&source.file), source.line),
        )
    }
}

/// Returns a rule as scripts see it.
pub(crate) fn rule_json(rule: &Rule) -> Value {
    let source = rule.source.as_ref();
    json!({
        "pattern": rule.pattern.as_str(),
        "list": rule.list.key(),
        "file": source.map(|source| source.file.to_string_lossy()),
        "line": source.map(|source| source.line),
        "column": source.map(|source| source.column),
    })
}

/// Says lines of a difference, coloured by their signs.
pub(super) fn say_lines(lines: impl Iterator<Item = String>) {
    for line in lines {
        say(&colour(&line));
    }
}

/// Colours a line of a difference by its sign.
pub(super) fn colour(line: &str) -> String {
    match line.as_bytes().first() {
        Some(b'+') => line.green().to_string(),
        Some(b'-') => line.red().to_string(),
        Some(b'!') => line.yellow().bold().to_string(),
        _ => line.to_owned(),
    }
}
