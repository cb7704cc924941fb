//! Why known vulnerabilities could not be asked for, or a verdict not be read or kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::StatusCode;

use crate::disk::DiskError;
use crate::protocol::{Shown, shell};
use crate::report::Hint;

/// Says why known vulnerabilities could not be asked for, or a verdict not be read or kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AdvisoryError {
    /// No connection came about, or it broke off.
    #[error("cannot ask {origin} for known vulnerabilities: {reason}")]
    Unreachable {
        /// Scheme, host and port.
        origin: String,
        /// What the operating system or the library said, escaped.
        reason: String,
    },
    /// It answered with a status that is no success.
    #[error("cannot ask {origin} for known vulnerabilities: it answered HTTP {status}")]
    Status {
        /// Scheme, host and port.
        origin: String,
        /// The status.
        status: StatusCode,
    },
    /// Its answer is not one of OSV.
    #[error("cannot read what {origin} says of known vulnerabilities: {reason}")]
    Answer {
        /// Scheme, host and port.
        origin: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The verdicts cannot be read: any package could be among them.
    #[error(
        "cannot read which packages are malicious from `{}`: {reason}",
        Shown::path(path)
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, escaped.
        reason: String,
    },
    /// What was found cannot be kept.
    #[error("cannot keep what was found out about packages")]
    NotKept(#[source] Arc<DiskError>),
}

impl AdvisoryError {
    pub(super) fn unreadable(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Unreadable {
            path: path.to_owned(),
            reason: Shown::line(&reason.to_string()).to_string(),
        }
    }
}

impl Hint for AdvisoryError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreachable { .. } => Some(
                "check the network and HTTPS_PROXY, or use what was answered before: pml audit --offline"
                    .to_owned(),
            ),
            Self::Status { .. } | Self::Answer { .. } => Some(
                "try again later, or use what was answered before: pml audit --offline\n\
                 another address is named in your own file: \"advisories\": {\"url\": \"https://…\"}"
                    .to_owned(),
            ),
            Self::Unreadable { path, .. } => {
                Some(format!("to make it anew: rm {} && pml audit", shell::path(path)))
            }
            Self::NotKept(_) => None,
        }
    }
}
