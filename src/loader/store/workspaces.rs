//! Locks that threads and processes share, and the temporary directories of their holders.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::time::Duration;

use super::PackageStore;
use super::error::StoreError;
use super::files::{create_directory, open_lock, remove};

/// How often a held lock is tried again. Polled, because a thread that blocks in the kernel cannot be cancelled and
/// would keep pml from exiting.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// Holds a lock until it goes out of scope.
#[derive(Debug)]
pub(in crate::loader) struct HeldLock(#[expect(dead_code, reason = "the open file is the lock")] File);

impl PackageStore {
    /// Waits for the lock of `key`, shared by threads and processes; `waiting` is called once if it is held.
    pub(in crate::loader) async fn lock(
        &self,
        key: &str,
        waiting: impl FnOnce(),
    ) -> Result<HeldLock, StoreError> {
        let path = self.lock_path(key);
        create_directory(&self.root.join("locks"))?;
        let file = open_lock(&path).map_err(StoreError::file("open", &path))?;
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(HeldLock(file)),
                Err(TryLockError::WouldBlock) => {
                    if let Some(waiting) = waiting.take() {
                        waiting();
                    }
                    tokio::time::sleep(LOCK_POLL).await;
                }
                Err(TryLockError::Error(error)) => return Err(StoreError::file("lock", &path)(error)),
            }
        }
    }

    fn lock_path(&self, key: &str) -> PathBuf {
        self.root.join("locks").join(format!("{key}.lock"))
    }

    /// Makes an empty directory for the holder of `key`'s lock.
    pub(in crate::loader) fn workspace(&self, key: &str) -> Result<PathBuf, StoreError> {
        let path = self
            .workspaces()
            .join(format!("{key}~{}", uuid::Uuid::new_v4().simple()));
        create_directory(&path)?;
        Ok(path)
    }

    pub(super) fn workspaces(&self) -> PathBuf {
        self.root.join("temporary")
    }

    /// Removes abandoned workspaces; `own` is the key whose lock the caller holds.
    pub(in crate::loader) fn sweep(&self, own: &str) {
        let Ok(entries) = std::fs::read_dir(self.workspaces()) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some((key, _)) = name.to_str().and_then(|name| name.rsplit_once('~')) else {
                continue;
            };
            let free =
                key == own || open_lock(&self.lock_path(key)).is_ok_and(|file| file.try_lock().is_ok());
            if free {
                remove(&entry.path());
            }
        }
    }
}
