//! Single file operations of the store, in the errors of the store; `disk` carries them out.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use super::error::StoreError;
use crate::disk;
pub(super) use crate::disk::{open_lock, protect, replace};
pub(in crate::loader) use crate::disk::{remove_tree as remove, write_new};

/// Creates a directory and its parents for this user alone.
pub(super) fn create_directory(path: &Path) -> Result<(), StoreError> {
    disk::create_private_directory(path).map_err(StoreError::file("create", path))
}

/// Reads the first line of a file, as far as a kernel would read it.
pub(in crate::loader) fn first_line(path: &Path) -> String {
    first_bytes(path).lines().next().unwrap_or_default().to_owned()
}

/// Reads the beginning of a file.
pub(in crate::loader) fn first_bytes(path: &Path) -> String {
    let mut start = Vec::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(256).read_to_end(&mut start);
    }
    String::from_utf8_lossy(&start).into_owned()
}

/// Makes the disk confirm which entries a directory has; one that is not there has none.
pub(super) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    disk::sync_directory(path).map_err(|source| StoreError::Unconfirmed {
        path: path.to_owned(),
        source: Arc::new(source),
    })
}

/// Syncs everything below a directory: after a loss of power an installation is whole or not there.
pub(super) fn sync_tree(path: &Path) -> Result<(), StoreError> {
    disk::sync_tree(path).map_err(StoreError::file("sync", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_cannot_be_synced_is_unconfirmed() {
        let root = tempfile::tempdir().unwrap();
        let error = sync_directory(&root.path().join("\u{0}")).unwrap_err();
        assert!(matches!(error, StoreError::Unconfirmed { .. }), "{error}");
    }
}
