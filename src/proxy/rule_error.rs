//! The error of an `always` answer whose rule could not be written.

use crate::permissions::writer::WriteError;
use crate::report::Hint;

/// Says why a rule was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum RuleError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the task that writes the rule failed")]
    Task(#[from] tokio::task::JoinError),
}

impl Hint for RuleError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Write(error) => error.hint(),
            Self::Task(_) => None,
        }
    }
}
