//! How a conversation with a server ended.

use std::fmt;

use super::end_reason::EndReason;
use crate::loader::process::Exit;
use crate::protocol::Shown;

/// How the conversation with a server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What happened; in words such as `exited with code 1`.
    pub reason: EndReason,
    /// The last lines it wrote to stderr; empty where it wrote none.
    pub stderr: String,
}

impl Ended {
    /// Returns the last lines it wrote; of what never ran there are none, and its supervisor's stands in the reason.
    #[must_use]
    pub fn last_lines(&self) -> &str {
        match self.reason {
            EndReason::Exited(Exit::NotStarted(_)) => "",
            _ => &self.stderr,
        }
    }
}

impl fmt::Display for Ended {
    /// Writes what happened, then the last lines of stderr where there are any.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.reason, LastLines(self.last_lines()))
    }
}

/// The last lines of a server's stderr, as an error ends with them.
pub(in crate::loader) struct LastLines<'a>(pub(in crate::loader) &'a str);

impl fmt::Display for LastLines<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.trim().is_empty() {
            return Ok(());
        }
        let lines = Shown::block(self.0.trim_end());
        write!(formatter, "; the last lines it wrote:\n{lines}")
    }
}
