//! Passes the requests and notifications of servers to the client.
//!
//! Requests climb the ladder (`ask/forwarded.rs`). A Modern client takes none: there a request is offered to the calls
//! under way, one of which gives it to the client as a result (`era_bridge.rs`).

use std::sync::Arc;

use bytes::Bytes;

use crate::protocol::Payload;
use crate::proxy::{Client, Inquiry, Session};
use crate::stdio::ask::ladder::Ladder;
use crate::stdio::client::link::Link;
use crate::stdio::subscriptions::Subscriptions;
use crate::stdio::translation::to_client;
use crate::wire::Outbox;

/// The client, as running servers see it.
pub(crate) struct ServerRequests {
    pub(crate) ladder: Arc<Ladder>,
    pub(crate) link: Link,
    pub(crate) subscriptions: Subscriptions,
}

impl Client for ServerRequests {
    fn outbox(&self) -> &Outbox {
        self.link.outbox()
    }

    fn opened(&self, session: &Session) {
        self.subscriptions.restore(session);
    }

    fn asked(&self, session: &Session, inquiry: Arc<Inquiry>) {
        self.ladder.forward(session, &inquiry);
    }

    fn withdrawn(&self, session: &Session, id: &str) {
        self.ladder.withdraw(session, id);
    }

    fn watches(&self, session: &Session) -> bool {
        self.subscriptions.watches(session.dependency())
    }

    fn notified(&self, session: &Session, method: &str, line: &Bytes, params: Option<&Payload<'_>>) {
        match method {
            "notifications/resources/updated" => self.subscriptions.updated(session, line, params),
            "notifications/subscriptions/acknowledged" => self.subscriptions.acknowledged(session, params),
            "notifications/message" if !self.subscriptions.wants_messages() => {}
            _ => {
                let parts = params.map(|params| {
                    to_client::notification(line, params, session.era(), self.link.era()).into_parts()
                });
                self.link.notify(method, parts.into_iter().flatten());
            }
        }
    }
}
