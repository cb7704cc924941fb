//! The running dependencies: each started once, however many calls wait for it, and ended with pml.
//!
//! A start belongs to no call: a caller that leaves does not stop it, and its steps and outcome are told to all
//! who wait. A dependency whose declaration changed is another one; the old one is closed when the new one starts.

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use dashmap::{DashMap, DashSet};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::running_server::Started;
use super::settings::Settings;
use super::slot::{Lease, Slot};
use crate::config::{Environment, Locations};
use crate::loader::catalog::Catalog;
use crate::loader::install::Packages;
use crate::loader::plan::{Plan, Resolved};
use crate::loader::process::supervisor;
use crate::loader::session::{Client, Declared, Session};
use crate::protocol::approval::ShownDependency;
use crate::protocol::{Changes, DependencyName, Digest};

/// How long a question waits for what the registry says of a package: installers ask it within a second, and a person
/// who waits for longer would take the call for stuck.
const REGISTRY_PATIENCE: Duration = Duration::from_secs(3);

/// Asked right before a dependency is started, after everything that had to be waited for.
pub type Gate = Box<dyn Fn(&Plan, Lease) -> Result<(), &'static str> + Send + Sync>;

/// What the client last said of itself.
pub(super) struct Offering {
    pub(super) declared: Declared,
    /// What it offers to dependencies, which may list more to a client that can do more.
    pub(super) offer: Digest,
}

/// Installs, starts, finds and ends dependencies; clones share them.
#[derive(Clone)]
pub struct Loader(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) packages: Packages,
    pub(super) catalog: Catalog,
    pub(super) slots: DashMap<DependencyName, Arc<Slot>>,
    pub(super) resolving: DashSet<Digest>,
    pub(super) changes: watch::Sender<Changes>,
    /// What the client last said of itself, once there is one; what starts from then on is told so.
    pub(super) declared: Mutex<Option<Offering>>,
    pub(super) settings: Settings,
    pub(super) gate: OnceLock<Gate>,
    pub(super) tasks: TaskTracker,
    /// Ends starts and installs that are under way.
    pub(super) closing: CancellationToken,
}

impl Loader {
    /// Names the places; installs and starts nothing.
    #[must_use]
    pub fn new(environment: &Environment, locations: &Locations, tasks: TaskTracker) -> Self {
        Self(Arc::new(Shared {
            packages: match supervisor::program() {
                Ok(supervisor) => Packages::new(locations, environment).supervised_by(supervisor),
                Err(_) => Packages::new(locations, environment),
            },
            catalog: Catalog::new(locations),
            slots: DashMap::new(),
            resolving: DashSet::new(),
            changes: watch::Sender::default(),
            declared: Mutex::default(),
            settings: Settings {
                environment: environment.clone(),
                at_once: CancellationToken::new(),
                client: OnceLock::new(),
            },
            gate: OnceLock::new(),
            tasks,
            closing: CancellationToken::new(),
        }))
    }

    /// Returns the store of packages.
    #[must_use]
    pub fn packages(&self) -> &Packages {
        &self.0.packages
    }

    /// Names the client that dependencies talk to from now on.
    pub fn serve(&self, client: Weak<dyn Client>) {
        let _ = self.0.settings.client.set(client);
    }

    /// Names who is asked right before a dependency is started.
    pub fn ask_before_a_start(&self, gate: Gate) {
        let _ = self.0.gate.set(gate);
    }

    /// Returns every dependency that answers calls.
    #[must_use]
    pub fn sessions(&self) -> Vec<Session> {
        let slots = self.0.slots.iter();
        slots.filter_map(|slot| Some(slot.running()?.session)).collect()
    }

    /// Returns the exact version and integrity, where they are known.
    #[must_use]
    pub fn resolved(&self, plan: &Plan) -> Option<Resolved> {
        let package = plan.package()?;
        match self.running(plan) {
            Some(started) => started.resolved.map(|resolved| *resolved),
            None => self.0.packages.resolved(package),
        }
    }

    /// Returns what a person is shown of a plan, with all that is known of its package.
    #[must_use]
    pub fn shown(&self, plan: &Plan) -> ShownDependency {
        let mut shown = plan.shown(self.resolved(plan).as_ref());
        if plan.package().is_some() {
            let installed = self.0.packages.installed(plan).ok().flatten();
            shown.installation.at_start = installed.map(|installed| installed.at_start).unwrap_or_default();
        }
        shown
    }

    /// Tells whether a dependency answers calls.
    #[must_use]
    pub fn is_running(&self, plan: &Plan) -> bool {
        self.running(plan).is_some()
    }

    /// Tells whether a start would install something first.
    #[must_use]
    pub fn needs_install(&self, plan: &Plan) -> bool {
        plan.package().is_some()
            && self.running(plan).is_none()
            && !matches!(self.0.packages.installed(plan), Ok(Some(_)))
    }

    /// Finds out the exact version and integrity without running any code of the package.
    ///
    /// Waits a moment for it, so that what the registry says stands in the question; then it goes on by itself.
    pub async fn resolve_soon(&self, plan: &Arc<Plan>) {
        let Some(package) = plan.package() else { return };
        if !self.0.resolving.insert(plan.digest().clone()) {
            let resolving = self.0.packages.resolve(package);
            let _ = tokio::time::timeout(REGISTRY_PATIENCE, resolving).await;
            return;
        }
        let (shared, plan) = (Arc::clone(&self.0), Arc::clone(plan));
        let resolving = self.0.tasks.spawn(async move {
            if let Some(package) = plan.package() {
                let resolving = shared.closing.run_until_cancelled(shared.packages.resolve(package));
                if let Some(Err(error)) = resolving.await {
                    tracing::info!(dependency = %plan.dependency(), %error, "the package could not be resolved");
                }
            }
            shared.resolving.remove(plan.digest());
        });
        let _ = tokio::time::timeout(REGISTRY_PATIENCE, resolving).await;
    }

    pub(super) fn running(&self, plan: &Plan) -> Option<Started> {
        let slot = self.0.slots.get(plan.dependency())?;
        (slot.digest == *plan.digest()).then(|| slot.running()).flatten()
    }
}
