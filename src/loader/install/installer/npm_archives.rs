//! Looks into the archives that npm has unpacked, before anything of them runs.
//!
//! They lie in npm's cache by their integrity. A registry may forbid npm to keep them; then there is nothing to look at,
//! and what npm leaves out of such archives by itself must do.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::Value;

use super::growth;
use super::order::InstallOrder;
use super::read_budget::{DEADLINE, ReadBudget};
use super::tar_entries;
use super::tools::Tools;
use crate::loader::install::background::off_thread;
use crate::loader::install::error::InstallError;
use crate::loader::install::lock::strong;
use crate::protocol::Shown;

/// One archive of a lock.
struct Archive {
    /// What it is, as `name@version`.
    title: String,
    file: PathBuf,
    /// The packages that a `node_modules` of the archive must not hold: the lock names others of their names.
    foreign: BTreeSet<String>,
}

/// An entry that is no honest archive's.
struct Fault {
    archive: String,
    entry: String,
    reason: &'static str,
}

/// Refuses an installation whose archives hold what would lie outside of its package, or in place of another one.
pub(super) async fn inspect(tools: &Tools, order: &InstallOrder<'_>, lock: &str) -> Result<(), InstallError> {
    let archives = archives(lock, &tools.cache("npm"));
    // What npm has written is within the same bound; what it left out of an archive was not written.
    let mut budget = ReadBudget::new(growth::limit(tools.environment()), DEADLINE);
    let fault = off_thread(move || archives.iter().find_map(|archive| archive.fault(&mut budget))).await;
    match fault.flatten() {
        None => Ok(()),
        Some(Fault {
            archive,
            entry,
            reason,
        }) => Err(InstallError::Archive {
            package: order.spec(),
            archive,
            entry,
            reason,
        }),
    }
}

impl Archive {
    fn fault(&self, budget: &mut ReadBudget) -> Option<Fault> {
        let fault = |entry: String, reason| Fault {
            archive: self.title.clone(),
            entry,
            reason,
        };
        let Ok(file) = File::open(&self.file) else {
            tracing::debug!(archive = self.title, "npm has not kept the archive");
            return None;
        };
        let found = tar_entries::find(file, budget, |entry| {
            let shadows = || {
                let inner = entry.inner_package().filter(|inner| self.foreign.contains(inner));
                inner.map(|_| "lies in place of a package that its lock names")
            };
            let reason = entry.fault().or_else(shadows)?;
            Some(fault(Shown::path(&entry.path), reason))
        });
        found.unwrap_or_else(|error| {
            let (entry, reason) = match ReadBudget::exceeded(&error) {
                Some(reason) => ("package/", reason),
                None => ("package.json", "cannot be read"),
            };
            Some(fault(entry.to_owned(), reason))
        })
    }
}

/// Lists the archives of a lock that was checked.
fn archives(lock: &str, cache: &Path) -> Vec<Archive> {
    let lock: Value = serde_json::from_str(lock).unwrap_or_default();
    let Some(packages) = lock["packages"].as_object() else {
        return Vec::new();
    };
    let name = |path: &str| path.rsplit_once("node_modules/").map(|(_, name)| name.to_owned());
    let names: BTreeSet<String> = packages.keys().filter_map(|path| name(path)).collect();
    let archives = packages.iter().filter_map(|(path, entry)| {
        let integrity = strong(entry["integrity"].as_str()?)?;
        let bundled = |name: &String| {
            let inner = &packages.get(&format!("{path}/node_modules/{name}"));
            inner.is_some_and(|inner| inner["inBundle"] == true)
        };
        let title = format!(
            "{}@{}",
            name(path)?,
            entry["version"].as_str().unwrap_or_default()
        );
        Some(Archive {
            title: Shown::line(&title).to_string(),
            file: content(cache, &integrity)?,
            foreign: names.iter().filter(|name| !bundled(name)).cloned().collect(),
        })
    });
    archives.collect()
}

/// Returns where npm's cache keeps content of this integrity.
fn content(cache: &Path, integrity: &str) -> Option<PathBuf> {
    let hash = integrity.strip_prefix("sha512-")?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(hash).ok()?;
    let hex = bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let (first, second, rest) = (hex.get(..2)?, hex.get(2..4)?, hex.get(4..)?);
    Some(
        cache
            .join("_cacache/content-v2/sha512")
            .join(first)
            .join(second)
            .join(rest),
    )
}
