//! The reply to a request of pml's own.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::caller::{Caller, Failure, Inquiry, OfferResult};
use super::end_reason::EndReason;
use super::ending::Ended;
use crate::protocol::{Payload, ResponseOutcome};

/// What came back for a request of pml's own.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The dependency's result, byte for byte.
    Result(Bytes),
    /// The dependency's error object, byte for byte.
    Error(Bytes),
    /// The answer could not be used; the dependency lives on.
    Unusable(String),
    /// The dependency died.
    Ended(Arc<Ended>),
}

/// A reply to a request of pml's own, and why the transport made it where the server did not.
pub(super) struct OwnReply {
    pub(super) reply: Reply,
    pub(super) reason: Option<EndReason>,
}

/// Waits for the reply to a request of pml's own.
pub(super) struct ReplyWaiter(Mutex<Option<oneshot::Sender<OwnReply>>>);

impl ReplyWaiter {
    pub(super) fn new() -> (Arc<Self>, oneshot::Receiver<OwnReply>) {
        let (sender, receiver) = oneshot::channel();
        (Arc::new(Self(Mutex::new(Some(sender)))), receiver)
    }

    fn send(&self, reply: Reply, reason: Option<EndReason>) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let _ = sender.send(OwnReply { reply, reason });
        }
    }
}

fn reply(line: &Bytes, outcome: &ResponseOutcome<'_>) -> Reply {
    match outcome {
        ResponseOutcome::Result(payload) => Reply::Result(line.slice_ref(payload.get().as_bytes())),
        ResponseOutcome::Error(raw) => Reply::Error(line.slice_ref(raw.get().as_bytes())),
    }
}

impl Caller for ReplyWaiter {
    fn progressed(&self, _line: &Bytes, _params: &Payload<'_>) {}

    fn replied(self: Arc<Self>, line: &Bytes, outcome: &ResponseOutcome<'_>) {
        self.send(reply(line, outcome), None);
    }

    fn replied_again(&self, result: Bytes) -> OfferResult {
        self.send(Reply::Result(result), None);
        OfferResult::Yes
    }

    fn unreached(self: Arc<Self>, line: &Bytes, outcome: &ResponseOutcome<'_>, reason: &EndReason) {
        self.send(reply(line, outcome), Some(reason.clone()));
    }

    fn failed(&self, failure: Failure) {
        let reply = match failure {
            Failure::Unusable(reason) => Reply::Unusable(reason),
            Failure::Ended(ended) => Reply::Ended(ended),
        };
        self.send(reply, None);
    }

    fn asked(self: Arc<Self>, _inquiry: &Arc<Inquiry>) -> OfferResult {
        OfferResult::No
    }
}
