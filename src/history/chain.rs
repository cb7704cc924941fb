//! The chain: each line names its number and the SHA-256 of the line before it.
//!
//! ```text
//! {"n":1,"at":1763442938123,"prev":"0000…","event":"part","part":1}
//! {"n":2,"at":1763442938123,"prev":"<SHA-256 of line 1, without its line feed>","event":"ask",…}
//! ```
//!
//! Four events are the chain's own. `part` begins a file and continues from the last line of the part before, which may
//! be gone. `prune` says which parts were removed, and where the chain goes on from. `torn` closes a line that a crash
//! cut off: the fragment before it counts as its predecessor. `lost` says that lines were missing as it was written.
//!
//! Pure: lines in, lines out.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// A place in the chain: a line's number, and its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The number of the line; 0 before the first.
    pub n: u64,
    /// Its SHA-256 in hexadecimal, its line feed left out.
    pub hash: String,
}

impl Link {
    /// Returns the place before the first line of all.
    #[must_use]
    pub fn start() -> Self {
        Self {
            n: 0,
            hash: "0".repeat(64),
        }
    }
}

/// Returns the SHA-256 of a line in hexadecimal.
#[must_use]
pub fn hash(line: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(line) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// An event of the chain itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum ChainEvent {
    /// A part begins.
    Part {
        /// Its number.
        part: u64,
    },
    /// Parts were removed.
    Prune {
        /// The last line that was removed: the first part that is kept continues from it.
        through: Link,
        /// How many parts were removed with it.
        parts: usize,
    },
    /// A crash cut off the line before this one.
    Torn {
        /// The hash of the last whole line.
        after: String,
        /// How many bytes of the line there are.
        bytes: usize,
    },
    /// The last lines were missing or changed as this one was written.
    Lost {
        /// The last line that was written, where that is known.
        last: Option<Link>,
    },
}

#[derive(Serialize)]
struct Line<'a, E> {
    n: u64,
    at: i64,
    prev: &'a str,
    #[serde(flatten)]
    event: &'a E,
}

/// Lines that are about to be appended, and the place they lead to.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) bytes: Vec<u8>,
    pub(super) end: Link,
}

impl Lines {
    pub(super) fn after(end: Link) -> Self {
        Self {
            bytes: Vec::new(),
            end,
        }
    }

    /// Adds the line of an event.
    pub(super) fn push(&mut self, at: i64, event: &impl Serialize) -> serde_json::Result<()> {
        let line = serde_json::to_vec(&Line {
            n: self.end.n + 1,
            at,
            prev: &self.end.hash,
            event,
        })?;
        self.end = Link {
            n: self.end.n + 1,
            hash: hash(&line),
        };
        self.bytes.extend_from_slice(&line);
        self.bytes.push(b'\n');
        Ok(())
    }
}

/// What the chain reads of a line.
#[derive(Debug, Deserialize)]
pub(super) struct ReadLine {
    pub(super) n: u64,
    pub(super) at: i64,
    pub(super) prev: String,
    pub(super) event: String,
    /// Of `part`.
    pub(super) part: Option<u64>,
    /// Of `prune`.
    pub(super) through: Option<Link>,
    /// Of `torn`.
    pub(super) after: Option<String>,
}

impl ReadLine {
    /// Reads a line; `None` if it is none of a history.
    pub(super) fn of(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}
