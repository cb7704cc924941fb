//! Opens a file that others may have put there: a regular one, or none.
//!
//! Opening a pipe would wait for its writer, and opening a device may do anything.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Why a file was not opened.
#[derive(Debug)]
pub(super) enum OpenFault {
    /// Something else is there: a directory, a pipe, a socket or a device.
    NotAFile,
    /// It is not there, or cannot be opened.
    Io(io::Error),
}

impl From<io::Error> for OpenFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Opens a regular file, and returns how it looked then.
pub(super) fn open(path: &Path) -> Result<(File, Metadata), OpenFault> {
    // Looked at first: a device must not be opened at all.
    if !path.metadata()?.is_file() {
        return Err(OpenFault::NotAFile);
    }
    // What counts is the file that was opened: another may stand there since the look.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    let opened = file.metadata()?;
    if opened.is_file() {
        Ok((file, opened))
    } else {
        Err(OpenFault::NotAFile)
    }
}
