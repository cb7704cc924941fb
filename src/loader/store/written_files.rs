//! The files of an installation that its package did not bring: what a server wrote beside its own code.
//!
//! Some servers keep their data there, such as a knowledge graph. An installation that goes away leaves such files in
//! a folder of their own. They are never put into another installation: a file there may be code that runs.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::PackageStore;
use super::error::StoreError;
use super::files::{create_directory, write_new};
use super::manifest::{MANIFEST, json, read_manifest};
use crate::disk;
use crate::loader::plan::Package;
use crate::protocol::{DependencyName, Shown};

/// The name of the file that lists what a package brought.
const BROUGHT: &str = "pml-files.json";

/// More names than this are counted only.
const NAMED: usize = 10;

/// Size and time of the last change: who edits a file changes one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Mark(u64, i64);

/// Files that a server wrote into its installation, and where they are.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WrittenFiles {
    /// The directory they are in.
    pub directory: PathBuf,
    /// Their paths below the directory.
    pub files: Vec<PathBuf>,
}

impl WrittenFiles {
    /// Returns the directory and the files as a person is told of them.
    #[must_use]
    pub fn describe(&self) -> String {
        let first = self.files.iter().take(NAMED);
        let mut told: Vec<String> = first.map(|file| format!("`{}`", Shown::path(file))).collect();
        if self.files.len() > NAMED {
            told.push(format!("{} more", self.files.len() - NAMED));
        }
        format!("`{}`: {}", Shown::path(&self.directory), told.join(", "))
    }
}

/// Writes down what a finished workspace contains.
pub(super) fn write_brought(workspace: &Path) -> Result<(), StoreError> {
    let mut brought = BTreeMap::new();
    walk(workspace, Path::new(""), &mut |path, mark| {
        // A name that is not Unicode is taken for a server's own file later, and kept.
        if let Some(path) = path.to_str() {
            brought.insert(path.to_owned(), mark);
        }
    });
    let path = workspace.join(BROUGHT);
    write_new(&path, &json(&brought)).map_err(StoreError::file("write", &path))
}

/// Finds the files below an installation that are new or changed since it was made.
fn foreign(root: &Path) -> Vec<PathBuf> {
    let list = std::fs::read(root.join(BROUGHT)).ok();
    let brought = list.and_then(|text| serde_json::from_slice::<BTreeMap<String, Mark>>(&text).ok());
    // An older pml wrote no list; its manifest was the last file it wrote.
    let made = root
        .join(MANIFEST)
        .symlink_metadata()
        .map_or(i64::MAX, |found| time(&found));
    let mut foreign = Vec::new();
    walk(root, Path::new(""), &mut |path, mark| {
        let known = match &brought {
            Some(brought) => path.to_str().and_then(|path| brought.get(path)) == Some(&mark),
            None => mark.1 <= made,
        };
        if !known && path != Path::new(BROUGHT) && path != Path::new(MANIFEST) {
            foreign.push(path.to_owned());
        }
    });
    foreign.sort();
    foreign
}

fn time(metadata: &std::fs::Metadata) -> i64 {
    metadata
        .mtime()
        .saturating_mul(1_000_000_000)
        .saturating_add(metadata.mtime_nsec())
}

/// Visits every file and link below a directory but compiled bytecode, which Python writes by itself.
fn walk(root: &Path, below: &Path, visit: &mut impl FnMut(&Path, Mark)) {
    let entries = std::fs::read_dir(root.join(below))
        .into_iter()
        .flatten()
        .flatten();
    for entry in entries {
        let path = below.join(entry.file_name());
        let Ok(metadata) = entry.path().symlink_metadata() else {
            continue;
        };
        if metadata.is_dir() {
            if entry.file_name() != "__pycache__" {
                walk(root, &path, visit);
            }
        } else if path.extension().is_none_or(|extension| extension != "pyc") {
            visit(&path, Mark(metadata.len(), time(&metadata)));
        }
    }
}

impl PackageStore {
    /// Moves what a server wrote into an installation to a folder of its own, before the installation goes away.
    pub(in crate::loader) fn keep_foreign(
        &self,
        root: &Path,
        name: &DependencyName,
    ) -> Result<Option<WrittenFiles>, StoreError> {
        let files = foreign(root);
        if files.is_empty() {
            return Ok(None);
        }
        let directory = self.kept(name)?;
        for file in &files {
            let (from, to) = (root.join(file), directory.join(file));
            if let Some(parent) = to.parent() {
                create_directory(parent)?;
            }
            disk::rename(&from, &to).map_err(StoreError::file("keep", &from))?;
        }
        Ok(Some(WrittenFiles { directory, files }))
    }

    /// Makes a new folder for what `name` wrote; what was kept before stays.
    fn kept(&self, name: &DependencyName) -> Result<PathBuf, StoreError> {
        let parent = self.root.join("kept");
        create_directory(&parent)?;
        let mut number = 0_u32;
        loop {
            let folder = match number {
                0 => name.to_string(),
                number => format!("{name}.{number}"),
            };
            let path = parent.join(folder);
            match std::fs::create_dir(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                made => {
                    made.map_err(StoreError::file("create", &path))?;
                    return Ok(path);
                }
            }
        }
    }

    /// Finds what servers wrote into other installations of a package than `current`, with their versions.
    pub(in crate::loader) fn written_elsewhere(
        &self,
        package: &Package,
        current: &Path,
    ) -> Vec<(String, WrittenFiles)> {
        let parent = self.root.join("store").join(package.ecosystem().as_str());
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        let others = entries.map(|entry| entry.path()).filter(|path| path != current);
        let written = others.filter_map(|directory| {
            let manifest = read_manifest(&directory)?;
            if manifest.identity.base() != package.registry_name() {
                return None;
            }
            let files = foreign(&directory);
            let version = manifest.identity.version;
            (!files.is_empty()).then_some((version, WrittenFiles { directory, files }))
        });
        let mut written: Vec<_> = written.collect();
        written.sort_by(|one, other| one.1.directory.cmp(&other.1.directory));
        written
    }
}
