//! The subscriptions of pml at Modern servers: one at each, for all the resources that are watched there.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;
use tokio::sync::oneshot;

use crate::protocol::{Object, Payload};
use crate::proxy::Session;
use crate::stdio::era::Era;

/// A subscription at a Modern server.
#[derive(Debug)]
struct Subscribed {
    session: Session,
    /// Its id there.
    id: u64,
    /// Notified when the server acknowledges it.
    acknowledged: Option<oneshot::Sender<()>>,
}

/// A subscription that another took the place of; it is cancelled when this is dropped.
pub(super) struct Replaced<'a> {
    session: &'a Session,
    id: u64,
}

impl Drop for Replaced<'_> {
    fn drop(&mut self) {
        let params = json!({ "requestId": self.id }).to_string();
        self.session.notify("notifications/cancelled", Some(&params));
    }
}

/// The subscriptions at Modern servers.
#[derive(Debug, Default)]
pub(super) struct Upstream(Mutex<Vec<Subscribed>>);

impl Upstream {
    /// Subscribes at a server by raw parameters, or no longer where there are none, in place of what was before.
    ///
    /// Returns what resolves when the server acknowledges it, and what was replaced.
    pub(super) fn subscribe<'a>(
        &self,
        session: &'a Session,
        params: Option<&str>,
    ) -> (Option<oneshot::Receiver<()>>, Option<Replaced<'a>>) {
        let mut subscribed = self.lock();
        let place = subscribed.iter().position(|ours| ours.session.is(session));
        let before = place.map(|place| subscribed.swap_remove(place));
        subscribed.retain(|ours| ours.session.is_open());
        let acknowledged = params.map(|params| {
            let (heard, acknowledged) = oneshot::channel();
            let id = session.send_and_forget("subscriptions/listen", params);
            subscribed.push(Subscribed {
                session: session.clone(),
                id,
                acknowledged: Some(heard),
            });
            acknowledged
        });
        (
            acknowledged,
            before.map(|Subscribed { id, .. }| Replaced { session, id }),
        )
    }

    /// Takes note that a server acknowledged a subscription.
    pub(super) fn acknowledged(&self, session: &Session, params: Option<&Payload<'_>>) {
        let meta = params
            .and_then(Payload::object)
            .and_then(|object| object.value("_meta"));
        let meta = meta.and_then(|raw| Object::parse(raw.get()));
        let id = meta.and_then(|meta| meta.value(Era::SUBSCRIPTION));
        let id: Option<u64> = id.and_then(|id| id.get().parse().ok());
        let mut subscribed = self.lock();
        let ours = |ours: &&mut Subscribed| ours.session.is(session) && Some(ours.id) == id;
        if let Some(heard) = subscribed
            .iter_mut()
            .find(ours)
            .and_then(|found| found.acknowledged.take())
        {
            let _ = heard.send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Subscribed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
