//! The transport of 2024-11-05: messages are posted to an endpoint that the server names, answers come on a stream.
//!
//! The stream *is* the session: when it ends, so does the connection, and the next call opens another.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderMap;
use tokio::io::DuplexStream;
use tokio::task::JoinSet;

use super::events::Event;
use super::http::{Carried, Failure, Refusal};
use super::messages::{Messages, is_stream};
use super::spoken::Spoken;
use super::{Bridge, End};
use crate::protocol::Line;
use crate::wire::LineReader;

impl Bridge {
    /// Carries lines to a server that refused `first` as old servers do.
    pub(super) async fn run_old(
        self: Arc<Self>,
        mut lines: LineReader<DuplexStream>,
        first: Bytes,
        refused: Failure,
    ) -> Result<(), End> {
        let response = self.http.send(Carried::Listening, &HeaderMap::new()).await;
        let response = match response {
            Ok(response) if response.status().is_success() && is_stream(&response) => response,
            // It is no old server either: what it said at first is what it says.
            Ok(_) | Err(_) => return Err(refused.into()),
        };
        let mut messages = Messages::new(&self.http, response, self.line_limit);
        let endpoint = loop {
            match messages.next().await? {
                Some(Event::Endpoint(named)) => break Arc::new(self.http.endpoint(&named)?),
                Some(_) => {}
                None => return Err(refused.into()),
            }
        };
        self.answered.store(true, Ordering::Relaxed);
        let mut posts = JoinSet::new();
        posts.spawn(Arc::clone(&self).post(Arc::clone(&endpoint), first));
        loop {
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(Line::Whole(line))) => drop(posts.spawn(Arc::clone(&self).post(Arc::clone(&endpoint), line))),
                    Ok(Some(Line::TooLong(_))) => {}
                    Ok(None) | Err(_) => return Ok(()),
                },
                event = messages.next() => match event {
                    Ok(Some(Event::Message(message))) => self.deliver(message).await,
                    Ok(Some(Event::TooLong(remains))) => {
                        if let Some(line) = self.give_up_overlong(remains).await {
                            posts.spawn(Arc::clone(&self).post(Arc::clone(&endpoint), line));
                        }
                    }
                    Ok(Some(Event::Endpoint(_))) => {}
                    Ok(None) | Err(_) => return Err(End::StreamOver),
                },
                Some(_) = posts.join_next() => {}
            }
        }
    }

    /// Posts one line, in its turn.
    async fn post(self: Arc<Self>, endpoint: Arc<Url>, line: Bytes) {
        let _turn = self.in_order.lock().await;
        let posted = self
            .http
            .send(Carried::Posted(&endpoint, &line), &HeaderMap::new())
            .await;
        let id = match Spoken::read(&line) {
            Some((Spoken::Opening { id } | Spoken::Request { id, .. }, _)) => Some(id),
            _ => None,
        };
        let (refusal, id) = match (posted, id) {
            (Ok(response), _) if response.status().is_success() => return,
            (_, None) => return,
            (Ok(response), Some(id)) => (self.http.refusal(response).await, id),
            (Err(failure), Some(id)) => (Refusal::Told(failure), id),
        };
        match refusal {
            Refusal::Error(error) => self.deliver_error(&id, &error).await,
            Refusal::Told(failure) => self.deliver_failure(&id, &failure).await,
        }
    }
}
