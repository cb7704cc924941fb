//! What dependencies say to the client: their requests, their notifications, and what they asked before.
//!
//! To a Legacy client a request goes as it is, under an id of ours. A Modern client takes none: there it is offered
//! to the calls under way, one of which gives it to the client as a result (`open_call.rs`).

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::protocol::{Json, Object, Outcome, Payload, Splice};
use crate::proxy::{Client, Inquiry, Session};
use crate::stdio::client::outstanding::Pending;
use crate::stdio::conversation::ambiguity::FILLED;
use crate::stdio::conversation::{Conversation, Shared};
use crate::stdio::era::{self, Covered, Era};
use crate::stdio::translation::server_label::label;
use crate::stdio::translation::to_client;
use crate::wire::{Frame, Outbox};

impl Client for Shared {
    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn opened(&self, session: &Session) {
        if let Some(conversation) = self.conversation() {
            conversation.restore(session);
        }
    }

    fn asked(&self, session: &Session, inquiry: Arc<Inquiry>) {
        let Some(conversation) = self.conversation() else {
            return session.decline(&inquiry);
        };
        if !conversation.is_legacy() {
            return session.offer(inquiry);
        }
        let params = inquiry
            .params
            .as_deref()
            .and_then(|params| std::str::from_utf8(params).ok());
        if era::covers(conversation.declared().capabilities(), &inquiry.method, params) == Covered::No {
            return session.decline(&inquiry);
        }
        conversation.pass_on(session, &inquiry, params);
    }

    fn withdrawn(&self, session: &Session, id: &str) {
        if let (Some(conversation), Some(id)) = (self.conversation(), self.inquiries.withdraw(session, id)) {
            conversation.withdraw(&id);
        }
    }

    fn watches(&self, session: &Session) -> bool {
        self.watching.watches(session.dependency())
    }

    fn told(&self, session: &Session, method: &str, line: &Bytes, params: Option<&Payload<'_>>) {
        if let Some(conversation) = self.conversation() {
            conversation.tell(session, method, line, params);
        }
    }
}

impl Conversation {
    /// Passes a request of a dependency to a Legacy client.
    fn pass_on(&self, session: &Session, inquiry: &Arc<Inquiry>, params: Option<&str>) {
        let object = params.and_then(Object::parse);
        let meta = object.as_ref().and_then(|object| {
            Some((
                object.place("_meta")?,
                Object::parse(object.value("_meta")?.get())?,
            ))
        });
        let token = meta
            .as_ref()
            .and_then(|(_, meta)| meta.value("progressToken"))
            .map(|token| token.get().to_owned());
        let id = self.inquiries().register(Pending::Forwarded {
            session: session.clone(),
            inquiry: Arc::clone(inquiry),
            token,
        });
        let mut frame = Frame::from(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":{}"#,
            json!(inquiry.method)
        ));
        if let Some(params) = &inquiry.params {
            let mut splice = Splice::new(params.clone());
            // Progress of the client finds its way back by our id.
            if let Some((place, meta)) = &meta
                && let Some(at) = meta.place("progressToken")
            {
                splice.replace(place.start + at.start..place.start + at.end, id.clone());
            }
            let label = object
                .as_ref()
                .and_then(|object| label(session.dependency(), &inquiry.method, object));
            if let Some((place, text)) = label {
                splice.replace(place, text);
            }
            frame.push(r#","params":"#);
            frame.extend(splice.into_parts());
        }
        frame.push("}");
        let _ = self.0.outbox.send_now(frame);
    }

    /// Sends a request to the client.
    pub(crate) fn ask_client(&self, id: &str, method: &str, params: Option<&str>) {
        let method = json!(method);
        let _ = self.0.outbox.send_now(match params {
            Some(params) => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#),
            None => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}}}"#),
        });
    }

    /// Tells the client that a request of ours needs no answer any more.
    pub(crate) fn withdraw(&self, id: &str) {
        let _ = self.0.outbox.send_now(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"no longer needed"}}}}"#
        ));
    }

    /// Takes the client's answer to a request of ours.
    pub(crate) fn answered(&self, line: &Bytes, id: &str, outcome: &Outcome<'_>) {
        match self.inquiries().take(id) {
            Some(Pending::Dialog(waiting)) => {
                let result = match outcome {
                    Outcome::Result(payload) => filled(payload),
                    Outcome::Error(_) => None,
                };
                let _ = waiting.send(result);
            }
            Some(Pending::Forwarded { session, inquiry, .. }) => match outcome {
                Outcome::Result(payload) => {
                    session.answer(&inquiry.id, line.slice_ref(payload.get().as_bytes()));
                }
                Outcome::Error(raw) => session.refuse(&inquiry.id, line.slice_ref(raw.get().as_bytes())),
            },
            Some(Pending::Input { call, key }) => call.collected(id, &key, outcome),
            None => {}
        }
    }

    /// Passes progress of the client on a request to the dependency that made it.
    pub(crate) fn progressed(&self, params: &Payload<'_>) {
        let Some(object) = params.object() else { return };
        let token = object.value("progressToken").map(Json::get);
        if let Some((place, (session, token))) = object
            .place("progressToken")
            .zip(token.and_then(|token| self.inquiries().progress(token)))
        {
            let text = params.get();
            let params = format!("{}{token}{}", &text[..place.start], &text[place.end..]);
            session.notify("notifications/progress", Some(&params));
        }
    }

    /// Passes a notification of a dependency on.
    fn tell(&self, session: &Session, method: &str, line: &Bytes, params: Option<&Payload<'_>>) {
        match method {
            "notifications/resources/updated" => self.updated(session, line, params),
            "notifications/subscriptions/acknowledged" => self.acknowledged(session, params),
            "notifications/message" if !self.wants_messages() => {}
            _ => {
                let parts = params.map(|params| self.passed(session, line, params).into_parts());
                self.notify(method, parts.into_iter().flatten());
            }
        }
    }

    /// Returns the parameters of a notification as the era of the client has them.
    pub(crate) fn passed(&self, session: &Session, line: &Bytes, params: &Payload<'_>) -> Splice {
        let mut splice = Splice::new(line.slice_ref(params.get().as_bytes()));
        if session.era() == Era::Modern
            && self.is_legacy()
            && let Some(object) = params.object()
        {
            to_client::without_envelope(&mut splice, object);
        }
        splice
    }

    /// Sends a notification to the client.
    pub(crate) fn notify(&self, method: &str, params: impl IntoIterator<Item = Bytes>) {
        let mut frame = Frame::from(format!(r#"{{"jsonrpc":"2.0","method":{}"#, json!(method)));
        let mut params = params.into_iter().peekable();
        if params.peek().is_some() {
            frame.push(r#","params":"#);
            frame.extend(params);
        }
        frame.push("}");
        let _ = self.0.outbox.send_now(frame);
    }
}

/// Reads what a person filled in; what means different things to different readers is no answer.
fn filled(payload: &Payload<'_>) -> Option<Value> {
    payload.object()?.without_twins(&FILLED).ok()?;
    serde_json::from_str(payload.get()).ok()
}
