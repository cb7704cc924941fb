//! The end of servers that may no longer run, or whose declaration changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::LoadError;
use super::loader::Loader;
use super::mutex::lock;
use super::running_server::Started;
use super::slot::{Lease, Slot, SlotState};
use crate::history::MaliciousOutcome;
use crate::loader::install::{InstallError, MaliciousServer};
use crate::loader::plan::Plan;
use crate::loader::process::Urgency;
use crate::protocol::{DependencyName, Digest, Shown};

/// How long calls may still take on a dependency whose declaration changed.
const RETIREMENT: Duration = Duration::from_mins(1);

/// What a call is told whose server must go because of what it contains; its next call is told more.
const MALICIOUS: &str = "one of its packages is known to be malicious";

/// What a call is told whose server must go because the user has come to demand more of it; its next call is told more.
const UNPROVEN: &str = "you demand a provenance of its package now";

/// A dependency that runs or is being started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupied {
    /// Its name.
    pub dependency: DependencyName,
    /// What it was launched as.
    pub digest: Digest,
    /// On what its running rests.
    pub lease: Lease,
}

impl Loader {
    /// Lists every dependency that runs or is being started.
    #[must_use]
    pub fn occupied(&self) -> Vec<Occupied> {
        let slots = self.own.slots.iter();
        slots
            .filter(|slot| !matches!(*lock(&slot.state), SlotState::Idle))
            .map(|slot| Occupied {
                dependency: slot.key().clone(),
                digest: slot.digest.clone(),
                lease: *lock(&slot.lease),
            })
            .collect()
    }

    /// Stops a dependency, or its start, because it may no longer run.
    pub fn dismiss(&self, dependency: &DependencyName, digest: &Digest, reason: &'static str) {
        if let Some((_, slot)) = self
            .own
            .slots
            .remove_if(dependency, |_, slot| slot.digest == *digest)
        {
            slot.dismiss(reason);
        }
    }

    /// Stops at once every dependency, and every start, of which something is known to be malicious.
    ///
    /// Where that cannot be read, nothing is stopped for it; starts are refused then.
    pub async fn stop_malicious(&self) {
        let slots = self.own.slots.iter();
        let occupied = slots.filter(|slot| !matches!(*lock(&slot.state), SlotState::Idle));
        let plans: Vec<Arc<Plan>> = occupied.map(|slot| Arc::clone(&slot.plan)).collect();
        let digests: HashMap<_, _> = plans
            .iter()
            .map(|plan| (plan.dependency().clone(), plan.digest().clone()))
            .collect();
        let packages = &self.common.packages;
        let found = match packages.malicious_among(plans).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(error = %crate::report::render_hinted(&error), "no package is started");
                return;
            }
        };
        for malicious in &found {
            let MaliciousServer {
                dependency, advisory, ..
            } = malicious;
            tracing::warn!(%dependency, package = %Shown::line(&malicious.package.to_string()), %advisory, "stopped: malicious");
            let running = self.own.slots.get(dependency).and_then(|slot| slot.running());
            if let Some(digest) = digests.get(dependency) {
                self.dismiss(dependency, digest, MALICIOUS);
            }
            // It is not trusted to go by itself.
            if let Some(started) = running {
                started.stop(Urgency::AtOnce);
            }
        }
        for malicious in &found {
            let package = malicious.package.to_string();
            let (name, outcome) = (&malicious.dependency, MaliciousOutcome::Stopped);
            packages
                .record_malicious(name, &package, &malicious.advisory, outcome)
                .await;
        }
    }

    /// Stops every dependency of whose package the user demands a provenance that it is not known to have.
    ///
    /// A start judges that itself, asks the registry where it is not known, and says what is missing. Where the demands
    /// cannot be read, nothing is stopped for it; starts are refused then.
    pub async fn stop_unproven(&self) {
        let slots = self.own.slots.iter();
        let running = slots.filter_map(|slot| {
            let resolved = slot.running()?.resolved?;
            Some((Arc::clone(&slot.plan), *resolved))
        });
        match self.common.packages.unproven_among(running.collect()).await {
            Ok(unproven) => {
                for plan in unproven {
                    tracing::warn!(dependency = %plan.dependency(), "stopped: a provenance is demanded of it");
                    self.dismiss(plan.dependency(), plan.digest(), UNPROVEN);
                }
            }
            Err(error) => {
                tracing::warn!(error = %crate::report::render_hinted(&error), "no package is started");
            }
        }
    }

    /// Refuses, and stops, what runs without a provenance that the user has come to demand since it was started.
    pub(super) async fn demand_of(&self, plan: &Plan, started: &Started) -> Result<(), Arc<LoadError>> {
        let Some(resolved) = &started.resolved else {
            return Ok(());
        };
        let demanded = self.common.packages.demand_of_running(plan, resolved).await;
        demanded.map_err(|refused| {
            // A file that cannot be read refuses calls; what runs is not stopped for a typing error.
            if let InstallError::Unproven { .. } = refused {
                self.dismiss(plan.dependency(), plan.digest(), UNPROVEN);
            }
            Arc::new(refused.into())
        })
    }

    /// Ends a dependency whose declaration changed: a start at once, what runs after the calls it works on.
    pub fn retire(&self, dependency: &DependencyName, digest: &Digest) {
        if let Some((_, slot)) = self
            .own
            .slots
            .remove_if(dependency, |_, slot| slot.digest == *digest)
        {
            self.leave(&slot);
        }
    }

    /// Ends a dependency if no call has used it for `idle`; a call that comes then starts another one.
    pub fn stop_unused(&self, dependency: &DependencyName, started: &Started, idle: Duration) {
        if let Some(slot) = self.own.slots.get(dependency) {
            slot.stop_unused(started, idle);
        }
    }

    pub(super) fn leave(&self, slot: &Slot) {
        match slot.running() {
            Some(started) => drop(self.common.tasks.spawn(retire(started))),
            None => slot.dismiss("its declaration changed"),
        }
    }
}

/// Lets a dependency that was replaced finish what it was asked, then ends it.
async fn retire(started: Started) {
    let begun = Instant::now();
    while started.session.is_busy() && begun.elapsed() < RETIREMENT {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    started.stop(Urgency::Gentle);
}
