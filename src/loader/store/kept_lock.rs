//! The lock that a package was first installed with, kept so that it is installed from nothing else later.
//!
//! It lies apart from the installations: those are lost when an environment breaks, Python is upgraded or the
//! store is wiped, and the versions of dependencies would be resolved anew.

use serde::{Deserialize, Serialize};

use super::PackageStore;
use super::error::StoreError;
use super::files::{create_directory, replace, sync_directory};
use super::identity::PackageIdentity;
use super::manifest::{FORMAT, json};
use crate::loader::plan::Package;
use crate::protocol::Digest;

/// A lock as the installer wrote it, and the digest of what it pins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::loader) struct KeptLock {
    format: u32,
    identity: PackageIdentity,
    pub(in crate::loader) digest: Digest,
    pub(in crate::loader) text: String,
}

/// Whether the lock of a package is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::loader) enum KeptLockState {
    /// It is.
    Kept(KeptLock),
    /// There is none.
    Missing,
    /// What is there is none of this package.
    Unreadable,
}

impl PackageStore {
    /// Returns the lock of a package; an unreadable one counts as none.
    pub(in crate::loader) fn frozen(&self, identity: &PackageIdentity) -> Option<KeptLock> {
        match self.frozen_state(identity) {
            KeptLockState::Kept(frozen) => Some(frozen),
            KeptLockState::Missing | KeptLockState::Unreadable => None,
        }
    }

    /// Returns the lock of a package, or tells why there is none.
    pub(in crate::loader) fn frozen_state(&self, identity: &PackageIdentity) -> KeptLockState {
        let text = match std::fs::read(self.frozen_path(identity)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return KeptLockState::Missing,
            Err(_) => return KeptLockState::Unreadable,
        };
        match serde_json::from_slice::<KeptLock>(&text) {
            Ok(frozen) if frozen.format == FORMAT && frozen.identity == identity.without_scripts() => {
                KeptLockState::Kept(frozen)
            }
            Ok(_) | Err(_) => KeptLockState::Unreadable,
        }
    }

    /// Keeps the lock of a package, in place of one that was kept before.
    pub(in crate::loader) fn freeze(
        &self,
        identity: &PackageIdentity,
        digest: Digest,
        text: String,
    ) -> Result<(), StoreError> {
        let path = self.frozen_path(identity);
        let frozen = KeptLock {
            format: FORMAT,
            identity: identity.without_scripts(),
            digest,
            text,
        };
        let directory = self.root.join("frozen");
        create_directory(&directory)?;
        let written = replace(&path, &json(&frozen)).map_err(StoreError::file("write", &path));
        self.forget_records();
        written?;
        sync_directory(&directory)
    }

    /// Forgets every lock of this version of a package: its dependencies are resolved anew.
    pub(super) fn thaw(&self, package: &Package, version: &str) -> Result<(), StoreError> {
        let directory = self.root.join("frozen");
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let frozen = std::fs::read(&path)
                .ok()
                .and_then(|text| serde_json::from_slice::<KeptLock>(&text).ok());
            if frozen.is_some_and(|frozen| frozen.identity.is_of(package, version)) {
                std::fs::remove_file(&path).map_err(StoreError::file("remove", &path))?;
            }
        }
        self.forget_records();
        sync_directory(&directory)
    }

    pub(super) fn frozen_path(&self, identity: &PackageIdentity) -> std::path::PathBuf {
        let name = identity.without_scripts().file_name("frozen");
        let ecosystem = identity.ecosystem.as_str();
        self.root.join("frozen").join(format!("{ecosystem}-{name}.json"))
    }
}
