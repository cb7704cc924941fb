//! Why something was not recorded.

use std::path::PathBuf;
use std::sync::Arc;

use crate::disk::DiskError;
use crate::protocol::{Shown, shell};
use crate::report::Hint;

/// Says why something could not be recorded, so that it was not done.
#[derive(Debug, Clone, thiserror::Error)]
#[error("it cannot be recorded in the history in `{}`", Shown::path(directory))]
pub struct HistoryError {
    /// The directory of the history.
    pub(super) directory: PathBuf,
    /// The user's own file, which may do without.
    pub(super) user_config: PathBuf,
    #[source]
    pub(super) source: Arc<DiskError>,
}

impl Hint for HistoryError {
    fn hint(&self) -> Option<String> {
        let directory = self.directory.parent().unwrap_or(&self.directory);
        Some(format!(
            "to see who may write there, and how full the disk is: ls -la {0}; df {0}\n\
             to go on where it cannot be recorded, put \"audit\": \"best-effort\" into {1}",
            shell::path(directory),
            Shown::path(&self.user_config)
        ))
    }
}
