//! File work beside the runtime's thread.

use std::path::{Path, PathBuf};

use super::error::InstallError;
use crate::loader::store;

/// Runs slow file work beside the runtime's thread; `None` if the runtime is going away.
///
/// A panic goes on here: work that broke off must not count as done.
pub(in crate::loader) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        Err(_cancelled) => None,
    }
}

/// Writes a file that an installer reads, beside the runtime's thread: the disk confirms it.
pub(in crate::loader) async fn write_for_installer(path: PathBuf, text: String) -> Result<(), InstallError> {
    let place = path.clone();
    let written = off_thread(move || store::write_new(&place, text.as_bytes())).await;
    let gone = || Err(std::io::Error::other("pml is going away"));
    written
        .unwrap_or_else(gone)
        .map_err(InstallError::file("write", &path))
}

/// Reads what an installer wrote, beside the runtime's thread: a lock may have megabytes.
pub(in crate::loader) async fn read_of_installer(path: &Path) -> Result<String, InstallError> {
    let place = path.to_owned();
    let read = off_thread(move || std::fs::read_to_string(place)).await;
    let gone = || Err(std::io::Error::other("pml is going away"));
    read.unwrap_or_else(gone)
        .map_err(InstallError::file("read", path))
}
