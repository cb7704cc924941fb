//! The resources that a client watches: whose they are, and the names by which the client knows them.
//!
//! They are kept for the life of the conversation, so that a server that is started again is told again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::DependencyName;
use crate::proxy::Route;

/// A resource: its server, and what the server calls it.
type Resource = (DependencyName, String);

/// The names under which the client watches a resource, and how many requests for each were not taken back: one that
/// came to nothing takes nothing from the others.
type Names = BTreeMap<String, usize>;

/// Whether a resource is still watched, perhaps by another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchStatus {
    Watched,
    Unwatched,
}

/// The resources that a client watches.
#[derive(Default)]
pub(super) struct WatchedResources(Mutex<BTreeMap<Resource, Names>>);

impl WatchedResources {
    /// Takes note that a request of the client watches a resource under this name.
    pub(super) fn add(&self, route: &Route, name: String) {
        *self
            .lock()
            .entry(resource(route))
            .or_default()
            .entry(name)
            .or_default() += 1;
    }

    /// Takes note that a request to watch a resource came to nothing.
    pub(super) fn take_back(&self, route: &Route, name: &str) {
        self.change(route, |names| {
            if let Some(requests) = names.get_mut(name) {
                *requests -= 1;
            }
            names.retain(|_, requests| *requests > 0);
        });
    }

    /// Takes note that the client no longer watches a resource under this name.
    pub(super) fn remove(&self, route: &Route, name: &str) -> WatchStatus {
        self.change(route, |names| names.retain(|other, _| other != name))
    }

    fn change(&self, route: &Route, change: impl FnOnce(&mut Names)) -> WatchStatus {
        let mut watched = self.lock();
        let Entry::Occupied(mut names) = watched.entry(resource(route)) else {
            return WatchStatus::Unwatched;
        };
        change(names.get_mut());
        if names.get().is_empty() {
            names.remove();
            return WatchStatus::Unwatched;
        }
        WatchStatus::Watched
    }

    /// Stops watching what the client knows by these names; returns what is no longer watched, by server.
    pub(super) fn remove_all(&self, names: &[String]) -> BTreeMap<DependencyName, Vec<String>> {
        let mut unwatched: BTreeMap<DependencyName, Vec<String>> = BTreeMap::new();
        self.lock().retain(|(owner, uri), watched| {
            watched.retain(|name, _| !names.contains(name));
            let stays = !watched.is_empty();
            if !stays {
                unwatched.entry(owner.clone()).or_default().push(uri.clone());
            }
            stays
        });
        unwatched
    }

    /// Tells whether anything of a server is watched.
    pub(super) fn has_any_of(&self, server: &DependencyName) -> bool {
        self.lock().keys().any(|(owner, _)| owner == server)
    }

    /// Returns what is watched at a server, as the server calls it.
    pub(super) fn at(&self, server: &DependencyName) -> Vec<String> {
        let watched = self.lock();
        let watched = watched.keys().filter(|(owner, _)| owner == server);
        watched.map(|(_, uri)| uri.clone()).collect()
    }

    /// Returns the names by which the client knows a resource. What lies below a watched one has only its own.
    pub(super) fn names(&self, server: &DependencyName, uri: &str) -> Vec<String> {
        let key = (server.clone(), uri.to_owned());
        match self.lock().get(&key) {
            Some(names) => names.keys().cloned().collect(),
            None => vec![key.1],
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Resource, Names>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn resource(route: &Route) -> Resource {
    (route.tool.dependency().clone(), route.own.clone())
}
