//! The requests of a server to its client: offered to its calls, kept while it is being opened, answered once.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use super::caller::{Caller, Inquiry, OfferResult};
use super::connection::{Session, UnclaimedRequests, lock};
use crate::protocol::{Json, Object, Payload, Twin};
use crate::wire::{Frame, Outbox};

/// More requests than any server has for its client at once; a server in a loop is told so instead of filling memory.
const INQUIRY_LIMIT: usize = 1000;

/// How many bytes of answers may wait in a queue that is full already, before a dependency that asks on without
/// reading them is not read from any more. Apart from the queue itself, which may be full of calls: a dependency that
/// first writes its answers and then reads must be able to.
const UNREAD_ANSWERS: usize = 1024 * 1024;

impl Session {
    pub(in crate::loader) fn asked(
        &self,
        line: &Bytes,
        id: Json<'_>,
        method: &str,
        params: Option<&Payload<'_>>,
    ) {
        let waiting = {
            let mut inquiries = lock(&self.0.inquiries);
            inquiries.push(id.get().to_owned());
            inquiries.len()
        };
        if method == "ping" {
            return self.answer(id.get(), Bytes::from_static(b"{}"));
        }
        if let Err(twin) = without_twins(method, params.and_then(Payload::object)) {
            let message = serde_json::Value::from(twin.to_string());
            return self.refuse(
                id.get(),
                format!(r#"{{"code":-32602,"message":{message}}}"#).into(),
            );
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

    /// Offers what the dependency asked while it was opened to the call it was opened for; declines the rest.
    pub fn settle(&self) {
        let unclaimed = std::mem::replace(&mut *lock(&self.0.unclaimed), UnclaimedRequests::Declined);
        if let UnclaimedRequests::Kept(inquiries) = unclaimed {
            for inquiry in inquiries {
                self.offer(inquiry);
            }
        }
    }

    /// Declines what is kept once it was kept for `patience`: what is being opened may be waiting for it. Never
    /// returns.
    pub(in crate::loader) async fn decline_after(&self, patience: Duration) -> Infallible {
        loop {
            while !matches!(&*lock(&self.0.unclaimed), UnclaimedRequests::Kept(kept) if !kept.is_empty()) {
                self.0.kept.notified().await;
            }
            tokio::time::sleep(patience).await;
            if let UnclaimedRequests::Kept(kept) = &mut *lock(&self.0.unclaimed) {
                for inquiry in std::mem::take(kept) {
                    self.decline(&inquiry);
                }
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
            .any(|(_, caller)| caller.asked(&inquiry) == OfferResult::Yes)
        {
            return;
        }
        if let UnclaimedRequests::Kept(kept) = &mut *lock(&self.0.unclaimed) {
            kept.push(inquiry);
            return self.0.kept.notify_one();
        }
        self.decline(&inquiry);
    }

    /// Answers a request of the dependency with a raw result.
    pub fn answer(&self, id: &str, result: Bytes) {
        self.respond(id, "result", result);
    }

    /// Answers a request of the dependency with a raw error object.
    pub fn refuse(&self, id: &str, error: Bytes) {
        self.respond(id, "error", error);
    }

    fn respond(&self, id: &str, member: &str, body: Bytes) {
        // Answered once: what was withdrawn or is answered twice goes nowhere.
        let mut inquiries = lock(&self.0.inquiries);
        let Some(place) = inquiries.iter().position(|open| open == id) else {
            return;
        };
        inquiries.swap_remove(place);
        drop(inquiries);
        let length = id.len() + body.len();
        let mut frame = Frame::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":"#));
        frame.push(body);
        frame.push("}");
        self.push(frame);
        if lock(&self.0.outbox).as_ref().is_some_and(Outbox::is_crowded) {
            self.0.unread_answers.fetch_add(length, Ordering::Relaxed);
        } else {
            self.0.unread_answers.store(0, Ordering::Relaxed);
        }
    }

    /// Waits where the dependency asks and does not read what it is answered.
    pub(in crate::loader) async fn wait_for_unread_answers(&self) {
        if self.0.unread_answers.load(Ordering::Relaxed) < UNREAD_ANSWERS {
            return;
        }
        let room = lock(&self.0.outbox).as_ref().map(Outbox::room_or_end);
        if let Some(room) = room {
            room.await;
        }
        self.0.unread_answers.store(0, Ordering::Relaxed);
    }
}

/// Fails if the parameters of a question mean different things to different readers.
fn without_twins(method: &str, params: Option<&Object<'_>>) -> Result<(), Twin> {
    let Some(params) = params else { return Ok(()) };
    params.without_twins(match method {
        "elicitation/create" => &["_meta", "mode", "message"],
        "sampling/createMessage" => &["_meta", "systemPrompt", "messages"],
        _ => &["_meta"],
    })?;
    let meta = params.value("_meta").and_then(|raw| Object::parse(raw.get()));
    meta.map_or(Ok(()), |meta| meta.without_meta_twins())
        .map_err(|twin| twin.within("_meta"))
}
