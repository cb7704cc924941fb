//! The recipes of npm and PyPI: how a package gets into a directory, and the proof that it is what was shown.
//!
//! Owns the processes of the installers and their environment. Knows no store: a recipe fills the directory it is
//! given and says what is in it. No code of a package runs before its lock has been checked.

mod attestations;
mod bounded;
mod credentials;
mod failure;
mod growth;
mod indexes;
mod npm;
mod npm_archives;
mod npm_command;
mod npm_scripts;
mod npm_versions;
mod order;
mod patience;
mod process;
mod pypi;
mod pypi_versions;
mod read_budget;
mod records;
mod registries;
mod tar_entries;
mod tools;
mod uv;
mod venv;
mod withdrawal;

pub(super) use attestations::{AttestationLead, attest};
pub(super) use order::{InstallOrder, InstalledFiles};
pub use registries::Registries;
pub(super) use tools::Tools;

use std::path::Path;

use super::error::InstallError;
use super::lock::{self, CheckedLock};
use super::release_age::AgeLimit;
use crate::loader::plan::{Ecosystem, Package, Resolved};

/// Reads and checks the lock that a recipe left in `directory`; `None` if there is no valid one.
pub(super) fn read_lock(package: &Package, version: &str, directory: &Path) -> Option<(CheckedLock, String)> {
    let file = match package.ecosystem() {
        Ecosystem::Npm => npm::LOCK,
        Ecosystem::Pypi => pypi::LOCK,
    };
    let text = std::fs::read_to_string(directory.join(file)).ok()?;
    Some((check_lock(package, version, &text)?, text))
}

/// Checks a lock; `None` if it is not a valid one of the package at `version`.
pub(super) fn check_lock(package: &Package, version: &str, text: &str) -> Option<CheckedLock> {
    let checked = match package.ecosystem() {
        Ecosystem::Npm => lock::check_npm(text, package.name(), version),
        Ecosystem::Pypi => lock::check_requirements(text, package.name(), Some(version)),
    };
    checked.ok()
}

/// Asks the registry for the exact version, its integrity and its age; runs no code of the package. Where it was built
/// takes longer to find out, by [`attest`].
///
/// A floating spec means the newest version that `limit` admits, where there is one; whether what it returns is old enough
/// is for the caller to check.
pub(super) async fn resolve(
    tools: &Tools,
    package: &Package,
    directory: &Path,
    limit: Option<&AgeLimit>,
) -> Result<(Resolved, AttestationLead), InstallError> {
    match package.ecosystem() {
        Ecosystem::Npm => npm_versions::resolve(tools, package, directory, limit).await,
        Ecosystem::Pypi => pypi_versions::resolve(tools, package, directory, limit).await,
    }
}

/// Writes the lock of the order's package into its directory; fetches and runs nothing of it.
pub(super) async fn lock(tools: &Tools, order: &InstallOrder<'_>) -> Result<(), InstallError> {
    match order.package.ecosystem() {
        Ecosystem::Npm => npm::lock(tools, order).await,
        Ecosystem::Pypi => pypi::lock(tools, order).await,
    }
}

/// Installs into the order's directory.
pub(super) async fn install(tools: &Tools, order: &InstallOrder<'_>) -> Result<InstalledFiles, InstallError> {
    match order.package.ecosystem() {
        Ecosystem::Npm => npm::install(tools, order).await,
        Ecosystem::Pypi => pypi::install(tools, order).await,
    }
}
