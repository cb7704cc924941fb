//! The content of a package that an approval covers: nothing else runs under it.

use std::sync::Arc;

use super::{InstallError, LoadError, Plan, Resolved, Started};
use crate::protocol::Digest;

/// The content that a person was shown or approved; a part that is not known may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Content {
    /// The integrity of the package itself.
    pub integrity: Option<String>,
    /// The digest of everything that is installed with it.
    pub lock: Option<Digest>,
}

impl Content {
    /// Refuses other content than this.
    pub(super) fn check(&self, package: &str, found: &Resolved) -> Result<(), InstallError> {
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

    /// Returns a started dependency, unless it is other content than this: another call may have started it.
    pub(super) fn checked(&self, plan: &Plan, started: Started) -> Result<Started, Arc<LoadError>> {
        let (Some(package), Some(resolved)) = (plan.package(), &started.resolved) else {
            return Ok(started);
        };
        match self.check(&package.spec(), resolved) {
            Ok(()) => Ok(started),
            Err(InstallError::Changed { expected, found, .. }) => Err(Arc::new(LoadError::Changed {
                dependency: plan.dependency().clone(),
                expected,
                found,
            })),
            Err(error) => Err(Arc::new(error.into())),
        }
    }
}
