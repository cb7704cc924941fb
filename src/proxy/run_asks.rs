//! What other processes ask in the run that this one hosts.

use tokio::sync::watch;

use super::{Proxy, Refusal, now};
use crate::permissions::{AskKind, Ruling};
use crate::protocol::{DependencyName, ToolName};
use crate::workflow::Workflow;

impl Proxy {
    /// Tells the newest revision of the store, and each newer one for as long as the receiver is kept.
    pub async fn revisions(&self) -> Result<watch::Receiver<u64>, Refusal> {
        Ok(self.0.workflows.revisions().await?)
    }

    /// Lists what waits for a person in the run of this process and was put by another one, the oldest first.
    pub async fn asks_of_this_run(&self) -> Result<Vec<Workflow>, Refusal> {
        let (run, own, now) = (self.run_name(), self.0.scope.process(), now());
        let mut pending = self.0.workflows.pending().await?;
        pending.retain(|workflow| {
            let client = &workflow.origin.client;
            client.run.is_some() && client.run == run && client.process != own && workflow.is_live_at(now)
        });
        Ok(pending)
    }

    /// Tells whether the rules want a person to see every use of one of the client's own tools, which is named as the
    /// client does; `command` is what its shell would run, where the tool is that.
    ///
    /// Fails if a rule denies it.
    pub fn wants_person_for_every(&self, name: &str, command: Option<&str>) -> Result<bool, Refusal> {
        let tool = ToolName::new(DependencyName::client(), name);
        Ok(self.ruling_for_use(&tool, command)? == Ruling::Ask(AskKind::Every))
    }
}
