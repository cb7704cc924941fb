//! The refusal of what is known to be malicious: before anything is fetched, before it is put into the store, and before
//! every start.

use std::sync::Arc;

use super::{Packages, package_of, package_pin, pin_in};
use crate::history::MaliciousOutcome;
use crate::loader::advisories::{AdvisoryError, Verdicts};
use crate::loader::install::background::off_thread;
use crate::loader::install::error::InstallError;
use crate::loader::install::lock::CheckedLock;
use crate::loader::plan::{Plan, Resolved};
use crate::pins::{MaliciousPackages, PackagePin, PackageVersion};
use crate::protocol::DependencyName;

/// A server of which something is known to be malicious.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaliciousServer {
    /// The server.
    pub dependency: DependencyName,
    /// The package that is malicious.
    pub package: PackageVersion,
    /// The id of the advisory that says so.
    pub advisory: String,
}

impl MaliciousServer {
    fn among(known: &MaliciousPackages, plan: &Plan, pin: &PackagePin) -> Option<Self> {
        let (package, advisory) = known.among(pin)?;
        Some(Self {
            dependency: plan.dependency().clone(),
            package,
            advisory: advisory.to_owned(),
        })
    }
}

impl Packages {
    /// Returns the file of the verdicts, which need not exist.
    #[must_use]
    pub fn verdicts(&self) -> &Verdicts {
        &self.verdicts
    }

    /// Returns which packages are known to be malicious; without a file nothing is read.
    pub(super) async fn known_malicious(&self) -> Result<MaliciousPackages, AdvisoryError> {
        if self.verdicts.is_absent() {
            return Ok(MaliciousPackages::default());
        }
        let verdicts = self.verdicts.clone();
        // Where the runtime is going away, nothing is started any more.
        off_thread(move || verdicts.read())
            .await
            .unwrap_or_else(|| Ok(MaliciousPackages::default()))
    }

    /// Returns what is known to be malicious, or refuses a plan that would be installed with some of it.
    pub(super) async fn malicious_beside(
        &self,
        plan: &Plan,
        resolved: &Resolved,
        contents: Option<&CheckedLock>,
    ) -> Result<MaliciousPackages, InstallError> {
        let known = self.known_malicious().await?;
        let pin = package_pin(package_of(plan)?, resolved.clone(), contents.cloned());
        match known.among(&pin) {
            Some((found, advisory)) => Err(InstallError::malicious(plan.dependency(), &found, advisory)),
            None => Ok(known),
        }
    }

    /// Finds the plans of which something is known to be malicious.
    pub async fn malicious_among(
        &self,
        plans: Vec<Arc<Plan>>,
    ) -> Result<Vec<MaliciousServer>, AdvisoryError> {
        let known = self.known_malicious().await?;
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let store = self.store.clone();
        let found = off_thread(move || {
            let found = plans.iter().filter_map(|plan| {
                let pin = pin_in(&store, plan.package()?, plan.scripts())?;
                MaliciousServer::among(&known, plan, &pin)
            });
            found.collect()
        });
        Ok(found.await.unwrap_or_default())
    }

    /// Finds what is known to be malicious of a plan; reads files.
    pub fn find_malicious(&self, plan: &Plan) -> Result<Option<MaliciousServer>, AdvisoryError> {
        if self.verdicts.is_absent() {
            return Ok(None);
        }
        let known = self.verdicts.read()?;
        Ok(self
            .pin(plan)
            .and_then(|pin| MaliciousServer::among(&known, plan, &pin)))
    }

    /// Refuses a plan of which something that is known of it is malicious.
    pub(super) async fn refuse_malicious(&self, plan: &Plan) -> Result<(), InstallError> {
        let known = self.known_malicious().await?;
        let Some(package) = plan.package().filter(|_| !known.is_empty()) else {
            return Ok(());
        };
        let (store, package, scripts) = (self.store.clone(), package.clone(), plan.scripts());
        let found = off_thread(move || {
            let pin = pin_in(&store, &package, scripts)?;
            let (found, advisory) = known.among(&pin)?;
            Some((found, advisory.to_owned()))
        });
        match found.await.flatten() {
            Some((found, advisory)) => Err(InstallError::malicious(plan.dependency(), &found, &advisory)),
            None => Ok(()),
        }
    }

    /// Records that a server was refused or stopped because something of it is malicious.
    pub(in crate::loader) async fn record_malicious(
        &self,
        dependency: &DependencyName,
        package: &str,
        advisory: &str,
        outcome: MaliciousOutcome,
    ) {
        self.history
            .note_malicious(dependency.as_str(), package, advisory, outcome)
            .await;
    }
}
