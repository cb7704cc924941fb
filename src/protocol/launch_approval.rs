//! The record of a launch that a person approved, and the check whether it covers a server.

use serde::{Deserialize, Serialize};

use super::{DependencyName, Digest};

/// What was approved of a launch; the launch itself is named by its digest, which is kept beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchApproval {
    /// The dependency's name when it was approved.
    pub dependency: DependencyName,
    /// Its exact version, where there is one.
    pub version: Option<String>,
    /// Its integrity, where there is one.
    pub integrity: Option<String>,
    /// Its package, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The digest of everything that is installed with its package, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Digest>,
    /// When it was approved.
    pub at_unix_ms: u64,
}

impl LaunchApproval {
    /// Tells whether this content is what was approved; a part that either side does not know cannot differ.
    #[must_use]
    pub fn covers(&self, integrity: Option<&str>, lock: Option<&Digest>) -> bool {
        let same_integrity =
            self.integrity.is_none() || integrity.is_none() || self.integrity.as_deref() == integrity;
        let same_lock = self.lock.is_none() || lock.is_none() || self.lock.as_ref() == lock;
        same_integrity && same_lock
    }
}
