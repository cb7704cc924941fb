//! What a spec means: the registry is asked, held to the least age of a version, and what it says is recorded.

use std::path::Path;

use super::{Packages, package_of};
use crate::loader::install::background::off_thread;
use crate::loader::install::error::InstallError;
use crate::loader::install::installer;
use crate::loader::install::release_age::AgeLimit;
use crate::loader::plan::{Package, Plan, Resolved, VersionSpec};
use crate::loader::store;
use crate::protocol::Digest;

impl Packages {
    /// Asks the registry for the exact version and integrity of a plan's package and records them; no code of it runs.
    ///
    /// A spec that has a record is not asked for again: a floating version is pinned by its first resolution. A version
    /// that is too young is refused; where the spec names it, what the registry said is recorded all the same.
    pub async fn resolve(&self, plan: &Plan) -> Result<Resolved, InstallError> {
        let limit = self.release_age.limit().await;
        let resolved = self.resolve_at_any_age(plan, limit.as_ref()).await?;
        match limit {
            Some(limit) => limit.check(plan, &resolved).map(|()| resolved),
            None => Ok(resolved),
        }
    }

    /// Does the same, but leaves it to the caller to judge the age of a version that is recorded, or that the spec names.
    pub(super) async fn resolve_at_any_age(
        &self,
        plan: &Plan,
        limit: Option<&AgeLimit>,
    ) -> Result<Resolved, InstallError> {
        let package = package_of(plan)?;
        let recorded = || {
            self.store
                .record(package)
                .filter(|resolved| resolved.integrity.is_some() && self.release_age.accepts(resolved))
        };
        if let Some(resolved) = recorded() {
            return Ok(resolved);
        }
        let key = resolving(package);
        let _held = self.store.lock(&key, || {}).await?;
        // The last holder of the lock has probably asked the same.
        if let Some(resolved) = recorded() {
            return Ok(resolved);
        }
        let workspace = self.store.workspace(&key)?;
        let resolved = self.resolve_in(plan, package, &workspace, limit).await;
        off_thread(move || store::remove(&workspace)).await;
        resolved
    }

    /// Asks the registry and records what it says: what a question needs at once, then where the version was built.
    async fn resolve_in(
        &self,
        plan: &Plan,
        package: &Package,
        workspace: &Path,
        limit: Option<&AgeLimit>,
    ) -> Result<Resolved, InstallError> {
        let (resolved, lead) = installer::resolve(&self.tools, package, workspace, limit).await?;
        if let (Some(limit), VersionSpec::Floating(_)) = (limit, package.version()) {
            // A record would pin it.
            limit.check(plan, &resolved)?;
        }
        let recorded = self.store.record(package);
        if recorded.is_some_and(|recorded| !self.release_age.accepts(&recorded)) {
            self.forget(package).await?;
        }
        self.record(package, resolved.clone()).await?;
        let proven = self.attest_in(package, workspace, resolved, lead).await;
        match proven {
            Ok(proven) => {
                self.record(package, proven.clone()).await?;
                Ok(proven)
            }
            Err(refused) => {
                // What is refused pins no version: another one may stand there tomorrow.
                self.forget(package).await?;
                Err(refused)
            }
        }
    }

    async fn forget(&self, package: &Package) -> Result<(), InstallError> {
        let (store, package) = (self.store.clone(), package.clone());
        off_thread(move || store.forget(&package))
            .await
            .unwrap_or(Ok(()))?;
        Ok(())
    }

    /// Asks the registry what a spec means today and records nothing, for a version that is about to be declared.
    ///
    /// A version that is too young is refused.
    pub async fn look_up(&self, plan: &Plan) -> Result<Resolved, InstallError> {
        let package = package_of(plan)?;
        let key = resolving(package);
        let _held = self.store.lock(&key, || {}).await?;
        let limit = self.release_age.limit().await;
        let resolved = self.ask_registry(package, &key, limit.as_ref()).await?;
        match limit {
            Some(limit) => limit.check(plan, &resolved).map(|()| resolved),
            None => Ok(resolved),
        }
    }

    pub(super) async fn ask_registry(
        &self,
        package: &Package,
        key: &str,
        limit: Option<&AgeLimit>,
    ) -> Result<Resolved, InstallError> {
        let workspace = self.store.workspace(key)?;
        let resolved = match installer::resolve(&self.tools, package, &workspace, limit).await {
            Ok((resolved, lead)) => self.attest_in(package, &workspace, resolved, lead).await,
            Err(error) => Err(error),
        };
        off_thread(move || store::remove(&workspace)).await;
        resolved
    }
}

/// The lock under which a spec is resolved.
pub(super) fn resolving(package: &Package) -> String {
    format!("resolve-{}", Digest::of([package.to_string()]))
}
