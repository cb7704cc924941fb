//! Brings the approvals of the second format, one file each, into the table, once and without loss.
//!
//! The files are read and the rows written in the transaction that raises the format: a crash leaves the files and the
//! old format, or the rows and the new one. Only then the directory is moved aside, under a name that says so; nothing
//! is deleted. A file that cannot be read refuses the whole migration and is named: an approval never disappears
//! silently, and none counts until a person has looked.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::Transaction;

use super::{TransactionFault, approvals};
use crate::disk::{self, LockedDirectory, Stamp};
use crate::protocol::LaunchApproval;
use crate::workflow::approvals::old_directory;
use crate::workflow::{Place, WorkflowError};

/// What is appended to the name of the directory once its files are in the table.
const MIGRATED: &str = "migrated";

/// The directory of an older pml, in which no other process writes until this is dropped.
#[derive(Debug)]
pub(super) struct OldApprovals {
    directory: PathBuf,
    _locked: LockedDirectory,
}

impl OldApprovals {
    /// Finds the directory beside the database and excludes older writers; `None` where there is none.
    pub(super) fn beside(place: &Place) -> Result<Option<Self>, WorkflowError> {
        let Place::File(file) = place else { return Ok(None) };
        let directory = old_directory(file);
        let locked =
            LockedDirectory::lock_existing(&directory).map_err(|source| unreadable(&directory, source))?;
        Ok(locked.map(|locked| Self {
            directory,
            _locked: locked,
        }))
    }

    /// Writes a row for every file; any that cannot be read is an error.
    pub(super) fn import(
        &self,
        transaction: &Transaction<'_>,
        place: &Place,
    ) -> Result<(), TransactionFault> {
        let entries =
            std::fs::read_dir(&self.directory).map_err(|error| unreadable(&self.directory, error))?;
        for entry in entries {
            let path = entry.map_err(|error| unreadable(&self.directory, error))?.path();
            // What a killed writer left beside the records was never one.
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
            let record: LaunchApproval =
                serde_json::from_str(&text).map_err(|error| unreadable(&path, error))?;
            let key = path.file_stem().and_then(|stem| stem.to_str()).ok_or_else(|| {
                unreadable(
                    &path,
                    std::io::Error::new(ErrorKind::InvalidData, "its name is no text"),
                )
            })?;
            approvals::insert(transaction, key, &record.dependency, &text)?;
        }
        approvals::announce(place)?;
        Ok(())
    }

    /// Moves the directory aside once its files are in the table, or no longer count.
    ///
    /// Where that fails, the next process that opens the database tries again: the files do not count any more.
    pub(super) fn set_aside(self) {
        if Stamp::of(&self.directory) == Stamp::Missing {
            // Another process did, while this one waited for the lock.
            return;
        }
        let named = |suffix: &str| {
            let mut name = self.directory.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        };
        let first = std::iter::once(named(&format!(".{MIGRATED}")));
        let further = (1_u32..).map(|number| named(&format!(".{MIGRATED}.{number}")));
        let free = first
            .chain(further)
            .find(|path| Stamp::of(path) == Stamp::Missing);
        let Some(aside) = free else { return };
        let parent = self.directory.parent().unwrap_or(Path::new("/"));
        let moved = disk::rename(&self.directory, &aside).and_then(|()| disk::sync_directory(parent));
        if let Err(error) = moved {
            tracing::warn!(target: "pml::workflow", path = %self.directory.display(), %error, "the approvals of an older pml could not be set aside");
        }
    }
}

fn unreadable(path: &Path, source: impl std::error::Error + Send + Sync + 'static) -> WorkflowError {
    WorkflowError::OldApproval {
        path: path.to_owned(),
        source: Box::new(source),
    }
}
