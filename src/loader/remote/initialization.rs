//! Reads the answer to `initialize`.

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::HeaderValue;

use super::agreement::{Agreement, SESSION};
use super::bridge::Bridge;
use super::events::StreamEvent;
use super::messages::Messages;
use super::outgoing_line::answers;
use crate::loader::session::EndReason;
use crate::protocol::{Message, Object, ResponseOutcome};

impl Bridge {
    /// Learns from the answer to `initialize` what was agreed on, and returns it.
    pub(super) async fn opening_answer(&self, response: Response, id: &str) -> Result<Bytes, EndReason> {
        let session = response.headers().get(&SESSION).cloned();
        let mut messages = Messages::new(&self.http, response, self.line_limit);
        while let Some(event) = messages.next().await? {
            let StreamEvent::Message(message) = event else {
                continue;
            };
            if !answers(&message, id) {
                self.deliver(message).await;
                continue;
            }
            let version = agreed_version(&message).and_then(|version| HeaderValue::from_str(&version).ok());
            self.opened.send_replace(Some(Agreement { session, version }));
            return Ok(message);
        }
        Err(EndReason::Unanswered)
    }
}

/// Returns the version that an answer to `initialize` names.
fn agreed_version(message: &[u8]) -> Option<String> {
    match Message::parse(message).ok()? {
        Message::Response {
            outcome: ResponseOutcome::Result(result),
            ..
        } => Object::parse(result.get())?
            .text("protocolVersion")
            .map(Into::into),
        _ => None,
    }
}
