//! Who hears of changes: Legacy clients of every list, Modern ones of what they subscribed to.
//!
//! Each notification to a Modern client carries the id of its subscription. A Modern dependency is subscribed to by
//! pml, once for all the resources that are watched there.

pub(crate) mod watched_resources;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::protocol::{Kind, Object, Payload, Splice, check_uri};
use crate::proxy::{Carried, Outcome, Patience, Reply, Session, Wanted};
use crate::stdio::client::in_flight::UnderWay;
use crate::stdio::conversation::Conversation;
use crate::stdio::era::Era;
use crate::stdio::lists::items;
use crate::stdio::translation::request::Method;

/// How long a dependency may take to acknowledge a subscription before its client is told that it has one.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(5);

/// How many changes are held for a subscription that is not acknowledged: more than there are in so short a time.
const HELD: usize = 1000;

/// How many resources one subscription may name: each is looked for among all that servers list. The client is told
/// which of them are watched.
const WATCHED: usize = 1000;

/// The member of a filter that names resources.
const RESOURCES: &str = "resourceSubscriptions";

/// One `subscriptions/listen` that is open.
#[derive(Debug)]
struct Subscription {
    /// Its raw id.
    id: String,
    kinds: Vec<Kind>,
    /// The resources it wants to hear of, as the client calls them.
    resources: Vec<String>,
    stage: Stage,
}

/// How far a subscription is.
#[derive(Debug)]
enum Stage {
    /// It is not acknowledged yet; what it is told first is that, so whatever changes meanwhile is held.
    Opening(Vec<Change>),
    Open,
}

/// A notification, with its raw parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    method: &'static str,
    params: String,
}

/// The subscriptions that are open.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    ours: Mutex<Vec<Subscription>>,
    /// Our own subscriptions at Modern dependencies.
    theirs: Mutex<Vec<Listening>>,
}

/// A subscription of ours at a Modern dependency.
#[derive(Debug)]
struct Listening {
    session: Session,
    /// Its id there.
    id: u64,
    /// Who waits until it is acknowledged.
    acknowledged: Option<oneshot::Sender<()>>,
}

/// A subscription of ours that another took the place of; it is cancelled when this is dropped.
struct Replaced<'a> {
    session: &'a Session,
    id: u64,
}

impl Drop for Replaced<'_> {
    fn drop(&mut self) {
        let params = json!({ "requestId": self.id }).to_string();
        self.session.notify("notifications/cancelled", Some(&params));
    }
}

impl Subscriptions {
    fn lock(&self) -> MutexGuard<'_, Vec<Subscription>> {
        self.ours.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listening(&self) -> MutexGuard<'_, Vec<Listening>> {
        self.theirs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a subscription; returns what nobody else watches.
    fn end(&self, id: &str) -> Vec<String> {
        let mut ours = self.lock();
        let place = ours.iter().position(|other| other.id == id);
        let ended = place.map(|place| ours.swap_remove(place));
        let watched = |uri: &String| ours.iter().any(|other| other.resources.contains(uri));
        let resources = ended.map(|ended| ended.resources).unwrap_or_default();
        resources.into_iter().filter(|uri| !watched(uri)).collect()
    }

    /// Takes a change to whom it concerns; returns the ids of those who are told now.
    fn take(&self, change: &Change, concerns: impl Fn(&Subscription) -> bool) -> Vec<String> {
        let mut told = Vec::new();
        for subscription in self.lock().iter_mut().filter(|ours| concerns(ours)) {
            match &mut subscription.stage {
                Stage::Open => told.push(subscription.id.clone()),
                Stage::Opening(held) if held.len() < HELD && !held.contains(change) => {
                    held.push(change.clone());
                }
                Stage::Opening(_) => {}
            }
        }
        told
    }
}

impl Conversation {
    /// Keeps a Modern subscription open until it is cancelled.
    pub(crate) fn listen(&self, under_way: UnderWay, params: Option<&Payload<'_>>) {
        let kinds = items::wishes(params);
        let wanted = resources(params);
        // It hears of changes from now on, whatever its dependencies do.
        self.0.subscriptions.lock().push(Subscription {
            id: under_way.id.to_string(),
            kinds,
            resources: wanted.clone(),
            stage: Stage::Opening(Vec::new()),
        });
        let conversation = self.clone();
        let cancelled = under_way.cancelled();
        self.spawn(async move {
            let watching = conversation.watch_all(wanted);
            if let Some(granted) = cancelled.run_until_cancelled(watching).await {
                conversation.acknowledge(&under_way.id, &granted);
                cancelled.cancelled().await;
            }
            let orphaned = conversation.0.subscriptions.end(&under_way.id);
            drop(under_way);
            conversation.unwatch(&orphaned).await;
        });
    }

    /// Tells a client what it is subscribed to, and what it missed meanwhile.
    fn acknowledge(&self, id: &str, resources: &[String]) {
        let mut granted = Map::new();
        let mut held = Vec::new();
        if let Some(ours) = self.0.subscriptions.lock().iter_mut().find(|ours| ours.id == id) {
            granted.extend(
                ours.kinds
                    .iter()
                    .map(|kind| (kind.wish().to_owned(), json!(true))),
            );
            if let Stage::Opening(missed) = std::mem::replace(&mut ours.stage, Stage::Open) {
                held = missed;
            }
            ours.resources = resources.to_vec();
        }
        if !resources.is_empty() {
            granted.insert(RESOURCES.to_owned(), json!(resources));
        }
        let params = json!({ "notifications": granted }).to_string();
        self.notify_subscriber("notifications/subscriptions/acknowledged", id, &params);
        for Change { method, params } in held {
            self.notify_subscriber(method, id, &params);
        }
    }

    /// Watches resources for a Modern client, all at once; returns those that are watched.
    async fn watch_all(&self, wanted: Vec<String>) -> Vec<String> {
        let mut watching = JoinSet::new();
        for (place, uri) in wanted.into_iter().enumerate() {
            let conversation = self.clone();
            watching.spawn(async move { conversation.watched(&uri).await.then_some((place, uri)) });
        }
        let mut watched = Vec::new();
        while let Some(done) = watching.join_next().await {
            watched.extend(done.ok().flatten());
        }
        watched.sort_unstable();
        watched.into_iter().map(|(_, uri)| uri).collect()
    }

    /// Watches a resource for a Modern client, if nobody has to be asked for it.
    async fn watched(&self, uri: &str) -> bool {
        let wanted = Wanted::Resource(uri);
        if !self.0.proxy.simply_runs(wanted) {
            return false;
        }
        let carried = Carried {
            params: Bytes::from(json!({ "uri": uri }).to_string()),
            progress: None,
            patience: Patience::None,
        };
        let Outcome::Ready(ready) = self.0.proxy.call(wanted, carried).await else {
            return false;
        };
        let session = &ready.route.session;
        self.watch(&ready.route, uri.to_owned());
        session.settle();
        match session.era() {
            Era::Modern => self.listen_at(session).await,
            Era::Legacy => {
                let params = json!({ "uri": ready.route.own }).to_string();
                let subscribing = session.request(Method::Subscribe.name(), &params);
                match tokio::time::timeout(ACKNOWLEDGEMENT, subscribing).await {
                    // A dependency that does not answer may tell changes all the same.
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

    /// Subscribes at a Modern dependency to all that is watched there, in place of what was before; returns once the
    /// dependency has acknowledged it, so that no change after that is missed.
    pub(crate) async fn listen_at(&self, session: &Session) {
        let resources = self.watched_at(session.dependency());
        let (heard, acknowledged) = oneshot::channel();
        let _before = {
            let mut listening = self.0.subscriptions.listening();
            let place = listening
                .iter()
                .position(|listening| listening.session.is(session));
            let before = place.map(|place| listening.swap_remove(place));
            listening.retain(|listening| listening.session.is_open());
            if !resources.is_empty() {
                let params = format!(
                    r#"{{"_meta":{{{}}},"notifications":{{"{RESOURCES}":{}}}}}"#,
                    self.envelope(),
                    json!(resources)
                );
                let id = session.send_and_forget("subscriptions/listen", &params);
                listening.push(Listening {
                    session: session.clone(),
                    id,
                    acknowledged: Some(heard),
                });
            }
            before.map(|Listening { id, .. }| Replaced { session, id })
        };
        if !resources.is_empty() {
            // A dependency that does not acknowledge may tell changes all the same.
            let _ = tokio::time::timeout(ACKNOWLEDGEMENT, acknowledged).await;
        }
    }

    /// Takes note that a dependency acknowledged a subscription of ours.
    pub(crate) fn acknowledged(&self, session: &Session, params: Option<&Payload<'_>>) {
        let meta = params
            .and_then(Payload::object)
            .and_then(|object| object.value("_meta"));
        let meta = meta.and_then(|raw| Object::parse(raw.get()));
        let id = meta.and_then(|meta| meta.value(Era::SUBSCRIPTION));
        let id: Option<u64> = id.and_then(|id| id.get().parse().ok());
        let mut listening = self.0.subscriptions.listening();
        let ours = |listening: &&mut Listening| listening.session.is(session) && Some(listening.id) == id;
        if let Some(heard) = listening
            .iter_mut()
            .find(ours)
            .and_then(|found| found.acknowledged.take())
        {
            let _ = heard.send(());
        }
    }

    /// Tells the client when a list has changed.
    pub(crate) async fn announce(self) {
        let mut changes = self.0.proxy.list_changes();
        let mut told = *changes.borrow_and_update();
        while changes.changed().await.is_ok() {
            let now = *changes.borrow_and_update();
            for kind in now.since(told) {
                let method = kind.list_changed();
                if self.is_legacy() {
                    self.notify(method, []);
                }
                let params = "{}".to_owned();
                self.tell_concerned(&Change { method, params }, |wish| wish.kinds.contains(&kind));
            }
            told = now;
        }
    }

    /// Tells who subscribed to a resource that it changed; `params` are the raw parameters.
    pub(crate) fn tell_subscribers(&self, uri: &str, params: String) {
        let method = "notifications/resources/updated";
        self.tell_concerned(&Change { method, params }, |subscription| {
            // A change below a watched address is told under its own.
            let wanted = |watched: &String| uri == watched || uri.starts_with(&format!("{watched}/"));
            subscription.resources.iter().any(wanted)
        });
    }

    fn tell_concerned(&self, change: &Change, concerns: impl Fn(&Subscription) -> bool) {
        for id in self.0.subscriptions.take(change, concerns) {
            self.notify_subscriber(change.method, &id, &change.params);
        }
    }

    /// Sends a notification with raw parameters in the name of a subscription.
    fn notify_subscriber(&self, method: &str, id: &str, params: &str) {
        let member = format!(r#""{}":{id}"#, Era::SUBSCRIPTION);
        let params = with_meta(params, &member);
        self.notify(method, [params.into()]);
    }
}

/// Puts a member into the `_meta` of raw parameters, in place of one of the same name.
fn with_meta(params: &str, member: &str) -> String {
    let Some(object) = Object::parse(params) else {
        return format!(r#"{{"_meta":{{{member}}}}}"#);
    };
    let mut splice = Splice::new(Bytes::copy_from_slice(params.as_bytes()));
    let meta = object.value("_meta").and_then(|raw| Object::parse(raw.get()));
    if let Some((place, meta)) = object.place("_meta").zip(meta) {
        for cut in meta.cuts(&[Era::SUBSCRIPTION]) {
            splice.replace(place.start + cut.start..place.start + cut.end, "");
        }
        let comma = if meta.has_others(&[Era::SUBSCRIPTION]) {
            ","
        } else {
            ""
        };
        let at = place.start + meta.front();
        splice.replace(at..at, format!("{member}{comma}"));
    } else {
        let comma = if object.is_empty() { "" } else { "," };
        splice.replace(
            object.front()..object.front(),
            format!(r#""_meta":{{{member}}}{comma}"#),
        );
    }
    splice.into_text()
}

/// Reads which resources a Modern subscription wants to hear of.
fn resources(params: Option<&Payload<'_>>) -> Vec<String> {
    let mut resources: Vec<String> = params
        .and_then(Payload::object)
        .and_then(|params| Object::parse(params.value("notifications")?.get()))
        .and_then(|filter| serde_json::from_str(filter.value(RESOURCES)?.get()).ok())
        .unwrap_or_default();
    resources.truncate(WATCHED);
    resources.retain(|uri| check_uri(uri).is_ok());
    resources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_is_named_and_everything_else_stays() {
        let member = format!(r#""{}":7"#, Era::SUBSCRIPTION);
        for (params, expected) in [
            ("{}", r#"{"_meta":{ID}}"#),
            (r#"{ "uri":"a" }"#, r#"{"_meta":{ID}, "uri":"a" }"#),
            (
                r#"{"uri":"a","_meta":{"x":1.0}}"#,
                r#"{"uri":"a","_meta":{ID,"x":1.0}}"#,
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":1, "x":1.0}}"#,
                r#"{"_meta":{ID,"x":1.0}}"#,
            ),
        ] {
            assert_eq!(with_meta(params, &member), expected.replace("ID", &member));
        }
    }
}
