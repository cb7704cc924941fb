//! One installation from its lock to its place in the store, under the lock of its package and version.
//!
//! The lock that a package was first installed with is kept: later installations use it, so that a broken environment
//! or a wiped store does not bring other versions of its dependencies.

use std::path::{Path, PathBuf};

use super::{Installed, Packages, made_lock, no_executable, package_of};
use crate::history::{Record, Text};
use crate::loader::install::background::off_thread;
use crate::loader::install::content::Content;
use crate::loader::install::error::InstallError;
use crate::loader::install::executables::is_whole;
use crate::loader::install::installer::{self, InstallOrder, InstalledFiles};
use crate::loader::install::lock::CheckedLock;
use crate::loader::install::step::{InstallProgress, InstallStep};
use crate::loader::plan::{Package, Plan, Resolved, Scripts, VersionSpec};
use crate::loader::store::{self, Manifest, PackageIdentity, WrittenFiles};
use crate::protocol::Digest;
use crate::protocol::approval::{self, start_notice};

impl Packages {
    pub(super) async fn install_alone(
        &self,
        plan: &Plan,
        package: &Package,
        expected: &Content,
        progress: InstallProgress<'_>,
    ) -> Result<Vec<String>, InstallError> {
        let known = self.known(plan, package, expected, progress).await?;
        let identity = PackageIdentity::new(package, &known.version, plan.scripts());
        let key = identity.key();
        let held = self.store.lock(&key, || progress(InstallStep::Waiting)).await?;
        // The last holder of the lock may have recorded more than was known before.
        let known = self.store.record(package).unwrap_or(known);
        let frozen = self.frozen(package, &identity, &known).await;
        let known = Resolved {
            lock: frozen.as_ref().map(|(found, _)| found.digest.clone()),
            ..known
        };
        expected.check(&package.spec(), &known)?;
        // Checked right above: what is known is what was approved, with all its dependencies.
        let is_approved = expected.lock.is_some() && known.lock.is_some();
        let contents = frozen.as_ref().map(|(found, _)| found);
        let malicious = &self.malicious_beside(plan, &known, contents).await?;
        let expected = &expected.clone().or(Content {
            integrity: known.integrity.clone(),
            lock: known.lock.clone(),
            ..Content::default()
        });
        if let Some(integrity) = &expected.integrity
            && let Some(manifest) = self.store.manifest(&identity, integrity)
            && is_whole(&self.store.directory(&identity, integrity), &manifest)
        {
            let integrity = Some(manifest.integrity);
            self.record(package, Resolved { integrity, ..known }).await?;
            return Ok(Vec::new());
        }
        let limit = self.release_age.limit().await;
        let judge = |known: &Resolved| match &limit {
            Some(limit) if !is_approved => limit.check(plan, known),
            _ => Ok(()),
        };
        judge(&known)?;
        let (store, own) = (self.store.clone(), key.clone());
        off_thread(move || store.sweep(&own)).await;
        self.record_fetch(plan, package, &known.version, expected).await?;
        let (known, expected) = self.proven(package, known, expected).await?;
        // An older pml may have recorded no age; the registry has just said it.
        judge(&known)?;
        let workspace = self.store.workspace(&key)?;
        let built = installer::install(
            &self.tools,
            &InstallOrder {
                dependency: plan.dependency(),
                package,
                malicious,
                version: &known.version,
                expected: &expected,
                frozen: frozen.as_ref().map(|(_, text)| text.as_str()),
                scripts: plan.scripts(),
                limit,
                directory: &workspace,
                progress,
            },
        )
        .await;
        let built = match built {
            Ok(built) => built,
            Err(error) => {
                if let InstallError::Dependencies { .. } | InstallError::Scripts { .. } = &error {
                    self.keep_found(package, &identity, known, &workspace).await?;
                }
                off_thread(move || store::remove(&workspace)).await;
                return Err(error);
            }
        };
        if built.executables.is_empty() {
            off_thread(move || store::remove(&workspace)).await;
            return Err(no_executable(package));
        }
        progress(InstallStep::Activating);
        let notes = self
            .activate(plan, package, identity, known, built, workspace)
            .await;
        drop(held);
        notes
    }

    /// Moves what was built into the store and records it; returns what a person should know of it.
    async fn activate(
        &self,
        plan: &Plan,
        package: &Package,
        identity: PackageIdentity,
        known: Resolved,
        built: InstalledFiles,
        workspace: PathBuf,
    ) -> Result<Vec<String>, InstallError> {
        let unreadable =
            || InstallError::file("read the lock in", &workspace)(std::io::ErrorKind::InvalidData.into());
        let found = made_lock(package, &known.version, &workspace).await;
        let (found, text) = found.ok_or_else(unreadable)?;
        let recorded = self.record_install(plan, package, &built.integrity, &found);
        if let Err(error) = recorded.await {
            off_thread(move || store::remove(&workspace)).await;
            return Err(error);
        }
        // Before the installation is there: one without its lock would be resolved anew.
        self.freeze(&identity, found.digest.clone(), text).await?;
        let manifest = Manifest::new(
            identity,
            built.integrity.clone(),
            found.digest,
            built.executables,
            built.at_start,
        );
        let (store, name, current) = (self.store.clone(), plan.dependency().clone(), package.clone());
        let told = start_notice(&manifest.at_start);
        let activated = off_thread(move || {
            let (directory, kept) = store.activate(&workspace, &manifest, &name)?;
            Ok::<_, InstallError>((kept, store.written_elsewhere(&current, &directory)))
        });
        let (kept, elsewhere) = activated.await.unwrap_or_else(|| Ok((None, Vec::new())))?;
        let withdrawn = built.withdrawn.or_else(|| known.withdrawn.clone());
        let withdrawal = withdrawn.as_deref().map(approval::withdrawal_notice);
        let left_out = known.left_out.as_ref();
        let left_out = left_out.map(|newer| newer.notice(self.release_age.now()));
        let known = Resolved {
            integrity: Some(built.integrity),
            withdrawn,
            ..known
        };
        let spec = package.at(&known.version);
        self.record(package, known).await?;
        let notes = withdrawal
            .into_iter()
            .chain(left_out)
            .chain(told)
            .chain(describe_files(package, kept, elsewhere));
        Ok(notes.map(|note| format!("{spec}: {note}")).collect())
    }

    /// Keeps what was found before a person is asked about it: what is installed after their answer is exactly that.
    async fn keep_found(
        &self,
        package: &Package,
        identity: &PackageIdentity,
        known: Resolved,
        workspace: &Path,
    ) -> Result<(), InstallError> {
        let Some((found, text)) = made_lock(package, &known.version, workspace).await else {
            return Ok(());
        };
        self.freeze(identity, found.digest, text).await?;
        let found = Resolved {
            integrity: Some(found.integrity),
            withdrawn: None,
            ..known
        };
        self.record(package, found).await
    }

    /// Records that a package will be fetched, before it is: its scripts may run, and a download for nothing helps nobody.
    async fn record_fetch(
        &self,
        plan: &Plan,
        package: &Package,
        version: &str,
        expected: &Content,
    ) -> Result<(), InstallError> {
        let record = Record::Fetch {
            server: Text::of(plan.dependency().as_str()),
            package: Text::of(&package.exactly(version)),
            scripts: match plan.scripts() {
                Scripts::Off => "off",
                Scripts::Allowed => "allowed",
            },
            accepted_scripts: match plan.scripts() {
                Scripts::Off => None,
                Scripts::Allowed => expected.scripts.clone(),
            },
        };
        Ok(self.history.require(record).await?)
    }

    /// Records what will be put into the store.
    async fn record_install(
        &self,
        plan: &Plan,
        package: &Package,
        integrity: &str,
        lock: &CheckedLock,
    ) -> Result<(), InstallError> {
        let record = Record::Install {
            server: Text::of(plan.dependency().as_str()),
            package: Text::of(&package.exactly(&lock.version)),
            integrity: Text::of(integrity),
            lock: lock.digest.clone(),
        };
        Ok(self.history.require(record).await?)
    }

    /// Returns what is known of a package; one without a record is resolved first, unless it is in the store.
    async fn known(
        &self,
        plan: &Plan,
        package: &Package,
        expected: &Content,
        progress: InstallProgress<'_>,
    ) -> Result<Resolved, InstallError> {
        let recorded = self.store.record(package);
        if let Some(resolved) = recorded.filter(|recorded| self.release_age.accepts(recorded)) {
            return Ok(resolved);
        }
        if let (VersionSpec::Exact(version), Some(integrity)) = (package.version(), &expected.integrity) {
            let identity = PackageIdentity::new(package, version, plan.scripts());
            let manifest = self.store.manifest(&identity, integrity);
            let root = self.store.directory(&identity, integrity);
            if manifest.is_some_and(|manifest| is_whole(&root, &manifest)) {
                return Ok(Resolved::version(version));
            }
        }
        progress(InstallStep::Resolving);
        self.resolve(plan).await
    }

    pub(super) async fn freeze(
        &self,
        identity: &PackageIdentity,
        digest: Digest,
        text: String,
    ) -> Result<(), InstallError> {
        let (store, identity) = (self.store.clone(), identity.clone());
        off_thread(move || store.freeze(&identity, digest, text))
            .await
            .unwrap_or(Ok(()))?;
        Ok(())
    }

    pub(super) async fn record(&self, package: &Package, resolved: Resolved) -> Result<(), InstallError> {
        let (store, package) = (self.store.clone(), package.clone());
        off_thread(move || store.keep(&package, resolved).map(drop))
            .await
            .unwrap_or(Ok(()))?;
        Ok(())
    }

    /// Keeps the lock of an installation that an older pml made.
    pub(super) async fn freeze_installed(
        &self,
        plan: &Plan,
        installed: &Installed,
    ) -> Result<(), InstallError> {
        let package = package_of(plan)?;
        let version = &installed.resolved.version;
        let identity = PackageIdentity::new(package, version, plan.scripts());
        let (store, wanted) = (self.store.clone(), identity.clone());
        let is_kept = off_thread(move || store.frozen(&wanted).is_some()).await;
        if is_kept.unwrap_or(true) {
            return Ok(());
        }
        let Some((found, text)) = made_lock(package, version, &installed.root).await else {
            return Ok(());
        };
        self.freeze(&identity, found.digest, text).await
    }
}

/// Tells where files are that a server wrote into its installations: into this one, and into those of other versions.
fn describe_files(
    package: &Package,
    kept: Option<WrittenFiles>,
    elsewhere: Vec<(String, WrittenFiles)>,
) -> Vec<String> {
    let kept = kept.map(|kept| {
        format!(
            "files that the server wrote into its installation are kept in {}",
            kept.describe()
        )
    });
    let elsewhere = elsewhere.into_iter().map(|(version, written)| {
        format!(
            "the server wrote files into its installation of {}: they are in {}",
            package.at(&version),
            written.describe()
        )
    });
    kept.into_iter().chain(elsewhere).collect()
}
