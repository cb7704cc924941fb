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

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use crate::protocol::Shown;

/// How long a writer waits for others.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// With writers that change nothing.
    idle: Duration,
    /// With writers that come one after the other.
    in_all: Duration,
}

/// A writer holds the lock for a few milliseconds; one that changes nothing for 20 seconds is stopped or stuck. Where
/// many write, each gets its turn within six times that.
const PATIENCE: Patience = Patience {
    idle: Duration::from_secs(20),
    in_all: Duration::from_mins(2),
};

/// How many threads of a process may wait for a lock: one that was given up goes on waiting, so that a process that hangs
/// with the lock would otherwise cost a thread for every attempt.
const WAITING: usize = 64;

/// Links are followed this far, as the kernel does.
const LINK_LIMIT: usize = 40;

/// How many fixed names are tried for the temporary file before a random one is taken.
const FIXED_NAMES: usize = 8;

/// What is appended to the name of a file for its temporary one.
const TEMPORARY: &str = "tmp";

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
    /// The new content stands, but the disk did not confirm it: a power cut may bring the old content back.
    #[error("`{}` is written, but the disk did not confirm it", Shown::path(path))]
    Unconfirmed {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The disk did not confirm the new content, and the old content could not be put back.
    #[error(
        "`{}` is written although the disk did not confirm it: it could not be undone",
        Shown::path(path)
    )]
    NotUndone {
        /// The file.
        path: PathBuf,
        /// Why not.
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
        Ok(Self {
            directory: directory.to_owned(),
            handle: locked(directory, handle, PATIENCE)?,
        })
    }

    /// Puts `bytes` in place of the file `name`, keeping its mode and, where possible, its owner.
    ///
    /// [`DurableError::Unconfirmed`] says that the new content stands; after any other error the old one does.
    pub(super) fn replace(&self, name: &Path, bytes: &[u8], audience: Audience) -> Result<(), DurableError> {
        let path = self.directory.join(name);
        let temporary = cleared_name(&path)?;
        if let Err(error) = replace_by(&path, &temporary, bytes, audience) {
            let _ = std::fs::remove_file(&temporary);
            return Err(error);
        }
        self.handle
            .sync_all()
            .map_err(|source| DurableError::Unconfirmed { path, source })
    }

    /// Removes every temporary file, in a directory that is pml's own: their writers are dead, as this one has the lock.
    pub(super) fn clear_temporaries(&self) -> Result<(), DurableError> {
        let failed = || DurableError::step("read the directory", &self.directory);
        for entry in std::fs::read_dir(&self.directory).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            if path.extension().is_some_and(|extension| extension == TEMPORARY) {
                std::fs::remove_file(&path).map_err(DurableError::step("clear", &path))?;
            }
        }
        Ok(())
    }

    /// Removes files; those that are not there count as removed. They are gone for good once it returns.
    pub(super) fn remove(&self, names: &[PathBuf]) -> Result<(), DurableError> {
        for name in names {
            let path = self.directory.join(name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(DurableError::step("remove", &path)(error));
                }
                _ => {}
            }
        }
        self.handle
            .sync_all()
            .map_err(DurableError::step("sync the directory", &self.directory))
    }

    /// Puts `bytes` in place of the file `name`, or puts the old content back if the disk does not confirm it.
    pub(super) fn replace_or_undo(
        &self,
        name: &Path,
        bytes: &[u8],
        audience: Audience,
    ) -> Result<(), DurableError> {
        let path = self.directory.join(name);
        let before = match std::fs::read(&path) {
            Ok(before) => Some(before),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(DurableError::step("read", &path)(source)),
        };
        match self.replace(name, bytes, audience) {
            Err(DurableError::Unconfirmed { path, source }) => {
                let undone = match before {
                    None => {
                        std::fs::remove_file(&path).map_err(|source| DurableError::NotUndone { path, source })
                    }
                    Some(before) => match self.replace(name, &before, audience) {
                        Err(DurableError::Step { path, source, .. }) => {
                            Err(DurableError::NotUndone { path, source })
                        }
                        // Put back as far as any process can see.
                        _ => Ok(()),
                    },
                };
                undone?;
                // The disk may confirm this much; the old content counts in any case.
                let _ = self.handle.sync_all();
                Err(DurableError::step("sync the directory", &self.directory)(source))
            }
            done => done,
        }
    }
}

/// Locks an open directory, waiting for other processes as long as they make progress.
///
/// The wait is in the kernel, which wakes a waiter when the lock is free: one that looks now and then could miss its
/// turn again and again where many write. A wait in the kernel has no deadline, so it is on a thread of its own.
fn locked(directory: &Path, handle: File, patience: Patience) -> Result<File, DurableError> {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let failed = DurableError::step("lock the directory", directory);
    let busy = || DurableError::Busy {
        path: directory.to_owned(),
    };
    match handle.try_lock() {
        Ok(()) => return Ok(handle),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
        Err(TryLockError::WouldBlock) if THREADS.load(Ordering::Relaxed) >= WAITING => return Err(busy()),
        Err(TryLockError::WouldBlock) => {}
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let wait = move || {
        // Where the wait was given up, the lock goes with the handle.
        let _ = sender.send(handle.lock().map(|()| handle));
        THREADS.fetch_sub(1, Ordering::Relaxed);
    };
    THREADS.fetch_add(1, Ordering::Relaxed);
    if let Err(source) = std::thread::Builder::new()
        .name("pml-lock".to_owned())
        .spawn(wait)
    {
        THREADS.fetch_sub(1, Ordering::Relaxed);
        return Err(failed(source));
    }
    let began = Instant::now();
    let mut changed_at = changed(directory);
    loop {
        if let Ok(outcome) = receiver.recv_timeout(patience.idle) {
            return outcome.map_err(failed);
        }
        let now = changed(directory);
        if now == changed_at || began.elapsed() > patience.in_all {
            return Err(busy());
        }
        changed_at = now;
    }
}

/// Returns when the entries of a directory last changed.
fn changed(directory: &Path) -> Option<SystemTime> {
    directory.metadata().ok()?.modified().ok()
}

/// Clears the first fixed name that can be cleared; what is not a file of a writer is left alone.
fn cleared_name(path: &Path) -> Result<PathBuf, DurableError> {
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
            Err(error) => return Err(DurableError::step("clear", &temporary)(error)),
        }
    }
    Ok(named(&format!(".{TEMPORARY}.{}", uuid::Uuid::new_v4())))
}

/// Writes `bytes` under the temporary name, makes them durable and renames them into place.
fn replace_by(path: &Path, temporary: &Path, bytes: &[u8], audience: Audience) -> Result<(), DurableError> {
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
    std::fs::rename(temporary, path).map_err(DurableError::step("replace", path))
}

/// Tells whether `target` lies outside `directory`, links resolved; neither need exist.
pub(super) fn leads_out(directory: &Path, target: &Path) -> bool {
    let (Some(inside), Some(end)) = (resolved(directory), target.parent().and_then(resolved)) else {
        return true;
    };
    !end.starts_with(inside)
}

/// Resolves the links of a directory as far as it exists; `None` if what is missing leads upwards.
fn resolved(directory: &Path) -> Option<PathBuf> {
    let (there, canonical) = directory
        .ancestors()
        .find_map(|there| Some((there, there.canonicalize().ok()?)))?;
    let missing = directory.strip_prefix(there).ok()?;
    let is_plain = |part| matches!(part, Component::Normal(_));
    missing
        .components()
        .all(is_plain)
        .then(|| canonical.join(missing))
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const MOMENT: Duration = Duration::from_millis(20);

    fn open(directory: &Path) -> File {
        File::open(directory).unwrap()
    }

    #[test]
    fn a_waiter_gets_the_lock_as_soon_as_it_is_free() {
        let root = tempfile::tempdir().unwrap();
        let held = open(root.path());
        held.lock().unwrap();
        let (started, waits) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let patience = Patience {
                    idle: HOUR,
                    in_all: HOUR,
                };
                started.send(()).unwrap();
                locked(root.path(), open(root.path()), patience).unwrap();
            });
            waits.recv().unwrap();
            drop(held);
        });
    }

    #[test]
    fn a_writer_that_changes_nothing_is_waited_for_only_so_long() {
        let root = tempfile::tempdir().unwrap();
        let held = open(root.path());
        held.lock().unwrap();
        let patience = Patience {
            idle: MOMENT,
            in_all: HOUR,
        };
        let error = locked(root.path(), open(root.path()), patience).unwrap_err();
        assert!(matches!(error, DurableError::Busy { .. }), "{error}");
        drop(held);
        // What was given up takes the lock for a moment when it is free, and lets it go.
        let patience = Patience {
            idle: HOUR,
            in_all: HOUR,
        };
        locked(root.path(), open(root.path()), patience).unwrap();
    }

    #[test]
    fn writers_that_come_one_after_the_other_are_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let held = open(root.path());
        held.lock().unwrap();
        let began = Instant::now();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let patience = Patience {
                    idle: MOMENT * 10,
                    in_all: HOUR,
                };
                locked(root.path(), open(root.path()), patience).map(drop)
            });
            // Longer than its patience with an idle writer, and never idle.
            let entry = root.path().join("entry");
            while began.elapsed() < MOMENT * 40 {
                std::fs::create_dir(&entry).unwrap();
                std::fs::remove_dir(&entry).unwrap();
            }
            drop(held);
            waiter.join().unwrap().unwrap();
        });
    }
}
