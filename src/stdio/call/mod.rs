//! A request of the client that a server is answering, and what is asked in the middle of it.
//!
//! [`Calls`] is what all calls of one client share; an [`OpenCall`] is one of them.

mod deadline;
mod era_bridge;
mod granted;
mod in_result;
mod modern_questions;
mod open_call;
pub(crate) mod progress;
pub(crate) mod server_requests;
mod state;

use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

use granted::Granted;

use crate::protocol::Object;
use crate::proxy::{Proxy, ReadyRequest, Refusal, ResumedRoute};
use crate::stdio::ask::ladder::Ladder;
use crate::stdio::ask::parking::{self, ParkedItem, ParkedMatch, Parking};
use crate::stdio::ask::retry::Retry;
use crate::stdio::client::in_flight::UnderWay;
use crate::stdio::client::link::Link;
use crate::stdio::lists::output_schemas::OutputSchemas;
use crate::stdio::present;
use crate::stdio::subscriptions::Subscriptions;
use crate::stdio::translation::request::Request;

pub(crate) use open_call::OpenCall;

/// What the calls of one client share; clones share it.
#[derive(Clone)]
pub(crate) struct Calls(Arc<Shared>);

struct Shared {
    proxy: Proxy,
    ladder: Arc<Ladder>,
    link: Link,
    subscriptions: Subscriptions,
    output_schemas: Arc<OutputSchemas>,
    /// The calls that go on when a Modern client comes back.
    parked: Parking<Arc<OpenCall>>,
    /// What is known of the calls whose server waits for a Modern client to come back.
    granted: Parking<Granted>,
}

impl Calls {
    /// Begins with a client that has no call open.
    pub(crate) fn new(
        proxy: Proxy,
        ladder: Arc<Ladder>,
        link: Link,
        subscriptions: Subscriptions,
        output_schemas: Arc<OutputSchemas>,
    ) -> Self {
        Self(Arc::new(Shared {
            proxy,
            ladder,
            link,
            subscriptions,
            output_schemas,
            parked: Parking::default(),
            granted: Parking::default(),
        }))
    }

    /// Goes on with a parked call, whose client comes back with the answers to its server's questions.
    pub(crate) fn go_on(
        &self,
        id: Uuid,
        retry: &Retry<'_>,
        request: &Request,
        object: &Object<'_>,
        under_way: UnderWay,
    ) {
        let found = self.0.parked.take(id, Instant::now(), request.gist().as_ref());
        let refusal = match found {
            ParkedMatch::Wanted(call) => match self.0.proxy.going_on(&call.route) {
                Ok(_) => return call.go_on(retry, object, under_way),
                Err(refusal) => {
                    call.abandon();
                    refusal
                }
            },
            ParkedMatch::Another => Refusal::OtherCall,
            ParkedMatch::Nothing => Refusal::Expired,
        };
        let answer = present::refused(&refusal, &request.method, request.era);
        self.0.link.respond(&under_way.id, answer);
    }

    /// Lets a call through that was let through before its server asked something, unless a rule forbids it now.
    pub(crate) fn let_through(&self, id: Uuid, request: &Request) -> Option<ReadyRequest> {
        let gist = request.gist();
        let ParkedMatch::Wanted(granted) = self.0.granted.take(id, Instant::now(), gist.as_ref()) else {
            return None;
        };
        let going_on = self.0.proxy.going_on(granted.route());
        matches!(going_on, Ok(ResumedRoute::AsBefore)).then(|| granted.ready())
    }

    /// Keeps a call until its client comes back, for as long as a person is waited for.
    fn park(&self, call: Arc<OpenCall>) -> Uuid {
        let patience = self.0.proxy.approvals().time_to_live;
        let gist = call.request.gist();
        let (id, displaced) = self.0.parked.keep(call, gist, Instant::now() + patience);
        for call in displaced {
            call.abandon();
        }
        self.sweep_later(|shared| &shared.parked, |call| call.abandon());
        id
    }

    /// Takes note that a call that waits holds more than before.
    fn weigh(&self, id: Uuid) {
        for call in self.0.parked.weigh(id) {
            call.abandon();
        }
    }

    /// Remembers that a call was let through, for as long as a person is waited for.
    fn remember(&self, call: &OpenCall) -> Uuid {
        let patience = self.0.proxy.approvals().time_to_live;
        let (granted, gist) = (Granted::of(call), call.request.gist());
        let (id, _displaced) = self.0.granted.keep(granted, gist, Instant::now() + patience);
        self.sweep_later(|shared| &shared.granted, drop);
        id
    }

    /// Has what is kept given up in time, if the conversation still goes on then.
    fn sweep_later<T: ParkedItem + Send + 'static>(
        &self,
        parking: fn(&Shared) -> &Parking<T>,
        give_up: fn(T),
    ) {
        if let Some(at) = parking(&self.0).begin_sweep() {
            let sweeping = parking::sweep(Arc::downgrade(&self.0), parking, at, give_up);
            self.0.link.spawn(sweeping);
        }
    }
}
