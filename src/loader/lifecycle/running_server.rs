//! A running server: its session, its lists, and the handle on its process.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::LoadError;
use super::mutex::lock;
use super::transport::end_of;
use crate::loader::catalog::Known;
use crate::loader::plan::Resolved;
use crate::loader::process::{Stderr, Urgency};
use crate::loader::session::{EndReason, Ended, IntroducedSession, Session};
use crate::protocol::{ListChanges, ListKind};

/// A dependency that runs and has shown what it offers.
#[derive(Clone)]
pub struct Started {
    /// The conversation with it.
    pub session: Session,
    /// Its exact version and integrity; `None` for a plain command.
    pub resolved: Option<Box<Resolved>>,
    /// What the first caller should know of its installation.
    pub(super) notes: Arc<Mutex<Vec<String>>>,
    pub(super) introduced: IntroducedSession,
    /// What it has shown, the latest first-hand knowledge there is.
    pub(super) known: Arc<Mutex<Arc<Known>>>,
    /// How often it said that a list has changed.
    pub(super) changes: watch::Receiver<ListChanges>,
    /// How often it had said so when each list was last asked for.
    pub(super) learned: Arc<Mutex<ListChanges>>,
    pub(super) process: Arc<ProcessHandle>,
}

/// How a dependency went.
#[derive(Debug, Clone)]
pub(super) struct ServerEnd {
    pub(super) ended: Ended,
    pub(super) asked_for: bool,
}

/// The strings on a process that runs in a task of its own.
pub(super) struct ProcessHandle {
    pub(super) urgent: CancellationToken,
    pub(super) asked: AtomicBool,
    pub(super) end: watch::Receiver<Option<EndReason>>,
    pub(super) stderr: Stderr,
}

impl ProcessHandle {
    /// Waits until it is gone; returns why it went.
    pub(super) async fn end(&self) -> EndReason {
        end_of(self.end.clone()).await
    }
}

impl fmt::Debug for Started {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Started")
            .field("resolved", &self.resolved)
            .finish_non_exhaustive()
    }
}

impl Started {
    /// Returns what is to be known of its installation; only the first caller gets it.
    #[must_use]
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.notes))
    }

    /// Returns what it offers as it listed it last.
    #[must_use]
    pub fn known(&self) -> Arc<Known> {
        Arc::clone(&lock(&self.known))
    }

    /// Tells whether it has not called a list changed since that was last asked for.
    #[must_use]
    pub(super) fn is_current(&self, kind: ListKind) -> bool {
        let now = *self.changes.borrow();
        let learned = *lock(&self.learned);
        now.since(learned).all(|changed| changed != kind)
    }

    /// Asks it for one of its lists again; returns what is known then, and what was known before.
    pub(super) async fn relearn(&self, kind: ListKind) -> Result<(Arc<Known>, Arc<Known>), LoadError> {
        let now = *self.changes.borrow();
        let part = self.introduced.list(kind).await?;
        lock(&self.learned).catch_up(kind, now);
        let mut known = lock(&self.known);
        let before = Arc::clone(&known);
        // A list that is the same stays the same object: what follows from it need not be made again.
        if !part.is_in(&known) {
            part.put_into(Arc::make_mut(&mut known));
            self.session.lists_changed();
        }
        Ok((Arc::clone(&known), before))
    }

    /// Asks it to go: by the end of its stdin, or by a signal as well.
    pub(super) fn stop(&self, urgency: Urgency) {
        self.process.asked.store(true, Ordering::Relaxed);
        self.session.close();
        if urgency == Urgency::AtOnce {
            self.process.urgent.cancel();
        }
    }

    /// Stops it because it may no longer run: calls that wait get `reason`, and what it asked is withdrawn.
    pub(super) fn dismiss(&self, reason: &'static str) {
        self.session.dismiss(reason);
        self.stop(Urgency::Gentle);
    }

    /// Waits until it is gone.
    pub(super) async fn gone(&self) -> ServerEnd {
        let reason = self.process.end().await;
        ServerEnd {
            ended: Ended {
                reason,
                stderr: self.process.stderr.tail(),
            },
            asked_for: self.process.asked.load(Ordering::Relaxed),
        }
    }
}
