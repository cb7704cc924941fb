//! The client's own dialog on a Legacy connection: a request to the client while its call is open.
//!
//! Declared elicitation does not mean a person: headless clients refuse within milliseconds. A refusal faster than
//! anybody reads is *unavailable*, not *refused*. Whoever answers first wins; the dialog of the others is withdrawn.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::form::Filled;
use super::heartbeat::{self, Awaited};
use super::open_request::OpenRequest;
use crate::proxy::{Progress, Proxy, Workflow, WorkflowId};
use crate::stdio::client::link::Link;
use crate::stdio::client::outstanding::Recipient;

/// Nobody reads a question and refuses it faster than this.
pub(crate) const READING: Duration = Duration::from_millis(400);

/// How a dialog ended.
#[derive(Debug)]
pub(crate) enum DialogEnd {
    /// A person filled it in, or refused to.
    Filled(Filled),
    /// No person was reached.
    Unavailable,
    /// Somebody answered on another road.
    Elsewhere(Box<Workflow>),
}

/// The dialogs that are open at this client.
#[derive(Debug, Default)]
pub(crate) struct Dialogs {
    open: Mutex<HashSet<WorkflowId>>,
}

impl Dialogs {
    /// Claims a workflow's dialog; a second call that asks the very same waits for the first one's answer.
    fn claim(&self, id: WorkflowId) -> bool {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id)
    }

    fn release(&self, id: WorkflowId) {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id);
    }
}

/// One dialog: what it shows, and the call that waits for it.
pub(crate) struct Dialog<'a> {
    pub(crate) dialogs: &'a Dialogs,
    pub(crate) link: &'a Link,
    /// The elicitation parameters.
    pub(crate) form: Value,
    pub(crate) waiting: WaitingCall<'a>,
}

impl Dialog<'_> {
    /// Shows the dialog until it is filled in, an answer comes on another road, or time is up.
    ///
    /// Dropped before its end, because the call was cancelled, it is closed at the client and the ask is withdrawn.
    pub(crate) async fn show(self) -> DialogEnd {
        let id = self.waiting.id;
        if !self.dialogs.claim(id) {
            return self.waiting.join().await;
        }
        let shown_at = Instant::now();
        let (asking, answered) = oneshot::channel();
        let request = OpenRequest::register(self.link, Recipient::Dialog(asking));
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"elicitation/create","params":{}}}"#,
            request.id(),
            self.form
        );
        let mut open = OpenDialog {
            dialog: &self,
            _request: request,
            left: Left::ByTheCall,
        };
        if self.link.outbox().send(message).await.is_err() {
            return DialogEnd::Unavailable;
        }
        let ended = tokio::select! {
            result = answered => {
                open.left = Left::Answered;
                match result.ok().flatten().map(|result| Filled::read(&result)) {
                    Some(Filled::Refused) if shown_at.elapsed() < READING => DialogEnd::Unavailable,
                    Some(filled) => DialogEnd::Filled(filled),
                    None => DialogEnd::Unavailable,
                }
            }
            ended = self.waiting.join() => {
                open.left = Left::Elsewhere;
                ended
            }
        };
        drop(open);
        ended
    }
}

/// A call that waits for the answer of a person.
pub(crate) struct WaitingCall<'a> {
    pub(crate) proxy: &'a Proxy,
    pub(crate) id: WorkflowId,
    pub(crate) patience: Duration,
    pub(crate) progress: Option<&'a mpsc::Sender<Progress>>,
}

impl WaitingCall<'_> {
    /// Waits for the answer to the dialog that another call has open.
    pub(crate) async fn join(&self) -> DialogEnd {
        tokio::select! {
            moved = self.proxy.decided(self.id) => {
                moved.map_or(DialogEnd::Unavailable, |workflow| DialogEnd::Elsewhere(Box::new(workflow)))
            }
            () = self.beat() => DialogEnd::Unavailable,
        }
    }

    /// Shows that the call lives until time is up.
    async fn beat(&self) {
        let show = || {
            if let Some(progress) = self.progress {
                let _ = progress.try_send(Progress(Awaited::Person.text()));
            }
        };
        heartbeat::beat(self.patience, show).await;
    }
}

/// Who left an open dialog.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    ByTheCall,
    Answered,
    Elsewhere,
}

/// An open dialog; its request is withdrawn with it where the client has not answered.
struct OpenDialog<'a> {
    dialog: &'a Dialog<'a>,
    _request: OpenRequest,
    left: Left,
}

impl Drop for OpenDialog<'_> {
    fn drop(&mut self) {
        let Dialog { dialogs, waiting, .. } = self.dialog;
        dialogs.release(waiting.id);
        if self.left == Left::ByTheCall {
            waiting.proxy.withdraw_later(waiting.id);
        }
    }
}
