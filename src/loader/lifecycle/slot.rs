//! The slot of one server: idle, starting or running.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::LoadError;
use super::mutex::lock;
use super::restart::Restart;
use super::running_server::Started;
use crate::loader::plan::Plan;
use crate::loader::process::Urgency;
use crate::protocol::Digest;

/// The place of one dependency as it is declared now.
pub(super) struct Slot {
    pub(super) digest: Digest,
    /// What runs in it.
    pub(super) plan: Arc<Plan>,
    pub(super) state: Mutex<SlotState>,
    pub(super) restart: Mutex<Restart>,
    /// On what its running rests.
    pub(super) lease: Mutex<Lease>,
    /// Set once it may not run any more: why. A start that is under way ends then.
    dismissed: OnceLock<&'static str>,
    leaving: CancellationToken,
}

/// On what the running of a dependency rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// On a rule or an approval, which can be taken back.
    Standing,
    /// On answers to single calls: there is nothing to take back.
    OneCall,
}

/// Where a dependency stands.
pub(super) enum SlotState {
    Idle,
    Starting(watch::Receiver<StartProgress>),
    Running(Started),
}

/// What is told of a start to all who wait for it.
#[derive(Clone)]
pub(super) enum StartProgress {
    Step(String),
    Done(Result<Started, Arc<LoadError>>),
}

impl Slot {
    pub(super) fn new(plan: &Arc<Plan>) -> Arc<Self> {
        Arc::new(Self {
            digest: plan.digest().clone(),
            plan: Arc::clone(plan),
            state: Mutex::new(SlotState::Idle),
            restart: Mutex::default(),
            lease: Mutex::new(Lease::OneCall),
            dismissed: OnceLock::new(),
            leaving: CancellationToken::new(),
        })
    }

    /// Takes note of a further call that uses it: what rests on something that can be taken back, may be taken back.
    pub(super) fn rest_on(&self, lease: Lease) {
        if lease == Lease::Standing {
            *lock(&self.lease) = lease;
        }
    }

    /// Ends a start that is under way, or stops what runs; calls that wait get `reason`.
    pub(super) fn dismiss(&self, reason: &'static str) {
        let _ = self.dismissed.set(reason);
        self.leaving.cancel();
        // Looked at after the mark was set: a start that ends now sees the mark and stops what it started.
        if let Some(started) = self.running() {
            started.dismiss(reason);
        }
    }

    /// Waits until it is dismissed; returns why.
    pub(super) async fn dismissal(&self) -> &'static str {
        self.leaving.cancelled().await;
        self.dismissed.get().copied().unwrap_or_default()
    }

    /// Moves from starting to where the start has led; what may no longer run is stopped.
    pub(super) fn settle(&self, outcome: Result<Started, LoadError>) -> Result<Started, LoadError> {
        let mut state = lock(&self.state);
        let outcome = match (outcome, self.dismissed.get()) {
            (Ok(started), Some(reason)) => {
                started.dismiss(reason);
                Err(LoadError::Dismissed { reason })
            }
            (outcome, _) => outcome,
        };
        *state = match &outcome {
            Ok(started) => SlotState::Running(started.clone()),
            Err(_) => SlotState::Idle,
        };
        outcome
    }

    /// Ends a server that no call has used for `idle`; tells whether it did.
    pub(super) fn stop_unused(&self, started: &Started, idle: Duration) -> bool {
        let mut state = lock(&self.state);
        let is_unused = started.session.unused_for().is_some_and(|unused| unused >= idle);
        if is_unused {
            // Left before it is stopped: a call that comes now starts another one.
            *state = SlotState::Idle;
            tracing::info!(reason = "nobody used it", "stopped");
            started.stop(Urgency::Gentle);
        }
        is_unused
    }

    /// Ends a server once no call has used it for `idle`; returns also when it ends by itself.
    pub(super) async fn stop_when_unused(&self, started: &Started, idle: Duration) {
        loop {
            // A client that waits for a change uses it, though no call is under way.
            let client = started.session.client();
            if client.is_some_and(|client| client.watches(&started.session)) {
                started.session.touch();
            }
            if self.stop_unused(started, idle) {
                return;
            }
            let wait = idle.saturating_sub(started.session.unused_for().unwrap_or_default());
            tokio::select! {
                _gone = started.gone() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Takes note that a dependency no longer runs.
    pub(super) fn leave(&self, started: &Started) {
        let mut state = lock(&self.state);
        if matches!(&*state, SlotState::Running(running) if running.session.is(&started.session)) {
            *state = SlotState::Idle;
        }
    }

    pub(super) fn running(&self) -> Option<Started> {
        match &*lock(&self.state) {
            SlotState::Running(started) if started.session.ended().is_none() => Some(started.clone()),
            SlotState::Running(_) | SlotState::Starting(_) | SlotState::Idle => None,
        }
    }
}
