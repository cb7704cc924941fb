//! The content of a package that an approval covers: nothing else runs under it.

use super::error::InstallError;
use crate::loader::plan::Resolved;
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
}

impl Content {
    /// Returns this, and what `other` knows where this does not.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            integrity: self.integrity.or(other.integrity),
            lock: self.lock.or(other.lock),
            scripts: self.scripts.or(other.scripts),
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
        match (&self.lock, &found.lock) {
            (Some(expected), Some(found)) if expected != found => Err(InstallError::Dependencies {
                package: package.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}
