//! The configuration: finds, reads and checks `.pml.json`, and returns an immutable [`Config`].
//!
//! The file is untrusted text: its size and depth are bounded, unknown keys and wrong types are errors with line
//! and column, and a file that does not parse is never replaced by defaults. Writing is `permissions::writer`'s.

mod advisory_settings;
mod channel_checks;
mod channel_entries;
mod channel_settings;
mod client_folders;
mod declared_parts;
mod document;
mod environment;
mod error;
mod expansion;
mod file;
mod launch;
mod layer;
mod layer_kind;
mod loaded;
mod locations;
mod notices;
mod notify_command;
mod ownership;
mod provenance_settings;
mod regular_file;
mod release_age;
mod repository;
mod run_settings;
mod search;
mod server;
mod steering;
mod tool_filter;
mod trust;
mod user_entries;
mod user_settings;
mod variables_file;
mod wants;
mod watch;

pub use crate::protocol::nearest;
pub use advisory_settings::{AdvisorySettings, AskedPackages};
pub(crate) use channel_checks::is_person_id;
pub use channel_settings::{
    AskKind, ChannelBasics, ChannelName, ChannelSettings, Details, Escalation, NoSuchChannel, NtfySettings,
    Permission, QuietHours, RouteSettings, SlackSettings, TelegramSettings, WebhookSettings,
    WhatsappSettings,
};
pub use client_folders::{find_in, is_outside_projects};
pub use declared_parts::DeclaredParts;
pub(crate) use document::dialect;
pub use environment::Environment;
pub use error::{ConfigError, Problem};
pub use expansion::{ExpandError, ExpandedText, expand, variables};
pub use file::schema;
pub(crate) use layer::{load as load_text, load_lock as load_lock_text, load_owned as load_owned_text};
pub use loaded::{is_accepted_by_a_person, mark_for, parts_of, trust_of};
pub use locations::{Locations, LocationsError};
pub use notices::{Notices, WatchedPath};
pub use notify_command::NotifyCommand;
pub use ownership::{Distrust, Unowned};
pub use provenance_settings::ProvenanceSettings;
pub use release_age::MinReleaseAge;
pub use run_settings::{LateAnswers, RunSettings};
pub use search::{Border, FileChoice, Files, PROJECT_FILE, Unreached, find};
pub use server::{Launch, Server, Startup};
pub use steering::steers;
pub use tool_filter::ToolFilter;
pub use trust::{AcceptedFile, FileOrigin, ProjectTrust, TrustMark, TrustMarks, TrustMode, UnacceptedFile};
pub(crate) use variables_file::variables_in;
pub use variables_file::{VariablesFile, VariablesFileError};
pub use watch::{ConfigResult, PendingReading, Reading, WatchedConfig};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::layer_kind::LayerKind;
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
    /// What calls the person when something is asked and nothing shows it; from the user's own file.
    pub notify: Option<NotifyCommand>,
    /// The longest line pml reads from a client or a server, in bytes.
    pub line_limit: LineLimit,
    /// Which projects' files count without being accepted.
    pub trust_mode: TrustMode,
    /// Whether what cannot be recorded in the history may happen.
    pub audit: Audit,
    /// Of which servers changed definitions of tools are put to the user.
    pub pin_tools: PinTools,
    /// Where known vulnerabilities are asked for; from the user's own file.
    pub advisories: AdvisorySettings,
    /// What is demanded of where packages were built; from the user's own file.
    pub provenance: ProvenanceSettings,
    /// How long a version of a package must have been published before it is fetched.
    pub min_release_age: MinReleaseAge,
    /// How `pml run` hosts an agent; from the user's own file.
    pub run: RunSettings,
    /// The chat services on which the person is asked; from the user's own file.
    pub channels: ChannelSettings,
    /// Whether the project's file counts as the user's word.
    pub project: ProjectTrust,
    /// The rules that the project's file would add if it were accepted.
    pub withheld: Vec<Rule>,
}

impl Config {
    /// Tells whether a server was declared by a project's file that the user has not accepted.
    #[must_use]
    pub fn is_from_outside(&self, server: &Server) -> bool {
        let unaccepted = self.project.unaccepted();
        unaccepted.is_some_and(|unaccepted| unaccepted.file == server.source.file)
    }
}

/// Whether what cannot be recorded in the history may happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Audit {
    /// It may not: nothing is installed, and nothing is started for the first time.
    #[default]
    Required,
    /// It may, with a warning.
    BestEffort,
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

/// The three lists of `permissions`, and the list `tools` of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleList {
    /// Runs without a question.
    Allow,
    /// Needs a person.
    Ask,
    /// Never runs.
    Deny,
    /// Is not offered by its server.
    Tools,
}

impl RuleList {
    /// Returns the list's key.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::Tools => "tools",
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

/// Of which servers changed definitions of tools are put to the user before they count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinTools {
    /// Of none.
    Off,
    /// Of every server but these.
    AllBut(BTreeSet<String>),
}

impl PinTools {
    /// Tells whether the definitions of a server are compared.
    #[must_use]
    pub fn covers(&self, server: &DependencyName) -> bool {
        match self {
            Self::Off => false,
            Self::AllBut(servers) => !servers.contains(server.as_str()),
        }
    }
}

impl Default for PinTools {
    fn default() -> Self {
        Self::AllBut(BTreeSet::new())
    }
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
    loaded::assemble(files, &loaded::load(files)?)
}

/// Checks the text of one file as if it stood at `path`; whether it is the user's is told only where both are read.
pub fn check(path: &Path, text: &str) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    layer::add(&mut config, path, text, LayerKind::Either)?;
    Ok(config)
}

#[cfg(test)]
mod tests;
