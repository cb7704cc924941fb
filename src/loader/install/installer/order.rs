//! What an installer is asked for, and what it has put into its directory.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use crate::loader::install::content::Content;
use crate::loader::install::error::InstallError;
use crate::loader::install::lock::CheckedLock;
use crate::loader::install::release_age::AgeLimit;
use crate::loader::install::step::InstallProgress;
use crate::loader::install::tail::Tail;
use crate::loader::plan::{Package, Resolved, Scripts};
use crate::loader::store::Executable;
use crate::pins::{MaliciousPackages, PublishedAt};
use crate::protocol::{DependencyName, Secrets};

/// What a recipe is asked for.
pub(in crate::loader::install) struct InstallOrder<'a> {
    /// The server that needs it.
    pub(in crate::loader::install) dependency: &'a DependencyName,
    pub(in crate::loader::install) package: &'a Package,
    pub(in crate::loader::install) version: &'a str,
    /// What was shown, approved or recorded.
    pub(in crate::loader::install) expected: &'a Content,
    /// What must not be among its packages.
    pub(in crate::loader::install) malicious: &'a MaliciousPackages,
    /// The lock of an earlier installation: nothing is resolved anew.
    pub(in crate::loader::install) frozen: Option<&'a str>,
    pub(in crate::loader::install) scripts: Scripts,
    /// How old everything must be that is resolved anew.
    pub(in crate::loader::install) limit: Option<AgeLimit>,
    /// An empty directory of its own.
    pub(in crate::loader::install) directory: &'a Path,
    pub(in crate::loader::install) progress: InstallProgress<'a>,
}

impl InstallOrder<'_> {
    pub(super) fn spec(&self) -> String {
        self.package.at(self.version)
    }

    /// Tells whether an installer failed because only versions that are too young would do.
    pub(super) fn young_dependency(&self, error: InstallError, says: &[&str]) -> InstallError {
        match (error, &self.limit) {
            (
                InstallError::NotFound { source, .. }
                | InstallError::MissingDependency { source, .. }
                | InstallError::Installer { source, .. },
                Some(limit),
            ) if says.iter().any(|reason| source.as_str().contains(reason)) => {
                InstallError::YoungDependency {
                    dependency: self.dependency.clone(),
                    package: self.spec(),
                    minimum: limit.minimum(),
                    source,
                }
            }
            (error, _) => error,
        }
    }

    /// Makes the error of a package that is too young.
    pub(super) fn young(&self, limit: &AgeLimit, package: &str, published: PublishedAt) -> InstallError {
        let said = format!("`{package}` was published {}", limit.ago(published));
        InstallError::YoungDependency {
            dependency: self.dependency.clone(),
            package: self.spec(),
            minimum: limit.minimum(),
            source: Tail::of(said.as_bytes(), &Secrets::default()),
        }
    }

    /// Refuses what is known to be malicious, and other content than what was shown, approved or recorded.
    pub(super) fn check(&self, found: &CheckedLock) -> Result<(), InstallError> {
        let pin = found.pin(self.package);
        if let Some((package, advisory)) = self.malicious.among(&pin) {
            return Err(InstallError::malicious(self.dependency, &package, advisory));
        }
        let found = Resolved {
            integrity: Some(found.integrity.clone()),
            lock: Some(found.digest.clone()),
            ..Resolved::version(&found.version)
        };
        self.expected.check(&self.spec(), &found)
    }
}

/// What a recipe has put into its directory.
pub(in crate::loader::install) struct InstalledFiles {
    pub(in crate::loader::install) integrity: String,
    pub(in crate::loader::install) executables: BTreeMap<String, Executable>,
    /// Files that run at every start before the server itself.
    pub(in crate::loader::install) at_start: Vec<String>,
    /// How the registry withdrew the version, in words that follow "this version".
    pub(in crate::loader::install) withdrawn: Option<String>,
}

/// Tells whether a path stays below where it starts.
pub(super) fn stays_below(path: &Path) -> bool {
    path.components()
        .all(|component| matches!(component, Component::Normal(_) | Component::CurDir))
        && path.components().next().is_some()
}
