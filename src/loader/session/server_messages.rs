//! Dispatches the messages of a server: replies to their callers, notifications to the client, and what cannot be read
//! to the caller or the server that waits for it.

use std::borrow::Cow;

use bytes::Bytes;

use super::caller::{Failure, OfferResult};
use super::connection::{Session, Unasked, lock};
use super::end_reason::EndReason;
use super::repeated_reply::LONG;
use crate::protocol::{
    EnvelopeError, Line, ListKind, Message, Payload, Remains, ResponseOutcome, Shown, elements,
};

/// How much of a line that is no message is logged.
const LOGGED: usize = 200;

/// How much of it is looked through for secrets first: half a secret at the cut would not be found.
const LOOKED_AT: usize = 16 * 1024;

impl Session {
    pub(in crate::loader) fn receive(&self, line: Line, unasked: &(impl Fn(Unasked) + Send + Sync)) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(remains) => {
                tracing::warn!(dependency = %self.0.dependency, "a line over the limit was thrown away");
                return self.fail_unusable(remains, "is longer than the line limit");
            }
        };
        let Err(error) = self.dispatch(&line, unasked) else {
            return;
        };
        // Before 2025-06-18 several messages could stand in one line.
        let Some(messages) = elements(&line) else {
            return self.refuse_unreadable(&line, &error);
        };
        for message in messages {
            if let Err(error) = self.dispatch(&message, unasked) {
                self.refuse_unreadable(&message, &error);
            }
        }
    }

    fn dispatch(
        &self,
        line: &Bytes,
        unasked: &(impl Fn(Unasked) + Send + Sync),
    ) -> Result<(), EnvelopeError> {
        if line.len() >= LONG && self.recognised(line) {
            return Ok(());
        }
        match Message::parse(line)? {
            Message::Response { id, outcome } => {
                let raw_id = id.get();
                let reason = match &outcome {
                    ResponseOutcome::Result(_) => None,
                    ResponseOutcome::Error(_) => self.0.failures.take(raw_id),
                };
                let Some(id) = own_id(raw_id) else {
                    return Ok(());
                };
                if let ResponseOutcome::Result(result) = &outcome
                    && line.len() >= LONG
                {
                    lock(&self.0.repeated).learn(line, id, raw_id, result.get());
                }
                // Servers repeat in their errors what they were given. A result is what was asked for, and stays.
                if let ResponseOutcome::Error(error) = &outcome
                    && let Cow::Owned(error) = self.0.secrets.hide_json(error.get())
                {
                    let line = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{raw_id},"error":{error}}}"#));
                    if let Message::Response { outcome, .. } = Message::parse(&line)? {
                        self.answered(id, &line, &outcome, reason.as_ref());
                    }
                } else {
                    self.answered(id, line, &outcome, reason.as_ref());
                }
            }
            Message::Notification { method, params } => {
                self.notified(line, &method, params.as_ref(), unasked);
            }
            Message::Request { id, method, params } => self.asked(line, id, &method, params.as_ref()),
        }
        Ok(())
    }

    /// Hands a reply that is known already to the caller that waits for it; tells whether it took it.
    fn recognised(&self, line: &Bytes) -> bool {
        let Some((id, result)) = lock(&self.0.repeated).recognise(line) else {
            return false;
        };
        let mut callers = lock(&self.0.callers);
        let offered = callers.get(&id).map(|caller| caller.replied_again(result));
        if offered != Some(OfferResult::Yes) {
            return false;
        }
        callers.remove(&id);
        let busy = !callers.is_empty();
        drop(callers);
        if !busy {
            self.touch();
        }
        true
    }

    /// Hands a reply to the caller that waits for it; `reason` is why the transport made it, if that did.
    fn answered(&self, id: u64, line: &Bytes, outcome: &ResponseOutcome<'_>, reason: Option<&EndReason>) {
        let mut callers = lock(&self.0.callers);
        let caller = callers.remove(&id);
        let busy = !callers.is_empty();
        drop(callers);
        if let Some(caller) = caller {
            // While others wait it is not idle, whenever this was.
            if !busy {
                self.touch();
            }
            match reason {
                Some(reason) => caller.unreached(line, outcome, reason),
                None => caller.replied(line, outcome),
            }
        }
    }

    fn refuse_unreadable(&self, line: &Bytes, error: &EnvelopeError) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            let text = String::from_utf8_lossy(&line[..line.len().min(LOOKED_AT)]);
            let text = self.0.secrets.hide(&text);
            let text = Shown::line(&text[..text.floor_char_boundary(LOGGED)]);
            tracing::debug!(dependency = %self.0.dependency, %error, %text, "a line of stdout is no message");
        }
        let why = match error {
            EnvelopeError::Syntax(reason) => format!("cannot be read: the line is not valid JSON: {reason}"),
            EnvelopeError::Shape { reason } => format!("is not a JSON-RPC message: {reason}"),
        };
        self.fail_unusable(Remains::of(line), &why);
    }

    /// Fails the caller or the server that waits for a message that cannot be used; it would wait for ever otherwise.
    fn fail_unusable(&self, remains: Remains, why: &str) {
        match remains {
            Remains::Request(id) => {
                lock(&self.0.inquiries).push(id.clone());
                let message = serde_json::Value::from(format!("the request {why}"));
                self.refuse(&id, format!(r#"{{"code":-32600,"message":{message}}}"#).into());
            }
            Remains::Answer(id) | Remains::Either(id) => {
                if let Some(id) = own_id(&id) {
                    self.fail(id, &format!("its answer {why}"));
                }
            }
            Remains::Notification | Remains::Nothing => {}
        }
    }

    fn notified(
        &self,
        line: &Bytes,
        method: &str,
        params: Option<&Payload<'_>>,
        unasked: &(impl Fn(Unasked) + Send + Sync),
    ) {
        let member = |name: &str| {
            params
                .and_then(Payload::object)
                .and_then(|object| object.value(name))
        };
        let object = params.and_then(Payload::object);
        let judged: &[&str] = match method {
            "notifications/progress" => &["progressToken"],
            "notifications/cancelled" => &["requestId"],
            "notifications/resources/updated" => &["uri", "_meta"],
            _ => &["_meta"],
        };
        if let Some(Err(twin)) = object.map(|object| object.without_twins(judged)) {
            let dependency = &self.0.dependency;
            return tracing::warn!(%dependency, method = %Shown::line(method), %twin, "a notification is passed over");
        }
        match method {
            "notifications/progress" => {
                let token = member("progressToken").and_then(|raw| own_id(raw.get()));
                let caller = token.and_then(|id| lock(&self.0.callers).get(&id).cloned());
                if let Some((caller, params)) = caller.zip(params) {
                    caller.progressed(line, params);
                }
            }
            "notifications/cancelled" => {
                if let Some(id) = member("requestId") {
                    lock(&self.0.inquiries).retain(|open| open != id.get());
                    if let Some(client) = self.client() {
                        client.withdrawn(self, id.get());
                    }
                }
            }
            method => match ListKind::changed_by(method) {
                Some(kind) => unasked(Unasked::Changed(kind)),
                None => {
                    if let Some(client) = self.client() {
                        client.notified(self, method, line, params);
                    }
                }
            },
        }
    }

    fn fail(&self, id: u64, reason: &str) {
        let caller = lock(&self.0.callers).remove(&id);
        if let Some(caller) = caller {
            caller.failed(Failure::Unusable(reason.to_owned()));
        }
    }
}

/// Reads an id that we gave: a number, for sloppy servers also `1.0` or `"1"`.
fn own_id(raw: &str) -> Option<u64> {
    let raw = raw.trim_matches('"');
    raw.strip_suffix(".0").unwrap_or(raw).parse().ok()
}
