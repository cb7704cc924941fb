//! Puts a whole file in place of another, so that a crash at any moment leaves the old or the new one.
//!
//! Writers exclude one another by a lock on the *directory* itself: nothing is left lying beside the file (it is
//! often in a repository), it needs no right to write there, and the system drops it when a process dies. Under
//! that lock the temporary file has a fixed name: what a killed writer left is cleared by the next, and never more
//! than one is left. Where something else takes that name, such as a directory, the next one serves. The file is
//! always created anew, so a link planted under its name is not followed.
//!
//! After the rename the new content counts, whatever follows. If the disk then does not confirm the rename, that is
//! an error of its own: the writer must undo it or say that the new content stands.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::DiskError;
use super::files::rename;
use super::lock::{PATIENCE, wait_for_lock};

/// How many fixed names are tried for the temporary file before a random one is taken.
const FIXED_NAMES: usize = 8;

/// What is appended to the name of a file for its temporary one.
const TEMPORARY: &str = "tmp";

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// As the user's mask says.
    Usual,
    /// The user alone.
    Owner,
}

/// A directory in which this process alone writes, until it is dropped.
#[derive(Debug)]
pub(crate) struct LockedDirectory {
    directory: PathBuf,
    handle: File,
}

impl LockedDirectory {
    /// Creates `directory` if it is missing and waits for the right to write in it.
    pub(crate) fn lock(directory: &Path, audience: Audience) -> Result<Self, DiskError> {
        let mode = match audience {
            Audience::Usual => 0o777,
            Audience::Owner => 0o700,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(directory)
            .map_err(DiskError::step("create the directory", directory))?;
        let handle = File::open(directory).map_err(DiskError::step("open the directory", directory))?;
        Self::locked(directory, handle)
    }

    /// Waits for the right to write in a directory; `None` if there is no such directory.
    pub(crate) fn lock_existing(directory: &Path) -> Result<Option<Self>, DiskError> {
        match File::open(directory) {
            Ok(handle) => Self::locked(directory, handle).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DiskError::step("open the directory", directory)(error)),
        }
    }

    fn locked(directory: &Path, handle: File) -> Result<Self, DiskError> {
        Ok(Self {
            directory: directory.to_owned(),
            handle: wait_for_lock(directory, handle, PATIENCE)?,
        })
    }

    /// Puts `bytes` in place of the file `name`, keeping its mode and, where possible, its owner.
    ///
    /// [`DiskError::Unconfirmed`] says that the new content stands; after any other error the old one does.
    pub(crate) fn replace(&self, name: &Path, bytes: &[u8], audience: Audience) -> Result<(), DiskError> {
        let path = self.directory.join(name);
        let temporary = cleared_name(&path)?;
        if let Err(error) = replace_by(&path, &temporary, bytes, audience) {
            let _ = std::fs::remove_file(&temporary);
            return Err(error);
        }
        self.handle
            .sync_all()
            .map_err(|source| DiskError::Unconfirmed { path, source })
    }

    /// Removes files; those that are not there count as removed. They are gone for good once it returns.
    pub(crate) fn remove(&self, names: &[PathBuf]) -> Result<(), DiskError> {
        for name in names {
            let path = self.directory.join(name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(DiskError::step("remove", &path)(error));
                }
                _ => {}
            }
        }
        self.handle
            .sync_all()
            .map_err(DiskError::step("sync the directory", &self.directory))
    }
}

/// Clears the first fixed name that can be cleared; what is not a file of a writer is left alone.
fn cleared_name(path: &Path) -> Result<PathBuf, DiskError> {
    let named = |suffix: &str| {
        let mut name = path.to_owned().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    };
    for number in 0..FIXED_NAMES {
        let temporary = match number {
            0 => named(&format!(".{TEMPORARY}")),
            number => named(&format!(".{TEMPORARY}.{number}")),
        };
        match std::fs::remove_file(&temporary) {
            Ok(()) => return Ok(temporary),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(temporary),
            // A directory, or a file that another user put into a directory where all may write.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::IsADirectory | io::ErrorKind::PermissionDenied
                ) => {}
            Err(error) => return Err(DiskError::step("clear", &temporary)(error)),
        }
    }
    Ok(named(&format!(".{TEMPORARY}.{}", uuid::Uuid::new_v4())))
}

/// Writes `bytes` under the temporary name, makes them durable and renames them into place.
fn replace_by(path: &Path, temporary: &Path, bytes: &[u8], audience: Audience) -> Result<(), DiskError> {
    let old = path.metadata().ok();
    // A file that is to be readable by few is never readable by more, not even for a moment.
    let mode = match (audience, &old) {
        (Audience::Usual, None) => 0o666,
        (Audience::Owner, _) | (_, Some(_)) => 0o600,
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(temporary)
        .map_err(DiskError::step("create", temporary))?;
    file.write_all(bytes)
        .map_err(DiskError::step("write", temporary))?;
    if let (Audience::Usual, Some(old)) = (audience, old) {
        // Only the superuser may give a file away; for everyone else it is their own already.
        let _ = std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()));
        file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))
            .map_err(DiskError::step("set the mode of", temporary))?;
    }
    file.sync_all().map_err(DiskError::step("sync", temporary))?;
    rename(temporary, path).map_err(DiskError::step("replace", path))
}
