//! Finds, reads and checks `.pml.json`; what comes out is a validated picture that nothing here ever changes.
//!
//! The file is untrusted text: its size and depth are bounded, unknown keys and wrong types are errors with line
//! and column, and a file that does not parse is never replaced by defaults. Writing is `permissions::writer`'s.

mod environment;
mod expand;
mod locations;
mod server;

pub use environment::Environment;
pub use expand::{ExpandError, expand};
pub use locations::{Locations, LocationsError};
pub use server::{Launch, Server, Startup};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::protocol::{DependencyName, Pattern};

/// Everything the user and the project declared, checked.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The rules of every layer, the user's first, each in the order of its file.
    pub rules: Vec<Rule>,
    /// The declared servers; a project's server replaces a user's of the same name.
    pub servers: BTreeMap<DependencyName, Server>,
    /// How approvals are asked for.
    pub approvals: Approvals,
    /// The longest line pml reads from a client or a server, in bytes.
    pub line_limit: LineLimit,
}

/// One line of a permission list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which tools it covers.
    pub pattern: Pattern,
    /// Which list it stands in.
    pub list: RuleList,
    /// Where it is written; `None` for a built-in default.
    pub source: Option<Source>,
}

/// The three lists of `permissions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleList {
    /// Runs without a question.
    Allow,
    /// Needs a person.
    Ask,
    /// Never runs.
    Deny,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
}

/// How approvals are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvals {
    /// How long a suspended call waits for its answer.
    pub time_to_live: Duration,
}

impl Default for Approvals {
    fn default() -> Self {
        // Five minutes: the seed's contract, long enough to read and short enough to forget.
        Self {
            time_to_live: Duration::from_mins(5),
        }
    }
}

/// The longest line pml reads, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineLimit(pub usize);

impl Default for LineLimit {
    fn default() -> Self {
        // Larger than any result a client accepts; without a cap a peer that never sends a newline fills memory.
        Self(64 * 1024 * 1024)
    }
}
