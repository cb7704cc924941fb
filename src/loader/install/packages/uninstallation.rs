//! Taking a package out of the store: only what no other server uses, and never what a server wrote.

use std::path::PathBuf;

use super::Packages;
use crate::history::{Record, Text};
use crate::loader::install::background::off_thread;
use crate::loader::install::error::InstallError;
use crate::loader::plan::{Package, Resolved, Scripts, VersionSpec};
use crate::loader::store::{PackageIdentity, WrittenFiles};
use crate::protocol::DependencyName;

/// A server that uses a package, beside the one that is uninstalled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Who uses it, as a person is told.
    pub by: String,
    /// What it uses; an approval of an older pml names only the content.
    pub of: Used,
}

/// What a server uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Used {
    /// A package as it is declared.
    Package(Package),
    /// The package that has this integrity.
    Integrity(String),
}

/// What `uninstall` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uninstalled {
    /// The package was not known.
    Nothing,
    /// Others still use the files of the package.
    StillNeeded {
        /// The version that was pinned.
        version: String,
        /// Who uses them, as a person is told; empty if only a record says so.
        by: Vec<String>,
    },
    /// The version is no longer pinned and its files are gone.
    Removed {
        /// The version that was pinned.
        version: String,
        /// The directories that were removed.
        directories: Vec<PathBuf>,
        /// What the server wrote into them, and where that is now.
        kept: Vec<WrittenFiles>,
    },
}

/// A package in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPackage {
    /// The package, as it was declared.
    pub package: Package,
    /// The version it means.
    pub version: String,
    /// How many bytes its installations take.
    pub bytes: u64,
}

/// The versions of packages that are installed at one moment.
#[derive(Debug, Clone)]
pub struct InstalledVersions(Vec<PackageIdentity>);

impl InstalledVersions {
    /// Tells whether a version of a package is among them, with whatever extras and scripts.
    #[must_use]
    pub fn has(&self, package: &Package, version: &str) -> bool {
        self.0.iter().any(|installed| installed.is_of(package, version))
    }
}

impl Packages {
    /// Returns the packages that none of `uses` is of; looks at every file of them.
    #[must_use]
    pub fn unused(&self, uses: &[Use]) -> Vec<StoredPackage> {
        let is_used = |package: &Package, version: &str| {
            let integrity = self.store.record(package).and_then(|resolved| resolved.integrity);
            uses.iter().any(|other| match &other.of {
                Used::Package(other) => {
                    other.to_string() == package.to_string() || self.is_version(other, package, version)
                }
                Used::Integrity(other) => integrity.as_ref() == Some(other),
            })
        };
        let specs = self.store.specs().into_iter();
        let unused = specs.filter(|(package, version)| !is_used(package, version));
        unused
            .map(|(package, version)| StoredPackage {
                bytes: self.store.size(&package, &version),
                package,
                version,
            })
            .collect()
    }

    /// Returns every version of a package that is installed now.
    #[must_use]
    pub fn installed_versions(&self) -> InstalledVersions {
        InstalledVersions(self.store.identities())
    }

    /// Returns how many bytes the installations of a package take.
    #[must_use]
    pub fn size(&self, package: &Package) -> Option<u64> {
        let version = self.store.record(package)?.version;
        Some(self.store.size(package, &version)).filter(|bytes| *bytes > 0)
    }

    /// Unpins the package of `name` and removes its files, unless others use them.
    ///
    /// Waits for an installation of it that is under way, which would otherwise bring back what is removed.
    pub async fn uninstall(
        &self,
        name: &DependencyName,
        package: &Package,
        others: &[Use],
    ) -> Result<Uninstalled, InstallError> {
        let Some(Resolved { version, .. }) = self.store.record(package) else {
            return Ok(Uninstalled::Nothing);
        };
        let identity = |scripts| PackageIdentity::new(package, &version, scripts);
        let _held = self.store.lock(&identity(Scripts::Off).key(), || {}).await?;
        let _also_held = match identity(Scripts::Allowed).key() {
            key if key == identity(Scripts::Off).key() => None,
            key => Some(self.store.lock(&key, || {}).await?),
        };
        let Some(resolved) = self.store.record(package) else {
            return Ok(Uninstalled::Nothing);
        };
        let users = |uses: &dyn Fn(&Used) -> bool| {
            let users = others.iter().filter(|other| uses(&other.of));
            users.map(|other| other.by.clone()).collect::<Vec<_>>()
        };
        let version = resolved.version.clone();
        let by =
            users(&|used| matches!(used, Used::Package(other) if other.to_string() == package.to_string()));
        if !by.is_empty() {
            return Ok(Uninstalled::StillNeeded { version, by });
        }
        let by = users(&|used| match used {
            Used::Package(other) => self.is_version(other, package, &version),
            Used::Integrity(integrity) => resolved.integrity.as_ref() == Some(integrity),
        });
        if !by.is_empty() || self.store.is_needed_by_others(package, &version) {
            self.store.forget(package)?;
            return Ok(Uninstalled::StillNeeded { version, by });
        }
        let taken_out = Record::Removed {
            package: Text::of(&package.exactly(&version)),
        };
        let (store, name, removing) = (self.store.clone(), name.clone(), package.clone());
        let removed = off_thread(move || {
            let (directories, kept) = store.remove_installations(&name, &removing, &version)?;
            // Last: where removing breaks off, the next attempt still knows what to remove.
            store.forget(&removing)?;
            Ok(Uninstalled::Removed {
                version,
                directories,
                kept,
            })
        });
        let removed: Result<_, InstallError> = removed.await.unwrap_or(Ok(Uninstalled::Nothing));
        let removed = removed?;
        if let Uninstalled::Removed { .. } = removed {
            self.history.note(taken_out).await;
        }
        Ok(removed)
    }

    /// Tells whether `other` means `version` of the same package.
    fn is_version(&self, other: &Package, package: &Package, version: &str) -> bool {
        let same =
            other.ecosystem() == package.ecosystem() && other.registry_name() == package.registry_name();
        same && match (other.version(), self.store.record(other)) {
            (VersionSpec::Exact(exact), _) => exact == version,
            (VersionSpec::Floating(_), resolved) => {
                resolved.is_some_and(|resolved| resolved.version == version)
            }
        }
    }
}
