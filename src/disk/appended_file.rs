//! A file that only grows: what is appended is there whole and confirmed by the disk, or not at all.
//!
//! Its writers exclude one another by a lock of their own, such as [`super::LockedDirectory`].

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::DiskError;

/// A file that is open for appending.
#[derive(Debug)]
pub(crate) struct AppendedFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl AppendedFile {
    /// Opens a file that is there.
    pub(crate) fn open(path: &Path) -> Result<Self, DiskError> {
        let open = || {
            let file = OpenOptions::new().read(true).append(true).open(path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) = open().map_err(DiskError::step("open", path))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            length,
        })
    }

    /// Returns its length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Returns its last bytes, no more than `limit`.
    pub(crate) fn tail(&self, limit: u64) -> Result<Vec<u8>, DiskError> {
        let from = self.length.saturating_sub(limit);
        let mut bytes = vec![0; usize::try_from(self.length - from).unwrap_or_default()];
        self.file
            .read_exact_at(&mut bytes, from)
            .map_err(DiskError::step("read", &self.path))?;
        Ok(bytes)
    }

    /// Appends bytes and makes the disk confirm them; after an error the file is as it was.
    ///
    /// Where even that fails, which takes a second fault, it ends with a part of them.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        let written = self.file.write_all(bytes).map_err(|error| ("write", error));
        let confirmed = written.and_then(|()| self.file.sync_data().map_err(|error| ("sync", error)));
        if let Err((action, source)) = confirmed {
            let _ = self.file.set_len(self.length);
            return Err(DiskError::step(action, &self.path)(source));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Writes over the first bytes of a file, for this user alone; creates it if it is missing.
///
/// For texts of one length below a sector, which a disk writes whole or not at all.
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path);
    file.and_then(|file| file.write_all_at(bytes, 0))
        .map_err(DiskError::step("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_follows_what_was_there_and_its_end_can_be_read() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        assert!(AppendedFile::open(&path).is_err(), "it is not created");
        super::super::write_new(&path, b"one\n").unwrap();
        let mut file = AppendedFile::open(&path).unwrap();
        file.append(b"two\n").unwrap();
        assert_eq!(file.length(), 8);
        assert_eq!(file.tail(5).unwrap(), b"\ntwo\n");
        assert_eq!(file.tail(100).unwrap(), b"one\ntwo\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn a_text_is_written_over_the_one_before() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("head");
        overwrite(&path, b"1111").unwrap();
        overwrite(&path, b"2222").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"2222");
    }
}
