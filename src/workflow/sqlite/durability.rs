//! The durability of a commit: whether it survives a power cut.

use rusqlite::Connection;

/// What a commit survives; every commit survives the death of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitDurability {
    /// A power cut: the disk confirms it before it counts.
    PowerCut,
    /// The death of the process: a power cut may take it, together with the processes that wait for it.
    Process,
}

impl CommitDurability {
    /// Makes the next commits survive this much.
    pub(super) fn set(self, connection: &Connection) -> rusqlite::Result<()> {
        let synchronous = match self {
            Self::PowerCut => "FULL",
            Self::Process => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", synchronous)
    }
}
