//! A lock on an open file or directory that is waited for in the kernel, with a deadline.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use super::DiskError;

/// How long a writer waits for others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// With writers that change nothing.
    pub(super) idle: Duration,
    /// With writers that come one after the other.
    pub(super) in_all: Duration,
}

/// A writer holds the lock for a few milliseconds; one that changes nothing for 20 seconds is stopped or stuck. Where
/// many write, each gets its turn within six times that.
pub(super) const PATIENCE: Patience = Patience {
    idle: Duration::from_secs(20),
    in_all: Duration::from_mins(2),
};

/// How many threads of a process may wait for a lock: one that was given up goes on waiting, so that a process that hangs
/// with the lock would otherwise cost a thread for every attempt.
const WAITING: usize = 64;

/// Locks an open directory, waiting for other processes as long as they make progress.
///
/// The wait is in the kernel, which wakes a waiter when the lock is free: one that looks now and then could miss its
/// turn again and again where many write. A wait in the kernel has no deadline, so it is on a thread of its own.
pub(super) fn wait_for_lock(directory: &Path, handle: File, patience: Patience) -> Result<File, DiskError> {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let failed = DiskError::step("lock the directory", directory);
    let busy = || DiskError::Busy {
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
                wait_for_lock(root.path(), open(root.path()), patience).unwrap();
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
        let error = wait_for_lock(root.path(), open(root.path()), patience).unwrap_err();
        assert!(matches!(error, DiskError::Busy { .. }), "{error}");
        drop(held);
        // What was given up takes the lock for a moment when it is free, and lets it go.
        let patience = Patience {
            idle: HOUR,
            in_all: HOUR,
        };
        wait_for_lock(root.path(), open(root.path()), patience).unwrap();
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
                wait_for_lock(root.path(), open(root.path()), patience).map(drop)
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
