//! The content of a package that an approval covers: nothing else runs under it.

use super::error::InstallError;
use crate::loader::plan::Resolved;
use crate::pins::{PackagePin, Provenance, ProvenanceChange, ProvenanceFinding};
use crate::protocol::Digest;

/// The content that a person was shown or approved; a part that is not known may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Content {
    /// The integrity of the package itself.
    pub integrity: Option<String>,
    /// The digest of everything that is installed with it.
    pub lock: Option<Digest>,
    /// The digest of the install scripts that were accepted: no other script runs, and none where it is not known.
    pub scripts: Option<Digest>,
    /// What built the version before, where a person accepted that it is not known where this one was built: what is found
    /// out since must be the same.
    pub built_before: Option<Provenance>,
}

impl Content {
    /// Returns the content of an accepted package.
    #[must_use]
    pub fn of(package: PackagePin) -> Self {
        Self {
            integrity: package.integrity,
            lock: package.package_lock,
            scripts: None,
            built_before: package.built_before,
        }
    }

    /// Returns this, and what `other` knows where this does not.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            integrity: self.integrity.or(other.integrity),
            lock: self.lock.or(other.lock),
            scripts: self.scripts.or(other.scripts),
            built_before: self.built_before.or(other.built_before),
        }
    }

    /// Refuses other content than this.
    pub(in crate::loader) fn check(&self, package: &str, found: &Resolved) -> Result<(), InstallError> {
        if let (Some(expected), Some(found)) = (&self.integrity, &found.integrity)
            && expected != found
        {
            return Err(InstallError::Changed {
                package: package.to_owned(),
                expected: expected.clone(),
                found: found.clone(),
            });
        }
        if let (Some(before), false) = (&self.built_before, found.provenance.is_unknown()) {
            let before = ProvenanceFinding::Proven(before.clone());
            let change = ProvenanceChange::of(&before, &found.provenance);
            if change.asks() {
                return Err(InstallError::BuiltElsewhere {
                    package: package.to_owned(),
                    change: change.to_string(),
                });
            }
        }
        match (&self.lock, &found.lock) {
            (Some(expected), Some(found)) if expected != found => Err(InstallError::Dependencies {
                package: package.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}
