//! The client's own dialog on a Legacy connection: a request to the client while its call is open.
//!
//! Declared elicitation does not mean a person: headless clients refuse within milliseconds. A refusal faster than
//! anybody reads is *unavailable*, not *refused*. Whoever answers first wins; the dialog of the others is withdrawn.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::proxy::{Progress, Proxy, Workflow, WorkflowId};
use crate::stdio::ask::form::Filled;
use crate::stdio::client::outstanding::{Inquiries, Pending};
use crate::wire::Outbox;

/// Nobody reads a question and refuses it faster than this.
pub(crate) const READING: Duration = Duration::from_millis(400);

/// How often a waiting call shows that it lives; clients give up after a minute of silence.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What clients show under a call that waits.
const WAITING: &str = "waiting for a person; in a terminal: pml pending";

/// How a dialog ended.
#[derive(Debug)]
pub(crate) enum Ended {
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

/// One dialog: what is asked, of whom, for how long.
pub(crate) struct Dialog<'a> {
    pub(crate) dialogs: &'a Dialogs,
    pub(crate) inquiries: &'a Inquiries,
    pub(crate) outbox: &'a Outbox,
    pub(crate) proxy: &'a Proxy,
    pub(crate) id: WorkflowId,
    pub(crate) form: Value,
    pub(crate) patience: Duration,
    pub(crate) progress: Option<&'a mpsc::Sender<Progress>>,
}

impl Dialog<'_> {
    /// Shows the dialog until it is filled in, somebody answers elsewhere, or time is up.
    ///
    /// Dropped before its end, because the call was cancelled, it is closed at the client and the ask is withdrawn.
    pub(crate) async fn show(self) -> Ended {
        if !self.dialogs.claim(self.id) {
            return self.waiting().join().await;
        }
        let shown_at = Instant::now();
        let (asking, answered) = oneshot::channel();
        let request = self.inquiries.register(Pending::Dialog(asking));
        let mut open = Open {
            dialog: &self,
            request: request.clone(),
            left: Left::ByTheCall,
        };
        let request: Value = serde_json::from_str(&request).unwrap_or_default();
        let message =
            json!({ "jsonrpc": "2.0", "id": request, "method": "elicitation/create", "params": self.form });
        if self.outbox.send(message.to_string()).await.is_err() {
            return Ended::Unavailable;
        }
        let waiting = self.waiting();
        let ended = tokio::select! {
            result = answered => {
                open.left = Left::Answered;
                match result.ok().flatten().map(|result| Filled::read(&result)) {
                    Some(Filled::Refused) if shown_at.elapsed() < READING => Ended::Unavailable,
                    Some(filled) => Ended::Filled(filled),
                    None => Ended::Unavailable,
                }
            }
            moved = self.proxy.decided(self.id) => {
                open.left = Left::Elsewhere;
                moved.map_or(Ended::Unavailable, |workflow| Ended::Elsewhere(Box::new(workflow)))
            }
            () = waiting.beat() => {
                open.left = Left::Elsewhere;
                Ended::Unavailable
            }
        };
        drop(open);
        ended
    }

    fn waiting(&self) -> Waiting<'_> {
        Waiting {
            proxy: self.proxy,
            id: self.id,
            patience: self.patience,
            progress: self.progress,
        }
    }
}

/// A call that waits for the answer of a person.
pub(crate) struct Waiting<'a> {
    pub(crate) proxy: &'a Proxy,
    pub(crate) id: WorkflowId,
    pub(crate) patience: Duration,
    pub(crate) progress: Option<&'a mpsc::Sender<Progress>>,
}

impl Waiting<'_> {
    /// Waits for the answer to the dialog that another call has open.
    pub(crate) async fn join(&self) -> Ended {
        tokio::select! {
            moved = self.proxy.decided(self.id) => {
                moved.map_or(Ended::Unavailable, |workflow| Ended::Elsewhere(Box::new(workflow)))
            }
            () = self.beat() => Ended::Unavailable,
        }
    }

    /// Shows that the call lives until time is up.
    async fn beat(&self) {
        let end = Instant::now() + self.patience;
        loop {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            if let Some(progress) = self.progress {
                let _ = progress.try_send(Progress(WAITING.to_owned()));
            }
            tokio::time::sleep(rest.min(HEARTBEAT)).await;
        }
    }
}

/// Who left an open dialog.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    ByTheCall,
    Answered,
    Elsewhere,
}

struct Open<'a> {
    dialog: &'a Dialog<'a>,
    request: String,
    left: Left,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Dialog {
            dialogs,
            inquiries,
            outbox,
            proxy,
            id,
            ..
        } = self.dialog;
        dialogs.release(*id);
        if self.left == Left::Answered {
            return;
        }
        drop(inquiries.take(&self.request));
        let request: Value = serde_json::from_str(&self.request).unwrap_or_default();
        let params = json!({ "requestId": request, "reason": "answered elsewhere, or no longer needed" });
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        let _ = outbox.send_now(cancelled.to_string());
        if self.left == Left::ByTheCall {
            proxy.withdraw_later(*id);
        }
    }
}
