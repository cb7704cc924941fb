//! The loader of one client: its servers, each started once for all its calls, and ended with it.
//!
//! A start belongs to no call: a caller that leaves does not stop it, and all callers that wait get its steps and its
//! outcome. A server whose declaration changed is another one; the old one is closed when the new one starts.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use dashmap::{DashMap, DashSet};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::failure_log::{FailureLogs, LastFailure};
use super::last_use::LastUses;
use super::running_server::Started;
use super::searches::ContentsSearches;
use super::slot::{Lease, Slot};
use crate::config::{Environment, Locations};
use crate::history::History;
use crate::loader::catalog::Catalog;
use crate::loader::install::{InstallError, Packages, ReleaseAge};
use crate::loader::plan::{Plan, Resolved, VersionSpec};
use crate::loader::process::supervisor;
use crate::loader::session::{Client, Declared, Session};
use crate::pins::PackagePin;
use crate::protocol::approval::ShownDependency;
use crate::protocol::{DependencyName, Digest, ListChanges};

/// How long a question waits for what the registry says of a package: installers ask it within a second, and a person
/// who waits for longer would take the call for stuck.
const REGISTRY_PATIENCE: Duration = Duration::from_secs(3);

/// Asked right before a dependency is started, after everything that had to be waited for.
pub type Gate = Box<dyn Fn(Arc<Plan>, Lease) -> GateAnswer + Send + Sync>;

/// Why a server must not be started, if it must not; the answer may have to be read from disk.
pub type GateAnswer = Pin<Box<dyn Future<Output = Result<(), &'static str>> + Send>>;

/// What one client said of itself last.
pub(super) struct Declaration {
    pub(super) declared: Declared,
    /// What it offers to servers, which may list more to a client that can do more.
    pub(super) offer: Digest,
}

/// Installs, starts, finds and ends the servers of one client; clones act for the same client.
///
/// Packages and the catalog are shared by all clients of a process. Running servers are not: each client has a process
/// or a connection of its own, so that neither a question of a server, nor a capability, nor a list that was meant for
/// one client reaches another.
#[derive(Clone)]
pub struct Loader {
    pub(super) common: Arc<Common>,
    pub(super) own: Arc<ClientServers>,
}

/// What all clients of a process share; nothing of it is said to a server in the name of one of them.
pub(super) struct Common {
    pub(super) packages: Packages,
    /// Where starts and ends are recorded.
    pub(super) history: History,
    pub(super) catalog: Catalog,
    /// Where the last failure of each server is kept.
    pub(super) failures: FailureLogs,
    /// Where it is kept when each server was called last.
    pub(super) uses: LastUses,
    /// The plans whose packages are being resolved.
    resolving: DashSet<Digest>,
    /// The packages of which it is being found out what is installed with them.
    pub(super) searches: ContentsSearches,
    pub(super) environment: Environment,
    pub(super) tasks: TaskTracker,
}

/// The servers of one client, and what they are told of it.
#[derive(Default)]
pub(super) struct ClientServers {
    pub(super) slots: DashMap<DependencyName, Arc<Slot>>,
    /// How often the client's list of each kind may have changed.
    pub(super) changes: watch::Sender<ListChanges>,
    /// What the client said of itself last; servers that start from then on are told so.
    pub(super) declared: Mutex<Option<Declaration>>,
    /// Asked right before a server is started for this client: what one was granted says nothing of another.
    pub(super) gate: OnceLock<Gate>,
    /// The client that servers talk to, once there is one.
    pub(super) client: OnceLock<Weak<dyn Client>>,
    /// Ends every process at once, also those that are not ready yet.
    pub(super) at_once: CancellationToken,
    /// Ends starts and installs that are under way.
    pub(super) closing: CancellationToken,
}

impl Loader {
    /// Names the places; installs and starts nothing.
    #[must_use]
    pub fn new(
        environment: &Environment,
        locations: &Locations,
        history: History,
        release_age: ReleaseAge,
        tasks: TaskTracker,
    ) -> Self {
        let packages = Packages::new(locations, environment, history.clone(), release_age);
        let common = Common {
            packages: match supervisor::program() {
                Ok(supervisor) => packages.supervised_by(supervisor),
                Err(_) => packages,
            },
            history,
            catalog: Catalog::new(locations),
            failures: FailureLogs::new(locations),
            uses: LastUses::new(locations),
            resolving: DashSet::new(),
            searches: ContentsSearches::default(),
            environment: environment.clone(),
            tasks,
        };
        Self {
            common: Arc::new(common),
            own: Arc::default(),
        }
    }

    /// Returns a loader for another client: the same packages and catalog, no server yet, nothing declared.
    #[must_use]
    pub fn for_another_client(&self) -> Self {
        Self {
            common: Arc::clone(&self.common),
            own: Arc::default(),
        }
    }

    /// Returns what ends when this client's servers are ended.
    #[must_use]
    pub fn closing(&self) -> &CancellationToken {
        &self.own.closing
    }

    /// Returns the last failure of a server as it is declared now.
    #[must_use]
    pub fn last_failure(&self, plan: &Plan) -> Option<LastFailure> {
        self.common.failures.read(plan)
    }

    /// Returns when a server was called last as it is declared now, in milliseconds since 1970.
    #[must_use]
    pub fn last_use(&self, plan: &Plan) -> Option<i64> {
        self.common.uses.read(plan)
    }

    /// Returns the store of packages.
    #[must_use]
    pub fn packages(&self) -> &Packages {
        &self.common.packages
    }

    /// Names the client that the servers of this loader talk to from now on.
    pub fn serve(&self, client: Weak<dyn Client>) {
        let _ = self.own.client.set(client);
    }

    /// Names who is asked right before a server is started for this client.
    pub fn ask_before_a_start(&self, gate: Gate) {
        let _ = self.own.gate.set(gate);
    }

    /// Returns the session of every server that answers calls of this client.
    #[must_use]
    pub fn sessions(&self) -> Vec<Session> {
        let slots = self.own.slots.iter();
        slots.filter_map(|slot| Some(slot.running()?.session)).collect()
    }

    /// Returns the exact version and integrity, where they are known.
    #[must_use]
    pub fn resolved(&self, plan: &Plan) -> Option<Resolved> {
        let package = plan.package()?;
        match self.running(plan) {
            Some(started) => started.resolved.map(|resolved| *resolved),
            None => self.common.packages.resolved(package),
        }
    }

    /// Returns what tells the package that would run from another, without a look at everything that belongs to it.
    #[must_use]
    pub fn package_in_short(&self, plan: &Plan) -> Option<PackagePin> {
        let package = plan.package()?;
        let title = package.registry_title();
        if let Some(resolved) = self.resolved(plan) {
            return Some(PackagePin {
                integrity: resolved.integrity,
                package_lock: resolved.lock,
                provenance: resolved.provenance,
                ..PackagePin::version(&title, &resolved.version)
            });
        }
        match package.version() {
            VersionSpec::Exact(version) => Some(PackagePin::version(&title, version)),
            // What a range means is known once the registry was asked.
            VersionSpec::Floating(_) => None,
        }
    }

    /// Returns what a person is shown of a plan, with all that is known of its package.
    #[must_use]
    pub fn shown(&self, plan: &Plan) -> ShownDependency {
        let mut shown = plan.shown(self.resolved(plan).as_ref(), self.common.packages.now());
        if plan.package().is_some() {
            let installed = self.common.packages.installed(plan).ok().flatten();
            if installed.is_some() {
                // There will be newer ones still: it mattered when this one was chosen.
                shown.installation.left_out = None;
            }
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
            && !matches!(self.common.packages.installed(plan), Ok(Some(_)))
    }

    /// Finds out the exact version and integrity without running any code of the package.
    ///
    /// Waits a moment for it, so that what the registry says stands in the question; then it goes on by itself. An error
    /// means that a version is too young, so that no answer could have it installed; any other is for the installation
    /// to meet.
    pub async fn resolve_soon(&self, plan: &Arc<Plan>) -> Result<(), InstallError> {
        if plan.package().is_none() {
            return Ok(());
        }
        let young = |resolved: Result<_, InstallError>| match resolved {
            Err(error) if error.is_about_age() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        };
        if !self.common.resolving.insert(plan.digest().clone()) {
            let resolving = self.common.packages.resolve(plan);
            let resolved = tokio::time::timeout(REGISTRY_PATIENCE, resolving).await;
            return resolved.map_or(Ok(()), young);
        }
        let (loader, plan) = (self.clone(), Arc::clone(plan));
        let resolving = self.common.tasks.spawn(async move {
            let resolving = loader.common.packages.resolve(&plan);
            let resolved = loader.own.closing.run_until_cancelled(resolving).await;
            if let Some(Err(error)) = &resolved {
                tracing::info!(dependency = %plan.dependency(), %error, "the package could not be resolved");
            }
            loader.common.resolving.remove(plan.digest());
            resolved
        });
        match tokio::time::timeout(REGISTRY_PATIENCE, resolving).await {
            Ok(Ok(Some(resolved))) => young(resolved),
            _ => Ok(()),
        }
    }

    pub(super) fn running(&self, plan: &Plan) -> Option<Started> {
        let slot = self.own.slots.get(plan.dependency())?;
        (slot.digest == *plan.digest()).then(|| slot.running()).flatten()
    }
}
