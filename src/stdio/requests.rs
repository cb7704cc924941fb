//! The requests under way: each id is answered once, and cancelling one ends its work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

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

/// The requests under way; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<HashMap<String, CancellationToken>>>);

impl Requests {
    /// Takes a request under its raw id.
    pub(crate) fn begin(&self, id: &str) -> Result<UnderWay, NotTaken> {
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.contains_key(id) {
            return Err(NotTaken::Duplicate);
        }
        if requests.len() >= LIMIT {
            return Err(NotTaken::TooMany);
        }
        let cancelled = CancellationToken::new();
        requests.insert(id.to_owned(), cancelled.clone());
        Ok(UnderWay {
            requests: self.clone(),
            id: id.to_owned(),
            cancelled,
        })
    }

    /// Cancels a request; one that is not under way is none of our business.
    pub(crate) fn cancel(&self, id: &str) {
        if let Some(cancelled) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            cancelled.cancel();
        }
    }

    /// Cancels every request.
    pub(crate) fn cancel_all(&self) {
        for cancelled in self.0.lock().unwrap_or_else(PoisonError::into_inner).values() {
            cancelled.cancel();
        }
    }

    /// Tells whether no request is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// A request under way; its id is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    requests: Requests,
    pub(crate) id: String,
    pub(crate) cancelled: CancellationToken,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.requests
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_once_until_it_is_answered() {
        let requests = Requests::default();
        let first = requests.begin("1").unwrap();
        assert_eq!(requests.begin("1").unwrap_err(), NotTaken::Duplicate);
        assert!(requests.begin("\"1\"").is_ok());
        requests.cancel("2");
        assert!(!first.cancelled.is_cancelled());
        requests.cancel("1");
        assert!(first.cancelled.is_cancelled());
        drop(first);
        assert!(requests.begin("1").is_ok());
        assert!(requests.is_empty());
    }

    #[test]
    fn a_flood_of_requests_has_an_end() {
        let requests = Requests::default();
        let taken: Vec<_> = (0..LIMIT)
            .map(|id| requests.begin(&id.to_string()).unwrap())
            .collect();
        assert_eq!(requests.begin("more").unwrap_err(), NotTaken::TooMany);
        drop(taken);
    }
}
