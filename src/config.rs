//! The configuration: finds, reads and checks `.pml.json`, and returns an immutable [`Config`].
//!
//! The file is untrusted text: its size and depth are bounded, unknown keys and wrong types are errors with line
//! and column, and a file that does not parse is never replaced by defaults. Writing is `permissions::writer`'s.

mod document;
mod environment;
mod error;
mod expansion;
mod file;
mod layer;
mod locations;
mod notices;
mod ownership;
mod search;
mod server;
mod watch;

pub use crate::protocol::nearest;
pub(crate) use document::dialect;
pub use environment::Environment;
pub use error::{ConfigError, Problem};
pub use expansion::{ExpandError, ExpandedText, expand};
pub use file::schema;
pub(crate) use layer::{load as load_text, load_owned as load_owned_text};
pub use locations::{Locations, LocationsError};
pub use notices::{Notices, WatchedPath};
pub use ownership::{Distrust, Unowned};
pub use search::{Border, FileChoice, Files, PROJECT_FILE, Unreached, find};
pub use server::{Launch, Server, Startup};
pub use watch::{ConfigResult, WatchedConfig};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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
    pub approvals: ApprovalSettings,
    /// How the tools that ask a person behave.
    pub ask_user: AskUserSettings,
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
    pub source: Option<FilePosition>,
}

impl Rule {
    /// Tells whether the rule is written in `file`.
    #[must_use]
    pub fn stands_in(&self, file: &Path) -> bool {
        self.source.as_ref().is_some_and(|source| source.file == file)
    }
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

impl RuleList {
    /// Returns the list's key in `permissions`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePosition {
    /// The file.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
}

/// How approvals are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// How long a suspended call waits for its answer.
    pub time_to_live: Duration,
    /// Who may approve.
    pub by: By,
    /// Whether the client's own dialog is used.
    pub dialog: DialogMode,
}

/// Who may approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The client's continuation counts as the person's word.
    Client,
    /// Only a dialog, a slash command or the inbox counts.
    Human,
}

/// Whether the client's own dialog is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialogMode {
    /// Where the client has one.
    Auto,
    /// Not at all.
    Never,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        // Five minutes: the seed's contract, long enough to read and short enough to forget.
        Self {
            time_to_live: Duration::from_mins(5),
            by: By::Client,
            dialog: DialogMode::Auto,
        }
    }
}

/// How the tools that ask a person behave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskUserSettings {
    /// Whether they are offered.
    pub tools: AskUserTools,
    /// What a question does that no dialog can show.
    pub mode: AskUserMode,
    /// How long a question waits for a person, where a file says so.
    pub timeout: Option<Duration>,
    /// How long a question can be answered, also after its call has returned.
    pub kept: Duration,
}

/// Whether the tools that ask a person are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskUserTools {
    /// They are.
    Listed,
    /// They are not, and calls to them are refused.
    Off,
}

/// The behaviour of a question while it has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskUserMode {
    /// It returns an id at once.
    Suspend,
    /// It holds the call.
    Blocking,
}

impl AskUserSettings {
    /// Returns how long a question waits for a person; where no file says so, as long as an approval lives.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.timeout.unwrap_or(Duration::from_mins(5))
    }
}

impl Default for AskUserSettings {
    fn default() -> Self {
        Self {
            tools: AskUserTools::Listed,
            mode: AskUserMode::Suspend,
            timeout: None,
            // A person who was away for some weeks still finds what was asked.
            kept: Duration::from_hours(30 * 24),
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

/// Reads both files; a missing one declares nothing, and without a rule for everything everything asks.
pub fn read(files: &Files) -> Result<Config, ConfigError> {
    assemble(files, &load(files)?)
}

/// Checks the text of one file as if it stood at `path`.
pub fn check(path: &Path, text: &str) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    layer::add(&mut config, path, text)?;
    Ok(config)
}

/// Checks that a text is JSON, comments and trailing commas apart.
pub fn check_json(path: &Path, text: &str) -> Result<(), ConfigError> {
    layer::located(path, text, |text| document::parse(text).map(drop))
}

/// Loads the text of both files, the user's first, if they may be obeyed.
fn load(files: &Files) -> Result<[Option<String>; 2], ConfigError> {
    // `--config` may name the user's own file: its rules count once.
    let user = if files.user == files.project {
        None
    } else {
        layer::load_owned(&files.user)?
    };
    let project = match files.chosen {
        FileChoice::Found => layer::load_owned(&files.project)?,
        FileChoice::Named => layer::load(&files.project)?,
    };
    Ok([user, project])
}

fn assemble(files: &Files, texts: &[Option<String>; 2]) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    for (path, text) in [&files.user, &files.project].into_iter().zip(texts) {
        if let Some(text) = text {
            layer::add(&mut config, path, text)?;
        }
    }
    // The built-in default steps back for any rule about everything: next to `allow: ["*"]` it would be a tie.
    if !config.rules.iter().any(|rule| rule.pattern.is_catch_all()) {
        config.rules.push(Rule {
            pattern: Pattern::everything(),
            list: RuleList::Ask,
            source: None,
        });
    }
    Ok(config)
}

#[cfg(test)]
mod tests;
