//! Fails a test in which something held up the runtime thread of a `pml stdio`.

use std::path::{Path, PathBuf};

/// The variable by which a debug build of pml is told where to write its stalls.
pub(crate) const WATCHDOG: &str = "PML_WATCHDOG";

/// Says whether the runtime threads of a world are watched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    On,
    /// For lines so long that a debug build reads one for longer than a stall may take.
    Off,
}

/// The file for the stalls of one world, outside of what its tests look at; it exists once there is one.
pub(crate) struct Stalls(PathBuf);

impl Stalls {
    /// Names the file after the mark of the world.
    pub(crate) fn of(mark: &str) -> Self {
        Self(std::env::temp_dir().join(format!("pml-stalls-{mark}")))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        if let Ok(written) = std::fs::read_to_string(&self.0) {
            let _ = std::fs::remove_file(&self.0);
            assert!(std::thread::panicking(), "{written}");
        }
    }
}
