//! The locks that were read, as long as their files stay the same; also those that cannot be read, so that none is read twice.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::Stamp;
use crate::pins::{LockFile, PinError, lock_path, read_lock};

type ReadLock = Result<Arc<LockFile>, Arc<PinError>>;

/// The locks that were read, by their paths.
#[derive(Debug, Default)]
pub(super) struct Locks(Mutex<HashMap<PathBuf, (Stamp, ReadLock)>>);

impl Locks {
    /// Returns the lock beside a configuration; `None` where there is none. One that changed is read, which blocks.
    pub(super) fn read(&self, config: &Path) -> Result<Option<Arc<LockFile>>, PinError> {
        let path = lock_path(config);
        let stamp = Stamp::of(&path);
        if is_missing(&path, stamp) {
            return Ok(None);
        }
        if let Some(known) = self.known(&path, stamp) {
            return known.map(Some).map_err(PinError::Known);
        }
        // Not under the lock: the thread that looks whether a lock is known does not wait for this.
        let read = read_lock(&path);
        let read = read
            .map(|lock| Arc::new(lock.unwrap_or_default()))
            .map_err(Arc::new);
        self.locked().insert(path, (stamp, read.clone()));
        read.map(Some).map_err(PinError::Known)
    }

    /// Tells whether the lock beside a configuration is known as it is now, or is not there.
    pub(super) fn is_known(&self, config: &Path) -> bool {
        let path = lock_path(config);
        let stamp = Stamp::of(&path);
        is_missing(&path, stamp) || self.known(&path, stamp).is_some()
    }

    fn known(&self, path: &Path, stamp: Stamp) -> Option<ReadLock> {
        let locks = self.locked();
        let (seen, read) = locks.get(path)?;
        (*seen == stamp).then(|| read.clone())
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<PathBuf, (Stamp, ReadLock)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether no file stands at a path; a link that leads nowhere is read, and refused by that.
fn is_missing(path: &Path, stamp: Stamp) -> bool {
    stamp == Stamp::Missing && path.symlink_metadata().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk;

    #[test]
    fn a_lock_is_read_again_when_it_changed_and_a_link_that_leads_nowhere_is_refused() {
        let project = tempfile::tempdir().unwrap();
        let config = project.path().join(".pml.json");
        let path = lock_path(&config);
        let locks = Locks::default();
        assert!(locks.is_known(&config));
        assert_eq!(locks.read(&config).unwrap(), None);

        std::os::unix::fs::symlink(project.path().join("nowhere"), &path).unwrap();
        assert!(!locks.is_known(&config));
        assert!(locks.read(&config).is_err());
        assert!(locks.is_known(&config));

        let text = LockFile::default().written_into(None).unwrap();
        for text in [text.clone(), format!("{text}\n")] {
            disk::remove_file(&path).unwrap();
            disk::replace(&path, text.as_bytes()).unwrap();
            assert!(!locks.is_known(&config));
            let read = || locks.read(&config).unwrap().unwrap();
            assert!(Arc::ptr_eq(&read(), &read()));
            assert!(locks.is_known(&config));
        }
    }
}
