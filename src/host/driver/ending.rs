//! The end of a driven run: where it stands then, and what becomes of its asks.

use super::super::error::RunError;
use super::super::line::ToolOutcome;
use super::super::machine::Finish;
use super::super::record::{RunOutcome, RunState};
use super::super::transcript;
use super::{Driver, off_thread};
use crate::proxy::WorkflowId;

impl Driver {
    /// Writes down how the run was left.
    pub(super) async fn settle(&mut self) -> Result<(), RunError> {
        if matches!(self.finish, Some(Finish::Lost | Finish::Left) | None) {
            let (mut record, calls) = (self.record.clone(), std::mem::take(&mut self.resulted));
            self.record = off_thread(move || {
                transcript::take_back(&mut record, &calls);
                record
            })
            .await;
        }
        let failed = self
            .result
            .as_ref()
            .is_some_and(|result| result.outcome == ToolOutcome::Failed);
        let outcome = |outcome| RunState::Ended { outcome };
        let state = match self.finish.take() {
            Some(Finish::Parked { tool_use }) => {
                self.record.put_off = Some(tool_use.clone());
                RunState::Parked { call: tool_use }
            }
            Some(Finish::Stopped) => outcome(RunOutcome::Stopped),
            Some(Finish::Done) if failed => outcome(RunOutcome::Failed),
            Some(Finish::Done) => outcome(RunOutcome::Done),
            // Nothing is asked, so no answer would start it again.
            Some(Finish::Lost) | None if self.record.asks.is_empty() => outcome(RunOutcome::Failed),
            // It asks for the call again: a message would tell the answer a second time.
            Some(Finish::Lost | Finish::Left) | None => match self.record.open_put_off() {
                Some(call) => RunState::Parked { call: call.clone() },
                None => RunState::Lost,
            },
        };
        let kept: Vec<WorkflowId> = match &state {
            RunState::Ended { .. } => Vec::new(),
            _ => self.record.asks.iter().map(|ask| ask.workflow).collect(),
        };
        for ask in std::mem::take(&mut self.waiting).into_values() {
            let id = ask.workflow.id;
            if kept.contains(&id) {
                self.asks.leave(id).await;
            } else {
                self.asks.withdraw(id).await;
            }
        }
        self.record.asks.retain(|ask| kept.contains(&ask.workflow));
        self.stand(state).await
    }
}
