//! Puts finished installations into their place, and takes them away again.

use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::files::{create_directory, protect, remove, sync_directory, sync_tree, write_new};
use super::manifest::{MANIFEST, Manifest, json, read_manifest};
use super::written_files::{WrittenFiles, write_brought};
use super::{PackageIdentity, PackageStore};
use crate::disk;
use crate::loader::plan::Package;
use crate::protocol::DependencyName;

impl PackageStore {
    /// Moves a finished workspace into place, its manifest written last. Returns where it is then, and what the server
    /// `name` wrote into an installation that was there before.
    pub(in crate::loader) fn activate(
        &self,
        workspace: &Path,
        manifest: &Manifest,
        name: &DependencyName,
    ) -> Result<(PathBuf, Option<WrittenFiles>), StoreError> {
        let target = self.directory(&manifest.identity, &manifest.integrity);
        let parent = self.root.join("store").join(manifest.identity.ecosystem.as_str());
        create_directory(&parent)?;
        protect(workspace);
        write_brought(workspace)?;
        let path = workspace.join(MANIFEST);
        write_new(&path, &json(manifest)).map_err(StoreError::file("write", &path))?;
        self.write_checksums(workspace, &target, manifest)?;
        sync_tree(workspace)?;
        // What is there was not whole, or its runtime is gone: it makes room.
        let mut kept = None;
        if target.exists() {
            kept = self.keep_foreign(&target, name)?;
            let aside = self.workspaces().join(format!(
                "{}~{}",
                manifest.identity.key(),
                uuid::Uuid::new_v4().simple()
            ));
            disk::rename(&target, &aside).map_err(StoreError::file("replace", &target))?;
            remove(&aside);
        }
        // They are of what was there before, if anything was.
        self.forget_checksums(&target)?;
        disk::rename(workspace, &target).map_err(StoreError::file("move into place", &target))?;
        sync_directory(&parent)?;
        self.confirm_checksums(&target);
        Ok((target, kept))
    }

    /// Returns what every installation is.
    pub(in crate::loader) fn identities(&self) -> Vec<PackageIdentity> {
        let installations = self.installations().into_iter();
        let manifests = installations.filter_map(|place| read_manifest(&self.directory_at(&place)));
        manifests.map(|manifest| manifest.identity).collect()
    }

    /// Returns how many bytes the installations of this version of a package take.
    pub(in crate::loader) fn size(&self, package: &Package, version: &str) -> u64 {
        let parent = self.root.join("store").join(package.ecosystem().as_str());
        let entries = std::fs::read_dir(&parent).into_iter().flatten().flatten();
        let own = entries.filter(|entry| {
            read_manifest(&entry.path()).is_some_and(|manifest| manifest.identity.is_of(package, version))
        });
        own.map(|entry| size_below(&entry.path())).sum()
    }

    /// Removes every installation of this version of a package and its lock. Returns where they were, and what the
    /// server `name` wrote into them.
    pub(in crate::loader) fn remove_installations(
        &self,
        name: &DependencyName,
        package: &Package,
        version: &str,
    ) -> Result<(Vec<PathBuf>, Vec<WrittenFiles>), StoreError> {
        let parent = self.root.join("store").join(package.ecosystem().as_str());
        let entries = std::fs::read_dir(&parent).into_iter().flatten();
        let wanted = |manifest: &Manifest| manifest.identity.is_of(package, version);
        let (mut removed, mut kept) = (Vec::new(), Vec::new());
        for entry in entries.flatten() {
            let path = entry.path();
            if let Some(manifest) = read_manifest(&path).filter(wanted) {
                // First of all: what lies among the workspaces is removed by the next sweep.
                kept.extend(self.keep_foreign(&path, name)?);
                create_directory(&self.workspaces())?;
                let aside = self.workspaces().join(format!(
                    "{}~{}",
                    manifest.identity.key(),
                    uuid::Uuid::new_v4().simple()
                ));
                disk::rename(&path, &aside).map_err(StoreError::file("remove", &path))?;
                remove(&aside);
                removed.push(path);
            }
        }
        self.forget_stray_checksums(package, version)?;
        // Last: an installation without its lock is not what was installed.
        self.thaw(package, version)?;
        removed.sort();
        Ok((removed, kept))
    }
}

/// Returns how many bytes the files below a directory have; links are not followed.
fn size_below(directory: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push(entry.path()),
                Ok(found) => bytes += found.len(),
                Err(_gone) => {}
            }
        }
    }
    bytes
}
