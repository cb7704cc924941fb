//! Whether a file came with the repository it lies in: tracked there, and still as git wrote it.
//!
//! The index of the repository is read as bytes and git is not run: its configuration belongs to the repository and may
//! name programs. What cannot be told is [`RepositoryState::Unclear`], and whoever asks takes that for the worse.

mod attributes;

use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::regular_file::{self, OpenFault};

/// Stands in the root of a repository: a directory, or a file in a linked worktree or submodule.
pub(super) const REPOSITORY: &str = ".git";

/// The longest index that is read: some 80,000 tracked files. Reading it takes milliseconds, on the thread of calls.
const INDEX_LIMIT: u64 = 8 * 1024 * 1024;

/// A few lines each.
const SMALL_FILE_LIMIT: u64 = 64 * 1024;

/// The relation of a file to the repository around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepositoryState {
    /// No repository is around it, or git does not track it.
    Untracked,
    /// Git tracks it, and somebody changed it since.
    Changed,
    /// Git tracks it, and it is as git wrote it.
    Unchanged,
    /// The index of the repository is no file, or cannot be understood.
    Unclear,
}

/// Finds the index of the repository around a file; `None` where there is no repository.
pub(super) fn index_of(file: &Path) -> Option<PathBuf> {
    let root = root_of(file)?;
    Some(git_directory(&root).join("index"))
}

/// Tells whether a file with this text came with the repository around it.
pub(super) fn state_of(file: &Path, text: &[u8], found: &Metadata) -> RepositoryState {
    // The link that leads to a file may have come with a repository as well as the file.
    let link = file
        .symlink_metadata()
        .ok()
        .filter(Metadata::is_symlink)
        .map(|_link| tracked(file));
    let target = file.canonicalize().unwrap_or_else(|_gone| file.to_owned());
    match link {
        Some(Ok(None)) | None => {}
        Some(Ok(Some(_))) => return RepositoryState::Unchanged,
        Some(Err(Unclear)) => return RepositoryState::Unclear,
    }
    match tracked(&target) {
        Ok(None) => RepositoryState::Untracked,
        Ok(Some(entry)) if entry.is_unchanged(text, found) => RepositoryState::Unchanged,
        // Git may have written other bytes than it keeps, and a copy of the files looks new to it.
        Ok(Some(_)) if attributes::may_apply(&target) => RepositoryState::Unclear,
        Ok(Some(_)) => RepositoryState::Changed,
        Err(Unclear) => RepositoryState::Unclear,
    }
}

/// The index is damaged, too long, or of a kind that is not read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unclear;

fn root_of(file: &Path) -> Option<PathBuf> {
    let directories = file.parent()?.ancestors();
    let mut roots = directories.filter(|directory| directory.join(REPOSITORY).symlink_metadata().is_ok());
    roots.next().map(Path::to_owned)
}

/// Returns the directory in which git keeps what belongs to this working tree.
fn git_directory(root: &Path) -> PathBuf {
    let mark = root.join(REPOSITORY);
    let elsewhere = small_file(&mark).and_then(|text| {
        let path = text.strip_prefix("gitdir:")?.trim();
        Some(root.join(path))
    });
    elsewhere.unwrap_or(mark)
}

/// Finds the entry of a file in the index of the repository around it.
fn tracked(file: &Path) -> Result<Option<IndexEntry>, Unclear> {
    // The directory is resolved and the name is not: a link is an entry of its own.
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
        return Ok(None);
    };
    let file = directory
        .canonicalize()
        .map_or_else(|_gone| file.to_owned(), |directory| directory.join(name));
    let Some(root) = root_of(&file) else {
        return Ok(None);
    };
    let git = git_directory(&root);
    let name = file.strip_prefix(&root).map_err(|_elsewhere| Unclear)?;
    let index = match regular_file::open(&git.join("index")) {
        Ok((index, _)) => index,
        // A new repository has none.
        Err(OpenFault::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        // An archive may bring a pipe in its place.
        Err(OpenFault::Io(_) | OpenFault::NotAFile) => return Err(Unclear),
    };
    let mut bytes = Vec::new();
    let read = index.take(INDEX_LIMIT + 1).read_to_end(&mut bytes);
    read.map_err(|_unreadable| Unclear)?;
    find_entry(&bytes, hash_of(&git), name.as_os_str().as_bytes())
}

/// How a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectHash {
    Sha1,
    Sha256,
}

impl ObjectHash {
    fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// Names a file's content as git does.
    fn of_content(self, content: &[u8]) -> Vec<u8> {
        let head = format!("blob {}\0", content.len());
        match self {
            Self::Sha1 => Sha1::new_with_prefix(head)
                .chain_update(content)
                .finalize()
                .to_vec(),
            Self::Sha256 => Sha256::new_with_prefix(head)
                .chain_update(content)
                .finalize()
                .to_vec(),
        }
    }
}

/// Reads from the repository's configuration how it names its objects.
fn hash_of(git: &Path) -> ObjectHash {
    let common =
        small_file(&git.join("commondir")).map_or_else(|| git.to_owned(), |common| git.join(common.trim()));
    let settings = small_file(&common.join("config")).unwrap_or_default();
    let is_sha256 = settings.lines().any(|line| {
        let line: String = line.split_whitespace().collect();
        line.eq_ignore_ascii_case("objectformat=sha256")
    });
    if is_sha256 {
        ObjectHash::Sha256
    } else {
        ObjectHash::Sha1
    }
}

fn small_file(path: &Path) -> Option<String> {
    let (file, _) = regular_file::open(path).ok()?;
    let mut text = String::new();
    file.take(SMALL_FILE_LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What the index says of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexEntry {
    /// When git last saw it unchanged, in seconds and nanoseconds, as far as 32 bits hold them.
    modified: (u32, u32),
    /// Its length then, as far as 32 bits hold it.
    size: u32,
    hash: ObjectHash,
    object: Vec<u8>,
}

impl IndexEntry {
    /// Tells whether a file is as git wrote it.
    ///
    /// Git may write other bytes than it keeps (`.gitattributes` asks for it, and a repository brings that file too), so
    /// the look of the file counts as well as its content.
    fn is_unchanged(&self, text: &[u8], found: &Metadata) -> bool {
        let looks_the_same = || {
            let low = |number: i64| u32::try_from(number & 0xffff_ffff).unwrap_or_default();
            let nanoseconds = self.modified.1 == 0 || self.modified.1 == low(found.mtime_nsec());
            self.modified.0 == low(found.mtime())
                && nanoseconds
                && u64::from(self.size) == found.size() & 0xffff_ffff
        };
        self.hash.of_content(text) == self.object
            || self.hash.of_content(&with_line_feeds(text)) == self.object
            || self
                .hash
                .of_content(&attributes::without_ident(&with_line_feeds(text)))
                == self.object
            || looks_the_same()
    }
}

/// Returns a text with the line ends that git keeps.
fn with_line_feeds(text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        if !(*byte == b'\r' && text.get(at + 1) == Some(&b'\n')) {
            kept.push(*byte);
        }
    }
    kept
}

/// Finds the entry of a name in the bytes of an index.
fn find_entry(bytes: &[u8], hash: ObjectHash, name: &[u8]) -> Result<Option<IndexEntry>, Unclear> {
    let mut reader = IndexReader { bytes, at: 0 };
    if reader.take(4)? != b"DIRC" {
        return Err(Unclear);
    }
    let version = reader.number()?;
    if !(2..=4).contains(&version) {
        return Err(Unclear);
    }
    let count = reader.number()?;
    let mut path = Vec::new();
    for _ in 0..count {
        let start = reader.at;
        reader.take(8)?;
        let modified = (reader.number()?, reader.number()?);
        reader.take(5 * 4)?;
        let size = reader.number()?;
        let object = reader.take(hash.length())?;
        let flags = reader.short()?;
        if version >= 3 && flags & 0x4000 != 0 {
            reader.take(2)?;
        }
        if version == 4 {
            // Only what differs from the name before is written.
            let dropped = reader.variable_number()?;
            let kept = path.len().checked_sub(dropped).ok_or(Unclear)?;
            path.truncate(kept);
            path.extend_from_slice(reader.until_zero()?);
        } else {
            path.clear();
            path.extend_from_slice(reader.until_zero()?);
            // At least one zero ends the name, and more of them fill the entry up to a multiple of eight.
            let length = reader.at - start;
            reader.take(length.next_multiple_of(8) - length)?;
        }
        if path == name {
            return Ok(Some(IndexEntry {
                modified,
                size,
                hash,
                object: object.to_vec(),
            }));
        }
    }
    // What follows are extensions; with one of them some entries stand in another file.
    while bytes.len().saturating_sub(reader.at) > hash.length() {
        let kind = reader.take(4)?;
        if kind == b"link" {
            return Err(Unclear);
        }
        let length = usize::try_from(reader.number()?).map_err(|_too_long| Unclear)?;
        reader.take(length)?;
    }
    Ok(None)
}

struct IndexReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> IndexReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Unclear> {
        let end = self.at.checked_add(count).ok_or(Unclear)?;
        let taken = self.bytes.get(self.at..end).ok_or(Unclear)?;
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, Unclear> {
        let bytes = self.take(4)?.try_into().map_err(|_short| Unclear)?;
        Ok(u32::from_be_bytes(bytes))
    }

    fn short(&mut self) -> Result<u16, Unclear> {
        let bytes = self.take(2)?.try_into().map_err(|_short| Unclear)?;
        Ok(u16::from_be_bytes(bytes))
    }

    fn until_zero(&mut self) -> Result<&'a [u8], Unclear> {
        let rest = self.bytes.get(self.at..).ok_or(Unclear)?;
        let length = memchr::memchr(0, rest).ok_or(Unclear)?;
        let name = self.take(length)?;
        self.take(1)?;
        Ok(name)
    }

    /// Reads a number of seven bits a byte; each further byte counts from one above what fits into those before.
    fn variable_number(&mut self) -> Result<usize, Unclear> {
        let mut number = 0_usize;
        loop {
            let byte = self.take(1)?[0];
            number = number.checked_mul(128).ok_or(Unclear)? + usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            number = number.checked_add(1).ok_or(Unclear)?;
        }
    }
}

#[cfg(test)]
mod tests;
