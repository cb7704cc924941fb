//! The open `subscriptions/listen` requests of a Modern client, and what each of them wants to hear of.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::{Map, json};

use crate::protocol::{ListKind, Object, Payload, Splice, check_uri};
use crate::stdio::client::link::Link;
use crate::stdio::era::Era;

/// How many changes are held for a subscription that is not acknowledged: more than there are in so short a time.
const HELD: usize = 1000;

/// How many resources one subscription may name: each is looked for among all that servers list. The client is told
/// which of them are watched.
const WATCHED: usize = 1000;

/// The member of a filter that names resources.
pub(super) const RESOURCES: &str = "resourceSubscriptions";

/// One `subscriptions/listen` that is open.
#[derive(Debug)]
struct Listener {
    /// Its raw id.
    id: String,
    kinds: Vec<ListKind>,
    /// The resources it wants to hear of, as the client calls them.
    resources: Vec<String>,
    stage: Stage,
}

/// How far a subscription is.
#[derive(Debug)]
enum Stage {
    /// It is not acknowledged yet. Its acknowledgement is the first that it is sent, so what changes meanwhile is held.
    Opening(Vec<Change>),
    Open,
}

/// A notification, with its raw parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    method: &'static str,
    params: String,
}

/// The open subscriptions of a Modern client.
#[derive(Debug, Default)]
pub(super) struct Listeners(Mutex<Vec<Listener>>);

impl Listeners {
    /// Opens a subscription, which hears of changes from now on; returns the resources it wants to watch.
    pub(super) fn open(&self, id: &str, params: Option<&Payload<'_>>) -> Vec<String> {
        let resources = resources(params);
        self.lock().push(Listener {
            id: id.to_owned(),
            kinds: wishes(params),
            resources: resources.clone(),
            stage: Stage::Opening(Vec::new()),
        });
        resources
    }

    /// Tells a client what it is subscribed to, and what it missed meanwhile.
    pub(super) fn acknowledge(&self, link: &Link, id: &str, resources: &[String]) {
        let mut granted = Map::new();
        let mut held = Vec::new();
        if let Some(ours) = self.lock().iter_mut().find(|ours| ours.id == id) {
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
        send(link, "notifications/subscriptions/acknowledged", id, &params);
        for Change { method, params } in held {
            send(link, method, id, &params);
        }
    }

    /// Ends a subscription; returns the resources that no other one watches.
    pub(super) fn end(&self, id: &str) -> Vec<String> {
        let mut ours = self.lock();
        let place = ours.iter().position(|other| other.id == id);
        let ended = place.map(|place| ours.swap_remove(place));
        let watched = |uri: &String| ours.iter().any(|other| other.resources.contains(uri));
        let resources = ended.map(|ended| ended.resources).unwrap_or_default();
        resources.into_iter().filter(|uri| !watched(uri)).collect()
    }

    /// Notifies the subscriptions that a list has changed.
    pub(super) fn list_changed(&self, link: &Link, kind: ListKind) {
        let (method, params) = (kind.list_changed(), "{}".to_owned());
        self.notify(link, &Change { method, params }, |ours| {
            ours.kinds.contains(&kind)
        });
    }

    /// Notifies the subscriptions that a resource has changed; `params` are the raw parameters.
    pub(super) fn resource_updated(&self, link: &Link, uri: &str, params: String) {
        let method = "notifications/resources/updated";
        self.notify(link, &Change { method, params }, |ours| {
            // A change below a watched address is reported under its own.
            let wanted = |watched: &String| uri == watched || uri.starts_with(&format!("{watched}/"));
            ours.resources.iter().any(wanted)
        });
    }

    fn notify(&self, link: &Link, change: &Change, concerns: impl Fn(&Listener) -> bool) {
        let mut notified = Vec::new();
        for listener in self.lock().iter_mut().filter(|ours| concerns(ours)) {
            match &mut listener.stage {
                Stage::Open => notified.push(listener.id.clone()),
                Stage::Opening(held) if held.len() < HELD && !held.contains(change) => {
                    held.push(change.clone());
                }
                Stage::Opening(_) => {}
            }
        }
        for id in notified {
            send(link, change.method, &id, &change.params);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a notification with raw parameters in the name of a subscription.
fn send(link: &Link, method: &str, id: &str, params: &str) {
    let member = format!(r#""{}":{id}"#, Era::SUBSCRIPTION);
    let params = with_meta(params, &member);
    link.notify(method, [params.into()]);
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

/// Reads which changed lists a Modern subscription wants to hear of.
fn wishes(params: Option<&Payload<'_>>) -> Vec<ListKind> {
    let filter = params
        .and_then(Payload::object)
        .and_then(|params| params.value("notifications"))
        .and_then(|filter| Object::parse(filter.get()));
    let wanted = |kind: &ListKind| {
        let wish = filter.as_ref().and_then(|filter| filter.value(kind.wish()));
        wish.is_some_and(|wish| wish.get() == "true")
    };
    ListKind::ALL.into_iter().filter(wanted).collect()
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

    #[test]
    fn a_subscription_gets_what_it_wishes_of_the_lists() {
        let params = Payload::parse(
            r#"{"notifications":{"promptsListChanged":true,"toolsListChanged":false,"x":true}}"#,
        )
        .unwrap();
        assert_eq!(wishes(Some(&params)), [ListKind::Prompts]);
        assert_eq!(wishes(None), []);
    }
}
