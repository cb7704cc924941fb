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
use super::events::Event;
use super::http::{Carried, Refusal};
use super::messages::{Messages, is_stream};
use super::outcome::Done;
use crate::loader::session::EndReason;

impl Bridge {
    /// Hands on what comes on the stream of a server that refused as old servers do; `named` hears when the server has
    /// named its endpoint. Whoever posts must not wait for this, nor this for them: a session may take no more answers
    /// before its own lines are taken.
    pub(super) async fn hear_old(self: Arc<Self>, refused: EndReason, named: oneshot::Sender<()>) -> Done {
        match self.hear_stream(refused, named).await {
            Ok(()) => Done::Over(EndReason::ClosedByServer),
            Err(failure) => Done::Over(failure),
        }
    }

    async fn hear_stream(&self, refused: EndReason, named: oneshot::Sender<()>) -> Result<(), EndReason> {
        let response = self.http.send(Carried::Listening, &HeaderMap::new()).await;
        let response = match response {
            Ok(response) if response.status().is_success() && is_stream(&response) => response,
            // It is no old server either: what it said at first is what it says.
            Ok(_) | Err(_) => return Err(refused),
        };
        let mut messages = Messages::new(&self.http, response, self.line_limit);
        let endpoint = loop {
            match messages.next().await? {
                Some(Event::Endpoint(endpoint)) => break self.http.endpoint(&endpoint)?,
                Some(_) => {}
                None => return Err(refused),
            }
        };
        self.endpoint.get_or_init(|| endpoint);
        self.answered.store(true, Ordering::Relaxed);
        let _ = named.send(());
        while let Ok(Some(event)) = messages.next().await {
            match event {
                Event::Message(message) => self.deliver(message).await,
                Event::TooLong(remains) => self.overlong(remains).await,
                Event::Endpoint(_) => {}
            }
        }
        Ok(())
    }

    /// Posts a request, after what was told before it. Some servers take it only once they have answered it: so this
    /// may last as long as the request, and holds up no other.
    pub(super) async fn post(&self, endpoint: &Url, line: &Bytes, id: String) -> Done {
        drop(self.in_order.lock().await);
        let posted = self
            .http
            .send(Carried::Posted(endpoint, line), &HeaderMap::new())
            .await;
        let refusal = match posted {
            Ok(response) if response.status().is_success() => return Done::Request(id),
            Ok(response) => self.http.refusal(response).await,
            Err(failure) => Refusal::Told(failure),
        };
        match refusal {
            Refusal::Error(error) => self.deliver_error(&id, &error).await,
            Refusal::Told(failure) => self.deliver_failure(&id, &failure).await,
        }
        Done::Request(id)
    }
}
