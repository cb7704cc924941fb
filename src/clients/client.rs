//! One client as data.

use super::format::Format;
use super::reference::References;
use crate::protocol::Shown;

/// A program that starts MCP servers by a file of its own.
#[derive(Debug)]
pub struct Client {
    /// What it is called on the command line.
    pub id: &'static str,
    /// What it is called by its makers.
    pub title: &'static str,
    /// In which format its files are.
    pub(super) format: Format,
    /// Its files.
    pub(super) locations: &'static [Location],
    /// The keys that lead to its servers.
    pub(super) key: &'static [&'static str],
    /// How it refers to variables.
    pub(super) references: References,
    /// What the keys of a server mean there, beyond those that all clients share.
    pub(super) keys: &'static [(&'static str, Meaning)],
    /// How pml is written there.
    pub(super) shape: Shape,
    /// Who writes its files.
    pub editing: Editing,
    /// Which of its settings hand variables to what it starts.
    pub(super) passes: Passing,
}

impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Client {}

/// For whom a file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// For the user, in every project.
    User,
    /// For the user, in one project.
    Local,
    /// For everyone who works on a project.
    Project,
}

impl Scope {
    /// Returns the word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Local => "local",
            Self::Project => "project",
        }
    }
}

/// Who writes the file of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editing {
    /// pml does.
    Pml,
    /// The client's own program does where it is the user's file: running sessions rewrite that.
    OwnProgram,
    /// A person does: pml reads the format and does not write it.
    Person,
}

/// One of the places where a client keeps servers.
#[derive(Debug)]
pub(super) struct Location {
    pub(super) scope: Scope,
    pub(super) base: Base,
    /// Below the base; the first that exists counts, the last is the one that is created.
    pub(super) paths: &'static [&'static str],
}

/// Where a path begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum Base {
    /// The directory that a variable names, else one below the home.
    Variable(&'static str, &'static str),
    /// The home.
    Home,
    /// The user's configuration as XDG names it.
    Config,
    /// Where desktop applications keep their settings: as [`Base::Config`], on macOS `~/Library/Application Support`.
    Application,
    /// The directory of the project.
    Project,
}

/// How pml is written into a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `"command"` and `"args"`.
    Plain,
    /// The same with `"type": "stdio"`.
    Typed,
    /// `"type": "local"` with all of its tools.
    Copilot,
    /// `"type": "local"` with program and arguments as one list, and `"environment"`.
    CommandList,
}

/// How what a client starts gets variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// It gets all that the client has.
    Everything,
    /// It gets those that its entry names as `"env"`.
    Named,
    /// It gets those that its entry lists as `env_vars`, and the values in `env`.
    Listed,
}

/// What a key of a server means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// How it is reached.
    Transport,
    /// The program: a word, a list of words, or an object with both.
    Command,
    /// Its arguments.
    Arguments,
    /// Its variables.
    Variables,
    /// The names of variables that it gets as they are.
    VariableNames,
    /// The path of a file with variables.
    VariablesFile,
    /// The address of a server elsewhere that speaks this.
    Address(Option<&'static str>),
    /// The headers of every request.
    Headers,
    /// Headers whose values are the names of variables.
    HeadersFromVariables,
    /// The name of the variable with the bearer token.
    BearerVariable,
    /// The directory it is started in.
    Directory,
    /// `true` leaves it out.
    Disabled,
    /// `false` leaves it out.
    Enabled,
    /// How many of these fit into a second, of the time it may take to start.
    StartTime(u64),
    /// The same, of the time for one call.
    CallTime(u64),
    /// The tools that are used.
    OnlyTools,
    /// The tools that are not used.
    WithoutTools,
    /// Names tools that the client runs without its own question.
    Unasked,
    /// Sign-in by OAuth.
    SignIn,
    /// Says nothing that pml would need.
    Nothing,
}

/// The keys that mean the same to every client that has them.
pub(super) const COMMON: &[(&str, Meaning)] = &[
    ("type", Meaning::Transport),
    ("transport", Meaning::Transport),
    ("command", Meaning::Command),
    ("args", Meaning::Arguments),
    ("env", Meaning::Variables),
    ("envFile", Meaning::VariablesFile),
    ("url", Meaning::Address(None)),
    ("headers", Meaning::Headers),
    ("cwd", Meaning::Directory),
    ("disabled", Meaning::Disabled),
    ("enabled", Meaning::Enabled),
    ("autoApprove", Meaning::Unasked),
    ("alwaysAllow", Meaning::Unasked),
    ("trust", Meaning::Unasked),
    ("disabledTools", Meaning::WithoutTools),
    ("oauth", Meaning::SignIn),
    ("auth", Meaning::SignIn),
    ("name", Meaning::Nothing),
    ("description", Meaning::Nothing),
    ("version", Meaning::Nothing),
    ("gallery", Meaning::Nothing),
];

impl Client {
    pub(super) fn meaning(&self, key: &str) -> Option<Meaning> {
        let found = |keys: &[(&str, Meaning)]| {
            keys.iter()
                .find(|(known, _)| *known == key)
                .map(|(_, meaning)| *meaning)
        };
        found(self.keys).or_else(|| found(COMMON))
    }

    /// Tells whether pml itself may write a file of this scope.
    #[must_use]
    pub fn is_edited_by_pml(&self, scope: Scope) -> bool {
        match self.editing {
            Editing::Pml => true,
            Editing::OwnProgram => scope == Scope::Project,
            Editing::Person => false,
        }
    }

    /// Names the client and the scope for a person.
    #[must_use]
    pub fn describe(&self, scope: Scope) -> String {
        Shown::line(&format!("{} ({})", self.title, scope.as_str())).to_string()
    }
}
