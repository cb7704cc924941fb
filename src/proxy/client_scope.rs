//! The scope of one client's conversation: the name under which it asks, and the asks that its calls wait for.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::presence;
use crate::workflow::{Asker, ProcessName, WorkflowId};

/// One client's conversation, as far as asking is concerned.
#[derive(Debug)]
pub(super) struct ClientScope {
    asker: Asker,
    /// This process, read from the process table by the first ask.
    process: OnceLock<Option<ProcessName>>,
    awaited: Mutex<HashSet<WorkflowId>>,
}

impl ClientScope {
    /// Begins a conversation that has asked nothing yet.
    #[must_use]
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            asker: Asker::random(),
            process: OnceLock::new(),
            awaited: Mutex::default(),
        })
    }

    /// Returns the name under which the conversation asks.
    #[must_use]
    pub(super) fn asker(&self) -> Asker {
        self.asker
    }

    /// Returns the process that serves the conversation.
    #[must_use]
    pub(super) fn process(&self) -> Option<ProcessName> {
        *self.process.get_or_init(presence::own_process)
    }

    /// Claims an ask for one call; `None` while another call waits for its answer.
    #[must_use]
    pub(super) fn claim(self: &Arc<Self>, id: WorkflowId) -> Option<Claim> {
        self.lock().insert(id).then(|| Claim {
            scope: Arc::clone(self),
            id,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<WorkflowId>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right of one call to the answer of an ask; free again when it is dropped.
#[derive(Debug)]
pub struct Claim {
    scope: Arc<ClientScope>,
    id: WorkflowId,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.scope.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ask_is_claimed_by_one_call_at_a_time() {
        let scope = ClientScope::new();
        let id = WorkflowId::new(uuid::Uuid::new_v4());
        let first = scope.claim(id);
        assert!(first.is_some());
        assert!(scope.claim(id).is_none());
        assert!(
            ClientScope::new().claim(id).is_some(),
            "another conversation has claims of its own"
        );
        drop(first);
        assert!(scope.claim(id).is_some());
    }
}
