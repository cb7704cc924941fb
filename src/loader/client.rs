//! The two sides a dependency talks to: whoever waits for the reply to one request, and the client as a whole.
//!
//! Both are told synchronously by the reader of the dependency's lines, in the order of those lines, and write
//! straight to the client; afterwards the reader waits for room there. So nothing overtakes, nothing piles up, and
//! a call needs no task of its own.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::session::{Ended, Reply, Session};
use crate::protocol::{Outcome, Payload};
use crate::wire::Outbox;

/// Who waits for the reply to one request.
pub trait Caller: Send + Sync {
    /// Takes the parameters of a progress notification; its token is the id of the request downstream.
    fn progressed(&self, line: &Bytes, params: &Payload<'_>);

    /// Takes the reply, a part of `line`. It is the last thing that comes.
    fn replied(self: Arc<Self>, line: &Bytes, outcome: &Outcome<'_>);

    /// Takes note that no reply will come.
    fn failed(&self, failure: Failure);

    /// Is offered a request of the dependency that a client could answer only within one of its calls.
    fn asked(self: Arc<Self>, inquiry: &Arc<Inquiry>) -> Taken;
}

/// Why no reply comes.
#[derive(Debug, Clone)]
pub enum Failure {
    /// What came back could not be used; the dependency lives on.
    Unusable(String),
    /// The dependency died.
    Ended(Arc<Ended>),
}

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It will be answered.
    Yes,
    /// It is for somebody else.
    No,
}

/// A request of a dependency to its client.
#[derive(Debug)]
pub struct Inquiry {
    /// Its raw id on the dependency's side.
    pub id: String,
    /// What is wanted.
    pub method: String,
    /// The raw parameters.
    pub params: Option<Bytes>,
}

/// The client, as the running dependencies see it.
pub trait Client: Send + Sync {
    /// Returns the way to the client: whoever reads from a dependency waits for room there.
    fn outbox(&self) -> &Outbox;

    /// Takes note of a dependency that has just been opened.
    fn opened(&self, session: &Session);

    /// Takes a request of a dependency; it must be answered, if only with an error.
    fn asked(&self, session: &Session, inquiry: Arc<Inquiry>);

    /// Takes note that a dependency no longer wants an answer to its request with this raw id.
    fn withdrawn(&self, session: &Session, id: &str);

    /// Tells whether the client waits for changes of what a dependency has.
    fn watches(&self, session: &Session) -> bool;

    /// Takes a notification of a dependency.
    fn told(&self, session: &Session, method: &str, line: &Bytes, params: Option<&Payload<'_>>);
}

/// Waits for the reply to a request of pml's own.
pub(super) struct Waiting(Mutex<Option<oneshot::Sender<Reply>>>);

impl Waiting {
    pub(super) fn new() -> (Arc<Self>, oneshot::Receiver<Reply>) {
        let (sender, receiver) = oneshot::channel();
        (Arc::new(Self(Mutex::new(Some(sender)))), receiver)
    }

    fn send(&self, reply: Reply) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let _ = sender.send(reply);
        }
    }
}

impl Caller for Waiting {
    fn progressed(&self, _line: &Bytes, _params: &Payload<'_>) {}

    fn replied(self: Arc<Self>, line: &Bytes, outcome: &Outcome<'_>) {
        self.send(match outcome {
            Outcome::Result(payload) => Reply::Result(line.slice_ref(payload.get().as_bytes())),
            Outcome::Error(raw) => Reply::Error(line.slice_ref(raw.get().as_bytes())),
        });
    }

    fn failed(&self, failure: Failure) {
        self.send(match failure {
            Failure::Unusable(reason) => Reply::Unusable(reason),
            Failure::Ended(ended) => Reply::Ended(ended),
        });
    }

    fn asked(self: Arc<Self>, _inquiry: &Arc<Inquiry>) -> Taken {
        Taken::No
    }
}
