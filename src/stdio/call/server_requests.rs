//! Passes the requests and notifications of servers to the client.
//!
//! To a Legacy client a request goes as it is, under an id of pml. A Modern client takes none: there it is offered
//! to the calls under way, one of which gives it to the client as a result (`era_bridge.rs`).

use std::sync::Arc;

use bytes::Bytes;

use crate::protocol::{Object, Payload, Splice};
use crate::proxy::{Client, Inquiry, Session};
use crate::stdio::client::link::Link;
use crate::stdio::client::outstanding::Recipient;
use crate::stdio::era::{self, Covered};
use crate::stdio::subscriptions::Subscriptions;
use crate::stdio::translation::server_label::label;
use crate::stdio::translation::to_client;
use crate::wire::Outbox;

/// The client, as running servers see it.
pub(crate) struct ServerRequests {
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
        if !self.link.is_legacy() {
            return session.offer(inquiry);
        }
        let params = inquiry
            .params
            .as_deref()
            .and_then(|params| std::str::from_utf8(params).ok());
        if era::covers(self.link.declared().capabilities(), &inquiry.method, params) == Covered::No {
            return session.decline(&inquiry);
        }
        self.forward(session, &inquiry, params);
    }

    fn withdrawn(&self, session: &Session, id: &str) {
        if let Some(id) = self.link.outstanding().withdraw(session, id) {
            self.link.withdraw(&id);
        }
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

impl ServerRequests {
    /// Forwards a request of a server to a Legacy client.
    fn forward(&self, session: &Session, inquiry: &Arc<Inquiry>, params: Option<&str>) {
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
        let id = self.link.outstanding().register(Recipient::Server {
            session: session.clone(),
            inquiry: Arc::clone(inquiry),
            token,
        });
        let params = inquiry.params.as_ref().map(|params| {
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
            splice.into_parts()
        });
        self.link
            .request(&id, &inquiry.method, params.into_iter().flatten());
    }
}
