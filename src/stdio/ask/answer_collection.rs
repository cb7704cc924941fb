//! The questions of a call's Modern server that are open at a Legacy client as requests.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::heartbeat::{Awaited, Heartbeat};
use super::open_request::OpenRequest;
use crate::protocol::DependencyName;
use crate::stdio::client::link::Link;
use crate::stdio::client::outstanding::{Collector, Recipient};

/// What a client is asked for one call, and what it answered. Dropped, what is still open is withdrawn.
pub(crate) struct AnswerCollection {
    open: Vec<OpenRequest>,
    /// The raw answers, by the server's names.
    responses: Vec<(String, String)>,
    _heartbeat: Heartbeat,
}

impl AnswerCollection {
    /// Begins without a question; from now on `call` shows its client that it waits, for no longer than `patience`.
    pub(super) fn new(
        link: &Link,
        server: &DependencyName,
        patience: Duration,
        call: &Arc<dyn Collector>,
    ) -> Self {
        let waiting = Arc::downgrade(call);
        let text = Awaited::AnswerFor(server).text();
        let show = move || {
            if let Some(call) = waiting.upgrade() {
                call.waits(&text);
            }
        };
        Self {
            open: Vec::new(),
            responses: Vec::new(),
            _heartbeat: Heartbeat::start(link, patience, show),
        }
    }

    /// Asks the question that the server calls `key`, by a request that `send` sends under its raw id.
    pub(super) fn ask(&mut self, link: &Link, key: &str, call: &Arc<dyn Collector>, send: impl FnOnce(&str)) {
        let recipient = Recipient::Call {
            call: Arc::clone(call),
            key: key.to_owned(),
        };
        let request = OpenRequest::register(link, recipient);
        send(request.id());
        self.open.push(request);
    }

    /// Takes the raw answer to the request with this raw id.
    pub(crate) fn answered(&mut self, id: &str, key: &str, response: &str) {
        self.open.retain(|request| request.id() != id);
        self.responses.push((key.to_owned(), response.to_owned()));
    }

    /// Tells whether nothing is open any more.
    pub(crate) fn is_complete(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the raw `inputResponses` of what was answered.
    pub(crate) fn into_responses(self) -> String {
        let responses = self.responses.iter();
        let responses: Vec<String> = responses
            .map(|(key, raw)| format!("{}:{raw}", json!(key)))
            .collect();
        format!("{{{}}}", responses.join(","))
    }
}
