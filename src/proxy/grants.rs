//! The grants of a person that last as long as this process.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::protocol::{Digest, ToolName};
use crate::workflow::WorkflowId;

/// Grants that end with the process.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    /// The tools that run without a question, each as it was launched when that was granted.
    tools: Mutex<HashSet<(ToolName, Digest)>>,
    launches: Mutex<HashSet<Digest>>,
    /// The decisions whose consequences are being written down: how many calls do so, and who waits for the last.
    granting: Mutex<HashMap<WorkflowId, (usize, CancellationToken)>>,
}

impl Grants {
    /// Says that a decision is about to be carried out; it is once this is dropped.
    pub(crate) fn granting(self: &Arc<Self>, id: WorkflowId) -> GrantInProgress {
        let mut granting = lock(&self.granting);
        let (calls, _) = granting
            .entry(id)
            .or_insert_with(|| (0, CancellationToken::new()));
        *calls += 1;
        GrantInProgress {
            grants: Arc::clone(self),
            id,
        }
    }

    /// Waits until a decision is carried out; at once if no call is about to.
    pub(crate) async fn settled(&self, id: WorkflowId) {
        let token = lock(&self.granting).get(&id).map(|(_, token)| token.clone());
        if let Some(token) = token {
            token.cancelled().await;
        }
    }

    /// Lets a tool run without a further question, as long as it is launched like this.
    pub(crate) fn allow_tool(&self, tool: ToolName, launch: Digest) {
        lock(&self.tools).insert((tool, launch));
    }

    /// Lets a dependency run as it was shown.
    pub(crate) fn allow_launch(&self, launch: Digest) {
        lock(&self.launches).insert(launch);
    }

    pub(crate) fn allows_tool(&self, tool: &ToolName, launch: &Digest) -> bool {
        let tools = lock(&self.tools);
        // Most processes grant nothing for a session: the key is then not even built.
        !tools.is_empty() && tools.contains(&(tool.clone(), launch.clone()))
    }

    /// Tells whether any tool was granted for something that is launched like this.
    pub(crate) fn allows_any_tool(&self, launch: &Digest) -> bool {
        lock(&self.tools).iter().any(|(_, granted)| granted == launch)
    }

    pub(crate) fn allows_launch(&self, launch: &Digest) -> bool {
        lock(&self.launches).contains(launch)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A decision that is being carried out.
#[derive(Debug)]
pub(crate) struct GrantInProgress {
    grants: Arc<Grants>,
    id: WorkflowId,
}

impl Drop for GrantInProgress {
    fn drop(&mut self) {
        let mut granting = lock(&self.grants.granting);
        let Some((calls, _)) = granting.get_mut(&self.id) else {
            return;
        };
        *calls -= 1;
        if *calls == 0
            && let Some((_, token)) = granting.remove(&self.id)
        {
            token.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_continuation_does_not_make_the_first_wait_for_ever() {
        let grants = Arc::<Grants>::default();
        let id = WorkflowId::new(uuid::Uuid::new_v4());
        let first = grants.granting(id);
        let waiting = grants.settled(id);
        tokio::pin!(waiting);
        let second = grants.granting(id);
        drop(first);
        assert!(
            tokio::time::timeout(std::time::Duration::ZERO, &mut waiting)
                .await
                .is_err(),
            "the second still writes"
        );
        drop(second);
        waiting.await;
        grants.settled(id).await;
    }

    #[test]
    fn a_tool_is_granted_as_it_is_launched() {
        let grants = Grants::default();
        let tool: ToolName = "fake:echo".parse().unwrap();
        grants.allow_tool(tool.clone(), Digest::of(["one"]));
        assert!(grants.allows_tool(&tool, &Digest::of(["one"])));
        assert!(!grants.allows_tool(&tool, &Digest::of(["two"])));
    }
}
