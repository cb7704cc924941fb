//! The end of a driven run: where it stands then, and what becomes of its asks.

use std::collections::BTreeSet;

use super::super::error::RunError;
use super::super::line::{ToolOutcome, TurnResult};
use super::super::machine::{Event, Finish};
use super::super::record::{KeptAsk, RunOutcome, RunState};
use super::super::run_line::AskOutcome;
use super::super::transcript;
use super::{Driver, off_thread};
use crate::proxy::WorkflowId;

impl Driver {
    /// Takes note of the end of a turn: what was asked in it and is not kept for a later process is over.
    pub(super) async fn turn_ended(&mut self, result: TurnResult) -> Result<(), RunError> {
        self.record.cost = result.cost.or(self.record.cost);
        let (deferred, queued) = (result.deferred.clone(), result.queued);
        self.result = Some(result);
        self.step(Event::TurnEnded { deferred, queued }).await?;
        if self.machine.keeps_asks() {
            return Ok(());
        }
        for ask in std::mem::take(&mut self.waiting).into_values() {
            self.over(&ask, AskOutcome::Withdrawn).await?;
            self.withdraw(&ask);
        }
        let open = &self.server_asks;
        let over = |ask: &KeptAsk| !open.contains(&ask.workflow);
        // What a lost process asked, and the person went on without: one that was answered stays so.
        let left: Vec<_> = self.record.asks.iter().filter(|ask| over(ask)).collect();
        for ask in left {
            self.asks.withdraw(ask.workflow).await;
        }
        if self.record.deliver(over) {
            self.save().await?;
        }
        Ok(())
    }

    /// Writes down how the run was left.
    pub(super) async fn settle(&mut self) -> Result<(), RunError> {
        if matches!(self.finish, Some(Finish::Lost) | None) {
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
                self.record.resumed_in_vain = 0;
                self.record.put_off = Some(tool_use.clone());
                RunState::Parked { call: tool_use }
            }
            Some(Finish::Stopped) => outcome(RunOutcome::Stopped),
            Some(Finish::Done) if failed => outcome(RunOutcome::Failed),
            Some(Finish::Done) => outcome(RunOutcome::Done),
            // Nothing is asked, so no answer would start it again; a run that its host left was ended by no fault.
            Some(Finish::Lost) | None if self.record.asks.is_empty() && !self.machine.keeps_asks() => {
                outcome(RunOutcome::Failed)
            }
            // It asks for the call again: a message would tell the answer a second time.
            Some(Finish::Lost) | None => match self.record.open_put_off() {
                Some(call) => RunState::Parked { call: call.clone() },
                None => RunState::Lost,
            },
        };
        let kept: Vec<WorkflowId> = match &state {
            RunState::Ended { .. } => Vec::new(),
            _ => self.record.asks.iter().map(|ask| ask.workflow).collect(),
        };
        let waiting = std::mem::take(&mut self.waiting).into_values();
        let mut open: BTreeSet<WorkflowId> = waiting.map(|ask| ask.workflow.id).collect();
        // Also what an earlier process asked and no person has answered.
        open.extend(self.record.asks.iter().map(|ask| ask.workflow));
        open.append(&mut self.server_asks);
        for id in open {
            if kept.contains(&id) {
                self.asks.leave(id).await;
            } else {
                self.asks.withdraw(id).await;
            }
        }
        if matches!(state, RunState::Ended { .. }) {
            self.tell_unread().await;
        } else {
            self.keep_unread().await;
        }
        self.record.asks.retain(|ask| kept.contains(&ask.workflow));
        self.stand(state).await
    }
}
