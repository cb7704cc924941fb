//! What an installer is asked for, and what it has put into its directory.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use crate::loader::install::content::Content;
use crate::loader::install::error::InstallError;
use crate::loader::install::lock::CheckedLock;
use crate::loader::install::step::InstallProgress;
use crate::loader::plan::{Package, Resolved, Scripts};
use crate::loader::store::Executable;
use crate::pins::MaliciousPackages;
use crate::protocol::DependencyName;

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
    /// An empty directory of its own.
    pub(in crate::loader::install) directory: &'a Path,
    pub(in crate::loader::install) progress: InstallProgress<'a>,
}

impl InstallOrder<'_> {
    pub(super) fn spec(&self) -> String {
        self.package.at(self.version)
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
