//! Single operations on files and trees, each with the mode and the sync it needs.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use tempfile::NamedTempFile;

/// How the names of temporary files begin.
const TEMPORARY: &str = ".tmp";

/// A file is written in a few milliseconds; one that is older than this has lost its writer.
const ABANDONED_AFTER: Duration = Duration::from_hours(1);

/// Creates a directory and its parents for this user alone.
pub(crate) fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Gives a file or directory exactly this mode; one that has it already is not touched.
pub(crate) fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    let found = std::fs::metadata(path)?.permissions().mode() & 0o7777;
    if found == mode {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Writes a file that is not there yet, for this user alone, and syncs it.
pub(crate) fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Appends one byte to a file, creating it for this user alone: its stamp is one that it never had before.
pub(crate) fn grow(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(b".")
}

/// Replaces a file in one step, its content synced first; the caller syncs the directory with [`sync_directory`].
///
/// Needs no lock: each writer has a temporary file of its own, and the last rename counts.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = temporary_beside(path)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Creates a temporary file in the directory of `path`, and removes those that killed writers left there.
pub(crate) fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let file = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempfile_in(directory)?;
    let now = file.as_file().metadata()?.modified()?;
    for entry in std::fs::read_dir(directory)?.flatten() {
        let is_old = || {
            let age = now.duration_since(entry.metadata()?.modified()?);
            io::Result::Ok(age.is_ok_and(|age| age > ABANDONED_AFTER))
        };
        let is_temporary = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
        if is_temporary && is_old().unwrap_or(false) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(file)
}

/// Opens the file of a lock, creating it if it is missing.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Makes the disk confirm which entries a directory has; one that is not there has none.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(directory) => directory.sync_all(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Syncs everything below a directory: after a loss of power its files are whole or not there.
pub(crate) fn sync_tree(path: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        // One call for thousands of files.
        Ok(rustix::fs::syncfs(&File::open(path)?)?)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let mut synced = Ok(());
        for_each_file(path, &mut |path, _| {
            if synced.is_ok() {
                synced = sync_directory(path);
            }
        });
        synced.and_then(|()| sync_directory(path))
    }
}

/// Takes the right to write from every file, so that a server cannot edit what the next start runs by accident.
pub(crate) fn protect(directory: &Path) {
    for_each_file(directory, &mut |path, permissions| {
        let _ = std::fs::set_permissions(path, Permissions::from_mode(permissions.mode() & !0o222));
    });
}

fn for_each_file(directory: &Path, visit: &mut impl FnMut(&Path, Permissions)) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        // Not followed: a link may point out of the installation.
        let Ok(metadata) = entry.path().symlink_metadata() else {
            continue;
        };
        if metadata.is_dir() {
            for_each_file(&entry.path(), visit);
        } else if metadata.is_file() {
            visit(&entry.path(), metadata.permissions());
        }
    }
}

/// Moves a file or a tree to a place on the same disk in one step; the caller syncs the directories.
#[expect(clippy::disallowed_methods, reason = "the one place that renames")]
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

/// Removes a file; the caller syncs the directory. One that is not there is as good as removed.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a tree as far as it can be removed; its owner's next sweep tries again.
pub(crate) fn remove_tree(path: &Path) {
    let _ = std::fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_writer_left_is_removed_and_what_is_written_now_stays() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        let of_a_dead_one = temporary_beside(&path).unwrap();
        let old = of_a_dead_one.as_file().metadata().unwrap().modified().unwrap() - ABANDONED_AFTER * 2;
        of_a_dead_one.as_file().set_modified(old).unwrap();
        let of_a_live_one = temporary_beside(&path).unwrap();
        replace(&path, b"text").unwrap();
        assert!(!of_a_dead_one.path().exists() && of_a_live_one.path().exists());
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
    }

    #[test]
    fn a_directory_that_cannot_be_synced_is_an_error_and_a_missing_one_is_none() {
        let root = tempfile::tempdir().unwrap();
        sync_directory(root.path()).unwrap();
        sync_directory(&root.path().join("missing")).unwrap();
        // What cannot be opened cannot be synced.
        assert!(sync_directory(&root.path().join("\u{0}")).is_err());
        sync_tree(root.path()).unwrap();
        assert!(sync_tree(&root.path().join("missing")).is_err());
    }
}
