//! What a server is run from: a package, a program or an address; and whether install scripts may run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::address::Address;
use super::package::Package;

/// Whether install scripts may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scripts {
    /// No code of the package runs while it is installed.
    Off,
    /// `"allowScripts": true`: the scripts of the package and its dependencies run.
    Allowed,
}

/// What would be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanSource {
    /// A package of a registry, installed into pml's store.
    Package(Package),
    /// A program as given: an absolute path, or a bare name that is looked up on the user's `PATH`.
    Command {
        /// The program.
        program: PathBuf,
    },
    /// A server elsewhere.
    Remote(Address),
}
