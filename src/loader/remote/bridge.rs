//! What the exchanges of one connection share, and the ways to the session and to the server.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use super::agreement::{Agreement, headers_of};
use super::http::{Http, HttpRequest, flat};
use super::parameters::Parameters;
use super::session_requests::SessionRequests;
use crate::loader::session::{EndReason, RequestFailures, Violation};
use crate::protocol::{DependencyName, Era, Remains};
use crate::wire::Outbox;

/// How long the server may take to be told the end of its session: its answer is not waited for.
const SESSION_END_LIMIT: Duration = Duration::from_millis(250);

/// A code of pml's own, outside the range that JSON-RPC keeps for itself.
const FAILED: i32 = -31_000;

/// How long a notice may take to arrive; a request that is written after it waits for that.
pub(super) const NOTICE_LIMIT: Duration = Duration::from_secs(10);

/// What the exchanges of one connection share.
pub(super) struct Bridge {
    pub(super) dependency: DependencyName,
    pub(super) http: Http,
    /// The way back to the session.
    pub(super) session: Outbox,
    /// Why requests failed that are answered here in place of the server.
    pub(super) failures: RequestFailures,
    pub(super) line_limit: usize,
    /// What `initialize` agreed on; the notification stream is told when a new session takes the place of one that is over.
    pub(super) opened: watch::Sender<Option<Agreement>>,
    /// The `initialize` of the session, which also opens the next one when the server forgot this one.
    pub(super) opening: Arc<Mutex<Option<Bytes>>>,
    /// Ends what outlives the exchange that began it.
    pub(super) ended: CancellationToken,
    /// Where an old server wants messages; one that has none takes them at its address.
    pub(super) endpoint: OnceLock<Url>,
    /// Whether the server has answered anything yet.
    pub(super) answered: AtomicBool,
    /// Whether it has answered anything in its current session.
    pub(super) answered_in_session: AtomicBool,
    /// Notices arrive in their order, and before every request that is written after them.
    pub(super) in_order: Mutex<()>,
    /// Which arguments a Modern server wants in headers too.
    pub(super) parameters: std::sync::Mutex<Parameters>,
    /// What is asked for again in a new session.
    pub(super) standing: std::sync::Mutex<SessionRequests>,
}

impl Bridge {
    pub(super) fn parameters(&self) -> MutexGuard<'_, Parameters> {
        self.parameters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn standing(&self) -> MutexGuard<'_, SessionRequests> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the server that the session is over.
    pub(super) async fn end_session(&self) {
        let Some(opened) = self.opened.borrow().clone() else {
            return;
        };
        if opened.session.is_some() {
            let headers = opened.headers(Era::Legacy);
            let told = self.http.send(HttpRequest::EndSession, &headers);
            let _ = tokio::time::timeout(SESSION_END_LIMIT, told).await;
        }
    }

    /// Hands a message to the session.
    pub(super) async fn deliver(&self, message: Bytes) {
        // A session that is gone closes its other end too, which ends the bridge.
        let _ = self.session.send(flat(message)).await;
    }

    /// Answers a request of the session in place of the server.
    pub(super) async fn deliver_error(&self, id: &str, error: &str) {
        self.deliver(Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#
        )))
        .await;
    }

    /// Answers a request of the session with what went wrong.
    pub(super) async fn deliver_failure(&self, id: &str, failure: &EndReason) {
        self.failures.note(id, failure.clone());
        let message = serde_json::Value::from(format!("`{}` {failure}", self.dependency));
        self.deliver_error(id, &format!(r#"{{"code":{FAILED},"message":{message}}}"#))
            .await;
    }

    pub(super) async fn post_notice(&self, line: &Bytes, mirrored: HeaderMap) {
        let headers = headers_of(mirrored, self.opened.borrow().as_ref(), Era::Legacy);
        let carried = match self.endpoint.get() {
            Some(endpoint) => HttpRequest::PostToEndpoint(endpoint, line),
            None => HttpRequest::Message(line),
        };
        let told = tokio::time::timeout(NOTICE_LIMIT, self.http.send(carried, &headers)).await;
        match told {
            Ok(Ok(response)) if response.status().is_success() => {}
            Ok(Ok(response)) => {
                tracing::debug!(dependency = %self.dependency, status = %response.status(), "did not take what it was told");
            }
            Ok(Err(failure)) => {
                tracing::debug!(dependency = %self.dependency, %failure, "was not told");
            }
            Err(_elapsed) => tracing::debug!(dependency = %self.dependency, "takes too long to be told"),
        }
    }

    /// Answers the caller or the server that waits for a message over the limit.
    pub(super) async fn report_overlong(&self, remains: Remains) {
        tracing::warn!(dependency = %self.dependency, "a message over the limit was thrown away");
        match remains {
            Remains::Request(id) => {
                let refusal = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":"the request is longer than the line limit"}}}}"#
                );
                self.post_notice(&refusal.into(), HeaderMap::new()).await;
            }
            Remains::Answer(id) | Remains::Either(id) => {
                let too_long = EndReason::Violation(Violation::AnswerTooLong);
                self.deliver_failure(&id, &too_long).await;
            }
            Remains::Notification | Remains::Nothing => {}
        }
    }
}
