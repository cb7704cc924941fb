//! The requests under way: each id is answered once, and cancelling one ends its work.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

/// More than any client has calls for; a client in a loop is told so instead of filling memory.
const LIMIT: usize = 10_000;

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// A request with this id is under way.
    Duplicate,
    /// Too many requests are under way.
    TooMany,
}

/// Something that answers a request and can be cancelled.
pub(crate) trait Cancel: Send + Sync {
    /// Ends it because the client no longer wants the answer; `notice` are the raw parameters of its cancellation.
    fn cancel(&self, notice: Option<&str>);
}

/// What cancelling a request ends.
enum Work {
    /// It is being answered right now.
    Immediate,
    /// A task works on it.
    Task(CancellationToken),
    /// A server works on it.
    Call(Weak<dyn Cancel>),
}

impl Work {
    /// `notice` are the raw parameters of the client's cancellation.
    fn cancel(self, notice: Option<&str>) {
        match self {
            Self::Immediate => {}
            Self::Task(token) => token.cancel(),
            Self::Call(call) => {
                if let Some(call) = call.upgrade() {
                    call.cancel(notice);
                }
            }
        }
    }
}

/// What is under way, by the raw id. Ids are the client's, so they are hashed with a seed of this process.
type ById = HashMap<Arc<str>, Work, foldhash::fast::RandomState>;

/// The requests under way; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<ById>>);

impl Requests {
    /// Takes a request under its raw id.
    pub(crate) fn begin(&self, id: &str) -> Result<UnderWay, NotTaken> {
        let mut requests = self.lock();
        let room = requests.len() < LIMIT;
        match requests.entry(Arc::from(id)) {
            Entry::Occupied(_) => Err(NotTaken::Duplicate),
            Entry::Vacant(_) if !room => Err(NotTaken::TooMany),
            Entry::Vacant(free) => {
                let id = Arc::clone(free.key());
                free.insert(Work::Immediate);
                Ok(UnderWay {
                    requests: self.clone(),
                    id,
                })
            }
        }
    }

    /// Cancels a request; one that is not under way is none of our business.
    pub(crate) fn cancel(&self, id: &str, notice: &str) {
        let work = self
            .lock()
            .get_mut(id)
            .map(|work| std::mem::replace(work, Work::Immediate));
        if let Some(work) = work {
            work.cancel(Some(notice));
        }
    }

    /// Cancels every request.
    pub(crate) fn cancel_all(&self) {
        let works: Vec<Work> = self
            .lock()
            .values_mut()
            .map(|work| std::mem::replace(work, Work::Immediate))
            .collect();
        for work in works {
            work.cancel(None);
        }
    }

    /// Tells whether no request is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, ById> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request under way; its id is free again when this is dropped.
pub(crate) struct UnderWay {
    requests: Requests,
    pub(crate) id: Arc<str>,
}

impl UnderWay {
    /// Returns a token that cancelling the request cancels.
    pub(crate) fn cancelled(&self) -> CancellationToken {
        let token = CancellationToken::new();
        self.set(Work::Task(token.clone()));
        token
    }

    /// Says that cancelling the request cancels a call from now on.
    pub(crate) fn answered_by(&self, call: Weak<dyn Cancel>) {
        self.set(Work::Call(call));
    }

    fn set(&self, work: Work) {
        if let Some(place) = self.requests.lock().get_mut(&self.id) {
            *place = work;
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.requests.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_once_until_it_is_answered() {
        let requests = Requests::default();
        let first = requests.begin("1").unwrap();
        let cancelled = first.cancelled();
        assert_eq!(requests.begin("1").err(), Some(NotTaken::Duplicate));
        assert!(requests.begin("\"1\"").is_ok());
        requests.cancel("2", "{}");
        assert!(!cancelled.is_cancelled());
        requests.cancel("1", "{}");
        assert!(cancelled.is_cancelled());
        drop(first);
        assert!(requests.begin("1").is_ok());
        assert!(requests.is_empty());
    }

    #[test]
    fn a_flood_of_requests_has_an_end() {
        let requests = Requests::default();
        let taken: Vec<_> = (0..LIMIT)
            .map(|id| requests.begin(&id.to_string()).unwrap_or_else(|_| panic!("{id}")))
            .collect();
        assert_eq!(requests.begin("more").err(), Some(NotTaken::TooMany));
        drop(taken);
    }
}
