//! The start of a server: once for all calls that wait for it, in a task of its own; and the end of all servers.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::error::LoadError;
use super::history_record::{Acquaintance, ExitCause, ended};
use super::launch::{LaunchRequest, open};
use super::loader::Loader;
use super::mutex::lock;
use super::restart::{GivenUpError, Jitter, StartPermission};
use super::running_server::Started;
use super::slot::{Lease, Slot, SlotState, StartProgress};
use crate::config::Server;
use crate::history::Ended;
use crate::loader::install::{Content, InstallError, InstallStep, Installed};
use crate::loader::plan::Plan;
use crate::loader::process::Urgency;
use crate::loader::session::Declared;

/// How long dependencies may take to go when pml goes: more than their supervisors take, unless what is still to be
/// read by one of them keeps its stdin open.
const LEAVING: Duration = Duration::from_millis(800);

/// Steps of a start, in words; told to a call that waits for it.
pub type Steps = Box<dyn Fn(String) + Send + Sync>;

/// What a call finds of the server it needs.
enum Found {
    Running(Started),
    Starting(watch::Receiver<StartProgress>),
}

impl Loader {
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
        let found = {
            let mut state = lock(&slot.state);
            match &*state {
                SlotState::Running(started) if started.session.ended().is_none() => {
                    // From here on it is in use, also before the call is sent.
                    started.session.touch();
                    Found::Running(started.clone())
                }
                SlotState::Starting(startup) => Found::Starting(startup.clone()),
                SlotState::Running(_) | SlotState::Idle => {
                    let startup = self.begin(&slot, plan, server, line_limit, expected);
                    *state = SlotState::Starting(startup.clone());
                    Found::Starting(startup)
                }
            }
        };
        let mut startup = match found {
            Found::Running(started) => {
                // Boxed: it may ask a registry, and every call would carry its size along.
                Box::pin(self.demand_of(plan, &started)).await?;
                return checked(expected, plan, started);
            }
            Found::Starting(startup) => startup,
        };
        loop {
            match startup.borrow_and_update().clone() {
                StartProgress::Done(Ok(started)) => return checked(expected, plan, started),
                StartProgress::Done(Err(error)) => return Err(error),
                StartProgress::Step(text) => {
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

    /// Ends every server of this client and every start that is under way for it.
    pub async fn close(&self, urgency: Urgency) {
        self.own.closing.cancel();
        if urgency == Urgency::AtOnce {
            self.own.at_once.cancel();
        }
        let running: Vec<Started> = self.own.slots.iter().filter_map(|slot| slot.running()).collect();
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

    fn slot(&self, plan: &Arc<Plan>) -> Arc<Slot> {
        let mut slot = self
            .own
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
    ) -> watch::Receiver<StartProgress> {
        let (tell, startup) = watch::channel(StartProgress::Step(plan.opening()));
        let (loader, slot, plan, server) = (self.clone(), Arc::clone(slot), Arc::clone(plan), server.clone());
        let expected = expected.clone();
        self.common.tasks.spawn(async move {
            let starting = loader.bring_up(&slot, &plan, &server, line_limit, &expected, &tell);
            let outcome = tokio::select! {
                biased;
                () = loader.own.closing.cancelled() => Err(LoadError::Closing),
                reason = slot.dismissal() => Err(LoadError::Dismissed { reason }),
                outcome = starting => outcome,
            };
            if let Err(error) = &outcome {
                loader.common.failures.keep_failed_start(&plan, error).await;
            }
            let outcome = slot.settle(outcome);
            if let Ok(started) = &outcome {
                if let Some(client) = loader.own.client.get().and_then(Weak::upgrade) {
                    client.opened(&started.session);
                }
                loader.keep(&slot, &plan, &server, started.clone());
            }
            tell.send_replace(StartProgress::Done(outcome.map_err(Arc::new)));
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
        tell: &watch::Sender<StartProgress>,
    ) -> Result<Started, LoadError> {
        let step = |text: String| drop(tell.send_replace(StartProgress::Step(text)));
        let name = plan.dependency();
        let allowed = lock(&slot.restart).may_start(Instant::now());
        match allowed {
            StartPermission::Now => {}
            StartPermission::After(wait) => {
                step(format!(
                    "{name} died; waiting {} s before it is started again",
                    wait.as_secs().max(1)
                ));
                tokio::time::sleep(wait).await;
            }
            StartPermission::GivenUp(given_up) => {
                return Err(GivenUpError {
                    name: name.clone(),
                    given_up,
                }
                .into());
            }
        }
        let installed = self.installed(plan, expected, &step).await?;
        if let Some(gate) = self.own.gate.get() {
            let lease = *lock(&slot.lease);
            gate(Arc::clone(plan), lease)
                .await
                .map_err(|reason| LoadError::Dismissed { reason })?;
        }
        let seen = self.common.catalog.find(plan.catalog_key(), None);
        let acquaintance = match seen {
            Some(_) => Acquaintance::Known,
            None => Acquaintance::New,
        };
        self.record_start(plan, installed.as_ref(), acquaintance).await?;
        step(plan.opening());
        lock(&slot.restart).started(Instant::now());
        let (loader, changing) = (self.clone(), Arc::clone(plan));
        let version = installed
            .as_ref()
            .map(|installed| installed.resolved.version.as_str());
        let remembered = seen
            .filter(|known| known.version.as_deref() == version)
            .map(|known| known.era);
        let opening = LaunchRequest {
            plan,
            installed,
            line_limit,
            start_timeout: server.start_timeout,
            environment: &self.common.environment,
            at_once: &self.own.at_once,
            client: self.own.client.get().cloned(),
            tasks: &self.common.tasks,
            remembered: server.opened_in.or(remembered),
            declared: lock(&self.own.declared)
                .as_ref()
                .map_or_else(Declared::default, |current| current.declared.clone()),
            on_change: Box::new(move |kind, known, before| {
                let (loader, changing) = (loader.clone(), Arc::clone(&changing));
                Box::pin(async move { loader.relearned(&changing, kind, &known, &before).await })
            }),
        };
        // Boxed: an opening holds several conversations, and every start would carry their size along.
        let opened = Box::pin(open(opening)).await;
        match opened {
            Ok(started) => {
                self.learn(plan, &started.known()).await;
                Ok(started)
            }
            Err(error) => {
                lock(&slot.restart).died(Instant::now(), jitter());
                let end = error.end_reason().map_or(Ended::NotReady, ended);
                self.record_exit(plan, end, ExitCause::Own).await;
                Err(error.without_scripts(plan))
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
        let progress = |at: InstallStep| step(format!("installing {name}: {at}"));
        Ok(Some(
            self.common.packages.install(plan, expected, &progress).await?,
        ))
    }

    /// Watches a running server: notes its calls and its death, and stops it when no call uses it.
    fn keep(&self, slot: &Arc<Slot>, plan: &Arc<Plan>, server: &Server, started: Started) {
        let (loader, called) = (self.clone(), (Arc::clone(plan), started.clone()));
        self.common.tasks.spawn(async move {
            let (plan, started) = called;
            loader.common.uses.keep(&plan, &started).await;
        });
        let (slot, idle, name) = (Arc::clone(slot), server.idle, plan.dependency().clone());
        let (loader, plan) = (self.clone(), Arc::clone(plan));
        self.common.tasks.spawn(async move {
            if let Some(idle) = idle {
                slot.stop_when_unused(&started, idle).await;
            }
            let died = started.gone().await;
            if died.asked_for {
                lock(&slot.restart).stopped(Instant::now());
            } else {
                tracing::warn!(dependency = %name, reason = %died.ended.reason, "died");
                lock(&slot.restart).died(Instant::now(), jitter());
            }
            slot.leave(&started);
            let cause = if died.asked_for {
                ExitCause::Asked
            } else {
                ExitCause::Own
            };
            if cause == ExitCause::Own {
                loader.common.failures.keep_death(&plan, &died.ended).await;
            }
            loader.record_exit(&plan, ended(&died.ended.reason), cause).await;
        });
    }
}

fn jitter() -> Jitter {
    Jitter(uuid::Uuid::new_v4().as_bytes()[0])
}

/// Returns a started dependency, unless it is other content than this: another call may have started it.
fn checked(expected: &Content, plan: &Plan, started: Started) -> Result<Started, Arc<LoadError>> {
    let (Some(package), Some(resolved)) = (plan.package(), &started.resolved) else {
        return Ok(started);
    };
    match expected.check(&package.spec(), resolved) {
        Ok(()) => Ok(started),
        Err(InstallError::Changed { expected, found, .. }) => Err(Arc::new(LoadError::Changed {
            dependency: plan.dependency().clone(),
            expected,
            found,
        })),
        Err(error) => Err(Arc::new(error.into())),
    }
}
