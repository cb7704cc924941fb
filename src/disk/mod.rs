//! Every way in which pml changes or compares files: atomic replacement, locks, stamps, synced removal.
//!
//! Owns *how* a file is written; its callers own which file and what it says. It knows no configuration, no approvals
//! and no packages.
//!
//! All of it blocks: a lock is waited for, and the disk is made to confirm. So nothing here may be called on the thread
//! of the runtime; callers use `spawn_blocking` or a thread of their own. The one exception is [`Stamp::of`], which
//! reads the metadata of a file and waits for nothing.

mod appended_file;
mod error;
mod files;
mod links;
mod lock;
mod locked_directory;
mod stamp;
mod turns;

pub(crate) use appended_file::{AppendedFile, overwrite};
pub use error::DiskError;
pub(crate) use files::{
    create_private_directory, grow, open_lock, protect, remove_file, remove_tree, rename, replace, restrict,
    sync_directory, sync_tree, temporary_beside, write_new,
};
pub(crate) use links::{follow, leads_out};
pub(crate) use locked_directory::{Audience, LockedDirectory};
pub(crate) use stamp::Stamp;
pub(crate) use turns::TurnQueue;
