//! The store in SQLite: one file that every pml process of the user shares.
//!
//! Every change is one `BEGIN IMMEDIATE` transaction, for which the processes take turns. What a power cut may cost: asks
//! of the last moment and what a sweep marked, never an answer, a taken call, an approval or a withdrawal.
//!
//! Arguments may hold secrets. The file is 0600 in a directory of mode 0700, and the arguments of a row are
//! erased (overwritten, not only forgotten) in the same transaction that makes it final; the taker gets the only
//! copy. The log of SQLite may hold the old bytes until [`Store::erase_traces`] or the last process leaves.
//!
//! A broken file is reported, never repaired, replaced or deleted.

mod approvals;
mod capacity;
mod deliveries;
mod durability;
mod log;
mod look;
mod old_approvals;
mod row;
mod schema;
mod suspension;
mod sweep;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use durability::CommitDurability;
use look::one;
use schema::database_error;

use super::machine::{self, Event, Phase, State};
use super::store::{ChangedWorkflows, RecordedAnswer, Store, StoreChanges, Traces, Unfinished, check_fit};
use super::{
    Approvals, ApprovedLaunch, Arguments, ChannelReport, CreationReport, Delivery, FoundContent, LastCheck,
    NewWorkflow, Place, SweepReport, Timestamp, ToolExpectation, TransitionError, Workflow, WorkflowError,
    WorkflowId, lifecycle,
};
use crate::config::ChannelName;
use crate::disk::TurnQueue;
use crate::protocol::{DependencyName, Digest, LaunchApproval};

/// The workflows of the user in a SQLite database.
#[derive(Debug)]
pub(super) struct SqliteStore {
    connection: Connection,
    place: Place,
    /// The order in which processes write; `None` where no other process can.
    turns: Option<TurnQueue>,
    /// What the next commit survives.
    durability: CommitDurability,
    /// What `PRAGMA data_version` said last: it moves when another connection commits.
    version_seen: i64,
}

/// What ends a transaction early.
enum TransactionFault {
    Sql(rusqlite::Error),
    Other(WorkflowError),
}

impl TransactionFault {
    /// Returns the error, that of SQLite in the words of `named`.
    fn named(self, named: impl FnOnce(rusqlite::Error) -> WorkflowError) -> WorkflowError {
        match self {
            Self::Sql(source) => named(source),
            Self::Other(error) => error,
        }
    }
}

impl From<rusqlite::Error> for TransactionFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<WorkflowError> for TransactionFault {
    fn from(error: WorkflowError) -> Self {
        Self::Other(error)
    }
}

impl From<serde_json::Error> for TransactionFault {
    fn from(error: serde_json::Error) -> Self {
        Self::Sql(rusqlite::Error::ToSqlConversionFailure(error.into()))
    }
}

impl SqliteStore {
    /// Opens the database, creating it and bringing its tables up to date where needed.
    pub(super) fn open(place: Place) -> Result<Self, WorkflowError> {
        let connection = schema::open(&place)?;
        let mut store = Self {
            connection,
            turns: schema::turns(&place),
            place,
            durability: CommitDurability::PowerCut,
            version_seen: 0,
        };
        store.changes()?;
        Ok(store)
    }

    /// Lets a test break what only the store may touch.
    #[cfg(test)]
    pub(in crate::workflow) fn execute(&self, statement: &str) {
        self.connection.execute_batch(statement).unwrap();
    }

    /// Returns what a query says, for a test.
    #[cfg(test)]
    pub(in crate::workflow) fn text(&self, query: &str) -> String {
        self.connection.query_row(query, [], |row| row.get(0)).unwrap()
    }

    /// Moves one workflow by what `decide` says of it, in one transaction.
    fn advance_by(
        &mut self,
        id: WorkflowId,
        expected: &ToolExpectation,
        given: Option<&RecordedAnswer>,
        decide: impl FnOnce(&Workflow) -> Result<State, TransitionError>,
    ) -> Result<Workflow, WorkflowError> {
        let place = self.place.clone();
        let (before, workflow) =
            self.write("move a workflow", CommitDurability::PowerCut, |transaction| {
                let workflow =
                    one(transaction, "id = ?1", &id.to_string())?.ok_or(WorkflowError::Unknown { id })?;
                check_fit(&workflow, expected, given.map(|given| &given.answer))?;
                let state = decide(&workflow).map_err(|refusal| WorkflowError::Refused {
                    code: workflow.code.clone(),
                    refusal,
                })?;
                let before = workflow.state.clone();
                if let Some(given) = given {
                    // What was answered before was looked at then.
                    if before == State::Pending {
                        given.check.look(&workflow).map_err(|reason| {
                            let code = workflow.code.clone();
                            WorkflowError::Vetoed { code, reason }
                        })?;
                    }
                    if let Some(ApprovedLaunch { launch, approval }) = &given.approves {
                        approvals::put(transaction, &place, launch, approval)?;
                    }
                }
                Ok((before, advance(transaction, workflow, state)?))
            })?;
        lifecycle::moved(&before, &workflow);
        Ok(workflow)
    }

    /// Runs `body` in one transaction that excludes every other writer from its start.
    fn write<T>(
        &mut self,
        attempted: &'static str,
        durability: CommitDurability,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, TransactionFault>,
    ) -> Result<T, WorkflowError> {
        if self.durability != durability {
            let set = durability.set(&self.connection);
            set.map_err(|source| self.failed(attempted, source))?;
            self.durability = durability;
        }
        // SQLite lets its writers sleep and look again, ever longer: where many write, a few would wait very long.
        let _turn = self.turns.as_ref().map(|turns| turns.wait(schema::BUSY_TIMEOUT));
        let connection = &mut self.connection;
        let run = || -> Result<T, TransactionFault> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = body(&transaction)?;
            if let Err(error) = transaction.commit() {
                schema::overwrite_log(connection);
                return Err(error.into());
            }
            Ok(value)
        };
        run().map_err(|fault| fault.named(|source| self.failed(attempted, source)))
    }

    /// Says what was attempted when SQLite refused.
    fn failed(&self, attempted: &'static str, source: rusqlite::Error) -> WorkflowError {
        database_error(attempted, self.place.path(), source)
    }
}

impl Store for SqliteStore {
    fn create(&mut self, new: NewWorkflow, now: Timestamp) -> Result<CreationReport, WorkflowError> {
        self.suspend(new, now)
    }

    fn apply(&mut self, id: WorkflowId, event: Event, now: Timestamp) -> Result<Workflow, WorkflowError> {
        let given = match &event {
            Event::Answer { answer, by } => Some(RecordedAnswer {
                answer: answer.clone(),
                by: by.clone(),
                approves: None,
                check: LastCheck::none(),
            }),
            Event::Take | Event::Expire | Event::Withdraw => None,
        };
        self.advance_by(id, &ToolExpectation::AnyTool, given.as_ref(), |workflow| {
            machine::transition(&workflow.state, workflow.lifetime(), event, now)
        })
    }

    fn answer(
        &mut self,
        id: WorkflowId,
        given: RecordedAnswer,
        now: Timestamp,
    ) -> Result<Workflow, WorkflowError> {
        self.advance_by(id, &ToolExpectation::AnyTool, Some(&given), |workflow| {
            let event = Event::Answer {
                answer: given.answer.clone(),
                by: given.by.clone(),
            };
            machine::transition(&workflow.state, workflow.lifetime(), event, now)
        })
    }

    fn answer_and_take(
        &mut self,
        id: WorkflowId,
        expected: &ToolExpectation,
        given: RecordedAnswer,
        now: Timestamp,
    ) -> Result<Workflow, WorkflowError> {
        self.advance_by(id, expected, Some(&given), |workflow| {
            let (answer, by) = (given.answer.clone(), given.by.clone());
            machine::answer_and_take(&workflow.state, workflow.lifetime(), answer, by, now)
        })
    }

    fn leave_unattended(&mut self, id: WorkflowId) -> Result<(), WorkflowError> {
        self.write("leave a workflow", CommitDurability::Process, |transaction| {
            transaction.execute(
                "UPDATE workflow SET attended = 0 WHERE id = ?1 AND attended = 1",
                [id.to_string()],
            )?;
            Ok(())
        })
    }

    fn find(&self, id: WorkflowId) -> Result<Workflow, WorkflowError> {
        self.find_workflow(id)
    }

    fn find_by_code_or_prefix(&self, text: &str) -> Result<Workflow, WorkflowError> {
        self.find_named(text)
    }

    fn pending(&self, now: Timestamp) -> Result<Vec<Workflow>, WorkflowError> {
        self.list_pending(now)
    }

    fn recent(&self, limit: usize) -> Result<Vec<Workflow>, WorkflowError> {
        self.list_recent(limit)
    }

    fn latest_revision(&self) -> Result<u64, WorkflowError> {
        self.newest_revision()
    }

    fn changed_since(&self, revision: u64) -> Result<ChangedWorkflows, WorkflowError> {
        self.list_changed(revision)
    }

    fn unfinished(&self) -> Result<Vec<Unfinished>, WorkflowError> {
        self.list_unfinished()
    }

    fn needs_sweep(&self, now: Timestamp) -> Result<bool, WorkflowError> {
        self.rows_to_sweep(now)
    }

    fn sweep(&mut self, now: Timestamp, overdue: &[WorkflowId]) -> Result<SweepReport, WorkflowError> {
        self.sweep_rows(now, overdue)
    }

    fn approvals(&mut self) -> Result<Approvals, WorkflowError> {
        self.read_approvals()
    }

    fn approve_launch(&mut self, approved: &ApprovedLaunch) -> Result<(), WorkflowError> {
        self.record_approval(approved)
    }

    fn complete_approval(
        &mut self,
        launch: &Digest,
        found: &FoundContent,
    ) -> Result<Option<LaunchApproval>, WorkflowError> {
        self.complete_record(launch, found)
    }

    fn forget_approvals(
        &mut self,
        dependency: &DependencyName,
    ) -> Result<Vec<LaunchApproval>, WorkflowError> {
        self.forget_records(dependency)
    }

    fn deliveries_of(&self, id: WorkflowId) -> Result<Vec<Delivery>, WorkflowError> {
        self.list_deliveries("workflow = ?1", &[&id.to_string()])
    }

    fn deliveries_to(&self, channel: ChannelName, person: &str) -> Result<Vec<Delivery>, WorkflowError> {
        self.list_deliveries("channel = ?1 AND person = ?2", &[&channel.key(), &person])
    }

    fn open_deliveries(&self) -> Result<Vec<Delivery>, WorkflowError> {
        self.list_deliveries("state <> 'closed'", &[])
    }

    fn pressed_delivery(&self, channel: ChannelName, nonce: &str) -> Result<Option<Delivery>, WorkflowError> {
        self.find_pressed(channel, nonce)
    }

    fn record_delivery(&mut self, delivery: &Delivery) -> Result<bool, WorkflowError> {
        self.write_delivery(delivery)
    }

    fn report_channel(&mut self, report: &ChannelReport) -> Result<(), WorkflowError> {
        self.write_report(report)
    }

    fn forget_channel(&mut self, channel: ChannelName) -> Result<(), WorkflowError> {
        self.remove_report(channel)
    }

    fn channel_reports(&self) -> Result<Vec<ChannelReport>, WorkflowError> {
        self.list_reports()
    }

    fn changes(&mut self) -> Result<StoreChanges, WorkflowError> {
        let version = self
            .connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|source| self.failed("look for changes", source))?;
        let before = std::mem::replace(&mut self.version_seen, version);
        Ok(if before == version {
            StoreChanges::None
        } else {
            StoreChanges::ByOthers
        })
    }

    fn erase_traces(&self) -> Result<Traces, WorkflowError> {
        self.empty_log()
    }
}

/// Writes a new state and returns the workflow as its mover may see it.
fn advance(
    transaction: &Transaction<'_>,
    mut workflow: Workflow,
    state: State,
) -> rusqlite::Result<Workflow> {
    row::update(transaction, workflow.id, &state)?;
    if state.phase() == Phase::Final && !matches!(state, State::Taken { .. }) {
        workflow.call.arguments = Arguments::Erased;
    }
    workflow.state = state;
    workflow.revision = row::revision(transaction, workflow.id)?;
    Ok(workflow)
}

#[cfg(test)]
mod tests;
