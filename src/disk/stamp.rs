//! The identity of a file's content, as far as it shows from outside.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What a file looked like from outside; two equal stamps mean the same content.
///
/// File times tick in milliseconds: a second write within a tick can leave the same stamp. A reader that cannot afford
/// that reads the file again a while after it first saw the stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// There is no file.
    Missing,
    /// The file cannot be looked at; its readers try again.
    Unknown,
    /// There is a file, and its metadata tells its content apart.
    Present {
        /// The device it is on.
        device: u64,
        /// Its number there.
        inode: u64,
        /// Its length in bytes.
        size: u64,
        /// When its content last changed, in seconds and nanoseconds.
        modified: (i64, i64),
        /// When its metadata last changed, in seconds and nanoseconds.
        changed: (i64, i64),
    },
}

impl Stamp {
    /// Looks at the file at `path`, links followed; does not wait for the disk.
    pub(crate) fn of(path: &Path) -> Self {
        match path.metadata() {
            Ok(found) => Self::Present {
                device: found.dev(),
                inode: found.ino(),
                size: found.size(),
                modified: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::Missing,
            Err(_) => Self::Unknown,
        }
    }
}
