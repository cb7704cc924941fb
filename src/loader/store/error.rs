//! Why a file of the store could not be read or written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::protocol::Shown;
use crate::report::Hint;

/// Says why a file of the store could not be read or written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A file of the store cannot be read or written.
    #[error("cannot {action} `{}`", Shown::path(.path))]
    File {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// A change stands, but the disk did not confirm it.
    #[error(
        "`{}` is changed, but the disk did not confirm it: a power cut may undo the change",
        Shown::path(path)
    )]
    Unconfirmed {
        /// The directory whose entries changed.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: Arc<std::io::Error>,
    },
}

impl StoreError {
    /// Makes an error of a failed file operation.
    pub(in crate::loader) fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            action,
            path,
            source: Arc::new(source),
        }
    }
}

impl Hint for StoreError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unconfirmed { .. } => Some("look after the disk, and try again".to_owned()),
            Self::File { .. } => None,
        }
    }
}
