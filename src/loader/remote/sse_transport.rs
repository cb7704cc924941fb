//! The transport of 2024-11-05: messages are posted to an endpoint that the server names, answers come on a stream.
//!
//! The stream *is* the session: when it ends, so does the connection, and the next call opens another. What is told is
//! told as to any other server; only requests differ, for their answers do not come back where they were posted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::sync::oneshot;

use super::bridge::Bridge;
use super::events::StreamEvent;
use super::http::{HttpRefusal, HttpRequest};
use super::messages::{Messages, is_stream};
use super::outcome::LineOutcome;
use crate::loader::session::EndReason;

impl Bridge {
    /// Hands on what comes on the stream of a server that refused as old servers do; `named` hears when the server has
    /// named its endpoint. A request that is posted must not wait for this, nor this for it: a session may take no more answers
    /// before its own lines are taken.
    pub(super) async fn run_sse_transport(
        self: Arc<Self>,
        refused: EndReason,
        named: oneshot::Sender<()>,
    ) -> LineOutcome {
        match self.relay_sse_stream(refused, named).await {
            Ok(()) => LineOutcome::ConnectionEnded(EndReason::ClosedByServer),
            Err(failure) => LineOutcome::ConnectionEnded(failure),
        }
    }

    async fn relay_sse_stream(
        &self,
        refused: EndReason,
        named: oneshot::Sender<()>,
    ) -> Result<(), EndReason> {
        let response = self.http.send(HttpRequest::OpenStream, &HeaderMap::new()).await;
        let response = match response {
            Ok(response) if response.status().is_success() && is_stream(&response) => response,
            // It is no old server either: what it said at first is what it says.
            Ok(_) | Err(_) => return Err(refused),
        };
        let mut messages = Messages::new(&self.http, response, self.line_limit);
        let endpoint = loop {
            match messages.next().await? {
                Some(StreamEvent::Endpoint(endpoint)) => break self.http.endpoint(&endpoint)?,
                Some(_) => {}
                None => return Err(refused),
            }
        };
        self.endpoint.get_or_init(|| endpoint);
        self.answered.store(true, Ordering::Relaxed);
        let _ = named.send(());
        while let Ok(Some(event)) = messages.next().await {
            match event {
                StreamEvent::Message(message) => self.deliver(message).await,
                StreamEvent::TooLong(remains) => self.report_overlong(remains).await,
                StreamEvent::Endpoint(_) => {}
            }
        }
        Ok(())
    }

    /// Posts a request, after what was told before it. Some servers take it only once they have answered it: so this
    /// may last as long as the request, and holds up no other.
    pub(super) async fn post(&self, endpoint: &Url, line: &Bytes, id: String) -> LineOutcome {
        drop(self.in_order.lock().await);
        let posted = self
            .http
            .send(HttpRequest::PostToEndpoint(endpoint, line), &HeaderMap::new())
            .await;
        let refusal = match posted {
            Ok(response) if response.status().is_success() => return LineOutcome::Answered(id),
            Ok(response) => self.http.refusal(response).await,
            Err(failure) => HttpRefusal::Reason(failure),
        };
        match refusal {
            HttpRefusal::ErrorObject(error) => self.deliver_error(&id, &error).await,
            HttpRefusal::Reason(failure) => self.deliver_failure(&id, &failure).await,
        }
        LineOutcome::Answered(id)
    }
}
