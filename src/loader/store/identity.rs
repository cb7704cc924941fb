//! What an installation is of: one package at one exact version; and the file names that follow from it.

use serde::{Deserialize, Serialize};

use crate::loader::plan::{Ecosystem, Package, Scripts};
use crate::protocol::Digest;

/// Names of files end at 255 bytes; the digest keeps shortened ones apart.
pub(super) const READABLE_LENGTH: usize = 120;

/// How much of the digest stands in a name: enough to keep apart what shares its readable part.
pub(super) const DIGEST_LENGTH: usize = 16;

/// One package at one exact version, as it is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::loader) struct PackageIdentity {
    pub(super) ecosystem: Ecosystem,
    name: String,
    pub(super) version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    python: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    beside: Vec<String>,
    scripts: Scripts,
}

impl PackageIdentity {
    pub(in crate::loader) fn new(package: &Package, version: &str, scripts: Scripts) -> Self {
        let extras = package.extras();
        let name = package.registry_name();
        Self {
            ecosystem: package.ecosystem(),
            name: if extras.is_empty() {
                name
            } else {
                format!("{name}[{}]", extras.join(","))
            },
            version: version.to_owned(),
            python: package.python().map(str::to_owned),
            beside: package.beside().to_vec(),
            // PyPI packages are installed from wheels, which have no scripts.
            scripts: match package.ecosystem() {
                Ecosystem::Npm => scripts,
                Ecosystem::Pypi => Scripts::Off,
            },
        }
    }

    /// Returns the package at its exact version; `None` if it was written by something else than pml.
    pub(in crate::loader) fn package(&self) -> Option<Package> {
        let separator = match self.ecosystem {
            Ecosystem::Npm => "@",
            Ecosystem::Pypi => "==",
        };
        let Self { name, version, .. } = self;
        Package::explicit(&format!("{}:{name}{separator}{version}", self.ecosystem.as_str())).ok()
    }

    /// Returns the exact version.
    pub(in crate::loader) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the package with its version, such as `npm:name@1.0.0`.
    pub(in crate::loader) fn title(&self) -> String {
        format!("{}:{}@{}", self.ecosystem.as_str(), self.name, self.version)
    }

    /// Returns its name without extras.
    pub(super) fn base(&self) -> &str {
        self.name
            .split_once('[')
            .map_or(self.name.as_str(), |(name, _)| name)
    }

    /// Tells whether it is `version` of a package; extras, scripts and Python do not count.
    pub(in crate::loader) fn is_of(&self, package: &Package, version: &str) -> bool {
        let same = self.ecosystem == package.ecosystem() && self.base() == package.registry_name();
        same && self.version == version
    }

    /// Returns a file name for this identity; `more` tells apart what shares it.
    pub(super) fn file_name(&self, more: &str) -> String {
        let readable: String = format!("{}@{}", self.name, self.version)
            .replace('/', "+")
            .chars()
            .take(READABLE_LENGTH)
            .collect();
        let parts = [
            self.ecosystem.as_str(),
            &self.name,
            &self.version,
            self.python.as_deref().unwrap_or_default(),
            more,
        ];
        let scripts = if self.scripts == Scripts::Allowed {
            "+scripts"
        } else {
            ""
        };
        let beside = self.beside.iter().map(String::as_str);
        let digest = Digest::of(parts.into_iter().chain([scripts]).chain(beside));
        format!("{readable}-{}{scripts}", &digest.as_str()[..DIGEST_LENGTH])
    }

    /// Returns the name of its lock and the beginning of its workspaces' names.
    pub(in crate::loader) fn key(&self) -> String {
        format!("{}-{}", self.ecosystem.as_str(), self.file_name("lock"))
    }

    /// Scripts do not change what is installed.
    pub(super) fn without_scripts(&self) -> Self {
        Self {
            scripts: Scripts::Off,
            ..self.clone()
        }
    }
}
