//! Open surfaces: whether some process of the user shows the asks at this moment.
//!
//! Each of them holds a shared lock on one file, which goes with the process however that ends. Nobody looks at the asks
//! while the lock can be had alone. All of it blocks.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk;

/// How often a lock that another process has is tried: others hold it alone for microseconds, to look.
const TRIES: usize = 5;

/// How long after each other.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// A surface that is open for as long as this is kept.
#[derive(Debug)]
pub struct OpenSurface(#[expect(dead_code, reason = "the open file holds the lock")] File);

/// Whether the asks are shown anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SurfaceState {
    /// At least one surface is open.
    Open,
    /// None is.
    Closed,
}

impl OpenSurface {
    /// Takes note of a surface; `None` where a process that looks does not go on.
    pub(super) fn register(state: &Path) -> io::Result<Option<Self>> {
        let file = disk::open_lock(&lock_file(state))?;
        Ok(tried(|| file.try_lock_shared())?.then(|| Self(file)))
    }
}

/// Tells whether a surface is open.
pub(super) fn surface_state(state: &Path) -> io::Result<SurfaceState> {
    let file = disk::open_lock(&lock_file(state))?;
    Ok(if tried(|| file.try_lock())? {
        SurfaceState::Closed
    } else {
        SurfaceState::Open
    })
}

fn lock_file(state: &Path) -> PathBuf {
    state.join("surfaces.lock")
}

/// Tries a lock a few times; tells whether it is held now.
fn tried(lock: impl Fn() -> Result<(), TryLockError>) -> io::Result<bool> {
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(TRY_AGAIN_AFTER);
        }
        match lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_asks_are_shown_until_the_last_surface_is_closed() {
        let state = tempfile::tempdir().unwrap();
        let look = || surface_state(state.path()).unwrap();
        assert_eq!(look(), SurfaceState::Closed);
        let first = OpenSurface::register(state.path()).unwrap().unwrap();
        let second = OpenSurface::register(state.path()).unwrap().unwrap();
        assert_eq!(look(), SurfaceState::Open);
        drop(first);
        assert_eq!(look(), SurfaceState::Open);
        drop(second);
        assert_eq!(look(), SurfaceState::Closed);
    }

    #[test]
    fn many_that_look_at_once_do_not_take_one_another_for_a_surface() {
        let state = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        assert_eq!(surface_state(state.path()).unwrap(), SurfaceState::Closed);
                    }
                });
            }
        });
    }

    #[test]
    fn a_state_directory_that_is_not_there_is_an_error() {
        let state = tempfile::tempdir().unwrap();
        let missing = state.path().join("missing");
        assert!(surface_state(&missing).is_err());
        assert!(OpenSurface::register(&missing).is_err());
    }
}
