//! The store on disk: installations, records of what a spec was resolved to, locks and workspaces.
//!
//! Owns every file below the data directory. An installation is a directory that was renamed into place with its
//! manifest already inside, so that a killed install leaves nothing that looks installed. Locks are advisory
//! locks of the kernel: they end with the process, so a stale lock cannot exist, and a workspace whose lock is
//! free belongs to nobody.

mod files;
mod foreign;
mod frozen;
mod placement;

pub(super) use files::{first_bytes, first_line, remove, temporary_beside, write_new};
pub use foreign::Written;

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use self::files::{create_directory, open_lock, replace, sync_directory};
use super::error::InstallError;
use super::install::Executable;
use super::package::{Ecosystem, Package};
use super::packages::Resolved;
use super::plan::Scripts;
use crate::protocol::Digest;

/// The name of the file that makes a directory an installation.
const MANIFEST: &str = "pml-manifest.json";

/// Raised when an older pml must not read a manifest or a record.
const FORMAT: u32 = 1;

/// How often a held lock is tried again. Polled, because a thread that blocks in the kernel cannot be cancelled and
/// would keep pml from exiting.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// Names of files end at 255 bytes; the digest keeps shortened ones apart.
const READABLE_LENGTH: usize = 120;

/// One package at one exact version, as it is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Identity {
    ecosystem: Ecosystem,
    name: String,
    version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    python: Option<String>,
    scripts: Scripts,
}

impl Identity {
    pub(super) fn new(package: &Package, version: &str, scripts: Scripts) -> Self {
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
            // PyPI packages are installed from wheels, which have no scripts.
            scripts: match package.ecosystem() {
                Ecosystem::Npm => scripts,
                Ecosystem::Pypi => Scripts::Off,
            },
        }
    }

    /// Returns its name without extras.
    fn base(&self) -> &str {
        self.name
            .split_once('[')
            .map_or(self.name.as_str(), |(name, _)| name)
    }

    /// Tells whether it is `version` of a package; extras, scripts and Python do not count.
    fn is_of(&self, package: &Package, version: &str) -> bool {
        let same = self.ecosystem == package.ecosystem() && self.base() == package.registry_name();
        same && self.version == version
    }

    /// Returns a file name for this identity; `more` tells apart what shares it.
    fn file_name(&self, more: &str) -> String {
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
        let digest = Digest::of(parts.into_iter().chain([scripts]));
        format!("{readable}-{}{scripts}", &digest.as_str()[..16])
    }

    /// Returns the name of its lock and the beginning of its workspaces' names.
    pub(super) fn key(&self) -> String {
        format!("{}-{}", self.ecosystem.as_str(), self.file_name("lock"))
    }
}

/// What an installation says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u32,
    pub(super) identity: Identity,
    pub(super) integrity: String,
    /// The digest of the lock: everything that was installed beside the package.
    pub(super) lock: Digest,
    pub(super) executables: BTreeMap<String, Executable>,
    /// Files that run at every start before the server itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) at_start: Vec<String>,
}

/// What a declared spec was resolved to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Record {
    format: u32,
    package: String,
    version: String,
    integrity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    withdrawn: Option<String>,
}

/// The files below the data directory.
#[derive(Debug, Clone)]
pub(super) struct Store {
    root: PathBuf,
}

/// Holds a lock until it goes out of scope.
#[derive(Debug)]
pub(super) struct Held(#[expect(dead_code, reason = "the open file is the lock")] File);

impl Store {
    pub(super) fn new(data: &Path) -> Self {
        Self {
            root: data.to_owned(),
        }
    }

    /// Returns what a spec was resolved to; an unreadable record counts as none and is written anew.
    pub(super) fn record(&self, package: &Package) -> Option<Resolved> {
        let text = std::fs::read(self.record_path(package)).ok()?;
        let record: Record = serde_json::from_slice(&text).ok()?;
        let frozen = |version: &str| self.frozen(&Identity::new(package, version, Scripts::Off));
        (record.format == FORMAT && record.package == package.to_string()).then(|| Resolved {
            lock: frozen(&record.version).map(|frozen| frozen.digest),
            version: record.version,
            integrity: record.integrity,
            withdrawn: record.withdrawn,
        })
    }

    /// Remembers what a spec was resolved to; a record that is there already stays and is returned.
    pub(super) fn keep(&self, package: &Package, resolved: Resolved) -> Result<Resolved, InstallError> {
        let path = self.record_path(package);
        match self.record(package) {
            Some(kept) if kept.integrity.is_some() => return Ok(kept),
            _ => {}
        }
        let record = Record {
            format: FORMAT,
            package: package.to_string(),
            version: resolved.version.clone(),
            integrity: resolved.integrity.clone(),
            withdrawn: resolved.withdrawn.clone(),
        };
        create_directory(&self.root.join("resolved"))?;
        replace(&path, &json(&record)).map_err(InstallError::file("write", &path))?;
        Ok(resolved)
    }

    /// Forgets what a spec was resolved to.
    pub(super) fn forget(&self, package: &Package) -> Result<(), InstallError> {
        let path = self.record_path(package);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(InstallError::file("remove", &path)(error))
            }
            _ => sync_directory(&self.root.join("resolved")),
        }
    }

    /// Tells whether any other spec than this one is resolved to this version of its package.
    pub(super) fn is_needed_by_others(&self, package: &Package, version: &str) -> bool {
        let Ok(entries) = std::fs::read_dir(self.root.join("resolved")) else {
            return false;
        };
        let own = self.record_path(package);
        let others = entries.flatten().filter(|entry| entry.path() != own);
        { others }.any(|entry| {
            let record = std::fs::read(entry.path())
                .ok()
                .and_then(|text| serde_json::from_slice::<Record>(&text).ok());
            let other = record
                .filter(|record| record.version == version)
                .and_then(|record| Package::explicit(&record.package).ok());
            other.is_some_and(|other| {
                other.ecosystem() == package.ecosystem() && other.registry_name() == package.registry_name()
            })
        })
    }

    fn record_path(&self, package: &Package) -> PathBuf {
        let readable: String = package
            .to_string()
            .replace([':', '/'], "+")
            .chars()
            .filter(|found| found.is_ascii_alphanumeric() || "+@.-_".contains(*found))
            .take(READABLE_LENGTH)
            .collect();
        let digest = Digest::of([package.to_string()]);
        self.root
            .join("resolved")
            .join(format!("{readable}-{}.json", &digest.as_str()[..16]))
    }

    /// Returns where an identity with this integrity is installed.
    pub(super) fn directory(&self, identity: &Identity, integrity: &str) -> PathBuf {
        self.root
            .join("store")
            .join(identity.ecosystem.as_str())
            .join(identity.file_name(integrity))
    }

    /// Returns the manifest of an installation, if there is a whole one.
    pub(super) fn manifest(&self, identity: &Identity, integrity: &str) -> Option<Manifest> {
        let manifest = read_manifest(&self.directory(identity, integrity))?;
        (manifest.identity == *identity && manifest.integrity == integrity).then_some(manifest)
    }

    /// Waits for the lock of `key`, shared by threads and processes; `waiting` is called once if it is held.
    pub(super) async fn lock(&self, key: &str, waiting: impl FnOnce()) -> Result<Held, InstallError> {
        let path = self.lock_path(key);
        create_directory(&self.root.join("locks"))?;
        let file = open_lock(&path).map_err(InstallError::file("open", &path))?;
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Held(file)),
                Err(TryLockError::WouldBlock) => {
                    if let Some(waiting) = waiting.take() {
                        waiting();
                    }
                    tokio::time::sleep(LOCK_POLL).await;
                }
                Err(TryLockError::Error(error)) => return Err(InstallError::file("lock", &path)(error)),
            }
        }
    }

    fn lock_path(&self, key: &str) -> PathBuf {
        self.root.join("locks").join(format!("{key}.lock"))
    }

    /// Makes an empty directory for the holder of `key`'s lock.
    pub(super) fn workspace(&self, key: &str) -> Result<PathBuf, InstallError> {
        let path = self
            .workspaces()
            .join(format!("{key}~{}", uuid::Uuid::new_v4().simple()));
        create_directory(&path)?;
        Ok(path)
    }

    fn workspaces(&self) -> PathBuf {
        self.root.join("temporary")
    }

    /// Removes workspaces that belong to nobody; `own` is the key whose lock the caller holds.
    pub(super) fn sweep(&self, own: &str) {
        let Ok(entries) = std::fs::read_dir(self.workspaces()) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some((key, _)) = name.to_str().and_then(|name| name.rsplit_once('~')) else {
                continue;
            };
            let free =
                key == own || open_lock(&self.lock_path(key)).is_ok_and(|file| file.try_lock().is_ok());
            if free {
                remove(&entry.path());
            }
        }
    }
}

fn read_manifest(directory: &Path) -> Option<Manifest> {
    let text = std::fs::read(directory.join(MANIFEST)).ok()?;
    let manifest: Manifest = serde_json::from_slice(&text).ok()?;
    (manifest.format == FORMAT).then_some(manifest)
}

impl Manifest {
    pub(super) fn new(
        identity: Identity,
        integrity: String,
        lock: Digest,
        executables: BTreeMap<String, Executable>,
        at_start: Vec<String>,
    ) -> Self {
        Self {
            format: FORMAT,
            identity,
            integrity,
            lock,
            executables,
            at_start,
        }
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // These types have text keys and no fallible parts; an empty file would be refused when it is read.
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(text: &str) -> Package {
        Package::explicit(text).unwrap()
    }

    fn resolved(version: &str) -> Resolved {
        Resolved {
            version: version.to_owned(),
            integrity: Some("sha512-x".to_owned()),
            lock: None,
            withdrawn: None,
        }
    }

    #[test]
    fn the_first_record_of_a_spec_stays() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(home.path());
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
        let store = Store::new(home.path());
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
            let exist = |path: &Result<PathBuf, InstallError>| path.as_ref().unwrap().exists();
            assert_eq!([&kept, &stale, &own].map(exist), [true, false, false]);
            drop(held);
            store.sweep("own");
            assert!(!exist(&kept));
        });
    }

    #[test]
    fn identities_that_read_alike_have_different_names() {
        let name = |text: &str, version: &str, scripts| Identity::new(&package(text), version, scripts).key();
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
