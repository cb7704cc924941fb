//! The requests that the transport answered in place of the server, and why.
//!
//! The answer is an error object in the order of the server's own messages; the reason lies beside it, so that the
//! caller gets it as a type.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::end_reason::EndReason;

/// Why requests failed whose error objects are on their way; clones share them.
#[derive(Clone, Default)]
pub(in crate::loader) struct RequestFailures(Arc<Mutex<HashMap<String, EndReason>>>);

impl RequestFailures {
    /// Notes why the request with this raw id has no answer of the server; its error object must follow.
    pub(in crate::loader) fn note(&self, id: &str, reason: EndReason) {
        self.lock().insert(id.to_owned(), reason);
    }

    /// Takes the reason for the error object with this raw id, if the transport made it.
    pub(super) fn take(&self, id: &str) -> Option<EndReason> {
        self.lock().remove(id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, EndReason>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
