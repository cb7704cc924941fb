//! Reads files that a package brought, none longer than an honest package's: an archive of some kilobytes can unpack to a
//! file of gigabytes. It blocks: everything here stays off the runtime's thread.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The longest `package.json` in bytes; the longest of the registry has some hundred kilobytes.
pub(super) const MANIFEST: u64 = 4 << 20;

/// The longest `RECORD` of a wheel in bytes: the largest wheels list some ten thousand files.
pub(super) const RECORD: u64 = 32 << 20;

/// The longest `.pth` file in bytes; an honest one has some lines.
pub(super) const PATHS: u64 = 1 << 20;

/// Reads a file; one that is longer than `limit` is an error of its own kind.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Reads a file of text.
pub(super) fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read(path, limit)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Gives the content of a file to `take` piece by piece; nothing of it is kept.
pub(super) fn pieces(path: &Path, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => take(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_not_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        assert_eq!(read(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(
            read_text(&path, 5).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        std::fs::write(&path, vec![7; 100_000]).unwrap();
        let mut whole = Vec::new();
        pieces(&path, |piece| whole.extend_from_slice(piece)).unwrap();
        assert_eq!(whole, vec![7; 100_000]);
    }
}
