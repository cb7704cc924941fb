//! Calls that wait for a Modern client to come back: by the state it was given, for a while, once.
//!
//! What a client brings back is its own word: the state only finds a call, and the call must be the very same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::open_call::OpenCall;

/// More calls than a person can have forms open for; the oldest goes first.
const LIMIT: usize = 1000;

/// What a client brings back in `requestState`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// A call that goes on at a Legacy dependency.
    Parked(Uuid),
    /// A question of a Modern dependency, with the dependency's own state.
    Owned(Uuid, Option<String>),
    /// A question of pml's own.
    Own(String),
}

impl State {
    /// Reads a state; what is neither form of pml's is taken for the id of a workflow.
    pub(super) fn read(text: &str) -> Self {
        let parked = || Some(Self::Parked(text.strip_prefix("parked.")?.parse().ok()?));
        let owned = || {
            let rest = text.strip_prefix("owned.")?;
            let (id, state) = match rest.split_once('.') {
                Some((id, state)) => (id, Some(state.to_owned())),
                None => (rest, None),
            };
            Some(Self::Owned(id.parse().ok()?, state))
        };
        parked()
            .or_else(owned)
            .unwrap_or_else(|| Self::Own(text.to_owned()))
    }

    /// Writes it down.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Parked(id) => format!("parked.{id}"),
            Self::Owned(id, None) => format!("owned.{id}"),
            Self::Owned(id, Some(state)) => format!("owned.{id}.{state}"),
            Self::Own(text) => text.clone(),
        }
    }
}

/// The calls that wait.
#[derive(Default)]
pub(super) struct Parking(Mutex<Places>);

#[derive(Default)]
struct Places {
    calls: HashMap<Uuid, (u64, Arc<OpenCall>)>,
    next: u64,
}

impl Parking {
    /// Keeps a call; returns what finds it again, and the call that had to make room for it.
    pub(super) fn keep(&self, call: Arc<OpenCall>) -> (Uuid, Option<Arc<OpenCall>>) {
        let id = Uuid::new_v4();
        let mut places = self.lock();
        places.next += 1;
        let at = places.next;
        places.calls.insert(id, (at, call));
        let oldest = if places.calls.len() > LIMIT {
            let oldest = places
                .calls
                .iter()
                .min_by_key(|(_, (at, _))| *at)
                .map(|(id, _)| *id);
            oldest.and_then(|oldest| places.calls.remove(&oldest))
        } else {
            None
        };
        (id, oldest.map(|(_, call)| call))
    }

    /// Puts a call back that was taken for another one.
    pub(super) fn put_back(&self, id: Uuid, call: Arc<OpenCall>) {
        let mut places = self.lock();
        let at = places.next;
        places.calls.insert(id, (at, call));
    }

    /// Takes a call.
    pub(super) fn take(&self, id: Uuid) -> Option<Arc<OpenCall>> {
        self.lock().calls.remove(&id).map(|(_, call)| call)
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let id = Uuid::new_v4();
        for state in [
            State::Parked(id),
            State::Owned(id, None),
            State::Owned(id, Some("a.b\n\"ü".to_owned())),
            State::Owned(id, Some(String::new())),
            State::Own(id.to_string()),
            State::Own("parked.x".to_owned()),
        ] {
            assert_eq!(State::read(&state.text()), state);
        }
    }
}
