//! Why a relayed question has no answer.

use std::path::PathBuf;
use std::sync::Arc;

use reqwest::StatusCode;

use crate::config::{ConfigError, Distrust};
use crate::protocol::question::QuestionError;
use crate::protocol::{Shown, shell};
use crate::report::Hint;

/// Says why a relayed question has no answer; never holds the token or words of the host.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The configuration of pml itself cannot be read.
    #[error("the configuration of pml cannot be used")]
    Settings(#[source] Arc<ConfigError>),
    /// The tools that ask were switched off while the question waited.
    #[error("the question was given up: `askUser.enabled` was set to false while it waited")]
    SwitchedOff,
    /// The file cannot be read, or is not the user's own.
    #[error("the file that ASK_USER_CONFIG names cannot be used")]
    File(#[source] ConfigError),
    /// There is no such file.
    #[error("the file that ASK_USER_CONFIG names is missing: `{}`", Shown::path(path))]
    NoFile {
        /// Where it should be.
        path: PathBuf,
    },
    /// The file is not JSON.
    #[error("`{}`, named by ASK_USER_CONFIG: {reason}", Shown::path(path))]
    NotJson {
        /// The file.
        path: PathBuf,
        /// What is wrong, without a value.
        reason: String,
    },
    /// A field of the file is missing or wrong.
    #[error("`{}`, named by ASK_USER_CONFIG: `{field}` {problem}", Shown::path(path))]
    Field {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// What is wrong, without its value.
        problem: String,
    },
    /// The host cannot be reached.
    #[error("the host that shows questions cannot be reached at {origin}: {reason}")]
    Unreachable {
        /// The address.
        origin: String,
        /// Why not.
        reason: String,
    },
    /// The host does not know the token, or its conversation is over.
    #[error(
        "the host that shows questions refused (403): it does not know this conversation, or it is over there"
    )]
    Forbidden,
    /// The host answers with a redirect.
    #[error("the host that shows questions answered with a redirect ({0}), which is not followed")]
    Redirected(StatusCode),
    /// The host answers with another status.
    #[error("the host that shows questions answered {0}")]
    Status(StatusCode),
    /// The host's answer is too long.
    #[error("the host that shows questions answered with more than {limit} bytes")]
    TooLong {
        /// The most that is read.
        limit: usize,
    },
    /// The host's answer is not one.
    #[error("the host brought an answer that cannot be read: {0}")]
    Malformed(String),
    /// The answer does not fit its question.
    #[error("the host brought an answer that does not fit the question")]
    Unfitting(#[source] QuestionError),
    /// Nobody answered in time.
    #[error("User did not respond within the timeout period.")]
    TimedOut,
}

impl Hint for RelayError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::File(ConfigError::NotObeyed { path, unowned }) => match unowned.distrust {
                Distrust::Everyone | Distrust::Group => Some(format!("chmod 600 {}", shell::path(path))),
                Distrust::Owner | Distrust::Link => {
                    Some("it must belong to the user that pml runs as".to_owned())
                }
            },
            Self::Settings(error) => error.hint(),
            _ => None,
        }
    }
}
