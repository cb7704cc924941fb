//! The declaration of one server, checked but not yet expanded.
//!
//! `${VAR}` stays unexpanded here: an unset variable is the trouble of that server alone, and approvals are bound
//! to what was declared, not to today's value of a secret.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use super::expansion::variables;
use super::{FilePosition, ToolFilter, VariablesFile};
use crate::protocol::Era;

/// One entry of `mcpServers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// How it is started.
    pub launch: Launch,
    /// The variables it declares, unexpanded.
    pub env: BTreeMap<String, String>,
    /// The file of further variables, read whenever it is started.
    pub variables_file: Option<VariablesFile>,
    /// The directory of the file that declares it (for a project: its root). Relative commands start here.
    pub directory: PathBuf,
    /// The directory it is started in: `directory`, or the declared `cwd` from there.
    pub cwd: PathBuf,
    /// Whether it is left out.
    pub disabled: bool,
    /// Whether install scripts of its package may run.
    pub allow_scripts: bool,
    /// When it is started.
    pub startup: Startup,
    /// The era in which it is opened first; `None` leaves that to what worked before.
    pub opened_in: Option<Era>,
    /// How long it may take to answer `initialize`.
    pub start_timeout: Duration,
    /// How long it may work on one call; `None` is for ever.
    pub call_timeout: Option<Duration>,
    /// After how long without a call or a watched resource it is stopped; `None` is never.
    pub idle: Option<Duration>,
    /// The lists of the tools that it offers, of the user's file and of the project's: a tool is offered if every list does.
    pub tools: Vec<ToolFilter>,
    /// Where it is declared.
    pub source: FilePosition,
}

impl Server {
    /// Tells whether it wants anything of the user's: their variables, or that scripts run on their machine.
    #[must_use]
    pub fn takes_from_the_user(&self) -> bool {
        !self.env.is_empty()
            || self.variables_file.is_some()
            || self.allow_scripts
            || self.launch.texts().any(|text| !variables(text).is_empty())
    }

    /// Returns the names of the variables that its declaration takes from the environment.
    #[must_use]
    pub fn variables(&self) -> BTreeSet<String> {
        let texts = self.launch.texts().chain(self.env.values());
        texts.flat_map(|text| variables(text)).collect()
    }
}

/// How a server is started, as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// `"command"` and `"args"`: a package runner such as `npx` or `uvx`, or a plain command. Unexpanded.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// `"package"`: an exact package by name, such as `npm:@scope/name@1.2.3`, with the server's arguments.
    Package {
        /// The package with its ecosystem.
        package: String,
        /// The server's arguments.
        args: Vec<String>,
    },
    /// `"url"`: a server reached over HTTP.
    Remote {
        /// Its address.
        url: String,
        /// The headers of every request.
        headers: BTreeMap<String, String>,
    },
}

impl Launch {
    /// Returns every text of the declaration, unexpanded.
    fn texts(&self) -> impl Iterator<Item = &String> {
        let (words, headers) = match self {
            Self::Command { command: first, args } | Self::Package { package: first, args } => {
                (std::iter::once(first).chain(args.as_slice()), None)
            }
            Self::Remote { url, headers } => (std::iter::once(url).chain(&[]), Some(headers)),
        };
        words.chain(headers.into_iter().flat_map(BTreeMap::values))
    }

    /// Returns the words of the declaration, unexpanded; of a server elsewhere its address.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Command { command: first, args } | Self::Package { package: first, args } => {
                std::iter::once(first).chain(args).cloned().collect()
            }
            Self::Remote { url, .. } => vec![url.clone()],
        }
    }
}

/// When a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Startup {
    /// On its first call.
    #[default]
    Lazy,
    /// In the background when pml starts, if a rule allows it.
    Eager,
}
