//! The comparison of installations with what was installed: their files, their locks and their records.

use std::path::{Path, PathBuf};

use super::{Installed, Packages};
use crate::loader::install::background::off_thread;
use crate::loader::install::error::InstallError;
use crate::loader::install::installer::check_lock;
use crate::loader::plan::{Plan, Resolved};
use crate::loader::store::{
    Checksums, ComparedFiles, InstallationPlace, KeptLockState, Manifest, PackageIdentity, PackageStore,
    TreeDifference, read_manifest,
};
use crate::pins::some_of;
use crate::protocol::Shown;

/// What one installation is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedInstallation {
    /// Its directory.
    pub directory: PathBuf,
    /// The package with its version, such as `npm:name@1.0.0`, as far as it can still be told.
    pub package: Option<String>,
    /// What became of its files.
    pub files: VerifiedFiles,
    /// What is wrong with its lock, its record or its own description, in words.
    pub faults: Vec<String>,
}

/// What became of the files of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifiedFiles {
    /// They are as they were installed.
    Unchanged,
    /// They are not.
    Different(TreeDifference),
    /// The whole installation is gone.
    Missing,
    /// An older pml installed them, or there are too many.
    Unverifiable,
}

impl VerifiedInstallation {
    /// Tells whether it is proved to be what was installed.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.files == VerifiedFiles::Unchanged && self.faults.is_empty()
    }
}

impl Packages {
    /// Compares the installations in the directories that are `wanted` with what was installed; none is replaced meanwhile.
    pub async fn verify(
        &self,
        wanted: impl Fn(&Path) -> bool,
    ) -> Result<Vec<VerifiedInstallation>, InstallError> {
        let store = self.store.clone();
        let places = off_thread(move || store.installations()).await;
        let mut verified = Vec::new();
        for place in places.unwrap_or_default() {
            let directory = self.store.directory_at(&place);
            if !wanted(&directory) {
                continue;
            }
            let identity = read_manifest(&directory).map(|manifest| manifest.identity);
            let _held = match identity {
                Some(identity) => Some(self.store.lock(&identity.key(), || {}).await?),
                None => None,
            };
            let store = self.store.clone();
            if let Some(one) = off_thread(move || verify_one(&store, &place)).await {
                verified.push(one);
            }
        }
        Ok(verified)
    }

    /// Refuses to start an installation whose files were changed or removed.
    ///
    /// What was added is no refusal: servers keep their data beside their code.
    pub(super) async fn refuse_changed_files(
        &self,
        plan: &Plan,
        installed: &Installed,
    ) -> Result<(), InstallError> {
        let (store, directory) = (self.store.clone(), installed.root.clone());
        let compared = off_thread(move || {
            let place = store.place_of(&directory);
            let checksums = place.map_or(Ok(None), |place| store.checksums(&place))?;
            let compare = |checksums: Checksums| checksums.compare(&directory, ComparedFiles::Touched);
            Ok::<_, InstallError>(checksums.and_then(compare))
        });
        let Some(difference) = compared.await.unwrap_or(Ok(None))? else {
            return Ok(());
        };
        let changed = { difference.changed.iter() }.map(|file| format!("`{}`", Shown::line(file)));
        let missing = { difference.missing.iter() }.map(|file| format!("`{}` (gone)", Shown::line(file)));
        match some_of(changed.chain(missing)) {
            None => Ok(()),
            Some(files) => Err(InstallError::ChangedFiles {
                dependency: plan.dependency().clone(),
                files,
            }),
        }
    }

    /// Tells whether a directory is, or was, an installation of a plan's package at the version it was resolved to,
    /// whatever its content.
    #[must_use]
    pub fn is_installation(&self, plan: &Plan, directory: &Path) -> bool {
        let identity = plan.package().and_then(|package| {
            let resolved = self.store.record(package)?;
            Some(PackageIdentity::new(package, &resolved.version, plan.scripts()))
        });
        identity.is_some_and(|identity| self.store.is_directory_of(&identity, directory))
    }
}

impl Installed {
    /// Refuses an installation that was made from another lock than the one that is kept for it.
    ///
    /// The kept lock is what a person is shown and what an answer names: what was made from another one would run under
    /// an answer that was given to this one.
    pub(super) fn refuse_other_lock(&self, plan: &Plan) -> Result<(), InstallError> {
        match &self.resolved.lock {
            Some(kept) if *kept == self.made_from => Ok(()),
            Some(_) | None => Err(InstallError::OtherLock {
                dependency: plan.dependency().clone(),
            }),
        }
    }
}

fn verify_one(store: &PackageStore, place: &InstallationPlace) -> VerifiedInstallation {
    let directory = store.directory_at(place);
    let manifest = read_manifest(&directory);
    let mut faults = Vec::new();
    let checksums = store.checksums(place).unwrap_or_else(|error| {
        faults.push(crate::report::render(&error, None));
        None
    });
    let files = match &checksums {
        _ if !directory.is_dir() => VerifiedFiles::Missing,
        None => VerifiedFiles::Unverifiable,
        Some(checksums) => match checksums.compare(&directory, ComparedFiles::All) {
            None => VerifiedFiles::Unverifiable,
            Some(difference) if difference.is_empty() => VerifiedFiles::Unchanged,
            Some(difference) => VerifiedFiles::Different(difference),
        },
    };
    let identity = match (&checksums, &manifest) {
        (Some(checksums), Some(manifest)) if checksums.identity != manifest.identity => {
            faults.push("its description names another package than its checksums".to_owned());
            Some(&checksums.identity)
        }
        (Some(checksums), _) => Some(&checksums.identity),
        (None, Some(manifest)) => Some(&manifest.identity),
        (None, None) => None,
    };
    if manifest.is_none() && files != VerifiedFiles::Missing {
        faults.push("its description cannot be read".to_owned());
    }
    if let (Some(identity), Some(manifest)) = (identity, &manifest) {
        faults.extend(lock_faults(store, identity, manifest));
        faults.extend(record_faults(store, identity, manifest));
    }
    VerifiedInstallation {
        package: identity.map(PackageIdentity::title),
        directory,
        files,
        faults,
    }
}

/// Compares the lock that is kept with its own digest and with what was installed from it.
fn lock_faults(store: &PackageStore, identity: &PackageIdentity, manifest: &Manifest) -> Vec<String> {
    let kept = match store.frozen_state(identity) {
        KeptLockState::Kept(kept) => kept,
        KeptLockState::Unreadable => return vec!["its kept lock cannot be read".to_owned()],
        // An older pml kept it in the installation alone.
        KeptLockState::Missing => return vec!["its lock is not kept".to_owned()],
    };
    let mut faults = Vec::new();
    let package = identity.package();
    let checked = package.and_then(|package| check_lock(&package, identity.version(), &kept.text));
    match checked {
        None => faults.push("its kept lock is not one of this package".to_owned()),
        Some(checked) if checked.digest != kept.digest => {
            faults.push("its kept lock was edited: it does not fit its digest".to_owned());
        }
        Some(checked) if checked.integrity != manifest.integrity => faults.push(format!(
            "its kept lock names another content ({}) than what is installed ({})",
            checked.integrity, manifest.integrity
        )),
        Some(_) => {}
    }
    if kept.digest != manifest.lock {
        faults.push("its kept lock is not the one that it was installed from".to_owned());
    }
    faults
}

/// Compares the records of a package with its installation; one that leads to another installation is no fault.
fn record_faults(store: &PackageStore, identity: &PackageIdentity, manifest: &Manifest) -> Vec<String> {
    let other = |(spec, resolved): (String, Resolved)| {
        let integrity = resolved.integrity?;
        let leads_nowhere = integrity != manifest.integrity && store.manifest(identity, &integrity).is_none();
        leads_nowhere.then(|| {
            format!(
                "the record of `{spec}` names another content ({integrity}) than what is installed ({})",
                manifest.integrity
            )
        })
    };
    store.records_of(identity).into_iter().filter_map(other).collect()
}
