//! The running dependencies: each started once, however many calls wait for it, and ended with pml.
//!
//! A start belongs to no call: a caller that leaves does not stop it, and its steps and outcome are told to all
//! who wait. A dependency whose declaration changed is another one; the old one is closed when the new one starts.

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use dashmap::{DashMap, DashSet};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::launch::{Opening, Settings, open};
use super::learning::Offering;
use super::restart::{GivenUpError, Jitter, Start};
use super::slot::{Lease, Slot, Startup, State, lock};
use super::{
    Catalog, Client, Content, Declared, Installed, LoadError, Packages, Plan, Resolved, Session, Started,
    Urgency,
};
use crate::config::{Environment, Locations, Server};
use crate::protocol::approval::ShownDependency;
use crate::protocol::{Changes, DependencyName, Digest};

/// How long dependencies may take to go when pml goes: more than their supervisors take, unless what is still to be
/// read by one of them keeps its stdin open.
const LEAVING: Duration = Duration::from_millis(800);

/// How long a question waits for what the registry says of a package: installers ask it within a second, and a person
/// who waits for longer would take the call for stuck.
const REGISTRY_PATIENCE: Duration = Duration::from_secs(3);

/// Steps of a start, in words; told to a call that waits for it.
pub type Steps = Box<dyn Fn(String) + Send + Sync>;

/// Asked right before a dependency is started, after everything that had to be waited for.
pub type Gate = Box<dyn Fn(&Plan, Lease) -> Result<(), &'static str> + Send + Sync>;

/// Installs, starts, finds and ends dependencies; clones share them.
#[derive(Clone)]
pub struct Loader(pub(super) Arc<Shared>);

pub(super) struct Shared {
    packages: Packages,
    pub(super) catalog: Catalog,
    pub(super) slots: DashMap<DependencyName, Arc<Slot>>,
    resolving: DashSet<Digest>,
    pub(super) changes: watch::Sender<Changes>,
    /// What the client last said of itself, once there is one; what starts from then on is told so.
    pub(super) declared: Mutex<Option<Offering>>,
    settings: Settings,
    gate: OnceLock<Gate>,
    pub(super) tasks: TaskTracker,
    /// Ends starts and installs that are under way.
    closing: CancellationToken,
}

impl Loader {
    /// Names the places; installs and starts nothing.
    #[must_use]
    pub fn new(environment: &Environment, locations: &Locations, tasks: TaskTracker) -> Self {
        Self(Arc::new(Shared {
            packages: match super::process::supervisor() {
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

    /// Returns the running dependency, installing and starting it first where that is needed.
    ///
    /// `expected` is what a person was shown or approved; anything else is refused.
    pub async fn start(
        &self,
        plan: &Arc<Plan>,
        server: &Server,
        line_limit: usize,
        expected: &Content,
        lease: Lease,
        steps: Option<Steps>,
    ) -> Result<Started, Arc<LoadError>> {
        let slot = self.slot(plan);
        slot.rest_on(lease);
        let mut startup = {
            let mut state = lock(&slot.state);
            match &*state {
                State::Running(started) if started.session.ended().is_none() => {
                    // From here on it is in use, also before the call is sent.
                    started.session.touch();
                    return expected.checked(plan, started.clone());
                }
                State::Starting(startup) => startup.clone(),
                State::Running(_) | State::Idle => {
                    let startup = self.begin(&slot, plan, server, line_limit, expected);
                    *state = State::Starting(startup.clone());
                    startup
                }
            }
        };
        loop {
            match startup.borrow_and_update().clone() {
                Startup::Done(Ok(started)) => return expected.checked(plan, started),
                Startup::Done(Err(error)) => return Err(error),
                Startup::Step(text) => {
                    if let Some(steps) = &steps {
                        steps(text);
                    }
                }
            }
            if startup.changed().await.is_err() {
                return Err(Arc::new(LoadError::Closing));
            }
        }
    }

    /// Ends every dependency and whatever is under way.
    pub async fn close(&self, urgency: Urgency) {
        self.0.closing.cancel();
        if urgency == Urgency::AtOnce {
            self.0.settings.at_once.cancel();
        }
        let running: Vec<Started> = self.0.slots.iter().filter_map(|slot| slot.running()).collect();
        for started in &running {
            started.stop(urgency);
        }
        let leaving = async {
            for started in &running {
                started.gone().await;
            }
        };
        if tokio::time::timeout(LEAVING, leaving).await.is_err() {
            for started in &running {
                started.stop(Urgency::AtOnce);
            }
            for started in &running {
                started.gone().await;
            }
        }
    }

    pub(super) fn running(&self, plan: &Plan) -> Option<Started> {
        let slot = self.0.slots.get(plan.dependency())?;
        (slot.digest == *plan.digest()).then(|| slot.running()).flatten()
    }

    fn slot(&self, plan: &Plan) -> Arc<Slot> {
        let mut slot = self
            .0
            .slots
            .entry(plan.dependency().clone())
            .or_insert_with(|| Slot::new(plan));
        if slot.digest != *plan.digest() {
            self.leave(&slot);
            *slot = Slot::new(plan);
        }
        Arc::clone(&slot)
    }

    /// Starts a dependency in a task of its own.
    fn begin(
        &self,
        slot: &Arc<Slot>,
        plan: &Arc<Plan>,
        server: &Server,
        line_limit: usize,
        expected: &Content,
    ) -> watch::Receiver<Startup> {
        let (tell, startup) = watch::channel(Startup::Step(plan.opening()));
        let (loader, slot, plan, server) = (self.clone(), Arc::clone(slot), Arc::clone(plan), server.clone());
        let expected = expected.clone();
        self.0.tasks.spawn(async move {
            let shared = &loader.0;
            let starting = loader.bring_up(&slot, &plan, &server, line_limit, &expected, &tell);
            let outcome = tokio::select! {
                biased;
                () = shared.closing.cancelled() => Err(LoadError::Closing),
                reason = slot.dismissal() => Err(LoadError::Dismissed { reason }),
                outcome = starting => outcome,
            };
            let outcome = slot.settle(outcome);
            if let Ok(started) = &outcome {
                if let Some(client) = shared.settings.client.get().and_then(Weak::upgrade) {
                    client.opened(&started.session);
                }
                loader.keep(&slot, &plan, &server, started.clone());
            }
            tell.send_replace(Startup::Done(outcome.map_err(Arc::new)));
        });
        startup
    }

    async fn bring_up(
        &self,
        slot: &Slot,
        plan: &Arc<Plan>,
        server: &Server,
        line_limit: usize,
        expected: &Content,
        tell: &watch::Sender<Startup>,
    ) -> Result<Started, LoadError> {
        let step = |text: String| drop(tell.send_replace(Startup::Step(text)));
        let name = plan.dependency();
        let allowed = lock(&slot.restart).may_start(Instant::now());
        match allowed {
            Start::Now => {}
            Start::After(wait) => {
                step(format!(
                    "{name} died; waiting {} s before it is started again",
                    wait.as_secs().max(1)
                ));
                tokio::time::sleep(wait).await;
            }
            Start::GivenUp(given_up) => {
                return Err(GivenUpError {
                    name: name.clone(),
                    given_up,
                }
                .into());
            }
        }
        let installed = self.installed(plan, expected, &step).await?;
        if let Some(gate) = self.0.gate.get() {
            let lease = *lock(&slot.lease);
            gate(plan, lease).map_err(|reason| LoadError::Dismissed { reason })?;
        }
        step(plan.opening());
        lock(&slot.restart).started(Instant::now());
        let (loader, changing) = (self.clone(), Arc::clone(plan));
        let version = installed
            .as_ref()
            .map(|installed| installed.resolved.version.as_str());
        let seen = self.0.catalog.find(plan.catalog_key(), None);
        let remembered = seen
            .filter(|known| known.version.as_deref() == version)
            .map(|known| known.era);
        let opening = Opening {
            plan,
            installed,
            line_limit,
            start_timeout: server.start_timeout,
            tasks: &self.0.tasks,
            remembered: server.opened_in.or(remembered),
            declared: lock(&self.0.declared)
                .as_ref()
                .map_or_else(Declared::default, |current| current.declared.clone()),
            on_change: Box::new(move |kind, known, before| loader.relearned(&changing, kind, known, before)),
        };
        // Boxed: an opening holds several conversations, and every start would carry their size along.
        let opened = Box::pin(open(&self.0.settings, opening)).await;
        match opened {
            Ok(started) => {
                self.learn(plan, &started.known());
                Ok(started)
            }
            Err(error) => {
                lock(&slot.restart).died(Instant::now(), jitter());
                Err(error)
            }
        }
    }

    async fn installed(
        &self,
        plan: &Plan,
        expected: &Content,
        step: &(impl Fn(String) + Send + Sync),
    ) -> Result<Option<Installed>, LoadError> {
        if plan.package().is_none() {
            return Ok(None);
        }
        let name = plan.dependency();
        let progress = |at: super::InstallStep| step(format!("installing {name}: {at}"));
        Ok(Some(self.0.packages.install(plan, expected, &progress).await?))
    }

    /// Watches a running dependency: notes its death, and stops it when nobody uses it.
    fn keep(&self, slot: &Arc<Slot>, plan: &Arc<Plan>, server: &Server, started: Started) {
        let (slot, idle, name) = (Arc::clone(slot), server.idle, plan.dependency().clone());
        self.0.tasks.spawn(async move {
            if let Some(idle) = idle {
                slot.stop_when_unused(&started, idle).await;
            }
            let died = started.gone().await;
            let mut restart = lock(&slot.restart);
            if died.asked_for {
                restart.stopped(Instant::now());
            } else {
                tracing::warn!(dependency = %name, reason = %died.reason, "died");
                restart.died(Instant::now(), jitter());
            }
            drop(restart);
            slot.leave(&started);
        });
    }
}

fn jitter() -> Jitter {
    Jitter(uuid::Uuid::new_v4().as_bytes()[0])
}
