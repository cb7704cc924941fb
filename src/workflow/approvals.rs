//! The approvals of launches as they stood at one moment: which servers a person let run from now on.
//!
//! Pure data, but for one look at a file. An approval covers a launch at one exact digest; when anything the digest
//! covers changes, there is simply no approval. Approvals are kept in the store, so that an answer and what it grants
//! are recorded in one transaction.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::Place;
use crate::disk::Stamp;
use crate::protocol::{DependencyName, Digest, LaunchApproval};

/// A launch that a person approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedLaunch {
    /// The digest of what is launched.
    pub launch: Digest,
    /// What is recorded of it.
    pub approval: LaunchApproval,
}

/// What the first use of an approved package found, to complete an approval that was given before it was known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundContent {
    /// The version that is installed.
    pub version: String,
    /// Its integrity.
    pub integrity: Option<String>,
    /// The package it came from.
    pub package: Option<String>,
    /// The digest of everything that is installed with it.
    pub lock: Option<Digest>,
}

impl FoundContent {
    /// Adds to an approval what it does not say yet; what it says of content stays.
    pub(super) fn complete(&self, approval: LaunchApproval) -> LaunchApproval {
        LaunchApproval {
            version: Some(self.version.clone()),
            integrity: approval.integrity.clone().or_else(|| self.integrity.clone()),
            package: self.package.clone(),
            lock: approval.lock.clone().or_else(|| self.lock.clone()),
            ..approval
        }
    }
}

/// Every approval, as they stood when they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvals {
    by_key: HashMap<String, LaunchApproval>,
    /// What the mark of the place looked like when they were read.
    mark: Stamp,
}

impl Approvals {
    pub(super) fn new(by_key: HashMap<String, LaunchApproval>, mark: Stamp) -> Self {
        Self { by_key, mark }
    }

    /// Finds the approval of exactly this launch.
    #[must_use]
    pub fn find(&self, launch: &Digest) -> Option<&LaunchApproval> {
        self.by_key.get(&key(launch))
    }

    /// Tells whether a person approved this launch, with the content that is known of it now.
    #[must_use]
    pub fn covers(&self, launch: &Digest, integrity: Option<&str>, lock: Option<&Digest>) -> bool {
        self.find(launch)
            .is_some_and(|approval| approval.covers(integrity, lock))
    }

    /// Returns every approval there is, in no order.
    pub fn all(&self) -> impl Iterator<Item = &LaunchApproval> {
        self.by_key.values()
    }

    /// Tells whether no approval changed at `place` since these were read.
    pub(super) fn are_current(&self, place: &Place) -> bool {
        match place {
            Place::File(file) => self.mark != Stamp::Unknown && Stamp::of(&mark(file)) == self.mark,
            Place::Memory => false,
        }
    }
}

/// Returns the name under which the approval of a launch is kept.
///
/// A digest of the digest: so the files of the second format were named, which did not hold the launch itself.
pub(super) fn key(launch: &Digest) -> String {
    Digest::of([launch.as_str()]).to_string()
}

/// Returns the file that grows by a byte whenever an approval changes in the database `file`.
///
/// It grows *before* the change is committed and under the lock of the writer, and approvals are read under the same
/// lock: so equal stamps mean equal approvals, and a process learns by one look at the file that it must read again.
pub(super) fn mark(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-approvals");
    PathBuf::from(name)
}

/// Returns the directory in which the second format kept one file per approval.
pub(super) fn old_directory(file: &Path) -> PathBuf {
    file.with_file_name("approved")
}

impl Place {
    /// Returns the approvals without opening the store, where it cannot have any.
    pub(super) fn without_approvals(&self) -> Option<Approvals> {
        let Self::File(file) = self else { return None };
        let nothing = [mark(file), old_directory(file)]
            .iter()
            .all(|path| Stamp::of(path) == Stamp::Missing);
        nothing.then(|| Approvals::new(HashMap::new(), Stamp::Missing))
    }

    /// Returns the file that changes whenever an approval does; `None` where no other process can change one.
    #[must_use]
    pub fn approvals_mark(&self) -> Option<PathBuf> {
        match self {
            Self::File(file) => Some(mark(file)),
            Self::Memory => None,
        }
    }

    /// Forgets every approval of a dependency, and returns what they were; blocking.
    pub fn forget_approvals(
        &self,
        dependency: &DependencyName,
    ) -> Result<Vec<LaunchApproval>, super::WorkflowError> {
        match self.without_approvals() {
            Some(_) => Ok(Vec::new()),
            None => self.open()?.forget_approvals(dependency),
        }
    }

    /// Reads the approvals; blocking. Creates nothing where there are none.
    pub fn approvals(&self) -> Result<Approvals, super::WorkflowError> {
        match self.without_approvals() {
            Some(none) => Ok(none),
            None => self.open()?.approvals(),
        }
    }
}
