//! The place of a store: a file that every pml of the user shares, or memory.

use std::path::{Path, PathBuf};

use crate::config::Locations;

/// The place of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a file that every pml of the user shares.
    File(PathBuf),
    /// In memory: gone with the process, and no other process sees it.
    Memory,
}

impl Place {
    /// Returns the file in the user's state directory.
    #[must_use]
    pub fn of(locations: &Locations) -> Self {
        Self::File(locations.state().join("workflows.db"))
    }

    /// Returns the name under which errors speak of it.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Memory => Path::new(":memory:"),
        }
    }
}
