//! The place of one dependency: idle, starting or running.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::restart::Restart;
use super::{LoadError, Plan, Started, Urgency};
use crate::protocol::Digest;

/// The place of one dependency as it is declared now.
pub(super) struct Slot {
    pub(super) digest: Digest,
    pub(super) state: Mutex<State>,
    pub(super) restart: Mutex<Restart>,
}

/// Where a dependency stands.
pub(super) enum State {
    Idle,
    Starting(watch::Receiver<Startup>),
    Running(Started),
}

/// What is told of a start to all who wait for it.
#[derive(Clone)]
pub(super) enum Startup {
    Step(String),
    Done(Result<Started, Arc<LoadError>>),
}

/// Every critical section is a single operation: a panic elsewhere leaves nothing half-done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slot {
    pub(super) fn new(plan: &Plan) -> Arc<Self> {
        Arc::new(Self {
            digest: plan.digest().clone(),
            state: Mutex::new(State::Idle),
            restart: Mutex::default(),
        })
    }

    /// Ends a dependency once nobody has used it for `idle`; returns also when it ends by itself.
    pub(super) async fn stop_when_unused(&self, started: &Started, idle: Duration) {
        loop {
            // Whoever waits for a change uses it, though nothing is under way.
            let client = started.session.client();
            if client.is_some_and(|client| client.watches(&started.session)) {
                started.session.touch();
            }
            {
                let mut state = lock(&self.state);
                let unused = started.session.unused_for();
                if unused.is_some_and(|unused| unused >= idle) {
                    // Left before it is stopped: a call that comes now starts another one.
                    *state = State::Idle;
                    tracing::info!(reason = "nobody used it", "stopped");
                    return started.stop(Urgency::Gentle);
                }
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
        if matches!(&*state, State::Running(running) if running.session.is(&started.session)) {
            *state = State::Idle;
        }
    }

    pub(super) fn running(&self) -> Option<Started> {
        match &*lock(&self.state) {
            State::Running(started) if started.session.ended().is_none() => Some(started.clone()),
            State::Running(_) | State::Starting(_) | State::Idle => None,
        }
    }
}
