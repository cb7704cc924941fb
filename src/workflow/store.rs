//! Keeps workflows in SQLite, shared by every pml process of the user; blocking.
//!
//! Every move is one `BEGIN IMMEDIATE` transaction: read the row, ask the pure machine, write the row. So the
//! machine's promises hold among threads and processes: one first answer, one taker.
//!
//! Arguments may hold secrets. The file is 0600 in a directory of mode 0700, and the arguments of a row are
//! erased (overwritten, not only forgotten) in the same transaction that makes it final; the taker gets the only
//! copy. The log of SQLite may hold the old bytes until [`Store::shorten_log`] or the last process leaves.
//!
//! A broken file is reported, never repaired, replaced or deleted.

mod capacity;
mod log;
mod look;
mod row;
mod schema;
mod sweep;

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use uuid::Uuid;

pub use capacity::Cap;
pub use log::Shortened;
pub use schema::Place;
use schema::database_error;

use super::lifetime::LIVE;
use super::machine::{self, Answer, Event, Phase, Provenance, State};
use super::{
    Arguments, Asker, Code, Created, Expected, New, Refusal, Timestamp, Workflow, WorkflowError, WorkflowId,
    lifecycle,
};
use crate::protocol::Digest;

/// How long an answer is left to the call that waits for it. It takes its answer within a few hundredths of a second;
/// after this it does not wait any more, and an identical call of another conversation may have the answer.
const OWNERS_TURN: Duration = Duration::from_secs(2);

/// The workflows of the user.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    place: Place,
    /// What `PRAGMA data_version` said last: it moves when another connection commits.
    version_seen: i64,
}

/// What ends a transaction early.
enum Fault {
    Sql(rusqlite::Error),
    Other(WorkflowError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<WorkflowError> for Fault {
    fn from(error: WorkflowError) -> Self {
        Self::Other(error)
    }
}

impl Store {
    /// Opens the database, creating it and bringing its tables up to date where needed.
    pub fn open(place: Place) -> Result<Self, WorkflowError> {
        let connection = schema::open(&place)?;
        let mut store = Self {
            connection,
            place,
            version_seen: 0,
        };
        store.changed_elsewhere()?;
        Ok(store)
    }

    /// Suspends a call, or returns the workflow that already asks the very same in this conversation.
    ///
    /// An identical call that was answered, and whose answer no call has taken, comes before both.
    pub fn create(&mut self, new: New, now: Timestamp) -> Result<Created, WorkflowError> {
        if new.call.arguments == Arguments::Erased {
            return Err(WorkflowError::Erased { tool: new.call.tool });
        }
        let (created, replaced) = self.write("suspend a call", |transaction| {
            let (identity, likeness) = (row::identity(&new)?, row::likeness(&new)?);
            if let Some(answered) = answered(transaction, &likeness, new.origin.asker, now)? {
                return Ok((Created::Answered(answered), None));
            }
            let same = one(
                transaction,
                "identity = ?1 AND phase = 'pending'",
                &identity.as_str(),
            )?;
            let replaced = match same {
                Some(same) if same.is_live_at(now) => return Ok((Created::Existing(same), None)),
                Some(dead) => Some(advance(transaction, dead, State::Expired)?),
                None => None,
            };
            capacity::check(transaction, &new, now)?;
            let workflow = Workflow {
                id: WorkflowId::new(Uuid::new_v4()),
                code: free_code(transaction)?,
                ask: new.ask,
                call: new.call,
                project: new.project,
                origin: new.origin,
                created_at: now,
                expires_at: now.plus(new.time_to_live),
                state: State::Pending,
            };
            row::insert(transaction, &workflow, (&identity, &likeness), new.attended)?;
            Ok((Created::New(workflow), replaced))
        })?;
        if let Some(expired) = replaced {
            lifecycle::moved(&State::Pending, &expired);
        }
        if let Created::New(workflow) = &created {
            lifecycle::created(workflow);
        }
        Ok(created)
    }

    /// Takes note that no call waits for the answer to a workflow any more.
    pub fn leave_unattended(&mut self, id: WorkflowId) -> Result<(), WorkflowError> {
        self.write("leave a workflow", |transaction| {
            transaction.execute("UPDATE workflow SET attended = 0 WHERE id = ?1", [id.to_string()])?;
            Ok(())
        })
    }

    /// Moves a workflow by one event.
    ///
    /// Only the one who takes a call gets its arguments; every other final state comes without them.
    pub fn apply(&mut self, id: WorkflowId, event: Event, now: Timestamp) -> Result<Workflow, WorkflowError> {
        let answer = event.answer().cloned();
        self.advance_by(id, &Expected::AnyTool, answer.as_ref(), |workflow| {
            machine::transition(&workflow.state, workflow.lifetime(), event, now)
        })
    }

    /// Answers a workflow and, if that is an approval, takes its call, all at once.
    ///
    /// Where the very same approval came before, the call is taken under that one; another one that came before is
    /// an error. A refusal is recorded and takes nothing.
    pub fn answer_and_take(
        &mut self,
        id: WorkflowId,
        expected: &Expected,
        answer: Answer,
        by: Provenance,
        now: Timestamp,
    ) -> Result<Workflow, WorkflowError> {
        self.advance_by(id, expected, Some(&answer.clone()), |workflow| {
            machine::answer_and_take(&workflow.state, workflow.lifetime(), answer, by, now)
        })
    }

    /// Tells whether another connection has changed anything since this was asked last.
    pub fn changed_elsewhere(&mut self) -> Result<bool, WorkflowError> {
        let version = self
            .connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|source| database_error("look for changes", self.place.path(), source))?;
        Ok(std::mem::replace(&mut self.version_seen, version) != version)
    }

    /// Lets a test break what only the store may touch.
    #[cfg(test)]
    pub(in crate::workflow) fn execute(&self, statement: &str) {
        self.connection.execute_batch(statement).unwrap();
    }

    /// Moves one workflow by what `decide` says of it, in one transaction.
    fn advance_by(
        &mut self,
        id: WorkflowId,
        expected: &Expected,
        answer: Option<&Answer>,
        decide: impl FnOnce(&Workflow) -> Result<State, Refusal>,
    ) -> Result<Workflow, WorkflowError> {
        let (before, workflow) = self.write("move a workflow", |transaction| {
            let workflow =
                one(transaction, "id = ?1", &id.to_string())?.ok_or(WorkflowError::Unknown { id })?;
            match expected {
                Expected::Tool(tool) if *tool != workflow.call.tool => {
                    return Err(WorkflowError::WrongTool {
                        code: workflow.code,
                        expected: workflow.call.tool,
                    }
                    .into());
                }
                Expected::Tool(_) | Expected::AnyTool => {}
            }
            if answer.is_some_and(|answer| !workflow.ask.takes(answer)) {
                let wanted = workflow.ask.wants();
                return Err(WorkflowError::Unfit {
                    code: workflow.code,
                    wanted,
                }
                .into());
            }
            let state = decide(&workflow).map_err(|refusal| WorkflowError::Refused {
                code: workflow.code.clone(),
                refusal,
            })?;
            let before = workflow.state.clone();
            Ok((before, advance(transaction, workflow, state)?))
        })?;
        lifecycle::moved(&before, &workflow);
        Ok(workflow)
    }

    /// Runs `body` in one transaction that excludes every other writer from its start.
    fn write<T>(
        &mut self,
        attempted: &'static str,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, WorkflowError> {
        let connection = &mut self.connection;
        let run = || -> Result<T, Fault> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = body(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        run().map_err(|fault| match fault {
            Fault::Sql(source) => database_error(attempted, self.place.path(), source),
            Fault::Other(error) => error,
        })
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
    Ok(workflow)
}

/// Finds the answer to an identical call that waits to be taken, the oldest first.
fn answered(
    transaction: &Transaction<'_>,
    likeness: &Digest,
    asker: Asker,
    now: Timestamp,
) -> rusqlite::Result<Option<Workflow>> {
    let approved = format!("phase = 'approved' AND likeness = ?2 AND {LIVE}");
    let oldest_first = "ORDER BY created_at, id";
    let (likeness, now_millis, asker) = (likeness.as_str(), now.millis(), asker.to_string());
    let free = format!("{approved} AND (asker = ?3 OR attended = 0) {oldest_first}");
    let found = many(transaction, &free, &[&now_millis, &likeness, &asker])?;
    if let Some(first) = found.into_iter().next() {
        return Ok(Some(first));
    }
    let attended = format!("{approved} {oldest_first}");
    let found = many(transaction, &attended, &[&now_millis, &likeness])?;
    Ok(found.into_iter().find(|workflow| match &workflow.state {
        State::Answered { at, .. } => at.plus(OWNERS_TURN) <= now,
        State::Pending | State::Taken { .. } | State::Expired | State::Withdrawn => false,
    }))
}

/// Draws a code that no live workflow has.
fn free_code(transaction: &Transaction<'_>) -> rusqlite::Result<Code> {
    loop {
        // The low half of a random UUID has 62 random bits below its variant.
        let code = Code::of_bits(Uuid::new_v4().as_u64_pair().1 & (u64::MAX >> 2));
        let taken: bool = transaction.query_row(
            "SELECT EXISTS (SELECT 1 FROM workflow WHERE code = ?1 AND phase <> 'final')",
            [code.as_str()],
            |row| row.get(0),
        )?;
        if !taken {
            return Ok(code);
        }
    }
}

fn one(
    connection: &Connection,
    matching: &str,
    parameter: &dyn rusqlite::ToSql,
) -> rusqlite::Result<Option<Workflow>> {
    let columns = row::COLUMNS;
    connection
        .query_row(
            &format!("SELECT {columns} FROM workflow WHERE {matching}"),
            [parameter],
            row::read,
        )
        .optional()
}

/// Reads every matching row; one that this pml cannot read is left out and named in the log.
fn many(
    connection: &Connection,
    matching: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<Vec<Workflow>> {
    let columns = row::COLUMNS;
    let mut statement = connection.prepare(&format!("SELECT {columns} FROM workflow WHERE {matching}"))?;
    let mut rows = statement.query(parameters)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match row::read(row) {
            Ok(workflow) => found.push(workflow),
            Err(error) => lifecycle::unreadable(&row.get::<_, String>(0).unwrap_or_default(), &error),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod tests;
