//! The store in SQLite: one file that every pml process of the user shares.
//!
//! Every move is one `BEGIN IMMEDIATE` transaction.
//!
//! Arguments may hold secrets. The file is 0600 in a directory of mode 0700, and the arguments of a row are
//! erased (overwritten, not only forgotten) in the same transaction that makes it final; the taker gets the only
//! copy. The log of SQLite may hold the old bytes until [`Store::erase_traces`] or the last process leaves.
//!
//! A broken file is reported, never repaired, replaced or deleted.

mod capacity;
mod log;
mod look;
mod row;
mod schema;
mod sweep;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use uuid::Uuid;

use schema::database_error;

use super::lifetime::LIVE;
use super::machine::{self, Answer, Event, Phase, Provenance, State};
use super::store::{Store, StoreChanges, Traces, check_fit, is_left_by_its_owner};
use super::{
    Arguments, Asker, Code, Created, Expected, New, Place, Refusal, Swept, Timestamp, Workflow,
    WorkflowError, WorkflowId, lifecycle, likeness,
};
use crate::protocol::Digest;

/// The workflows of the user in a SQLite database.
#[derive(Debug)]
pub(super) struct SqliteStore {
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

impl From<serde_json::Error> for Fault {
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
            place,
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
        expected: &Expected,
        answer: Option<&Answer>,
        decide: impl FnOnce(&Workflow) -> Result<State, Refusal>,
    ) -> Result<Workflow, WorkflowError> {
        let (before, workflow) = self.write("move a workflow", |transaction| {
            let workflow =
                one(transaction, "id = ?1", &id.to_string())?.ok_or(WorkflowError::Unknown { id })?;
            check_fit(&workflow, expected, answer)?;
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
            Fault::Sql(source) => self.failed(attempted, source),
            Fault::Other(error) => error,
        })
    }

    /// Says what was attempted when SQLite refused.
    fn failed(&self, attempted: &'static str, source: rusqlite::Error) -> WorkflowError {
        database_error(attempted, self.place.path(), source)
    }
}

impl Store for SqliteStore {
    fn create(&mut self, new: New, now: Timestamp) -> Result<Created, WorkflowError> {
        if new.call.arguments == Arguments::Erased {
            return Err(WorkflowError::Erased { tool: new.call.tool });
        }
        let (created, replaced) = self.write("suspend a call", |transaction| {
            let (identity, alike) = (likeness::identity(&new)?, likeness::likeness(&new)?);
            if let Some(answered) = answered(transaction, &alike, new.origin.asker, now)? {
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
            capacity::waiting(transaction, &new, now)?.check()?;
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
            row::insert(transaction, &workflow, (&identity, &alike), new.attended)?;
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

    fn apply(&mut self, id: WorkflowId, event: Event, now: Timestamp) -> Result<Workflow, WorkflowError> {
        let answer = event.answer().cloned();
        self.advance_by(id, &Expected::AnyTool, answer.as_ref(), |workflow| {
            machine::transition(&workflow.state, workflow.lifetime(), event, now)
        })
    }

    fn answer_and_take(
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

    fn leave_unattended(&mut self, id: WorkflowId) -> Result<(), WorkflowError> {
        self.write("leave a workflow", |transaction| {
            transaction.execute("UPDATE workflow SET attended = 0 WHERE id = ?1", [id.to_string()])?;
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

    fn deadlines(&self) -> Result<Vec<(WorkflowId, Timestamp)>, WorkflowError> {
        self.list_deadlines()
    }

    fn sweep(&mut self, now: Timestamp, overdue: &[WorkflowId]) -> Result<Swept, WorkflowError> {
        self.sweep_rows(now, overdue)
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
    Ok(found
        .into_iter()
        .find(|workflow| is_left_by_its_owner(workflow, now)))
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
        .prepare_cached(&format!("SELECT {columns} FROM workflow WHERE {matching}"))?
        .query_row([parameter], row::read)
        .optional()
}

/// Reads every matching row; one that this pml cannot read is left out and named in the log.
fn many(
    connection: &Connection,
    matching: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<Vec<Workflow>> {
    let columns = row::COLUMNS;
    let mut statement =
        connection.prepare_cached(&format!("SELECT {columns} FROM workflow WHERE {matching}"))?;
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
mod tests;
