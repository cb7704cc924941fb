//! Reads the lock beside a configuration from disk.

use std::path::{Path, PathBuf};

use super::{AcceptedError, LockFile, LockFileError};
use crate::config::{self, ConfigError};
use crate::protocol::{Shown, shell};
use crate::report::Hint;

/// Says why a server cannot be compared with what was accepted of it: it does not run then.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// What was accepted cannot be read or kept.
    #[error(transparent)]
    Accepted(#[from] AcceptedError),
    /// The lock beside the configuration cannot be read.
    #[error("cannot read `{}`", Shown::path(path))]
    Lock {
        /// The lock.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: LockFileError,
    },
    /// The lock beside the configuration is not a file that pml reads.
    #[error("cannot read `{}`", Shown::path(path))]
    File {
        /// The lock.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Box<ConfigError>,
    },
    /// It could not be read before, and has not changed since.
    #[error(transparent)]
    Known(std::sync::Arc<PinError>),
}

impl Hint for PinError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Accepted(error) => error.hint(),
            Self::Lock { path, .. } => Some(format!(
                "mend it, or take it away and make a new one: rm {} && pml lock",
                shell::path(path)
            )),
            Self::File { source, .. } => source.hint(),
            Self::Known(error) => error.hint(),
        }
    }
}

/// Reads a lock; `None` if there is no such file.
pub fn read_lock(path: &Path) -> Result<Option<LockFile>, PinError> {
    let text = config::load_lock_text(path).map_err(|source| PinError::File {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    let read = text.map(|text| {
        LockFile::read(&text).map_err(|source| PinError::Lock {
            path: path.to_owned(),
            source,
        })
    });
    read.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::Pin;

    #[test]
    fn a_lock_is_read_or_missing_and_one_that_cannot_be_read_says_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".pml.lock");
        assert_eq!(read_lock(&path).unwrap(), None);
        let lock = LockFile {
            servers: [("a".parse().unwrap(), Pin::default())].into(),
        };
        let text = lock.written_into(None).unwrap();
        crate::disk::replace(&path, text.as_bytes()).unwrap();
        assert_eq!(read_lock(&path).unwrap(), Some(lock));
        crate::disk::replace(&path, b"{").unwrap();
        let error = read_lock(&path).unwrap_err();
        assert!(matches!(error, PinError::Lock { .. }), "{error}");
        let expected = format!(
            "mend it, or take it away and make a new one: rm {} && pml lock",
            path.display()
        );
        assert_eq!(error.hint(), Some(expected));
        let error = read_lock(directory.path()).unwrap_err();
        assert!(matches!(error, PinError::File { .. }), "{error}");
    }
}
