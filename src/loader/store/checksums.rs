//! What every file of an installation was when it was put into its place.
//!
//! Kept apart from the installation, so that what edits one does not edit the other in passing. A process of the user
//! that means to can edit both. Every file counts, bytecode that was compiled beforehand included: Python runs it in
//! place of its source. Links count by where they lead, and are not followed.
//!
//! A start looks as well, and must be quick: it reads only those files again whose inode, size or time of change is
//! another one. The system sets that time, and no program can set it back.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::PackageStore;
use super::error::StoreError;
use super::files::{create_directory, replace, sync_directory};
use super::identity::PackageIdentity;
use super::manifest::{FORMAT, Manifest, json};
use crate::disk;
use crate::loader::plan::Package;

/// The folder of the store in which they are kept.
const FOLDER: &str = "checksums";

/// More files than any server brings; an installation with more is not verified, and says so.
const ENTRIES: usize = 500_000;

/// What is read of a file at a time.
const CHUNK: usize = 64 * 1024;

/// The checksums of one installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::loader) struct Checksums {
    format: u32,
    pub(in crate::loader) identity: PackageIdentity,
    pub(in crate::loader) integrity: String,
    /// What each path below the installation holds; `None` where there were too many.
    entries: Option<BTreeMap<String, String>>,
    /// The inode, size and time of change of each path; an older pml wrote none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    stamps: BTreeMap<String, String>,
}

/// Which files are read for a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::loader) enum ComparedFiles {
    /// All of them: only their bytes prove anything.
    All,
    /// Those that were touched since they were installed.
    Touched,
}

/// How the files of an installation differ from what was installed; the names are not escaped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TreeDifference {
    /// Files and links with another content.
    pub changed: Vec<String>,
    /// Files and links that are gone.
    pub missing: Vec<String>,
    /// Files and links that were not there.
    pub added: Vec<String>,
}

impl TreeDifference {
    /// Tells whether everything is as it was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.missing.is_empty() && self.added.is_empty()
    }
}

/// Where one installation is, or was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::loader) struct InstallationPlace {
    ecosystem: String,
    folder: String,
}

impl Checksums {
    /// Compares an installation with what it was; `None` where it had too many files. Blocks, in proportion to the bytes
    /// of what is compared.
    pub(in crate::loader) fn compare(
        &self,
        directory: &Path,
        compared: ComparedFiles,
    ) -> Option<TreeDifference> {
        let mut left: BTreeMap<&str, &str> = { self.entries.as_ref()?.iter() }
            .map(|(name, content)| (name.as_str(), content.as_str()))
            .collect();
        let is_untouched = |name: &str, path: &Path| {
            compared == ComparedFiles::Touched
                && self
                    .stamps
                    .get(name)
                    .is_some_and(|before| stamp(path).as_ref() == Some(before))
        };
        let mut difference = TreeDifference::default();
        let mut count = 0;
        walk(directory, &mut |name, path| {
            count += 1;
            match left.remove(name.as_str()) {
                None => difference.added.push(name),
                Some(before) if !is_untouched(&name, path) && before != content(path) => {
                    difference.changed.push(name);
                }
                Some(_) => {}
            }
            // A flood of new files is told as far as it goes.
            count <= ENTRIES
        });
        // A walk that broke off has not seen the rest.
        if count <= ENTRIES {
            difference.missing = left.into_keys().map(str::to_owned).collect();
        }
        difference.changed.sort();
        difference.added.sort();
        Some(difference)
    }
}

impl PackageStore {
    /// Writes down what a finished workspace contains, before it is moved to `target`; it counts once it is there.
    pub(super) fn write_checksums(
        &self,
        workspace: &Path,
        target: &Path,
        manifest: &Manifest,
    ) -> Result<(), StoreError> {
        let (mut entries, mut stamps) = (BTreeMap::new(), BTreeMap::new());
        walk(workspace, &mut |name, path| {
            // Before its bytes are read: what comes in between is another stamp.
            stamps.extend(stamp(path).map(|stamp| (name.clone(), stamp)));
            entries.insert(name, content(path));
            entries.len() <= ENTRIES
        });
        let checksums = Checksums {
            format: FORMAT,
            identity: manifest.identity.clone(),
            integrity: manifest.integrity.clone(),
            entries: Some(entries).filter(|entries| entries.len() <= ENTRIES),
            stamps,
        };
        let Some(path) = self.place_of(target).map(|place| self.checksums_path(&place)) else {
            return Ok(());
        };
        let (directory, path) = (self.root.join(FOLDER), unconfirmed(&path));
        create_directory(&directory)?;
        replace(&path, &json(&checksums)).map_err(StoreError::file("write", &path))?;
        sync_directory(&directory)
    }

    /// Confirms the checksums of an installation that has been moved into its place.
    ///
    /// Where that fails they count as well, as long as none were there before.
    pub(super) fn confirm_checksums(&self, directory: &Path) {
        if let Some(path) = self.place_of(directory).map(|place| self.checksums_path(&place)) {
            let _ = disk::rename(&unconfirmed(&path), &path);
            let _ = sync_directory(&self.root.join(FOLDER));
        }
    }

    /// Forgets the checksums of an installation that makes room for another.
    pub(super) fn forget_checksums(&self, directory: &Path) -> Result<(), StoreError> {
        let Some(path) = self.place_of(directory).map(|place| self.checksums_path(&place)) else {
            return Ok(());
        };
        disk::remove_file(&path).map_err(StoreError::file("remove", &path))
    }

    /// Forgets the checksums of the installations of this version of a package that are gone, or never came.
    pub(super) fn forget_stray_checksums(&self, package: &Package, version: &str) -> Result<(), StoreError> {
        let entries = std::fs::read_dir(self.root.join(FOLDER)).into_iter().flatten();
        for path in entries.flatten().map(|entry| entry.path()) {
            let text = std::fs::read(&path).unwrap_or_default();
            let Ok(known) = serde_json::from_slice::<Checksums>(&text) else {
                continue;
            };
            let directory = self.directory(&known.identity, &known.integrity);
            if known.identity.is_of(package, version) && !directory.exists() {
                disk::remove_file(&path).map_err(StoreError::file("remove", &path))?;
            }
        }
        Ok(())
    }

    /// Lists every installation that is there, or of which checksums are.
    pub(in crate::loader) fn installations(&self) -> Vec<InstallationPlace> {
        let folders = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
        let text = |name: &OsStr| name.to_str().map(str::to_owned);
        let mut places: Vec<InstallationPlace> = folders(self.root.join("store"))
            .flat_map(|ecosystem| {
                folders(ecosystem.path()).filter_map(move |entry| {
                    Some(InstallationPlace {
                        ecosystem: text(&ecosystem.file_name())?,
                        folder: text(&entry.file_name())?,
                    })
                })
            })
            .collect();
        places.extend(folders(self.root.join(FOLDER)).filter_map(|entry| {
            let name = text(&entry.file_name())?;
            let (ecosystem, folder) = name.strip_suffix(".json")?.split_once('-')?;
            Some(InstallationPlace {
                ecosystem: ecosystem.to_owned(),
                folder: folder.to_owned(),
            })
        }));
        places.sort();
        places.dedup();
        places
    }

    /// Returns the directory of an installation, which need not be there.
    pub(in crate::loader) fn directory_at(&self, place: &InstallationPlace) -> PathBuf {
        self.root.join("store").join(&place.ecosystem).join(&place.folder)
    }

    /// Reads the checksums of an installation; `None` if an older pml made it.
    pub(in crate::loader) fn checksums(
        &self,
        place: &InstallationPlace,
    ) -> Result<Option<Checksums>, StoreError> {
        let path = self.checksums_path(place);
        let read = match std::fs::read(&path) {
            // Where pml was killed right after it had moved the installation into its place.
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::read(unconfirmed(&path)),
            read => read,
        };
        let text = match read {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::file("read", &path)(error)),
        };
        let read: Result<Checksums, _> = serde_json::from_slice(&text);
        match read {
            Ok(read) if read.format == FORMAT => Ok(Some(read)),
            Ok(_) | Err(_) => Err(StoreError::file("read", &path)(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Returns where an installation is, by its directory.
    pub(in crate::loader) fn place_of(&self, directory: &Path) -> Option<InstallationPlace> {
        let below = directory.strip_prefix(self.root.join("store")).ok()?;
        let (ecosystem, folder) = below.to_str()?.split_once('/')?;
        Some(InstallationPlace {
            ecosystem: ecosystem.to_owned(),
            folder: folder.to_owned(),
        })
    }

    fn checksums_path(&self, place: &InstallationPlace) -> PathBuf {
        let InstallationPlace { ecosystem, folder } = place;
        self.root.join(FOLDER).join(format!("{ecosystem}-{folder}.json"))
    }
}

/// Returns where checksums wait for their installation; what has this name is no installation that was ever there.
fn unconfirmed(path: &Path) -> PathBuf {
    path.with_extension("json.new")
}

/// Visits everything below a directory but the directories themselves, until `visit` says that it is enough.
fn walk(root: &Path, visit: &mut impl FnMut(String, &Path) -> bool) {
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(root.join(&folder))
            .into_iter()
            .flatten()
            .flatten();
        for entry in entries {
            let below = folder.join(entry.file_name());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder {
                folders.push(below);
            } else if !visit(name_of(&below), &entry.path()) {
                return;
            }
        }
    }
}

/// Returns a path as text; one that is no text becomes its bytes after a null, which no path has.
fn name_of(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    path.to_str()
        .map_or_else(|| format!("\0{}", hex(bytes)), str::to_owned)
}

/// Returns what the system says of a file or a link, which is another after each change of it.
fn stamp(path: &Path) -> Option<String> {
    let found = path.symlink_metadata().ok()?;
    Some(format!(
        "{} {} {}.{:09}",
        found.ino(),
        found.size(),
        found.ctime(),
        found.ctime_nsec()
    ))
}

/// Returns what a file or a link holds, in constant memory.
fn content(path: &Path) -> String {
    let read = || -> io::Result<String> {
        let found = path.symlink_metadata()?;
        if found.is_symlink() {
            return Ok(format!("link {}", name_of(&std::fs::read_link(path)?)));
        }
        if !found.is_file() {
            return Ok("neither file nor link".to_owned());
        }
        let mut file = File::open(path)?;
        let (mut hasher, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
        loop {
            match file.read(&mut chunk) {
                Ok(0) => return Ok(format!("sha256 {}", hex(&hasher.finalize()))),
                Ok(read) => hasher.update(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    };
    read().unwrap_or_else(|_error| "unreadable".to_owned())
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::plan::Scripts;

    fn entries(root: &Path) -> BTreeMap<String, String> {
        let mut entries = BTreeMap::new();
        walk(root, &mut |name, path| {
            entries.insert(name, content(path));
            true
        });
        entries
    }

    #[test]
    fn every_kind_of_entry_counts_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        std::fs::create_dir_all(path("a/b")).unwrap();
        disk::write_new(&path("a/b/file"), b"text").unwrap();
        disk::write_new(&root.path().join(OsStr::from_bytes(b"not\xfftext")), b"").unwrap();
        std::os::unix::fs::symlink("../b/file", path("a/link")).unwrap();
        std::os::unix::fs::symlink("b", path("a/folder")).unwrap();
        std::os::unix::fs::symlink("/nowhere", path("broken")).unwrap();
        let found = entries(root.path());
        let sha256 = |bytes: &[u8]| format!("sha256 {}", hex(&Sha256::digest(bytes)));
        let expected = BTreeMap::from([
            ("a/b/file".to_owned(), sha256(b"text")),
            ("a/folder".to_owned(), "link b".to_owned()),
            ("a/link".to_owned(), "link ../b/file".to_owned()),
            ("broken".to_owned(), "link /nowhere".to_owned()),
            ("\u{0}6e6f74ff74657874".to_owned(), sha256(b"")),
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_start_reads_what_was_touched_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        disk::write_new(&path, b"text").unwrap();
        let package = Package::explicit("npm:x").unwrap();
        let mut checksums = Checksums {
            format: FORMAT,
            identity: PackageIdentity::new(&package, "1.0.0", Scripts::Off),
            integrity: String::new(),
            entries: Some([("x".to_owned(), "another".to_owned())].into()),
            stamps: [("x".to_owned(), stamp(&path).unwrap())].into(),
        };
        let changed =
            |checksums: &Checksums, compared| checksums.compare(root.path(), compared).unwrap().changed;
        assert_eq!(changed(&checksums, ComparedFiles::Touched), Vec::<String>::new());
        assert_eq!(changed(&checksums, ComparedFiles::All), ["x"]);
        checksums.stamps.insert("x".to_owned(), "1 4 1.0".to_owned());
        assert_eq!(changed(&checksums, ComparedFiles::Touched), ["x"]);
        checksums.entries = Some(entries(root.path()));
        assert_eq!(changed(&checksums, ComparedFiles::Touched), Vec::<String>::new());
    }

    #[test]
    fn a_file_longer_than_a_chunk_is_read_to_its_end() {
        let root = tempfile::tempdir().unwrap();
        let bytes = vec![7; 3 * CHUNK + 1];
        disk::write_new(&root.path().join("x"), &bytes).unwrap();
        let expected = format!("sha256 {}", hex(&Sha256::digest(&bytes)));
        assert_eq!(content(&root.path().join("x")), expected);
    }
}
