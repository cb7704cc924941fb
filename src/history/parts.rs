//! The parts of a history: their names, how large they grow, and how many are kept.

use std::io;
use std::path::{Path, PathBuf};

/// The size of a part, give or take the last lines. A line has some 400 bytes, so a part holds 20,000 events; it is read
/// whole to be verified.
pub const PART_BYTES: u64 = 8 * 1024 * 1024;

/// The size of all parts: eight full ones, years of a person's work, verified within a second.
///
/// What a client can have written without a person is an ask and its lapse, one each and the second the shorter one: a
/// client that asks without end fills them no more than twice as fast as by its asks alone.
pub const TOTAL_BYTES: u64 = 8 * PART_BYTES;

/// How long a part is written to, in milliseconds: 30 days, so that `prune` finds whole parts to remove where little
/// happens.
pub(super) const PART_AGE_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// How many parts are kept: five years at one in 30 days. It bounds a directory in which every part is small.
pub const PARTS: usize = 64;

const PREFIX: &str = "part-";
const SUFFIX: &str = ".jsonl";

/// One file of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// Returns the file of a part.
pub(super) fn path_of(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{PREFIX}{number:08}{SUFFIX}"))
}

/// Returns the file that names the last line.
pub(super) fn head_of(directory: &Path) -> PathBuf {
    directory.join("head")
}

/// Lists the parts in their order; other files are none of the history.
pub(super) fn list(directory: &Path) -> io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok());
        if let Some(number) = number {
            parts.push(Part {
                number,
                path: entry.path(),
                bytes: entry.metadata()?.len(),
            });
        }
    }
    parts.sort_by_key(|part| part.number);
    Ok(parts)
}

/// Returns how many of the oldest parts must go before another one of full size may be written.
pub(super) fn surplus(parts: &[Part]) -> usize {
    let mut total: u64 = parts.iter().map(|part| part.bytes).sum();
    let mut left = parts.len();
    let mut gone = 0;
    for part in parts {
        if left < PARTS && total + PART_BYTES <= TOTAL_BYTES {
            break;
        }
        total -= part.bytes;
        left -= 1;
        gone += 1;
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(sizes: &[u64]) -> Vec<Part> {
        let part = |(at, bytes): (usize, &u64)| Part {
            number: at as u64 + 1,
            path: PathBuf::new(),
            bytes: *bytes,
        };
        sizes.iter().enumerate().map(part).collect()
    }

    #[test]
    fn room_is_made_by_the_oldest_parts_and_by_no_more_than_are_needed() {
        assert_eq!(surplus(&parts(&[])), 0);
        assert_eq!(surplus(&parts(&[PART_BYTES; 7])), 0);
        assert_eq!(surplus(&parts(&[PART_BYTES; 8])), 1);
        assert_eq!(surplus(&parts(&[PART_BYTES + 100; 8])), 2);
        assert_eq!(surplus(&parts(&[10; PARTS - 1])), 0);
        assert_eq!(surplus(&parts(&[10; PARTS])), 1);
    }
}
