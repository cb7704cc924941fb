//! Why a file of a client was not read or written.

use std::path::PathBuf;

use crate::config::ConfigError;
use crate::disk::DiskError;
use crate::protocol::{Shown, shell};
use crate::report::Hint;

/// Says what was attempted with which file.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It cannot be read as text.
    #[error("cannot read `{}`", Shown::path(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<ConfigError>,
    },
    /// It is not what the client would read.
    #[error("`{}` is broken and was left as it is: {reason}", Shown::path(path))]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where and why.
        reason: String,
    },
    /// It cannot be edited so that everything else stays.
    #[error("`{}` was left as it is: {reason}", Shown::path(path))]
    Edit {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Its owner made it read-only.
    #[error("`{}` is read-only and was left as it is", Shown::path(path))]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// It is not what was read and shown.
    #[error("`{}` was changed meanwhile and is left as it is", Shown::path(path))]
    Overtaken {
        /// The file.
        path: PathBuf,
    },
    /// It is a link of a project to a file elsewhere.
    #[error(
        "`{}` is a link that leads out of the project, to `{}`; neither was touched",
        Shown::path(path),
        Shown::path(target)
    )]
    LeadsOut {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// It cannot be written.
    #[error("cannot write `{}`", Shown::path(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// Which step failed.
        #[source]
        source: DiskError,
    },
    /// What an import did is not readable any more.
    #[error("the journal `{}` does not read as one", Shown::path(path))]
    Journal {
        /// The journal.
        path: PathBuf,
    },
}

impl Hint for ClientError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { source, .. } => source.hint(),
            Self::Broken { .. } | Self::Edit { .. } => Some("mend the file, then try again".to_owned()),
            Self::ReadOnly { path } => Some(format!(
                "if pml may write it: chmod u+w {}; if another program makes it, change what that is told",
                shell::path(path)
            )),
            Self::Overtaken { .. } => Some("to look at it as it is now: pml import --dry-run".to_owned()),
            Self::LeadsOut { path, .. } => Some(format!(
                "to have a file of its own here, first remove the link: rm {}",
                shell::path(path)
            )),
            Self::Write { path, .. } => {
                let directory = path.parent().unwrap_or(path);
                Some(format!(
                    "to see who may write there: ls -ld {}",
                    shell::path(directory)
                ))
            }
            Self::Journal { path } => Some(format!(
                "what every file said before stands in it: less {}",
                shell::path(path)
            )),
        }
    }
}
