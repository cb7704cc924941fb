//! What a dependency says: whose answer it is, whom a request is for, what it tells unasked.

use std::sync::Arc;

use bytes::Bytes;

use super::client::{Caller, Failure, Inquiry, Taken};
use super::session::{Session, Unasked, Unclaimed, lock};
use crate::protocol::{EnvelopeError, Json, Kind, Line, Message, Payload, Remains, Shown, elements};

/// More requests than any server has for its client at once; a server in a loop is told so instead of filling memory.
const INQUIRY_LIMIT: usize = 1000;

impl Session {
    pub(super) fn receive(&self, line: Line, unasked: &(impl Fn(Unasked) + Send + Sync)) {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(remains) => {
                tracing::warn!(dependency = %self.0.dependency, "a line over the limit was thrown away");
                return self.give_up(remains, "is longer than the line limit");
            }
        };
        let Err(error) = self.hear(&line, unasked) else {
            return;
        };
        // Before 2025-06-18 several messages could stand in one line.
        let Some(messages) = elements(&line) else {
            return self.pass_over(&line, &error);
        };
        for message in messages {
            if let Err(error) = self.hear(&message, unasked) {
                self.pass_over(&message, &error);
            }
        }
    }

    fn hear(&self, line: &Bytes, unasked: &(impl Fn(Unasked) + Send + Sync)) -> Result<(), EnvelopeError> {
        match Message::parse(line)? {
            Message::Response { id, outcome } => {
                let caller = own_id(id.get()).and_then(|id| lock(&self.0.callers).remove(&id));
                if let Some(caller) = caller {
                    self.touch();
                    caller.replied(line, &outcome);
                }
            }
            Message::Notification { method, params } => {
                self.notified(line, &method, params.as_ref(), unasked);
            }
            Message::Request { id, method, params } => self.asked(line, id, &method, params.as_ref()),
        }
        Ok(())
    }

    fn pass_over(&self, line: &Bytes, error: &EnvelopeError) {
        let text = String::from_utf8_lossy(&line[..line.len().min(200)]);
        tracing::debug!(dependency = %self.0.dependency, %error, text = %Shown::line(&text), "a line of stdout is no message");
        let why = match error {
            EnvelopeError::Syntax(reason) => format!("cannot be read: the line is not valid JSON: {reason}"),
            EnvelopeError::Shape { reason } => format!("is not a JSON-RPC message: {reason}"),
        };
        self.give_up(Remains::of(line), &why);
    }

    /// Tells whoever waits for a message that cannot be used; otherwise they would wait for ever.
    fn give_up(&self, remains: Remains, why: &str) {
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
            Remains::Nothing => {}
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
            method => match Kind::changed_by(method) {
                Some(kind) => unasked(Unasked::Changed(kind)),
                None => {
                    if let Some(client) = self.client() {
                        client.told(self, method, line, params);
                    }
                }
            },
        }
    }

    fn asked(&self, line: &Bytes, id: Json<'_>, method: &str, params: Option<&Payload<'_>>) {
        let waiting = {
            let mut inquiries = lock(&self.0.inquiries);
            inquiries.push(id.get().to_owned());
            inquiries.len()
        };
        if method == "ping" {
            return self.answer(id.get(), Bytes::from_static(b"{}"));
        }
        let inquiry = Arc::new(Inquiry {
            id: id.get().to_owned(),
            method: method.to_owned(),
            params: params.map(|params| line.slice_ref(params.get().as_bytes())),
        });
        match self.client().filter(|_client| waiting <= INQUIRY_LIMIT) {
            Some(client) => client.asked(self, inquiry),
            None => self.decline(&inquiry),
        }
    }

    fn fail(&self, id: u64, reason: &str) {
        let caller = lock(&self.0.callers).remove(&id);
        if let Some(caller) = caller {
            caller.failed(Failure::Unusable(reason.to_owned()));
        }
    }

    /// Offers what the dependency asked while it was opened to the call it was opened for; declines the rest.
    pub fn settle(&self) {
        let unclaimed = std::mem::replace(&mut *lock(&self.0.unclaimed), Unclaimed::Declined);
        if let Unclaimed::Kept(inquiries) = unclaimed {
            for inquiry in inquiries {
                self.offer(inquiry);
            }
        }
    }

    /// Answers a request of the dependency that its client cannot take.
    pub fn decline(&self, inquiry: &Inquiry) {
        let error = format!(
            r#"{{"code":-32601,"message":{}}}"#,
            serde_json::Value::from(format!("the client does not take `{}`", inquiry.method))
        );
        self.refuse(&inquiry.id, error.into());
    }

    /// Offers a request of the dependency to its calls, the newest first; declines it if none takes it.
    pub fn offer(&self, inquiry: Arc<Inquiry>) {
        let callers = {
            let callers = lock(&self.0.callers);
            let mut callers: Vec<(u64, Arc<dyn Caller>)> = callers
                .iter()
                .map(|(id, caller)| (*id, Arc::clone(caller)))
                .collect();
            callers.sort_unstable_by_key(|(id, _)| std::cmp::Reverse(*id));
            callers
        };
        if callers
            .into_iter()
            .any(|(_, caller)| caller.asked(&inquiry) == Taken::Yes)
        {
            return;
        }
        if let Unclaimed::Kept(kept) = &mut *lock(&self.0.unclaimed) {
            return kept.push(inquiry);
        }
        self.decline(&inquiry);
    }
}

/// Reads an id that we gave: a number, for sloppy servers also `1.0` or `"1"`.
fn own_id(raw: &str) -> Option<u64> {
    let raw = raw.trim_matches('"');
    raw.strip_suffix(".0").unwrap_or(raw).parse().ok()
}
