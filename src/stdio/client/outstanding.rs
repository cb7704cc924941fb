//! The requests that the client has to answer: pml's own dialogs, and what dependencies ask it.
//!
//! Ids are ours; each is answered once. What nobody waits for any more is withdrawn at the client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{oneshot, watch};

use crate::proxy::{Inquiry, Session};
use crate::stdio::call::open_call::OpenCall;

/// Who waits for the client's answer.
pub(crate) enum Pending {
    /// A dialog of pml's own.
    Dialog(oneshot::Sender<Option<Value>>),
    /// A dependency that asked in its own name.
    Forwarded {
        session: Session,
        inquiry: Arc<Inquiry>,
        /// The raw token under which the dependency wants to hear of progress.
        token: Option<String>,
    },
    /// A call whose dependency wants to know something before it goes on.
    Input {
        call: Arc<OpenCall>,
        /// The name the dependency gave the question.
        key: String,
    },
}

/// The requests the client has not answered yet.
#[derive(Default)]
pub(crate) struct Inquiries {
    next: AtomicU64,
    waiting: Mutex<HashMap<String, Pending>>,
    changed: watch::Sender<()>,
}

impl Inquiries {
    /// Registers a request; returns its raw id.
    pub(crate) fn register(&self, pending: Pending) -> String {
        let id = format!("\"pml-{}\"", self.next.fetch_add(1, Ordering::Relaxed) + 1);
        self.lock().insert(id.clone(), pending);
        self.changed.send_replace(());
        id
    }

    /// Tells whether a request waits for its answer.
    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// Takes whoever waits for the answer to a request.
    pub(crate) fn take(&self, id: &str) -> Option<Pending> {
        let taken = self.lock().remove(id);
        self.changed.send_replace(());
        taken
    }

    /// Takes the request that a dependency asked under this raw id of its own; returns our id.
    pub(crate) fn withdraw(&self, session: &Session, id: &str) -> Option<String> {
        let mut waiting = self.lock();
        let ours = waiting.iter().find_map(|(ours, pending)| match pending {
            Pending::Forwarded {
                session: asking,
                inquiry,
                ..
            } if asking.is(session) && inquiry.id == id => Some(ours.clone()),
            _ => None,
        })?;
        waiting.remove(&ours);
        self.changed.send_replace(());
        Some(ours)
    }

    /// Tells whether a dependency that asked in its own name waits for an answer.
    pub(crate) fn waits(&self, session: &Session) -> bool {
        let asks = |pending: &Pending| matches!(pending, Pending::Forwarded { session: asking, .. } if asking.is(session));
        self.lock().values().any(asks)
    }

    /// Tells whenever something is asked, answered or withdrawn.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns whom progress under one of our ids is for, and under which token it is known there.
    pub(crate) fn progress(&self, token: &str) -> Option<(Session, String)> {
        match self.lock().get(token)? {
            Pending::Forwarded {
                session,
                token: Some(token),
                ..
            } => Some((session.clone(), token.clone())),
            _ => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Pending>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
