//! What a person has approved: one small file per digest in the user's state directory.
//!
//! An approval covers a dependency at one exact digest; when anything the digest covers changes, there is simply
//! no file. Answers are remembered together with the file's stamp, so a call costs one stat and yet a removal by
//! another process counts at once. A record that cannot be read is an error, never an approval.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::config::Locations;
use crate::disk::{Audience, DiskError, LockedDirectory, Stamp};
use crate::protocol::{DependencyName, Digest, Shown, shell};

/// What was approved, kept for people to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The dependency's name when it was approved.
    pub dependency: DependencyName,
    /// Its exact version, where there is one.
    pub version: Option<String>,
    /// Its integrity, where there is one.
    pub integrity: Option<String>,
    /// Its package, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The digest of everything that is installed with its package, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Digest>,
    /// When it was approved.
    pub at_unix_ms: u64,
}

/// What a record replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    digest: Digest,
    before: Option<Record>,
    after: Record,
}

/// Says why approvals cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ApprovedError {
    /// The record cannot be read.
    #[error("cannot read the approval `{}`", Shown::path(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The record is not one.
    #[error("the approval `{}` is damaged and counts as none", Shown::path(path))]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The record cannot be written.
    #[error("cannot write the approval `{}`", Shown::path(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// Which step failed.
        #[source]
        source: DiskError,
    },
    /// Records cannot be removed.
    #[error("cannot remove the approvals of `{dependency}`")]
    Remove {
        /// The dependency.
        dependency: DependencyName,
        /// Which step failed.
        #[source]
        source: DiskError,
    },
}

impl crate::report::Hint for ApprovedError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Damaged { path } => Some(format!("to be asked again: rm {}", shell::path(path))),
            Self::Write {
                path,
                source: DiskError::NotUndone { .. },
            } => Some(format!(
                "the approval counts; to be asked again: rm {}",
                shell::path(path)
            )),
            Self::Read { .. } | Self::Write { .. } | Self::Remove { .. } => None,
        }
    }
}

/// The approvals in one directory.
#[derive(Debug)]
pub struct Approved {
    directory: PathBuf,
    /// What was found under a digest, and what its file looked like then.
    seen: Mutex<HashMap<Digest, (Stamp, Record)>>,
}

impl Approved {
    /// Looks at the approvals of the user.
    #[must_use]
    pub fn of(locations: &Locations) -> Self {
        Self::new(locations.state().join("approved"))
    }

    /// Looks at `directory`, which need not exist yet.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            seen: Mutex::default(),
        }
    }

    /// Returns where the approvals are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Records an approval, durably before it returns; what the disk does not confirm is taken back.
    pub fn record(&self, digest: &Digest, record: &Record) -> Result<Replaced, ApprovedError> {
        let locked = self.lock(digest)?;
        // What cannot be read approved nothing.
        let before = read(&self.path(digest)).ok().flatten();
        self.write(&locked, digest, record)?;
        Ok(Replaced {
            digest: digest.clone(),
            before,
            after: record.clone(),
        })
    }

    /// Puts back what stood in the place of a record, unless another was recorded since.
    pub fn take_back(&self, replaced: &Replaced) -> Result<(), ApprovedError> {
        let Replaced {
            digest,
            before,
            after,
        } = replaced;
        let locked = self.lock(digest)?;
        if read(&self.path(digest))?.as_ref() != Some(after) {
            return Ok(());
        }
        match before {
            Some(before) => self.write(&locked, digest, before),
            None => locked
                .remove(&[PathBuf::from(file_name(digest))])
                .map_err(|source| ApprovedError::Remove {
                    dependency: after.dependency.clone(),
                    source,
                }),
        }
    }

    /// Changes an approval that still stands, and returns what it is then; `None` if it was taken back meanwhile.
    ///
    /// The record is read under the lock, so a withdrawal by another process is never undone.
    pub fn complete(
        &self,
        digest: &Digest,
        change: impl FnOnce(Record) -> Record,
    ) -> Result<Option<Record>, ApprovedError> {
        let locked = self.lock(digest)?;
        let Some(found) = read(&self.path(digest))? else {
            return Ok(None);
        };
        let changed = change(found.clone());
        if changed != found {
            self.write(&locked, digest, &changed)?;
        }
        Ok(Some(changed))
    }

    /// Waits for the right to write, and clears what killed writers left: each record has a temporary name of its own.
    fn lock(&self, digest: &Digest) -> Result<LockedDirectory, ApprovedError> {
        let lock = || {
            let locked = LockedDirectory::lock(&self.directory, Audience::Owner)?;
            locked.clear_temporaries()?;
            Ok(locked)
        };
        lock().map_err(|source| ApprovedError::Write {
            path: self.path(digest),
            source,
        })
    }

    fn write(&self, locked: &LockedDirectory, digest: &Digest, record: &Record) -> Result<(), ApprovedError> {
        let path = self.path(digest);
        let bytes =
            serde_json::to_vec_pretty(record).map_err(|_| ApprovedError::Damaged { path: path.clone() })?;
        locked
            .replace_or_undo(Path::new(&file_name(digest)), &bytes, Audience::Owner)
            .map_err(|source| ApprovedError::Write { path, source })
    }

    /// Finds the approval of exactly this digest.
    pub fn find(&self, digest: &Digest) -> Result<Option<Record>, ApprovedError> {
        let path = self.path(digest);
        let stamp = Stamp::of(&path);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, record)) = seen.get(digest)
            && *known == stamp
            && stamp != Stamp::Unknown
        {
            return Ok(Some(record.clone()));
        }
        seen.remove(digest);
        let found = read(&path)?;
        if let Some(record) = &found {
            seen.insert(digest.clone(), (stamp, record.clone()));
        }
        Ok(found)
    }

    /// Tells whether a person approved this digest, with the content that is known of it now.
    ///
    /// Where a part is not known on either side yet, there is nothing that could differ.
    pub fn covers(
        &self,
        digest: &Digest,
        integrity: Option<&str>,
        lock: Option<&Digest>,
    ) -> Result<bool, ApprovedError> {
        Ok(self.find(digest)?.is_some_and(|record| {
            let same_integrity =
                record.integrity.is_none() || integrity.is_none() || record.integrity.as_deref() == integrity;
            let same_lock = record.lock.is_none() || lock.is_none() || record.lock.as_ref() == lock;
            same_integrity && same_lock
        }))
    }

    /// Forgets every approval of a dependency, durably before it returns, and returns what they were.
    pub fn forget(&self, dependency: &DependencyName) -> Result<Vec<Record>, ApprovedError> {
        let failed = |source| ApprovedError::Remove {
            dependency: dependency.clone(),
            source,
        };
        if !self.directory.exists() {
            return Ok(Vec::new());
        }
        // Whoever is about to complete a record does so before this, or finds none.
        let locked = LockedDirectory::lock(&self.directory, Audience::Owner).map_err(failed)?;
        let (names, meant): (Vec<PathBuf>, Vec<Record>) = self
            .records()?
            .into_iter()
            .filter(|(_, record)| record.dependency == *dependency)
            .unzip();
        locked.remove(&names).map_err(failed)?;
        Ok(meant)
    }

    /// Returns every approval there is.
    pub fn all(&self) -> Result<Vec<Record>, ApprovedError> {
        if !self.directory.exists() {
            return Ok(Vec::new());
        }
        Ok(self.records()?.into_iter().map(|(_, record)| record).collect())
    }

    /// Reads every approval with the name of its file. A damaged record approves nothing and is left out.
    fn records(&self) -> Result<Vec<(PathBuf, Record)>, ApprovedError> {
        let failed = |source| ApprovedError::Read {
            path: self.directory.clone(),
            source,
        };
        let mut records = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if let Ok(Some(record)) = read(&entry.path()) {
                records.push((PathBuf::from(entry.file_name()), record));
            }
        }
        Ok(records)
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.directory.join(file_name(digest))
    }
}

/// A digest read from outside could be any text; digested again it is always a plain file name.
fn file_name(digest: &Digest) -> String {
    format!("{}.json", Digest::of([digest.as_str()]))
}

fn read(path: &Path) -> Result<Option<Record>, ApprovedError> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|_| ApprovedError::Damaged {
                path: path.to_owned(),
            }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ApprovedError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::os::unix::fs::MetadataExt as _;

    fn record(dependency: &str) -> Record {
        Record {
            dependency: dependency.parse().unwrap(),
            version: Some("1.2.3".to_owned()),
            integrity: None,
            package: None,
            lock: None,
            at_unix_ms: 7,
        }
    }

    #[test]
    fn an_approval_covers_exactly_its_digest() {
        let root = tempfile::tempdir().unwrap();
        let approved = Approved::new(root.path().join("approved"));
        let (one, other) = (Digest::of(["one"]), Digest::of(["other"]));
        assert_eq!(approved.find(&one).unwrap(), None);
        approved.record(&one, &record("fs")).unwrap();
        assert_eq!(approved.find(&one).unwrap(), Some(record("fs")));
        assert_eq!(approved.find(&one).unwrap(), Some(record("fs")));
        assert_eq!(approved.find(&other).unwrap(), None);
        let file = approved.path(&one).metadata().unwrap();
        let directory = approved.directory.metadata().unwrap();
        assert_eq!((file.mode() & 0o777, directory.mode() & 0o777), (0o600, 0o700));
    }

    #[test]
    fn other_content_than_was_approved_is_not_covered() {
        let root = tempfile::tempdir().unwrap();
        let approved = Approved::new(root.path());
        let (early, exact) = (Digest::of(["early"]), Digest::of(["exact"]));
        approved.record(&early, &record("fs")).unwrap();
        let integrity = Some("sha512-a".to_owned());
        approved
            .record(
                &exact,
                &Record {
                    integrity,
                    ..record("fs")
                },
            )
            .unwrap();
        let covers = |digest, found| approved.covers(digest, found, None).unwrap();
        assert_eq!(
            (covers(&early, None), covers(&early, Some("sha512-a"))),
            (true, true)
        );
        assert_eq!(
            (covers(&exact, None), covers(&exact, Some("sha512-a"))),
            (true, true)
        );
        assert!(!covers(&exact, Some("sha512-b")));
        assert!(!covers(&Digest::of(["none"]), None));
        let lock = |name: &str| Digest::of([name]);
        let whole = Record {
            lock: Some(lock("a")),
            ..record("fs")
        };
        approved.record(&exact, &whole).unwrap();
        let covers = |found: Option<Digest>| approved.covers(&exact, None, found.as_ref()).unwrap();
        assert!(covers(None) && covers(Some(lock("a"))) && !covers(Some(lock("b"))));
    }

    #[test]
    fn what_another_process_forgets_or_records_counts_at_once() {
        let root = tempfile::tempdir().unwrap();
        let (here, there) = (Approved::new(root.path()), Approved::new(root.path()));
        let digest = Digest::of(["one"]);
        here.record(&digest, &record("fs")).unwrap();
        here.record(&Digest::of(["two"]), &record("fs")).unwrap();
        here.record(&Digest::of(["three"]), &record("time")).unwrap();
        assert_eq!(here.find(&digest).unwrap(), Some(record("fs")));
        assert_eq!(there.forget(&"fs".parse().unwrap()).unwrap().len(), 2);
        assert_eq!(here.find(&digest).unwrap(), None);
        there.record(&digest, &record("git")).unwrap();
        assert_eq!(here.find(&digest).unwrap(), Some(record("git")));
        assert_eq!(here.find(&Digest::of(["three"])).unwrap(), Some(record("time")));
    }

    #[test]
    fn what_was_taken_back_is_not_completed() {
        let root = tempfile::tempdir().unwrap();
        let approved = Approved::new(root.path());
        let digest = Digest::of(["one"]);
        approved.record(&digest, &record("fs")).unwrap();
        let complete = |record: Record| Record {
            integrity: Some("sha512-a".to_owned()),
            ..record
        };
        let completed = complete(record("fs"));
        assert_eq!(
            approved.complete(&digest, complete).unwrap(),
            Some(completed.clone())
        );
        assert_eq!(approved.find(&digest).unwrap(), Some(completed));
        assert_eq!(approved.forget(&"fs".parse().unwrap()).unwrap().len(), 1);
        assert_eq!(approved.complete(&digest, complete).unwrap(), None);
        assert_eq!(approved.find(&digest).unwrap(), None);
    }

    #[test]
    fn what_is_taken_back_is_what_was_recorded_and_nothing_newer() {
        let root = tempfile::tempdir().unwrap();
        let approved = Approved::new(root.path());
        let digest = Digest::of(["one"]);
        let at = |at_unix_ms| Record {
            at_unix_ms,
            ..record("fs")
        };
        let first = approved.record(&digest, &at(1)).unwrap();
        let second = approved.record(&digest, &at(2)).unwrap();
        approved.take_back(&first).unwrap();
        assert_eq!(approved.find(&digest).unwrap(), Some(at(2)), "another's stays");
        approved.take_back(&second).unwrap();
        assert_eq!(approved.find(&digest).unwrap(), Some(at(1)));
        approved.take_back(&first).unwrap();
        approved.take_back(&first).unwrap();
        assert_eq!(approved.find(&digest).unwrap(), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test damages a file of its own")]
    fn a_damaged_record_is_an_error_and_no_approval() {
        let root = tempfile::tempdir().unwrap();
        let approved = Approved::new(root.path());
        let digest = Digest::of(["one"]);
        approved.record(&digest, &record("fs")).unwrap();
        std::fs::write(approved.path(&digest), "{").unwrap();
        let error = approved.find(&digest).unwrap_err();
        assert!(matches!(error, ApprovedError::Damaged { .. }), "{error}");
        assert_eq!(approved.forget(&"fs".parse().unwrap()).unwrap().len(), 0);
        approved.record(&digest, &record("fs")).unwrap();
        assert_eq!(approved.find(&digest).unwrap(), Some(record("fs")));
    }
}
