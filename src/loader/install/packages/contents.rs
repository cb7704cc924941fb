//! Finds out everything that would be installed with a package, without fetching or running any of it.

use super::{Packages, made_lock, package_of, package_pin};
use crate::loader::install::background::off_thread;
use crate::loader::install::content::Content;
use crate::loader::install::error::InstallError;
use crate::loader::install::installer::{self, InstallOrder};
use crate::loader::install::step::{InstallProgress, InstallStep};
use crate::loader::plan::{Plan, Resolved};
use crate::loader::store::{self, PackageIdentity};
use crate::pins::PackagePin;

impl Packages {
    /// Finds out everything that a question about a plan's package says of it: what is installed with it, and where it was
    /// built, which is asked for again where it is not known.
    pub(in crate::loader) async fn find_out(
        &self,
        plan: &Plan,
        progress: InstallProgress<'_>,
    ) -> Result<(), InstallError> {
        let package = package_of(plan)?;
        let (store, wanted) = (self.store.clone(), package.clone());
        let known = off_thread(move || store.record(&wanted)).await.flatten();
        self.lock(plan, progress).await?;
        match known {
            // What is not recorded yet is asked for with the version itself.
            Some(known) if known.provenance.is_unknown() => {
                let found = self.attested(package, known).await?;
                self.record(package, found).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Resolves a plan's package with everything that belongs to it; a lock that is kept already is not made again.
    ///
    /// What is found is kept: an installation later on installs exactly that. What is too young is refused, unless its
    /// lock is kept already.
    pub async fn lock(&self, plan: &Plan, progress: InstallProgress<'_>) -> Result<PackagePin, InstallError> {
        let package = package_of(plan)?;
        progress(InstallStep::Resolving);
        let limit = self.release_age.limit().await;
        let known = self.resolve_at_any_age(plan, limit.as_ref()).await?;
        let identity = PackageIdentity::new(package, &known.version, plan.scripts());
        let key = identity.key();
        let _held = self.store.lock(&key, || progress(InstallStep::Waiting)).await?;
        if let Some((lock, _)) = self.frozen(package, &identity, &known).await {
            return Ok(package_pin(package, known, Some(lock)));
        }
        if let Some(limit) = &limit {
            limit.check(plan, &known)?;
        }
        let malicious = self.malicious_beside(plan, &known, None).await?;
        let workspace = self.store.workspace(&key)?;
        let order = InstallOrder {
            dependency: plan.dependency(),
            malicious: &malicious,
            package,
            version: &known.version,
            expected: &Content {
                integrity: known.integrity.clone(),
                ..Content::default()
            },
            frozen: None,
            scripts: plan.scripts(),
            limit,
            directory: &workspace,
            progress,
        };
        let locked = installer::lock(&self.tools, &order).await;
        let found = made_lock(package, &known.version, &workspace).await;
        let found = locked.map(|()| found);
        let directory = workspace.clone();
        off_thread(move || store::remove(&directory)).await;
        let unreadable =
            || InstallError::file("read the lock in", &workspace)(std::io::ErrorKind::InvalidData.into());
        let (lock, text) = found?.ok_or_else(unreadable)?;
        self.freeze(&identity, lock.digest.clone(), text).await?;
        let known = Resolved {
            integrity: Some(lock.integrity.clone()),
            ..known
        };
        Ok(package_pin(package, known, Some(lock)))
    }
}
