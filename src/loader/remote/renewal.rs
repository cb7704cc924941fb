//! A new session in place of one that a Legacy server forgot, with what stood in the last one.
//!
//! It is opened in a task of its own: the call that met the server's forgetting may be cancelled meanwhile, and a
//! session that was left half open would stay so.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use tokio::sync::OwnedMutexGuard;

use super::agreement::{Agreement, headers_of};
use super::bridge::{Bridge, NOTICE_LIMIT};
use super::events::StreamEvent;
use super::http::{HttpRefusal, HttpRequest};
use super::messages::Messages;
use super::outgoing_line::{OutgoingLine, answers};
use crate::loader::session::EndReason;
use crate::protocol::Era;

/// How long a server may take to open it: a cancelled call does not end that, and no other session is tried meanwhile.
const OPENING: Duration = Duration::from_secs(30);

impl Bridge {
    /// Opens a new session in place of one that the server forgot, unless another call has already.
    pub(super) async fn renew(self: &Arc<Self>, over: &Agreement) -> Result<(), EndReason> {
        let opening = Arc::clone(&self.opening).lock_owned().await;
        if self.opened.borrow().as_ref() != Some(over) {
            return Ok(());
        }
        let (renewal, ended) = (Arc::clone(self).reopen(opening), self.ended.clone());
        let renewed = tokio::spawn(async move { ended.run_until_cancelled(renewal).await }).await;
        renewed.ok().flatten().unwrap_or(Err(EndReason::Unanswered))
    }

    async fn reopen(self: Arc<Self>, opening: OwnedMutexGuard<Option<Bytes>>) -> Result<(), EndReason> {
        let Some(line) = opening.as_ref() else {
            return Err(EndReason::Unanswered);
        };
        let Some((OutgoingLine::Initialize { id }, mirrored)) = OutgoingLine::read(line) else {
            return Err(EndReason::Unanswered);
        };
        tracing::info!(dependency = %self.dependency, "forgot its session; a new one is opened");
        let lived = self.answered_in_session.swap(false, Ordering::Relaxed);
        let opened = async {
            let response = self.http.send(HttpRequest::Message(line), &mirrored).await?;
            if response.status().is_success() {
                return self.opening_answer(response, &id).await;
            }
            Err(match self.http.refusal(response).await {
                HttpRefusal::Reason(failure) => failure,
                HttpRefusal::ErrorObject(_) => EndReason::Unanswered,
            })
        };
        tokio::time::timeout(OPENING, opened)
            .await
            .unwrap_or(Err(EndReason::NotRenewed))?;
        let initialized = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self.post_notice(&initialized, HeaderMap::new()).await;
        let standing = self.standing().lines();
        for line in standing {
            self.ask_again(&line).await;
        }
        // What made the server forget may have changed its tools. One that answers nothing in a session forgets
        // that one too when it is asked for them: it would be asked, and opened anew, without end.
        if lived {
            let changed = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            self.deliver(Bytes::from_static(changed)).await;
        }
        Ok(())
    }

    /// Asks in a new session for what was asked for in the last one; the answer is dropped.
    async fn ask_again(&self, line: &Bytes) {
        let Some((OutgoingLine::Request { id, .. }, mirrored)) = OutgoingLine::read(line) else {
            return;
        };
        let headers = headers_of(mirrored, self.opened.borrow().as_ref(), Era::Legacy);
        let asking = async {
            let response = self.http.send(HttpRequest::Message(line), &headers).await?;
            let mut messages = Messages::new(&self.http, response, self.line_limit);
            while let Some(event) = messages.next().await? {
                match event {
                    StreamEvent::Message(message) if answers(&message, &id) => break,
                    StreamEvent::Message(message) => self.deliver(message).await,
                    StreamEvent::TooLong(_) | StreamEvent::Endpoint(_) => {}
                }
            }
            Ok::<(), EndReason>(())
        };
        if !matches!(tokio::time::timeout(NOTICE_LIMIT, asking).await, Ok(Ok(()))) {
            tracing::info!(dependency = %self.dependency, "was not asked again for what stood in its last session");
        }
    }
}

/// Tells whether a server refuses a request because it no longer knows its session.
pub(super) fn forgot_session(status: StatusCode, refusal: &HttpRefusal) -> bool {
    match refusal {
        _ if status == StatusCode::NOT_FOUND => true,
        // What many servers say instead.
        HttpRefusal::ErrorObject(error) => error.to_ascii_lowercase().contains("session"),
        HttpRefusal::Reason(_) => false,
    }
}
