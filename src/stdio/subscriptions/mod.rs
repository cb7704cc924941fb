//! What the client wants to hear of: changed lists, watched resources, log messages.
//!
//! Legacy clients hear of every list, Modern ones of what they subscribed to; each notification to a Modern client
//! carries the id of its subscription. What is watched is kept for the life of the conversation, so that a server that
//! is started again is told again.

mod listeners;
mod log_level;
mod upstream;
mod watched_resources;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::task::JoinSet;

use listeners::{Listeners, RESOURCES};
use log_level::{LogLevel, SET_LEVEL};
use upstream::Upstream;
use watched_resources::WatchedResources;

use crate::protocol::{DependencyName, Payload};
use crate::proxy::{ClientRequest, Outcome, Proxy, Reply, RequestedItem, Route, Session, WaitMode};
use crate::stdio::client::answer::{ResponseBody, own_result};
use crate::stdio::client::in_flight::UnderWay;
use crate::stdio::client::link::Link;
use crate::stdio::era::Era;
use crate::stdio::translation::request::Method;
use crate::stdio::translation::to_client;

pub(crate) use watched_resources::WatchStatus;

/// How long a server may take to acknowledge a subscription before its client is told that it has one.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(5);

/// What one client wants to hear of; clones share it.
#[derive(Clone)]
pub(crate) struct Subscriptions(Arc<Shared>);

struct Shared {
    proxy: Proxy,
    link: Link,
    watched: WatchedResources,
    level: LogLevel,
    listeners: Listeners,
    upstream: Upstream,
}

impl Subscriptions {
    /// Begins with a client that wants to hear of nothing yet.
    pub(crate) fn new(proxy: Proxy, link: Link) -> Self {
        Self(Arc::new(Shared {
            proxy,
            link,
            watched: WatchedResources::default(),
            level: LogLevel::default(),
            listeners: Listeners::default(),
            upstream: Upstream::default(),
        }))
    }

    /// Keeps a Modern subscription open until it is cancelled.
    pub(crate) fn listen(&self, under_way: UnderWay, params: Option<&Payload<'_>>) {
        let wanted = self.0.listeners.open(&under_way.id, params);
        let subscriptions = self.clone();
        let cancelled = under_way.cancelled();
        self.0.link.spawn(async move {
            let Shared { link, listeners, .. } = &*subscriptions.0;
            let watching = subscriptions.watch_all(wanted);
            if let Some(granted) = cancelled.run_until_cancelled(watching).await {
                listeners.acknowledge(link, &under_way.id, &granted);
                cancelled.cancelled().await;
            }
            let orphaned = listeners.end(&under_way.id);
            drop(under_way);
            subscriptions.unwatch(&orphaned).await;
        });
    }

    /// Watches resources for a Modern client, all at once; returns those that are watched.
    async fn watch_all(&self, wanted: Vec<String>) -> Vec<String> {
        let mut watching = JoinSet::new();
        for (place, uri) in wanted.into_iter().enumerate() {
            let subscriptions = self.clone();
            watching.spawn(async move { subscriptions.watch_one(&uri).await.then_some((place, uri)) });
        }
        let mut watched = Vec::new();
        while let Some(done) = watching.join_next().await {
            watched.extend(done.ok().flatten());
        }
        watched.sort_unstable();
        watched.into_iter().map(|(_, uri)| uri).collect()
    }

    /// Watches a resource for a Modern client, if no person has to be asked for it.
    async fn watch_one(&self, uri: &str) -> bool {
        let wanted = RequestedItem::Resource(uri);
        if !self.0.proxy.simply_runs(wanted).await {
            return false;
        }
        let client_request = ClientRequest {
            params: Bytes::from(json!({ "uri": uri }).to_string()),
            progress: None,
            patience: WaitMode::None,
        };
        let Outcome::Ready(ready) = self.0.proxy.call(wanted, client_request).await else {
            return false;
        };
        let session = &ready.route.session;
        self.watch(&ready.route, uri.to_owned());
        session.settle();
        match session.era() {
            Era::Modern => self.subscribe_at(session).await,
            Era::Legacy => {
                let params = json!({ "uri": ready.route.own }).to_string();
                let subscribing = session.request(Method::Subscribe.name(), &params);
                match tokio::time::timeout(ACKNOWLEDGEMENT, subscribing).await {
                    // A server that does not answer may report changes all the same.
                    Ok(Reply::Result(_)) | Err(_) => {}
                    Ok(Reply::Error(_) | Reply::Unusable(_) | Reply::Ended(_)) => {
                        self.take_back(&ready.route, uri);
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Subscribes at a Modern server to all that is watched there, in place of what was before; returns once the
    /// server has acknowledged it, so that no change after that is missed.
    pub(crate) async fn subscribe_at(&self, session: &Session) {
        let resources = self.0.watched.at(session.dependency());
        let params = (!resources.is_empty()).then(|| {
            format!(
                r#"{{"_meta":{{{}}},"notifications":{{"{RESOURCES}":{}}}}}"#,
                self.envelope(),
                json!(resources)
            )
        });
        let (acknowledged, _replaced) = self.0.upstream.subscribe(session, params.as_deref());
        if let Some(acknowledged) = acknowledged {
            // A server that does not acknowledge may report changes all the same.
            let _ = tokio::time::timeout(ACKNOWLEDGEMENT, acknowledged).await;
        }
    }

    /// Takes note that a Modern server acknowledged a subscription of pml.
    pub(crate) fn acknowledged(&self, session: &Session, params: Option<&Payload<'_>>) {
        self.0.upstream.acknowledged(session, params);
    }

    /// Takes note that a request of the client watches a resource under this name.
    pub(crate) fn watch(&self, route: &Route, name: String) {
        self.0.watched.add(route, name);
    }

    /// Takes note that a request to watch a resource came to nothing.
    pub(crate) fn take_back(&self, route: &Route, name: &str) {
        self.0.watched.take_back(route, name);
    }

    /// Takes note that the client no longer watches a resource under this name.
    pub(crate) fn forget(&self, route: &Route, name: &str) -> WatchStatus {
        self.0.watched.remove(route, name)
    }

    /// Tells whether anything of a server is watched.
    pub(crate) fn watches(&self, server: &DependencyName) -> bool {
        self.0.watched.has_any_of(server)
    }

    /// Stops watching resources that the client knows by these names; the answer of a Legacy server is dropped.
    async fn unwatch(&self, names: &[String]) {
        let unwatched = self.0.watched.remove_all(names);
        for session in self.0.proxy.sessions() {
            match (unwatched.get(session.dependency()), session.era()) {
                (None, _) => {}
                (Some(_), Era::Modern) => self.subscribe_at(&session).await,
                (Some(uris), Era::Legacy) => {
                    for uri in uris {
                        session
                            .send_and_forget(Method::Unsubscribe.name(), &json!({ "uri": uri }).to_string());
                    }
                }
            }
        }
    }

    /// Tells a server that was just opened what the client wanted of it before.
    pub(crate) fn restore(&self, session: &Session) {
        if session.era() == Era::Modern {
            let (subscriptions, session) = (self.clone(), session.clone());
            self.0
                .link
                .spawn(async move { subscriptions.subscribe_at(&session).await });
            return;
        }
        if let Some(level) = self.0.level.params() {
            session.send_and_forget(SET_LEVEL, &level);
        }
        for uri in self.0.watched.at(session.dependency()) {
            session.send_and_forget(Method::Subscribe.name(), &json!({ "uri": uri }).to_string());
        }
    }

    /// Answers `logging/setLevel`: every server is told, now or when it is opened.
    pub(crate) fn set_level(&self, params: Option<&Payload<'_>>) -> ResponseBody {
        match LogLevel::check(params) {
            Ok(params) => {
                self.send_level(params);
                own_result(json!({}), Era::Legacy)
            }
            Err(fault) => fault.into(),
        }
    }

    /// Takes note of the log level that a Modern request asks for; `level` is raw.
    pub(crate) fn ask_for_messages(&self, level: &str) {
        let params = format!(r#"{{"level":{level}}}"#);
        if self.0.level.ask_for(&params) {
            self.send_level(&params);
        }
    }

    /// Tells every Legacy server that runs which messages are wanted; others are told when they are opened.
    fn send_level(&self, params: &str) {
        self.0.level.set(params);
        for session in self.0.proxy.sessions() {
            if session.era() == Era::Legacy {
                session.send_and_forget(SET_LEVEL, params);
            }
        }
    }

    /// Tells whether log messages go to the client: a Modern one asks for them.
    pub(crate) fn wants_messages(&self) -> bool {
        self.0.link.is_legacy() || self.0.level.is_asked_for()
    }

    /// Returns the members of a Modern `_meta` that speak for a Legacy client.
    pub(crate) fn envelope(&self) -> String {
        let mut members = self.0.link.declared().envelope();
        if let Some(level) = self.0.level.value() {
            let _ = write!(members, r#","{}":{level}"#, Era::LOG_LEVEL);
        }
        members
    }

    /// Notifies the client whenever a list has changed.
    pub(crate) async fn announce_lists(self) {
        let Shared {
            proxy,
            link,
            listeners,
            ..
        } = &*self.0;
        let mut changes = proxy.list_changes();
        let mut announced = *changes.borrow_and_update();
        while changes.changed().await.is_ok() {
            let now = *changes.borrow_and_update();
            for kind in now.since(announced) {
                if link.is_legacy() {
                    link.notify(kind.list_changed(), []);
                }
                listeners.list_changed(link, kind);
            }
            announced = now;
        }
    }

    /// Passes on that a resource changed, under each name the client knows it by.
    pub(crate) fn updated(&self, session: &Session, line: &Bytes, params: Option<&Payload<'_>>) {
        let Some((params, object)) = params.and_then(|params| Some((params, params.object()?))) else {
            return;
        };
        let Some((uri, place)) = object.text("uri").zip(object.place("uri")) else {
            return;
        };
        let Shared { link, listeners, .. } = &*self.0;
        for name in self.0.watched.names(session.dependency(), &uri) {
            let mut splice = to_client::notification(line, params, session.era(), link.era());
            if name != uri {
                splice.replace(place.clone(), json!(name).to_string());
            }
            if link.is_legacy() {
                link.notify("notifications/resources/updated", splice.into_parts());
            } else {
                listeners.resource_updated(link, &name, splice.into_text());
            }
        }
    }
}
