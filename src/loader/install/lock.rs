//! Checks what an installer has resolved, before any code of it can run.
//!
//! Pure: text in, integrity or refusal out. npm accepts a lock without integrity silently and older versions do
//! not know `--allow-git=none`, so nothing here relies on what npm promises.

mod error;
#[cfg(test)]
mod tests;

pub use error::LockError;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::loader::plan::{Package, is_npm_name, is_pypi_name, is_python_version, normalize};
use crate::pins::PackagePin;
use crate::protocol::{Digest, Shown};

/// What a lock that was checked says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::loader) struct CheckedLock {
    /// The version of the package itself.
    pub(in crate::loader) version: String,
    /// The integrity of the package itself.
    pub(in crate::loader) integrity: String,
    /// The digest of everything that the lock pins; layout, order and registry address do not count.
    pub(in crate::loader) digest: Digest,
    /// Everything that would be installed: the integrity of each package by `name@version`.
    pub(in crate::loader) packages: BTreeMap<String, String>,
    /// The packages that bring install scripts, as `name@version`.
    pub(in crate::loader) install_scripts: Vec<String>,
}

impl CheckedLock {
    /// Returns what would be installed with a package, as far as the lock says it.
    pub(super) fn pin(&self, package: &Package) -> PackagePin {
        PackagePin {
            name: format!("{}:{}", package.ecosystem().as_str(), package.registry_name()),
            version: self.version.clone(),
            integrity: Some(self.integrity.clone()),
            package_lock: Some(self.digest.clone()),
            published: None,
            provenance: crate::pins::ProvenanceFinding::default(),
            built_before: None,
            install_scripts: self.install_scripts.clone(),
            packages: self.packages.clone(),
        }
    }
}

/// Stands for the integrity of a package that lies in the archive of another.
const BUNDLED: &str = "bundled";

/// Begins the integrity of a package that may come in one of several archives: a digest over the hashes of all of them,
/// which is the hash of none.
const ARCHIVES: &str = "archives-sha256-";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lock {
    lockfile_version: u32,
    packages: BTreeMap<String, LockEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LockEntry {
    name: Option<String>,
    version: Option<String>,
    resolved: Option<String>,
    integrity: Option<String>,
    #[serde(default)]
    link: bool,
    #[serde(default)]
    in_bundle: bool,
    #[serde(default)]
    has_install_script: bool,
    #[serde(default)]
    dependencies: BTreeMap<String, String>,
    #[serde(default)]
    optional_dependencies: BTreeMap<String, String>,
    #[serde(default)]
    peer_dependencies: BTreeMap<String, String>,
}

/// Checks an npm lock that must hold `name` at `version`.
pub(super) fn check_npm(text: &str, name: &str, version: &str) -> Result<CheckedLock, LockError> {
    let lock: Lock = serde_json::from_str(text).map_err(|error| LockError::Unreadable {
        reason: Shown::line(&error.to_string()).to_string(),
    })?;
    // Version 2 carries the same `packages`; version 1 has none.
    if !matches!(lock.lockfile_version, 2 | 3) {
        return Err(LockError::Unreadable {
            reason: format!("version {} of the format is not known", lock.lockfile_version),
        });
    }
    for (path, entry) in &lock.packages {
        if !path.is_empty() {
            check_entry(path, entry, &lock.packages)?;
        }
        let wanted = entry
            .dependencies
            .iter()
            .chain(&entry.optional_dependencies)
            .chain(&entry.peer_dependencies);
        for (dependency, spec) in wanted {
            if !is_registry_spec(spec) {
                return Err(LockError::Origin {
                    entry: Shown::line(dependency).to_string(),
                    origin: Shown::line(spec).to_string(),
                });
            }
        }
    }
    check_names(&lock.packages)?;
    let root = lock.packages.get(&format!("node_modules/{name}"));
    root.filter(|entry| {
        entry.version.as_deref() == Some(version) && entry.name.as_deref().is_none_or(|found| found == name)
    })
    .and_then(|entry| strong(entry.integrity.as_deref()?))
    .map(|integrity| CheckedLock {
        version: version.to_owned(),
        integrity,
        digest: npm_digest(&lock.packages),
        packages: entries(&lock.packages)
            .map(|(title, entry)| {
                let integrity = entry.integrity.as_deref().and_then(strong);
                (title, integrity.unwrap_or_else(|| BUNDLED.to_owned()))
            })
            .collect(),
        install_scripts: {
            let with_scripts = entries(&lock.packages).filter(|(_, entry)| entry.has_install_script);
            let titles: BTreeSet<String> = with_scripts.map(|(title, _)| title).collect();
            titles.into_iter().collect()
        },
    })
    .ok_or_else(|| LockError::Absent {
        name: name.to_owned(),
        version: version.to_owned(),
    })
}

/// Refuses a package under the name of another, unless a dependency is declared as an alias for it.
fn check_names(packages: &BTreeMap<String, LockEntry>) -> Result<(), LockError> {
    let specs = packages.values().flat_map(|entry| {
        let declared = entry.dependencies.iter().chain(&entry.optional_dependencies);
        declared.chain(&entry.peer_dependencies)
    });
    let aliases: BTreeSet<(&str, &str)> = specs
        .filter_map(|(name, spec)| {
            let target = spec.trim().strip_prefix("npm:")?;
            let version = target.get(1..).and_then(|rest| rest.find('@'));
            Some((
                name.as_str(),
                version.map_or(target, |version| &target[..=version]),
            ))
        })
        .collect();
    for (path, entry) in packages.iter().filter(|(path, _)| !path.is_empty()) {
        let folder = path
            .rsplit_once("node_modules/")
            .map_or(path.as_str(), |(_, name)| name);
        if let Some(name) = entry.name.as_deref()
            && name != folder
            && !aliases.contains(&(folder, name))
        {
            return Err(LockError::Name {
                entry: Shown::line(folder).to_string(),
                found: Shown::line(name).to_string(),
            });
        }
    }
    Ok(())
}

/// Returns every package of an npm lock but the installation itself, each as `name@version`.
fn entries(packages: &BTreeMap<String, LockEntry>) -> impl Iterator<Item = (String, &LockEntry)> {
    let installed = packages.iter().filter(|(path, _)| !path.is_empty());
    installed.map(|(path, entry)| {
        let folder = path
            .rsplit_once("node_modules/")
            .map_or(path.as_str(), |(_, name)| name);
        let name = entry.name.as_deref().unwrap_or(folder);
        let version = entry.version.as_deref().unwrap_or_default();
        (Shown::line(&format!("{name}@{version}")).to_string(), entry)
    })
}

/// Digests where each package lies, what it is and what it contains. From which address it came does not count:
/// its content is the same from every mirror.
fn npm_digest(packages: &BTreeMap<String, LockEntry>) -> Digest {
    let parts = packages
        .iter()
        .filter(|(path, _)| !path.is_empty())
        .flat_map(|(path, entry)| {
            [
                path.clone(),
                entry.name.clone().unwrap_or_default(),
                entry.version.clone().unwrap_or_default(),
                // A bundled package has none: it lies in the archive of another.
                entry.integrity.as_deref().and_then(strong).unwrap_or_default(),
            ]
        });
    Digest::of(std::iter::once("npm lock 1".to_owned()).chain(parts))
}

fn check_entry(
    path: &str,
    entry: &LockEntry,
    packages: &BTreeMap<String, LockEntry>,
) -> Result<(), LockError> {
    let shown = || Shown::line(path.rsplit_once("node_modules/").map_or(path, |(_, name)| name)).to_string();
    let inside = path.starts_with("node_modules/")
        && path.split("/node_modules/").enumerate().all(|(depth, part)| {
            is_folder_name(if depth == 0 {
                part.trim_start_matches("node_modules/")
            } else {
                part
            })
        });
    if entry.link || !inside {
        return Err(LockError::Link { entry: shown() });
    }
    if let Some(resolved) = &entry.resolved
        && !resolved.starts_with("https://")
        && !resolved.starts_with("http://")
    {
        return Err(LockError::Origin {
            entry: shown(),
            origin: Shown::line(resolved).to_string(),
        });
    }
    // A bundled dependency lies in the archive of its owner, whose integrity covers it.
    let covered = |path: &str| {
        let mut path = path;
        while let Some((owner, _)) = path.rsplit_once("/node_modules/") {
            match packages.get(owner) {
                Some(entry) if !entry.in_bundle => {
                    return entry.integrity.as_deref().and_then(strong).is_some();
                }
                _ => path = owner,
            }
        }
        false
    };
    let bundled = entry.in_bundle && entry.integrity.is_none() && covered(path);
    if !bundled && entry.integrity.as_deref().and_then(strong).is_none() {
        return Err(LockError::Integrity {
            entry: shown(),
            algorithm: "sha512",
        });
    }
    Ok(())
}

/// Returns the SHA-512 of an integrity that may list several algorithms.
pub(super) fn strong(integrity: &str) -> Option<String> {
    let base64 = |found: char| found.is_ascii_alphanumeric() || matches!(found, '+' | '/' | '=');
    integrity
        .split_whitespace()
        // 64 bytes in base64.
        .find(|part| part.strip_prefix("sha512-").is_some_and(|hash| hash.len() == 88 && hash.chars().all(base64)))
        .map(str::to_owned)
}

/// Tells whether `name` can be the folder of a package; old packages have upper-case names.
fn is_folder_name(name: &str) -> bool {
    is_npm_name(
        &name
            .to_ascii_lowercase()
            .replace(['~', '\'', '!', '(', ')', '*'], "x"),
    ) || name.starts_with('_') && !name.contains('/')
}

/// Tells whether a dependency's spec names a registry: a range, a tag, or an alias of another package.
pub(super) fn is_registry_spec(spec: &str) -> bool {
    let spec = spec.trim();
    if let Some(alias) = spec.strip_prefix("npm:") {
        let unscoped = alias.strip_prefix('@').unwrap_or(alias);
        return !alias.contains(':') && unscoped.matches('/').count() == usize::from(alias.starts_with('@'));
    }
    !spec.contains([':', '/', '\\']) && !spec.starts_with(['.', '~'])
        || spec.starts_with('~') && !spec.contains([':', '/', '\\'])
}

/// Checks compiled requirements that must hold `name`, at `version` where one is given.
///
/// Every line is `name==version` with at least one SHA-256. The integrity is the hash of the only archive, or a
/// digest over the hashes of all archives of that version.
pub(super) fn check_requirements(
    text: &str,
    name: &str,
    version: Option<&str>,
) -> Result<CheckedLock, LockError> {
    let joined = text.replace("\\\n", " ");
    let mut found = None;
    let mut pins = Vec::new();
    let mut packages = BTreeMap::new();
    for line in joined.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let requirement = words.next().unwrap_or_default();
        let origin = || LockError::Origin {
            entry: Shown::line(requirement).to_string(),
            origin: Shown::line(line).to_string(),
        };
        let (entry, pinned) = requirement.split_once("==").ok_or_else(origin)?;
        let entry = entry.split_once('[').map_or(entry, |(entry, _)| entry);
        if !is_python_version(pinned) || !is_pypi_name(entry) {
            return Err(origin());
        }
        let mut hashes = Vec::new();
        for word in words {
            match word.strip_prefix("--hash=") {
                Some(hash) => hashes.extend(hash.strip_prefix("sha256:").filter(|hash| is_sha256(hash))),
                // A marker such as `; python_version < "3.12"` would make the line conditional.
                None => return Err(origin()),
            }
        }
        if hashes.is_empty() {
            return Err(LockError::Integrity {
                entry: Shown::line(entry).to_string(),
                algorithm: "sha256",
            });
        }
        hashes.sort_unstable();
        hashes.dedup();
        pins.push(format!("{}=={pinned} {}", normalize(entry), hashes.join(" ")));
        let (integrity, listed) = match hashes.as_slice() {
            [hash] => (format!("sha256-{hash}"), format!("sha256-{hash}")),
            hashes => {
                let digest = Digest::of(hashes);
                (format!("sha256-{digest}"), format!("{ARCHIVES}{digest}"))
            }
        };
        packages.insert(format!("{}@{pinned}", normalize(entry)), listed);
        if normalize(entry) == normalize(name) {
            found = Some((pinned.to_owned(), integrity));
        }
    }
    pins.sort();
    found
        .map(|(version, integrity)| CheckedLock {
            version,
            integrity,
            digest: Digest::of(std::iter::once("pypi lock 1").chain(pins.iter().map(String::as_str))),
            packages,
            // Wheels have none.
            install_scripts: Vec::new(),
        })
        .filter(|CheckedLock { version: pinned, .. }| version.is_none_or(|version| version == pinned))
        .ok_or_else(|| LockError::Absent {
            name: name.to_owned(),
            version: version.unwrap_or("any").to_owned(),
        })
}

fn is_sha256(hash: &str) -> bool {
    hash.len() == 64 && hash.chars().all(|found| found.is_ascii_hexdigit())
}
