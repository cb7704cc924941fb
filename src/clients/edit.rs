//! An edit of a file that was worked out, and is written only while the file is still what was read.

use std::path::{Path, PathBuf};

use super::error::ClientError;
use crate::config;
use crate::disk::{Audience, DiskError, LockedDirectory};

/// The text of a file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The file, links followed.
    pub path: PathBuf,
    /// What stood there when it was read; `None` if there was no file.
    pub before: Option<String>,
    /// What is to stand there.
    pub after: String,
}

impl Edit {
    /// Tells whether the file would be another than before.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }

    /// Refuses a file that is not what was read any more.
    pub fn check(&self) -> Result<(), ClientError> {
        if current(&self.path)? == self.before {
            Ok(())
        } else {
            Err(ClientError::Overtaken {
                path: self.path.clone(),
            })
        }
    }

    /// Writes the file in one step, its mode kept, if it is still what was read.
    pub fn write(&self) -> Result<(), ClientError> {
        if !self.changes() {
            return Ok(());
        }
        put(&self.path, self.before.as_deref(), Some(&self.after))
    }
}

/// Puts a text in place of another; without one the file is removed. Nothing is written where another stands there now.
pub(super) fn put(path: &Path, from: Option<&str>, to: Option<&str>) -> Result<(), ClientError> {
    let failed = |source| ClientError::Write {
        path: path.to_owned(),
        source,
    };
    let directory = path.parent().unwrap_or(Path::new("/"));
    let locked = LockedDirectory::lock(directory, Audience::Usual).map_err(failed)?;
    // Clients take no lock: what they wrote up to this moment is seen.
    if current(path)?.as_deref() != from {
        return Err(ClientError::Overtaken {
            path: path.to_owned(),
        });
    }
    let name = Path::new(path.file_name().unwrap_or_default());
    let written = match to {
        Some(text) => locked.replace(name, text.as_bytes(), Audience::Usual),
        None => locked.remove(&[name.to_owned()]),
    };
    match written {
        Err(DiskError::Unconfirmed { source, .. }) => {
            tracing::warn!(path = %path.display(), %source, "the change stands, but a power cut may undo it");
            Ok(())
        }
        written => written.map_err(failed),
    }
}

/// Returns what a file says now.
pub(super) fn current(path: &Path) -> Result<Option<String>, ClientError> {
    config::load_lock_text(path).map_err(|source| ClientError::Read {
        path: path.to_owned(),
        source: Box::new(source),
    })
}
