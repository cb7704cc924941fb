//! The requests that the client has not answered: dialogs of pml's own, and what servers ask their client.
//!
//! Ids are pml's own; each is answered once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use crate::protocol::{Json, Payload, ResponseOutcome};
use crate::proxy::{Inquiry, Session};

/// The members of a filled form that decide what a person said: each must stand there once, in one spelling.
pub(crate) const FILLED: [&str; 2] = ["action", "content"];

/// A call that collects the answers to the questions of its server.
pub(crate) trait Collector: Send + Sync {
    /// Takes the client's answer to the request with this id, which the server calls `key`.
    fn collected(self: Arc<Self>, id: &str, key: &str, outcome: &ResponseOutcome<'_>);

    /// Shows the client by this text that the call lives.
    fn waits(&self, text: &str);
}

/// What waits for the client's answer.
pub(crate) enum Recipient {
    /// A dialog of pml's own.
    Dialog(oneshot::Sender<Option<Value>>),
    /// A server that asked in its own name.
    Server {
        session: Session,
        inquiry: Arc<Inquiry>,
        /// The raw token under which the server wants to hear of progress.
        token: Option<String>,
    },
    /// A call whose server wants to know something before it goes on.
    Call {
        call: Arc<dyn Collector>,
        /// The name the server gave the question.
        key: String,
    },
}

/// The requests the client has not answered yet.
#[derive(Default)]
pub(crate) struct Outstanding {
    next: AtomicU64,
    waiting: Mutex<HashMap<String, Recipient>>,
    changed: watch::Sender<()>,
}

impl Outstanding {
    /// Registers a request; returns its raw id.
    pub(crate) fn register(&self, recipient: Recipient) -> String {
        let id = format!("\"pml-{}\"", self.next.fetch_add(1, Ordering::Relaxed) + 1);
        self.lock().insert(id.clone(), recipient);
        self.changed.send_replace(());
        id
    }

    /// Tells whether a request waits for its answer.
    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// Takes what waits for the answer to a request.
    pub(crate) fn take(&self, id: &str) -> Option<Recipient> {
        let taken = self.lock().remove(id);
        self.changed.send_replace(());
        taken
    }

    /// Takes the request that a server asked under this raw id of its own; returns our id.
    pub(crate) fn withdraw(&self, session: &Session, id: &str) -> Option<String> {
        let mut waiting = self.lock();
        let ours = waiting.iter().find_map(|(ours, recipient)| match recipient {
            Recipient::Server {
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

    /// Tells whether a server that asked in its own name waits for an answer.
    pub(crate) fn waits(&self, session: &Session) -> bool {
        let asks = |recipient: &Recipient| matches!(recipient, Recipient::Server { session: asking, .. } if asking.is(session));
        self.lock().values().any(asks)
    }

    /// Notifies whenever something is asked, answered or withdrawn.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Gives the client's answer to what waits for it.
    pub(super) fn answered(&self, line: &Bytes, id: &str, outcome: &ResponseOutcome<'_>) {
        match self.take(id) {
            Some(Recipient::Dialog(waiting)) => {
                let result = match outcome {
                    ResponseOutcome::Result(payload) => filled(payload),
                    ResponseOutcome::Error(_) => None,
                };
                let _ = waiting.send(result);
            }
            Some(Recipient::Server { session, inquiry, .. }) => match outcome {
                ResponseOutcome::Result(payload) => {
                    session.answer(&inquiry.id, line.slice_ref(payload.get().as_bytes()));
                }
                ResponseOutcome::Error(raw) => {
                    session.refuse(&inquiry.id, line.slice_ref(raw.get().as_bytes()));
                }
            },
            Some(Recipient::Call { call, key }) => call.collected(id, &key, outcome),
            None => {}
        }
    }

    /// Passes progress of the client on a request to the server that made it.
    pub(super) fn progressed(&self, params: &Payload<'_>) {
        let Some(object) = params.object() else { return };
        let token = object.value("progressToken").map(Json::get);
        if let Some((place, (session, token))) = object
            .place("progressToken")
            .zip(token.and_then(|token| self.progress(token)))
        {
            let text = params.get();
            let params = format!("{}{token}{}", &text[..place.start], &text[place.end..]);
            session.notify("notifications/progress", Some(&params));
        }
    }

    /// Returns the server that progress under one of our ids is for, and the token by which it knows that.
    fn progress(&self, token: &str) -> Option<(Session, String)> {
        match self.lock().get(token)? {
            Recipient::Server {
                session,
                token: Some(token),
                ..
            } => Some((session.clone(), token.clone())),
            _ => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Recipient>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what a person filled in; what means different things to different readers is no answer.
fn filled(payload: &Payload<'_>) -> Option<Value> {
    payload.object()?.without_twins(&FILLED).ok()?;
    serde_json::from_str(payload.get()).ok()
}
