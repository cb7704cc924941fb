//! The store on disk: installations, records of what a spec was resolved to, locks and workspaces.
//!
//! Owns every file below the data directory. An installation is a directory that was renamed into place with its
//! manifest already inside, so that a killed install leaves nothing that looks installed. Locks are advisory
//! locks of the kernel: they end with the process, so a stale lock cannot exist, and a workspace whose lock is
//! free is abandoned.

mod checksums;
mod error;
mod files;
mod identity;
mod kept_lock;
mod manifest;
mod placement;
mod records;
mod workspaces;
mod written_files;

pub use checksums::TreeDifference;
pub(super) use checksums::{Checksums, ComparedFiles, InstallationPlace};
pub use error::StoreError;
pub(super) use files::{first_bytes, first_line, remove, write_new};
pub(super) use identity::PackageIdentity;
pub(super) use kept_lock::KeptLockState;
pub(super) use manifest::{Executable, Manifest, PYTHON, StartMethod, read_manifest};
pub use written_files::WrittenFiles;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use self::identity::DIGEST_LENGTH;
use self::records::ReadRecord;

/// The files below the data directory.
#[derive(Debug, Clone)]
pub(super) struct PackageStore {
    root: PathBuf,
    /// The records that were read, by their files.
    records: Arc<Mutex<HashMap<PathBuf, ReadRecord>>>,
}

impl PackageStore {
    pub(super) fn new(data: &Path) -> Self {
        Self {
            root: data.to_owned(),
            records: Arc::default(),
        }
    }

    /// Returns where an identity with this integrity is installed.
    pub(super) fn directory(&self, identity: &PackageIdentity, integrity: &str) -> PathBuf {
        self.root
            .join("store")
            .join(identity.ecosystem.as_str())
            .join(identity.file_name(integrity))
    }

    /// Tells whether a directory is where an identity is installed with some integrity.
    pub(super) fn is_directory_of(&self, identity: &PackageIdentity, directory: &Path) -> bool {
        let own = self.directory(identity, "");
        // Only the digest in the middle of the name depends on the integrity.
        let (Some(own_name), Some(name)) = (own.file_name(), directory.file_name()) else {
            return false;
        };
        let (own_name, name) = (own_name.to_string_lossy(), name.to_string_lossy());
        let parts = |name: &str| {
            let (readable, rest) = name.rsplit_once('-')?;
            let (digest, scripts) = rest.split_at_checked(DIGEST_LENGTH)?;
            let is_digest = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_digest.then(|| (readable.to_owned(), scripts.to_owned()))
        };
        let same = parts(&own_name).is_some_and(|own| parts(&name) == Some(own));
        same && own.parent() == directory.parent()
    }

    /// Returns the manifest of an installation, if there is a whole one.
    pub(super) fn manifest(&self, identity: &PackageIdentity, integrity: &str) -> Option<Manifest> {
        let manifest = read_manifest(&self.directory(identity, integrity))?;
        (manifest.identity == *identity && manifest.integrity == integrity).then_some(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::plan::{Package, Resolved, Scripts};

    fn package(text: &str) -> Package {
        Package::explicit(text).unwrap()
    }

    fn resolved(version: &str) -> Resolved {
        Resolved {
            integrity: Some("sha512-x".to_owned()),
            ..Resolved::version(version)
        }
    }

    #[test]
    fn the_first_record_of_a_spec_stays() {
        let home = tempfile::tempdir().unwrap();
        let store = PackageStore::new(home.path());
        let latest = package("npm:@scope/x@latest");
        assert_eq!(store.record(&latest), None);
        assert_eq!(store.keep(&latest, resolved("1.0.0")).unwrap(), resolved("1.0.0"));
        assert_eq!(store.keep(&latest, resolved("2.0.0")).unwrap(), resolved("1.0.0"));
        assert_eq!(store.record(&package("npm:@scope/x")), None);
        assert!(store.is_needed_by_others(&package("npm:@scope/x"), "1.0.0"));
        assert!(!store.is_needed_by_others(&package("npm:x"), "1.0.0"));
        store.forget(&latest).unwrap();
        store.forget(&latest).unwrap();
        assert_eq!(store.record(&latest), None);
    }

    #[test]
    fn a_workspace_is_swept_when_nobody_holds_its_lock() {
        let home = tempfile::tempdir().unwrap();
        let store = PackageStore::new(home.path());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let held = store.lock("held", || {}).await.unwrap();
            let (kept, stale, own) = (
                store.workspace("held"),
                store.workspace("stale"),
                store.workspace("own"),
            );
            store.sweep("own");
            let exist = |path: &Result<PathBuf, StoreError>| path.as_ref().unwrap().exists();
            assert_eq!([&kept, &stale, &own].map(exist), [true, false, false]);
            drop(held);
            store.sweep("own");
            assert!(!exist(&kept));
        });
    }

    #[test]
    fn identities_that_read_alike_have_different_names() {
        let name =
            |text: &str, version: &str, scripts| PackageIdentity::new(&package(text), version, scripts).key();
        let names = [
            name("npm:x", "1.0.0", Scripts::Off),
            name("npm:x", "1.0.0", Scripts::Allowed),
            name("npm:x", "1.0.0+scripts", Scripts::Off),
            name("pypi:x", "1.0.0", Scripts::Off),
            name("pypi:x[a]", "1.0.0", Scripts::Off),
        ];
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert_eq!(
            name("pypi:X_y", "1", Scripts::Off),
            name("pypi:x-y", "1", Scripts::Allowed)
        );
        assert!(names.iter().all(|name| !name.contains('/') && name.len() < 200));
    }
}
