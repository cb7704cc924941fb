//! What must be known of where a package was built before it is installed or started.

use std::path::Path;
use std::sync::Arc;

use super::resolution::resolving;
use super::{Packages, package_of};
use crate::loader::install::background::off_thread;
use crate::loader::install::content::Content;
use crate::loader::install::error::InstallError;
use crate::loader::install::installer::{AttestationLead, attest};
use crate::loader::plan::{Package, Plan, Resolved};
use crate::loader::store::PackageStore;
use crate::pins::ProvenanceFinding;
use crate::protocol::Shown;

impl Packages {
    /// Refuses a package of which the user demands a provenance that it does not have.
    pub(super) async fn demand(&self, package: &Package, resolved: &Resolved) -> Result<(), InstallError> {
        let settings = self.tools.provenance_settings().await?;
        let registry = package.ecosystem().as_str();
        let Some(pattern) = settings.requirement(registry, &package.registry_name()) else {
            return Ok(());
        };
        let lack = match &resolved.provenance {
            ProvenanceFinding::Proven(_) => return Ok(()),
            ProvenanceFinding::Absent => "it has no provenance".to_owned(),
            ProvenanceFinding::Unknown { reason } => {
                format!("it is not known where it was built ({})", Shown::line(reason))
            }
        };
        Err(InstallError::Unproven {
            package: package.at(&resolved.version),
            lack,
            pattern: Shown::line(pattern).to_string(),
            file: self.tools.user_config().to_owned(),
        })
    }

    /// Finds out where a version was built, and refuses it if the user demands more.
    pub(super) async fn attest_in(
        &self,
        package: &Package,
        workspace: &Path,
        resolved: Resolved,
        lead: AttestationLead,
    ) -> Result<Resolved, InstallError> {
        let resolved = attest(&self.tools, package, workspace, resolved, lead).await?;
        self.demand(package, &resolved).await?;
        Ok(resolved)
    }

    /// Does the same of a package that is installed; where it was built is asked for if that is not known.
    pub(super) async fn demand_of_installed(
        &self,
        package: &Package,
        installed: &Resolved,
    ) -> Result<(), InstallError> {
        let Err(refused) = self.demand(package, installed).await else {
            return Ok(());
        };
        if !installed.provenance.is_unknown() {
            return Err(refused);
        }
        let found = self.attested(package, installed.clone()).await?;
        self.demand(package, &found).await?;
        self.record(package, found).await
    }

    /// Does the same of a server that runs: the user may have come to demand it since it was started.
    pub(in crate::loader) async fn demand_of_running(
        &self,
        plan: &Plan,
        running: &Resolved,
    ) -> Result<(), InstallError> {
        let package = package_of(plan)?;
        let (store, wanted, running) = (self.store.clone(), package.clone(), running.clone());
        let known = off_thread(move || latest_of(&store, &wanted, running)).await;
        match known {
            Some(known) => self.demand_of_installed(package, &known).await,
            // The runtime is going away, and every server with it.
            None => Ok(()),
        }
    }

    /// Finds the running plans of whose packages the user demands a provenance that they are not known to have; asks no
    /// registry.
    pub(in crate::loader) async fn unproven_among(
        &self,
        running: Vec<(Arc<Plan>, Resolved)>,
    ) -> Result<Vec<Arc<Plan>>, InstallError> {
        if running.is_empty() {
            return Ok(Vec::new());
        }
        let settings = self.tools.provenance_settings().await?;
        let store = self.store.clone();
        let found = off_thread(move || {
            let unproven = running.into_iter().filter_map(|(plan, resolved)| {
                let package = plan.package()?;
                settings.requirement(package.ecosystem().as_str(), &package.registry_name())?;
                let known = latest_of(&store, package, resolved);
                known.provenance.proven().is_none().then_some(plan)
            });
            unproven.collect()
        });
        Ok(found.await.unwrap_or_default())
    }

    /// Refuses what must not be fetched, and returns what is known of a version with the content that must be found.
    pub(super) async fn proven(
        &self,
        package: &Package,
        known: Resolved,
        expected: &Content,
    ) -> Result<(Resolved, Content), InstallError> {
        let known = self.attested(package, known).await?;
        self.demand(package, &known).await?;
        if let Err(refused) = expected.check(&package.spec(), &known) {
            // What was found out is what the person is asked about.
            self.record(package, known).await?;
            return Err(refused);
        }
        let expected = Content {
            integrity: expected.integrity.clone().or_else(|| known.integrity.clone()),
            ..expected.clone()
        };
        Ok((known, expected))
    }

    /// Returns what is known of a version and where it was built, which its registry is asked for if that is not known.
    ///
    /// An attestation that does not verify is an error; a registry that cannot be asked is none.
    pub(super) async fn attested(
        &self,
        package: &Package,
        known: Resolved,
    ) -> Result<Resolved, InstallError> {
        if !known.provenance.is_unknown() {
            return Ok(known);
        }
        let Ok(exact) = package.exact(&known.version) else {
            return Ok(known);
        };
        let key = resolving(package);
        let _held = self.store.lock(&key, || {}).await?;
        // The last holder of the lock has probably found it out.
        let found = self.store.record(package).filter(|record| {
            let same = (&record.version, &record.integrity) == (&known.version, &known.integrity);
            same && !record.provenance.is_unknown()
        });
        let found = match found {
            Some(record) => Ok(record),
            // Its age is for the caller to judge: the version is chosen already.
            None => self.ask_registry(&exact, &key, None).await,
        };
        let found = match found {
            Ok(found) => found,
            Err(
                error @ (InstallError::Provenance { .. }
                | InstallError::Unproven { .. }
                | InstallError::Settings(_)),
            ) => {
                return Err(error);
            }
            Err(error) => {
                let reason = error.to_string();
                tracing::info!(package = %package.at(&known.version), %reason, "it is not known where the package was built");
                return Ok(Resolved {
                    provenance: ProvenanceFinding::Unknown { reason },
                    ..known
                });
            }
        };
        // What is proven is proven of this very content.
        let content = Content {
            integrity: known.integrity.clone(),
            ..Content::default()
        };
        content.check(&package.at(&known.version), &found)?;
        Ok(Resolved {
            integrity: known.integrity.or(found.integrity),
            withdrawn: known.withdrawn.or(found.withdrawn),
            published: known.published.or(found.published),
            provenance: found.provenance,
            ..known
        })
    }
}

/// Returns what is known of a version that runs: where it was built may have been found out after it was started.
fn latest_of(store: &PackageStore, package: &Package, running: Resolved) -> Resolved {
    let is_same = |recorded: &Resolved| {
        (&recorded.version, &recorded.integrity) == (&running.version, &running.integrity)
    };
    store.record(package).filter(is_same).unwrap_or(running)
}
