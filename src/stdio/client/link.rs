//! The link to one client: writes answers, notifications and requests, and knows how the client opened it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rmcp::model::ProtocolVersion;
use serde_json::json;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

use super::answer::ResponseBody;
use super::outstanding::Outstanding;
use crate::protocol::{Payload, ResponseOutcome};
use crate::proxy::Declared;
use crate::stdio::era::Era;
use crate::wire::{Frame, FramePart, Outbox};

/// How a Legacy client wants choices to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormStyle {
    /// 2025-11-25: `oneOf` with titles, and lists.
    Titled,
    /// 2025-06-18: `enum` with names beside it, and no lists.
    Plain,
}

/// What a Legacy client said when it opened the conversation.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    /// What it says of itself.
    pub(crate) declared: Declared,
    /// The version that was agreed on.
    pub(crate) version: ProtocolVersion,
    /// How forms are written for it, if it can show any.
    pub(crate) forms: Option<FormStyle>,
}

/// The link to one client; clones share it.
#[derive(Clone)]
pub(crate) struct Link(Arc<Shared>);

struct Shared {
    outbox: Outbox,
    outstanding: Outstanding,
    /// `None` until `initialize`, and for the whole of a Modern conversation.
    opening: Mutex<Option<Opening>>,
    tasks: TaskTracker,
}

impl Link {
    /// Links to a client that is written to by `outbox`; work for it runs among `tasks`.
    pub(crate) fn new(outbox: Outbox, tasks: TaskTracker) -> Self {
        Self(Arc::new(Shared {
            outbox,
            outstanding: Outstanding::default(),
            opening: Mutex::default(),
            tasks,
        }))
    }

    /// Returns the queue of what is written to the client.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.0.outbox
    }

    /// Returns the requests that the client has not answered.
    pub(crate) fn outstanding(&self) -> &Outstanding {
        &self.0.outstanding
    }

    /// Makes this a Legacy conversation.
    pub(crate) fn open(&self, opening: Opening) {
        *self.opening() = Some(opening);
    }

    /// Tells whether `initialize` has made this a Legacy conversation.
    pub(crate) fn is_legacy(&self) -> bool {
        self.opening().is_some()
    }

    /// Returns the era of the conversation.
    pub(crate) fn era(&self) -> Era {
        if self.is_legacy() {
            Era::Legacy
        } else {
            Era::Modern
        }
    }

    /// Returns the version that was agreed on with a Legacy client.
    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        self.opening().as_ref().map(|opening| opening.version.clone())
    }

    /// Returns what a Legacy client declared.
    pub(crate) fn declared(&self) -> Declared {
        self.opening()
            .as_ref()
            .map_or_else(Declared::default, |opening| opening.declared.clone())
    }

    /// Returns how forms are written for a Legacy client, if it can show any.
    pub(crate) fn forms(&self) -> Option<FormStyle> {
        self.opening().as_ref().and_then(|opening| opening.forms)
    }

    fn opening(&self) -> MutexGuard<'_, Option<Opening>> {
        self.0.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs something beside the conversation.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.0.tasks.spawn(work).abort_handle()
    }

    /// Answers a request. The answer is queued at once; the reader waits for room before it reads on.
    pub(crate) fn respond(&self, id: &str, answer: ResponseBody) {
        let (member, body): (&[u8], _) = match answer {
            ResponseBody::Result(body) => (br#","result":"#, body),
            ResponseBody::Error(body) => (br#","error":"#, body),
        };
        let head = [
            FramePart::Copy(br#"{"jsonrpc":"2.0","id":"#),
            FramePart::Copy(id.as_bytes()),
            FramePart::Copy(member),
        ];
        let body = body.into_iter().map(FramePart::Share);
        // A client that is gone is noticed by the reader.
        let _ = self
            .0
            .outbox
            .push(head.into_iter().chain(body).chain([FramePart::Copy(b"}")]));
    }

    /// Sends a notification to the client.
    pub(crate) fn notify(&self, method: &str, params: impl IntoIterator<Item = Bytes>) {
        let head = format!(r#"{{"jsonrpc":"2.0","method":{}"#, json!(method));
        self.send(head, params);
    }

    /// Sends a request to the client under an id that [`Outstanding::register`] gave.
    pub(crate) fn request(&self, id: &str, method: &str, params: impl IntoIterator<Item = Bytes>) {
        let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{}"#, json!(method));
        self.send(head, params);
    }

    /// Sends a message whose members up to the parameters are written already.
    fn send(&self, head: String, params: impl IntoIterator<Item = Bytes>) {
        let mut frame = Frame::from(head);
        let mut params = params.into_iter().peekable();
        if params.peek().is_some() {
            frame.push(r#","params":"#);
            frame.extend(params);
        }
        frame.push("}");
        let _ = self.0.outbox.send_now(frame);
    }

    /// Tells the client that a request of ours needs no answer any more.
    pub(crate) fn withdraw(&self, id: &str) {
        let _ = self.0.outbox.send_now(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"no longer needed"}}}}"#
        ));
    }

    /// Gives the client's answer to whatever waits for it; an answer that nothing waits for is dropped.
    pub(crate) fn answered(&self, line: &Bytes, id: &str, outcome: &ResponseOutcome<'_>) {
        self.0.outstanding.answered(line, id, outcome);
    }

    /// Passes progress of the client on one of our requests to the server that made it.
    pub(crate) fn progressed(&self, params: &Payload<'_>) {
        self.0.outstanding.progressed(params);
    }
}
