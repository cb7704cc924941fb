//! Puts a whole file in place of another, so that a crash at any moment leaves the old or the new one.
//!
//! Writers exclude one another by a lock on the *directory* itself: nothing is left lying beside the file (it is
//! often in a repository), it needs no right to write there, and the system drops it when a process dies. Under
//! that lock the temporary file has one fixed name: what a killed writer left is cleared by the next, and never
//! more than one is left. It is always created anew, so a link planted under its name is not followed.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::protocol::Shown;

/// A writer holds the lock for a few milliseconds; whoever keeps it this long is stopped or stuck.
const PATIENCE: Duration = Duration::from_secs(20);

/// Short beside the few milliseconds that a write takes.
const PAUSE: Duration = Duration::from_millis(2);

/// Links are followed this far, as the kernel does.
const LINK_LIMIT: usize = 40;

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// As the user's mask says.
    Usual,
    /// The user alone.
    Owner,
}

/// A directory in which this process alone writes, until it is dropped.
#[derive(Debug)]
pub(super) struct Locked {
    directory: PathBuf,
    handle: File,
}

/// What failed and where.
#[derive(Debug, thiserror::Error)]
pub enum DurableError {
    /// A step of the writing failed; the file is as it was.
    #[error("cannot {action} `{}`", Shown::path(path))]
    Step {
        /// The step.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process holds the directory.
    #[error("another process has been writing in `{}` for too long", Shown::path(path))]
    Busy {
        /// The directory.
        path: PathBuf,
    },
}

impl DurableError {
    fn step(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Step {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

impl Locked {
    /// Creates `directory` if it is missing and waits for the right to write in it.
    pub(super) fn lock(directory: &Path, audience: Audience) -> Result<Self, DurableError> {
        let mode = match audience {
            Audience::Usual => 0o777,
            Audience::Owner => 0o700,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(mode)
            .create(directory)
            .map_err(DurableError::step("create the directory", directory))?;
        let handle = File::open(directory).map_err(DurableError::step("open the directory", directory))?;
        let began = Instant::now();
        loop {
            match handle.try_lock() {
                Ok(()) => {
                    return Ok(Self {
                        directory: directory.to_owned(),
                        handle,
                    });
                }
                Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(DurableError::Busy {
                        path: directory.to_owned(),
                    });
                }
                Err(TryLockError::Error(source)) => {
                    return Err(DurableError::step("lock the directory", directory)(source));
                }
            }
        }
    }

    /// Puts `bytes` in place of the file `name`, keeping its mode and, where possible, its owner.
    pub(super) fn replace(&self, name: &Path, bytes: &[u8], audience: Audience) -> Result<(), DurableError> {
        let path = self.directory.join(name);
        let mut temporary = path.clone().into_os_string();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let done = self.replace_by(&path, &temporary, bytes, audience);
        if done.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        done
    }

    fn replace_by(
        &self,
        path: &Path,
        temporary: &Path,
        bytes: &[u8],
        audience: Audience,
    ) -> Result<(), DurableError> {
        match std::fs::remove_file(temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(DurableError::step("clear", temporary)(error));
            }
            _ => {}
        }
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
            .map_err(DurableError::step("create", temporary))?;
        file.write_all(bytes)
            .map_err(DurableError::step("write", temporary))?;
        if let (Audience::Usual, Some(old)) = (audience, old) {
            // Only the superuser may give a file away; for everyone else it is their own already.
            let _ = std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()));
            file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))
                .map_err(DurableError::step("set the mode of", temporary))?;
        }
        file.sync_all().map_err(DurableError::step("sync", temporary))?;
        std::fs::rename(temporary, path).map_err(DurableError::step("replace", path))?;
        self.handle
            .sync_all()
            .map_err(DurableError::step("sync the directory", &self.directory))
    }
}

/// Follows links from `path` to the file they mean, which need not exist.
pub(super) fn follow(path: &Path) -> Result<PathBuf, DurableError> {
    let mut target = path.to_owned();
    for _ in 0..LINK_LIMIT {
        match std::fs::read_link(&target) {
            Ok(link) => target = target.parent().unwrap_or(Path::new("/")).join(link),
            Err(_) => return Ok(target),
        }
    }
    Err(DurableError::step("follow the links of", path)(io::Error::other(
        "they lead in a circle",
    )))
}
