//! The recipes of npm and PyPI: how a package gets into a directory, and the proof that it is what was shown.
//!
//! Owns the processes of the installers and their environment. Knows no store: a recipe fills the directory it is
//! given and says what is in it. No code of a package runs before its lock has been checked.

mod credentials;
mod indexes;
mod lock;
mod npm;
mod process;
mod pypi;
mod tail;
mod tools;
mod venv;
mod withdrawal;

pub(super) use lock::Checked;
pub use lock::LockError;
pub use tail::Tail;
pub(super) use tools::Tools;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Content;
use super::error::{InstallError, InstallStep};
use super::package::{Ecosystem, Package, normalize};
use super::packages::Resolved;
use super::plan::Scripts;

/// Hears of each step.
pub type Progress<'a> = &'a (dyn Fn(InstallStep) + Send + Sync);

/// What a recipe is asked for.
pub(super) struct Order<'a> {
    pub(super) package: &'a Package,
    pub(super) version: &'a str,
    /// What was shown, approved or recorded.
    pub(super) expected: &'a Content,
    /// The lock of an earlier installation: nothing is resolved anew.
    pub(super) frozen: Option<&'a str>,
    pub(super) scripts: Scripts,
    /// An empty directory of its own.
    pub(super) directory: &'a Path,
    pub(super) progress: Progress<'a>,
}

impl Order<'_> {
    fn spec(&self) -> String {
        self.package.at(self.version)
    }

    /// Refuses other content than what was shown, approved or recorded.
    fn check(&self, found: &lock::Checked) -> Result<(), InstallError> {
        let found = Resolved {
            version: found.version.clone(),
            integrity: Some(found.integrity.clone()),
            lock: Some(found.digest.clone()),
            withdrawn: None,
        };
        self.expected.check(&self.spec(), &found)
    }
}

/// What a recipe has put into its directory.
pub(super) struct Built {
    pub(super) integrity: String,
    pub(super) executables: BTreeMap<String, Executable>,
    /// Files that run at every start before the server itself.
    pub(super) at_start: Vec<String>,
    /// How the registry withdrew the version, in words that follow "this version".
    pub(super) withdrawn: Option<String>,
}

/// One executable of an installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Executable {
    /// Its path below the installation.
    pub(super) path: PathBuf,
    /// How it is started.
    pub(super) start: Start,
}

/// How an executable is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Start {
    /// By the user's `node`, with the options of its first line.
    Node { options: Vec<String> },
    /// By the Python of its own environment.
    Python,
    /// By itself.
    Direct,
}

/// Where a PyPI installation keeps its Python, below the installation.
pub(super) const PYTHON: &str = "env/bin/python";

/// Reads and checks the lock that a recipe left in `directory`; `None` if there is no valid one.
pub(super) fn read_lock(package: &Package, version: &str, directory: &Path) -> Option<(Checked, String)> {
    let file = match package.ecosystem() {
        Ecosystem::Npm => npm::LOCK,
        Ecosystem::Pypi => pypi::LOCK,
    };
    let text = std::fs::read_to_string(directory.join(file)).ok()?;
    Some((check_lock(package, version, &text)?, text))
}

/// Checks a lock; `None` if it is not a valid one of the package at `version`.
pub(super) fn check_lock(package: &Package, version: &str, text: &str) -> Option<Checked> {
    let checked = match package.ecosystem() {
        Ecosystem::Npm => lock::check_npm(text, package.name(), version),
        Ecosystem::Pypi => lock::check_requirements(text, package.name(), Some(version)),
    };
    checked.ok()
}

/// Asks the registry for the exact version and its integrity; runs no code of the package.
pub(super) async fn resolve(
    tools: &Tools,
    package: &Package,
    directory: &Path,
) -> Result<Resolved, InstallError> {
    match package.ecosystem() {
        Ecosystem::Npm => npm::resolve(tools, package, directory).await,
        Ecosystem::Pypi => pypi::resolve(tools, package, directory).await,
    }
}

/// Installs into the order's directory.
pub(super) async fn install(tools: &Tools, order: &Order<'_>) -> Result<Built, InstallError> {
    match order.package.ecosystem() {
        Ecosystem::Npm => npm::install(tools, order).await,
        Ecosystem::Pypi => pypi::install(tools, order).await,
    }
}

/// Tells whether a path stays below where it starts.
fn stays_below(path: &Path) -> bool {
    path.components()
        .all(|component| matches!(component, Component::Normal(_) | Component::CurDir))
        && path.components().next().is_some()
}
