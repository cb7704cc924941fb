//! Open surfaces: whether some process of the user shows the asks at this moment, and whether one connects the channels.
//!
//! Each of them holds a shared lock on a file, which goes with the process however that ends. Where the lock can be had
//! alone, no process holds it. All of it blocks.

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

/// The right to say that this process connects the channels of the user, for as long as it is kept.
#[derive(Debug)]
pub struct ChannelKeeper(#[expect(dead_code, reason = "the open file holds the lock")] File);

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
        Ok(shared(&lock_file(state))?.map(Self))
    }
}

impl ChannelKeeper {
    /// Takes note that this process connects the channels; `None` where a process that looks does not go on.
    ///
    /// It is said before a channel is opened, so that an agent that asks meanwhile waits a moment for it.
    pub fn register(state: &Path) -> io::Result<Option<Self>> {
        Ok(shared(&keeper_file(state))?.map(Self))
    }
}

/// Tells whether a process connects the channels.
pub(super) fn channels_are_kept(state: &Path) -> io::Result<bool> {
    is_held(&keeper_file(state))
}

/// Tells whether a surface is open.
pub(super) fn surface_state(state: &Path) -> io::Result<SurfaceState> {
    Ok(if is_held(&lock_file(state))? {
        SurfaceState::Open
    } else {
        SurfaceState::Closed
    })
}

fn shared(path: &Path) -> io::Result<Option<File>> {
    let file = disk::open_lock(path)?;
    Ok(tried(|| file.try_lock_shared())?.then_some(file))
}

fn is_held(path: &Path) -> io::Result<bool> {
    let file = disk::open_lock(path)?;
    Ok(!tried(|| file.try_lock())?)
}

fn lock_file(state: &Path) -> PathBuf {
    state.join("surfaces.lock")
}

fn keeper_file(state: &Path) -> PathBuf {
    state.join("channels.lock")
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
    fn the_channels_are_kept_as_long_as_their_process_says_so_and_are_no_surface() {
        let state = tempfile::tempdir().unwrap();
        assert!(!channels_are_kept(state.path()).unwrap());
        let keeper = ChannelKeeper::register(state.path()).unwrap().unwrap();
        assert!(channels_are_kept(state.path()).unwrap());
        assert_eq!(surface_state(state.path()).unwrap(), SurfaceState::Closed);
        drop(keeper);
        assert!(!channels_are_kept(state.path()).unwrap());
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
