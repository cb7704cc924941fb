//! The trait of a store of workflows, and the rules that every store keeps.
//!
//! A store is shared by processes and blocks; `keeper` gives it a thread. Each move is one transaction: read the
//! workflow, call the pure state machine, write the new state. So the promises of the state machine hold among threads
//! and processes: one first answer, one taker.

use std::time::Duration;

use super::{
    Answer, Approvals, ApprovedLaunch, ChannelReport, CreationReport, Delivery, Event, FoundContent,
    LastCheck, NewWorkflow, Phase, Provenance, State, SweepReport, Timestamp, ToolExpectation, Workflow,
    WorkflowError, WorkflowId,
};
use crate::config::ChannelName;
use crate::protocol::{DependencyName, Digest, LaunchApproval, Shown};

/// How long an answer is left to the call that waits for it. It takes its answer within a few hundredths of a second;
/// after this it does not wait any more, and an identical call of another conversation may have the answer.
pub(super) const OWNERS_TURN: Duration = Duration::from_secs(2);

/// Finished workflows are kept this long past their deadline, so that a late answer is told what happened.
pub(super) const KEPT_AFTER_DEADLINE: Duration = Duration::from_hours(24);

/// What is to be known of a workflow that was neither taken nor ended, to watch over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// Its name.
    pub id: WorkflowId,
    /// Its deadline.
    pub expires_at: Timestamp,
    /// Whether the store holds arguments for it.
    pub arguments: HeldArguments,
}

/// Whether the store holds the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldArguments {
    /// It does, until the call is taken or ends.
    Held,
    /// There are none.
    None,
}

/// What changed after a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedWorkflows {
    /// These workflows, the newest change last.
    These {
        /// The revision up to which this tells everything.
        latest: u64,
        /// The workflows as they are now.
        workflows: Vec<Workflow>,
    },
    /// It cannot be told: workflows that changed since have been deleted. Everything must be read anew.
    ReadAnew,
}

/// Where workflows are kept, shared by every pml process that opens the same place; blocking.
pub trait Store: Send {
    /// Suspends a call, or returns the workflow that already asks the very same in this conversation.
    ///
    /// An identical call that was answered, and whose answer no call has taken, comes before both.
    fn create(&mut self, new: NewWorkflow, now: Timestamp) -> Result<CreationReport, WorkflowError>;

    /// Moves a workflow by one event.
    ///
    /// Only the one who takes a call gets its arguments; every other final state comes without them.
    fn apply(&mut self, id: WorkflowId, event: Event, now: Timestamp) -> Result<Workflow, WorkflowError>;

    /// Records an answer and what it approves, both or neither.
    fn answer(
        &mut self,
        id: WorkflowId,
        given: RecordedAnswer,
        now: Timestamp,
    ) -> Result<Workflow, WorkflowError>;

    /// Answers a workflow and, if that is an approval, takes its call and records what it approves, all at once.
    ///
    /// Where the very same approval came before, the call is taken under that one; another one that came before is
    /// an error. A refusal is recorded and takes nothing.
    fn answer_and_take(
        &mut self,
        id: WorkflowId,
        expected: &ToolExpectation,
        given: RecordedAnswer,
        now: Timestamp,
    ) -> Result<Workflow, WorkflowError>;

    /// Takes note that no call waits for the answer to a workflow any more.
    fn leave_unattended(&mut self, id: WorkflowId) -> Result<(), WorkflowError>;

    /// Finds a workflow by its id.
    fn find(&self, id: WorkflowId) -> Result<Workflow, WorkflowError>;

    /// Finds the one workflow a person means by a code or by the beginning of an id.
    ///
    /// A live workflow is meant before a finished one; several of a kind are refused.
    fn find_by_code_or_prefix(&self, text: &str) -> Result<Workflow, WorkflowError>;

    /// Lists what waits for an answer, the oldest first.
    fn pending(&self, now: Timestamp) -> Result<Vec<Workflow>, WorkflowError>;

    /// Lists every workflow that is still kept, the newest first.
    fn recent(&self, limit: usize) -> Result<Vec<Workflow>, WorkflowError>;

    /// Returns the revision of the newest change of any workflow.
    fn latest_revision(&self) -> Result<u64, WorkflowError>;

    /// Lists the workflows that changed after a revision, in the order of their changes.
    fn changed_since(&self, revision: u64) -> Result<ChangedWorkflows, WorkflowError>;

    /// Lists every workflow that was neither taken nor ended.
    fn unfinished(&self) -> Result<Vec<Unfinished>, WorkflowError>;

    /// Tells whether a sweep at `now` would end or delete anything; only looks.
    fn needs_sweep(&self, now: Timestamp) -> Result<bool, WorkflowError>;

    /// Ends what is not live at `now` and what is `overdue` by another clock; deletes what finished long ago.
    fn sweep(&mut self, now: Timestamp, overdue: &[WorkflowId]) -> Result<SweepReport, WorkflowError>;

    /// Returns every approval of a launch.
    fn approvals(&mut self) -> Result<Approvals, WorkflowError>;

    /// Records an approval that answers no workflow.
    fn approve_launch(&mut self, approved: &ApprovedLaunch) -> Result<(), WorkflowError>;

    /// Completes an approval that still stands, and returns what it is then; `None` if it was taken back meanwhile.
    fn complete_approval(
        &mut self,
        launch: &Digest,
        found: &FoundContent,
    ) -> Result<Option<LaunchApproval>, WorkflowError>;

    /// Forgets every approval of a dependency, and returns what they were.
    fn forget_approvals(&mut self, dependency: &DependencyName)
    -> Result<Vec<LaunchApproval>, WorkflowError>;

    /// Lists the deliveries of an ask.
    fn deliveries_of(&self, id: WorkflowId) -> Result<Vec<Delivery>, WorkflowError>;

    /// Lists the deliveries to a person on a channel, of every ask that is still kept.
    fn deliveries_to(&self, channel: ChannelName, person: &str) -> Result<Vec<Delivery>, WorkflowError>;

    /// Lists the deliveries that may still be sent or edited.
    fn open_deliveries(&self) -> Result<Vec<Delivery>, WorkflowError>;

    /// Finds the delivery whose message carries a nonce.
    fn pressed_delivery(&self, channel: ChannelName, nonce: &str) -> Result<Option<Delivery>, WorkflowError>;

    /// Records a delivery, in the place of the one that was there; tells whether its ask is still kept.
    fn record_delivery(&mut self, delivery: &Delivery) -> Result<bool, WorkflowError>;

    /// Reports how a channel stands.
    fn report_channel(&mut self, report: &ChannelReport) -> Result<(), WorkflowError>;

    /// Forgets how a channel stands.
    fn forget_channel(&mut self, channel: ChannelName) -> Result<(), WorkflowError>;

    /// Returns how every channel stands, as it was reported last.
    fn channel_reports(&self) -> Result<Vec<ChannelReport>, WorkflowError>;

    /// Tells whether another process has changed anything since this was asked last.
    fn changes(&mut self) -> Result<StoreChanges, WorkflowError>;

    /// Erases what the store itself may still hold of arguments that were erased; gives up at once where another
    /// process is reading.
    fn erase_traces(&self) -> Result<Traces, WorkflowError>;
}

/// An answer as it is recorded.
#[derive(Debug, Clone)]
pub struct RecordedAnswer {
    /// What was answered.
    pub answer: Answer,
    /// On which road it came.
    pub by: Provenance,
    /// The launch that it approves beyond the call it was asked for.
    pub approves: Option<ApprovedLaunch>,
    /// What is asked once more before it is written, where the ask still waits.
    pub check: LastCheck,
}

/// What other processes did to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreChanges {
    /// Nothing.
    None,
    /// They changed something.
    ByOthers,
}

/// What a store may still hold of arguments that were erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traces {
    /// Nothing any more.
    Erased,
    /// As much as before: another process reads at this moment.
    InUse,
}

/// Checks that a continuation on this tool, with this answer, is one to the workflow.
pub(super) fn check_fit(
    workflow: &Workflow,
    expected: &ToolExpectation,
    answer: Option<&Answer>,
) -> Result<(), WorkflowError> {
    match expected {
        ToolExpectation::Tool(tool) if *tool != workflow.call.tool => {
            return Err(WorkflowError::WrongTool {
                code: workflow.code.clone(),
                expected: workflow.call.tool.clone(),
            });
        }
        ToolExpectation::Tool(_) | ToolExpectation::AnyTool => {}
    }
    if answer.is_some_and(|answer| !workflow.ask.takes(answer)) {
        return Err(WorkflowError::Unfit {
            code: workflow.code.clone(),
            wanted: workflow.ask.wants(),
        });
    }
    Ok(())
}

/// Returns what a person may type for a code or for the beginning of an id, as it is looked for.
pub(super) fn typed_name(text: &str) -> Result<String, WorkflowError> {
    let typed = text.trim().to_ascii_lowercase();
    if typed.is_empty() {
        return Err(no_match(text));
    }
    Ok(typed)
}

/// Picks the one workflow a person means among all that match what they typed.
pub(super) fn pick(text: &str, found: Vec<Workflow>) -> Result<Workflow, WorkflowError> {
    let (live, finished): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|workflow| workflow.state.phase() != Phase::Final);
    let mut meant = if live.is_empty() { finished } else { live };
    match (meant.pop(), meant.len()) {
        (None, _) => Err(no_match(text)),
        (Some(workflow), 0) => Ok(workflow),
        (Some(_), others) => Err(WorkflowError::Ambiguous {
            text: Shown::line(text).to_string(),
            matches: others + 1,
        }),
    }
}

fn no_match(text: &str) -> WorkflowError {
    WorkflowError::NoMatch {
        text: Shown::line(text).to_string(),
    }
}

/// Tells whether an answer may be taken by an identical call of another conversation, though its own call waits.
#[must_use]
pub fn is_left_by_its_owner(workflow: &Workflow, now: Timestamp) -> bool {
    match &workflow.state {
        State::Answered { at, .. } => at.plus(OWNERS_TURN) <= now,
        State::Pending | State::Taken { .. } | State::Expired | State::Withdrawn => false,
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod processes;
