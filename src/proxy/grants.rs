//! What a person granted for the life of this process.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

use crate::protocol::{Digest, ToolName};
use crate::workflow::WorkflowId;

/// Grants that end with the process.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    tools: Mutex<HashSet<ToolName>>,
    launches: Mutex<HashSet<Digest>>,
    /// The decisions whose consequences are being written down.
    granting: DashMap<WorkflowId, CancellationToken>,
}

impl Grants {
    /// Says that a decision is about to be carried out; it is once this is dropped.
    pub(crate) fn granting(self: &Arc<Self>, id: WorkflowId) -> Granting {
        self.granting.insert(id, CancellationToken::new());
        Granting {
            grants: Arc::clone(self),
            id,
        }
    }

    /// Waits until a decision is carried out; at once if nobody is about to.
    pub(crate) async fn settled(&self, id: WorkflowId) {
        let token = self.granting.get(&id).map(|token| token.clone());
        if let Some(token) = token {
            token.cancelled().await;
        }
    }

    /// Lets a tool run without a further question.
    pub(crate) fn allow_tool(&self, tool: ToolName) {
        self.tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(tool);
    }

    /// Lets a dependency run as it was shown.
    pub(crate) fn allow_launch(&self, launch: Digest) {
        self.launches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(launch);
    }

    pub(crate) fn allows_tool(&self, tool: &ToolName) -> bool {
        self.tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(tool)
    }

    pub(crate) fn allows_launch(&self, launch: &Digest) -> bool {
        self.launches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(launch)
    }
}

/// A decision that is being carried out.
#[derive(Debug)]
pub(crate) struct Granting {
    grants: Arc<Grants>,
    id: WorkflowId,
}

impl Drop for Granting {
    fn drop(&mut self) {
        if let Some((_, token)) = self.grants.granting.remove(&self.id) {
            token.cancel();
        }
    }
}
