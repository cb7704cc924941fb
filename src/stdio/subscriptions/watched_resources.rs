//! What the client wants to hear of: resources it watches, messages it logs, lists that change.
//!
//! It is kept here for the life of the conversation, so that a dependency that is started again is told again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::protocol::{DependencyName, Object, Payload};
use crate::proxy::{Route, Session};
use crate::stdio::conversation::Conversation;
use crate::stdio::era::{Era, Fault};
use crate::stdio::present::{self, Answer};
use crate::stdio::translation::request::Method;

/// The levels of a log, as MCP has them.
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// How a Legacy dependency is told what to log.
const SET_LEVEL: &str = "logging/setLevel";

/// What a client wants to hear of.
#[derive(Default)]
pub(crate) struct Watching(Mutex<Wishes>);

#[derive(Default)]
struct Wishes {
    /// Watched resources: whose they are and what it calls them, and what the client calls them.
    resources: BTreeMap<(DependencyName, String), Names>,
    /// The raw parameters of the last `logging/setLevel`.
    level: Option<String>,
    /// Whether a Modern request asked for log messages.
    messages: bool,
}

/// The names under which the client watches a resource, and how many requests for each were not taken back: one that
/// came to nothing takes nothing from the others.
type Names = BTreeMap<String, usize>;

/// Whether a resource is still watched, perhaps by another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Watched,
    Unwatched,
}

impl Watching {
    fn lock(&self) -> MutexGuard<'_, Wishes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether anything of a dependency is watched.
    pub(crate) fn watches(&self, dependency: &DependencyName) -> bool {
        self.lock().resources.keys().any(|(owner, _)| owner == dependency)
    }
}

impl Conversation {
    /// Takes note that a request of the client watches a resource under this name.
    pub(crate) fn watch(&self, route: &Route, name: String) {
        let mut wishes = self.0.watching.lock();
        *wishes
            .resources
            .entry(key(route))
            .or_default()
            .entry(name)
            .or_default() += 1;
    }

    /// Takes note that a request to watch a resource came to nothing.
    pub(crate) fn take_back(&self, route: &Route, name: &str) {
        self.change(route, |names| {
            if let Some(requests) = names.get_mut(name) {
                *requests -= 1;
            }
            names.retain(|_, requests| *requests > 0);
        });
    }

    /// Takes note that the client no longer watches a resource under this name.
    pub(crate) fn forget(&self, route: &Route, name: &str) -> Left {
        self.change(route, |names| names.retain(|other, _| other != name))
    }

    fn change(&self, route: &Route, change: impl FnOnce(&mut Names)) -> Left {
        let mut wishes = self.0.watching.lock();
        let Entry::Occupied(mut names) = wishes.resources.entry(key(route)) else {
            return Left::Unwatched;
        };
        change(names.get_mut());
        if names.get().is_empty() {
            names.remove();
            return Left::Unwatched;
        }
        Left::Watched
    }

    /// Returns what is watched at a dependency, as it calls it.
    pub(crate) fn watched_at(&self, dependency: &DependencyName) -> Vec<String> {
        let wishes = self.0.watching.lock();
        let watched = wishes.resources.keys().filter(|(owner, _)| owner == dependency);
        watched.map(|(_, uri)| uri.clone()).collect()
    }

    /// Tells a dependency that was just opened what the client wanted of it before.
    pub(crate) fn restore(&self, session: &Session) {
        if session.era() == Era::Modern {
            let (conversation, session) = (self.clone(), session.clone());
            self.spawn(async move { conversation.listen_at(&session).await });
            return;
        }
        let wishes = self.0.watching.lock();
        let level = wishes.level.clone();
        drop(wishes);
        if let Some(level) = level {
            session.send_and_forget(SET_LEVEL, &level);
        }
        for uri in self.watched_at(session.dependency()) {
            session.send_and_forget(Method::Subscribe.name(), &json!({ "uri": uri }).to_string());
        }
    }

    /// Answers `logging/setLevel`: every dependency is told, now or when it is opened.
    pub(crate) fn set_level(&self, params: Option<&Payload<'_>>) -> Answer {
        let level = params
            .and_then(Payload::object)
            .and_then(|object| object.text("level"));
        let Some(params) =
            params.filter(|_params| level.is_some_and(|level| LEVELS.contains(&level.as_ref())))
        else {
            let reason = format!("`params.level` is one of {}", LEVELS.join(", "));
            return Fault::new(Fault::INVALID_PARAMS, reason).into();
        };
        self.tell_level(params.get());
        present::own_result(json!({}), Era::Legacy)
    }

    /// Returns the members of a Modern `_meta` that speak for a Legacy client.
    pub(crate) fn envelope(&self) -> String {
        let mut members = self.declared().envelope();
        if let Some(level) = self.level() {
            let _ = write!(members, r#","{}":{level}"#, Era::LOG_LEVEL);
        }
        members
    }

    /// Returns the level a Legacy client wants to hear of.
    fn level(&self) -> Option<Value> {
        let params = self.0.watching.lock().level.clone()?;
        let object = Object::parse(&params)?;
        object.text("level").map(|level| json!(level))
    }

    /// Takes note of the log level that a Modern request asks for; `level` is raw.
    pub(crate) fn hears_messages(&self, level: &str) {
        let params = format!(r#"{{"level":{level}}}"#);
        let known = {
            let mut wishes = self.0.watching.lock();
            wishes.messages = true;
            wishes.level.as_ref() == Some(&params)
        };
        if !known {
            self.tell_level(&params);
        }
    }

    /// Tells every Legacy dependency that runs which messages are wanted; others are told when they are opened.
    fn tell_level(&self, params: &str) {
        self.0.watching.lock().level = Some(params.to_owned());
        for session in self.0.proxy.sessions() {
            if session.era() == Era::Legacy {
                session.send_and_forget(SET_LEVEL, params);
            }
        }
    }

    /// Stops watching resources that the client knows by these names; what a Legacy dependency says to it is nobody's.
    pub(crate) async fn unwatch(&self, names: &[String]) {
        let mut unwatched: BTreeMap<DependencyName, Vec<String>> = BTreeMap::new();
        self.0.watching.lock().resources.retain(|(owner, uri), watched| {
            watched.retain(|name, _| !names.contains(name));
            let stays = !watched.is_empty();
            if !stays {
                unwatched.entry(owner.clone()).or_default().push(uri.clone());
            }
            stays
        });
        for session in self.0.proxy.sessions() {
            match (unwatched.get(session.dependency()), session.era()) {
                (None, _) => {}
                (Some(_), Era::Modern) => self.listen_at(&session).await,
                (Some(uris), Era::Legacy) => {
                    for uri in uris {
                        session
                            .send_and_forget(Method::Unsubscribe.name(), &json!({ "uri": uri }).to_string());
                    }
                }
            }
        }
    }

    /// Tells whether log messages go to the client: a Modern one asks for them.
    pub(crate) fn wants_messages(&self) -> bool {
        self.is_legacy() || self.0.watching.lock().messages
    }

    /// Passes on that a resource changed, under each name the client knows it by.
    pub(crate) fn updated(&self, session: &Session, line: &Bytes, params: Option<&Payload<'_>>) {
        let Some((params, object)) = params.and_then(|params| Some((params, params.object()?))) else {
            return;
        };
        let Some((uri, place)) = object.text("uri").zip(object.place("uri")) else {
            return;
        };
        let key = (session.dependency().clone(), uri.into_owned());
        let names = self.0.watching.lock().resources.get(&key).cloned();
        // What lies below a watched resource has no name but its own.
        let names = names.unwrap_or_else(|| Names::from([(key.1.clone(), 0)]));
        for name in names.into_keys() {
            let mut splice = self.passed(session, line, params);
            if name != key.1 {
                splice.replace(place.clone(), json!(name).to_string());
            }
            if self.is_legacy() {
                self.notify("notifications/resources/updated", splice.into_parts());
            } else {
                self.tell_subscribers(&name, splice.into_text());
            }
        }
    }
}

fn key(route: &Route) -> (DependencyName, String) {
    (route.tool.dependency().clone(), route.own.clone())
}
