//! The records of what declared specs were resolved to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::PackageStore;
use super::error::StoreError;
use super::files::{create_directory, replace, sync_directory};
use super::identity::{PackageIdentity, READABLE_LENGTH};
use super::manifest::{FORMAT, json};
use crate::disk::Stamp;
use crate::loader::plan::{NewerVersion, Package, Resolved, Scripts};
use crate::pins::{ProvenanceFinding, PublishedAt};
use crate::protocol::Digest;

/// What a declared spec was resolved to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResolutionRecord {
    format: u32,
    package: String,
    version: String,
    integrity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    withdrawn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    published: Option<PublishedAt>,
    #[serde(default)]
    provenance: ProvenanceFinding,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left_out: Option<NewerVersion>,
}

/// More specs than any configuration declares.
const RECORDS: usize = 1_000;

/// A record as it was read, with the files that it was read from.
#[derive(Debug)]
pub(super) struct ReadRecord {
    stamp: Stamp,
    /// The lock of the package.
    lock: Option<(Stamp, PathBuf)>,
    resolved: Option<Resolved>,
}

/// What is in memory of a record.
enum InMemory {
    /// What it says as it is now, which may be nothing.
    Current(Option<Box<Resolved>>),
    /// It is to be read.
    Stale,
}

impl PackageStore {
    /// Returns what a spec was resolved to; an unreadable record counts as none and is written anew.
    ///
    /// What was read is kept as long as its files are the same: the lock beside it may have megabytes.
    pub(in crate::loader) fn record(&self, package: &Package) -> Option<Resolved> {
        let path = self.record_path(package);
        match self.read_before(&path) {
            InMemory::Current(known) => known.map(|known| *known),
            InMemory::Stale => self.read_record(package, path),
        }
    }

    /// Tells whether [`PackageStore::record`] would read nothing; costs a look at two files.
    pub(in crate::loader) fn is_read(&self, package: &Package) -> bool {
        matches!(self.read_before(&self.record_path(package)), InMemory::Current(_))
    }

    fn read_record(&self, package: &Package, path: PathBuf) -> Option<Resolved> {
        // Looked at before they are read: what is written meanwhile is read again.
        let stamp = Stamp::of(&path);
        let text = std::fs::read(&path).ok();
        let record = text.and_then(|text| serde_json::from_slice::<ResolutionRecord>(&text).ok());
        let record = record.filter(|record| record.format == FORMAT && record.package == package.to_string());
        let mut lock = None;
        let resolved = record.map(|record| {
            let identity = PackageIdentity::new(package, &record.version, Scripts::Off);
            let kept = self.frozen_path(&identity);
            lock = Some((Stamp::of(&kept), kept));
            Resolved {
                lock: self.frozen(&identity).map(|frozen| frozen.digest),
                version: record.version,
                integrity: record.integrity,
                withdrawn: record.withdrawn,
                published: record.published,
                provenance: record.provenance,
                left_out: record.left_out,
            }
        });
        let mut records = self.records();
        if records.len() >= RECORDS {
            records.clear();
        }
        let read = ReadRecord {
            stamp,
            lock,
            resolved: resolved.clone(),
        };
        records.insert(path, read);
        resolved
    }

    /// Returns what was read before, if its files are still the same.
    fn read_before(&self, path: &Path) -> InMemory {
        let stamp = Stamp::of(path);
        if stamp == Stamp::Missing {
            return InMemory::Current(None);
        }
        let records = self.records();
        let is_current = |seen: &Stamp, now: Stamp| now != Stamp::Unknown && *seen == now;
        let stands = |read: &&ReadRecord| {
            let lock_stands = { read.lock.iter() }.all(|(seen, path)| is_current(seen, Stamp::of(path)));
            is_current(&read.stamp, stamp) && lock_stands
        };
        match records.get(path).filter(stands) {
            Some(read) => InMemory::Current(read.resolved.clone().map(Box::new)),
            None => InMemory::Stale,
        }
    }

    /// Has every record read again: what pml itself writes may look like what was there, within a tick of the clock.
    pub(super) fn forget_records(&self) {
        self.records().clear();
    }

    fn records(&self) -> MutexGuard<'_, HashMap<PathBuf, ReadRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a spec was resolved to; a record that is there already stays and is returned,
    /// but for where the version was built if that was not known.
    pub(in crate::loader) fn keep(
        &self,
        package: &Package,
        resolved: Resolved,
    ) -> Result<Resolved, StoreError> {
        let path = self.record_path(package);
        let resolved = match self.record(package) {
            Some(kept) if kept.integrity.is_some() => {
                let is_same = (&kept.version, &kept.integrity) == (&resolved.version, &resolved.integrity);
                if !is_same || !kept.provenance.is_unknown() || kept.provenance == resolved.provenance {
                    return Ok(kept);
                }
                // Where it was built was not known, and may be now: nothing else of it changes.
                Resolved {
                    provenance: resolved.provenance,
                    ..kept
                }
            }
            _ => resolved,
        };
        let record = ResolutionRecord {
            format: FORMAT,
            package: package.to_string(),
            version: resolved.version.clone(),
            integrity: resolved.integrity.clone(),
            withdrawn: resolved.withdrawn.clone(),
            published: resolved.published,
            provenance: resolved.provenance.clone(),
            left_out: resolved.left_out.clone(),
        };
        create_directory(&self.root.join("resolved"))?;
        let written = replace(&path, &json(&record)).map_err(StoreError::file("write", &path));
        self.forget_records();
        written?;
        Ok(resolved)
    }

    /// Forgets what a spec was resolved to.
    pub(in crate::loader) fn forget(&self, package: &Package) -> Result<(), StoreError> {
        let path = self.record_path(package);
        let removed = std::fs::remove_file(&path);
        self.forget_records();
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::file("remove", &path)(error))
            }
            _ => sync_directory(&self.root.join("resolved")),
        }
    }

    /// Tells whether any other spec than this one is resolved to this version of its package.
    pub(in crate::loader) fn is_needed_by_others(&self, package: &Package, version: &str) -> bool {
        let Ok(entries) = std::fs::read_dir(self.root.join("resolved")) else {
            return false;
        };
        let own = self.record_path(package);
        let others = entries.flatten().filter(|entry| entry.path() != own);
        { others }.any(|entry| {
            let record = std::fs::read(entry.path())
                .ok()
                .and_then(|text| serde_json::from_slice::<ResolutionRecord>(&text).ok());
            let other = record
                .filter(|record| record.version == version)
                .and_then(|record| Package::explicit(&record.package).ok());
            other.is_some_and(|other| {
                other.ecosystem() == package.ecosystem() && other.registry_name() == package.registry_name()
            })
        })
    }

    /// Returns every spec that is resolved, and to which version.
    pub(in crate::loader) fn specs(&self) -> Vec<(Package, String)> {
        let entries = std::fs::read_dir(self.root.join("resolved"))
            .into_iter()
            .flatten();
        let specs = entries.flatten().filter_map(|entry| {
            let text = std::fs::read(entry.path()).ok()?;
            let record: ResolutionRecord = serde_json::from_slice(&text).ok()?;
            Some((Package::explicit(&record.package).ok()?, record.version))
        });
        let mut specs: Vec<(Package, String)> = specs.collect();
        specs.sort_by_key(|(package, _)| package.to_string());
        specs
    }

    /// Returns the specs that are resolved to this version of a package with these extras, and to what.
    pub(in crate::loader) fn records_of(&self, identity: &PackageIdentity) -> Vec<(String, Resolved)> {
        let entries = std::fs::read_dir(self.root.join("resolved"))
            .into_iter()
            .flatten()
            .flatten();
        let records = entries.filter_map(|entry| {
            let text = std::fs::read(entry.path()).ok()?;
            let record: ResolutionRecord = serde_json::from_slice(&text).ok()?;
            let package = Package::explicit(&record.package).ok()?;
            let resolved = self.record(&package)?;
            let of = PackageIdentity::new(&package, &resolved.version, Scripts::Off);
            (of == identity.without_scripts()).then_some((record.package, resolved))
        });
        let mut records: Vec<(String, Resolved)> = records.collect();
        records.sort_by(|one, other| one.0.cmp(&other.0));
        records
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
}
