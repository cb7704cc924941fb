//! Which step of a change on disk failed, and what stands there now.

use std::io;
use std::path::{Path, PathBuf};

use crate::protocol::Shown;

/// Says which step failed and where.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// A step of the writing failed; the file is as it was.
    #[error("cannot {action} `{}`", Shown::path(path))]
    Step {
        /// The step.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The new content stands, but the disk did not confirm it: a power cut may bring the old content back.
    #[error("`{}` is written, but the disk did not confirm it", Shown::path(path))]
    Unconfirmed {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process holds the directory.
    #[error("another process has been writing in `{}` for too long", Shown::path(path))]
    Busy {
        /// The directory.
        path: PathBuf,
    },
}

impl DiskError {
    /// Names the step that failed at `path`.
    pub(crate) fn step(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Step {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
