//! The queries that change nothing: one workflow by its names, or several in an order.

use rusqlite::{Connection, OptionalExtension as _};

use super::{SqliteStore, row};
use crate::workflow::lifetime::LIVE;
use crate::workflow::store::{pick, typed_name};
use crate::workflow::{Timestamp, Workflow, WorkflowError, WorkflowId, lifecycle};

impl SqliteStore {
    pub(super) fn find_workflow(&self, id: WorkflowId) -> Result<Workflow, WorkflowError> {
        one(&self.connection, "id = ?1", &id.to_string())
            .map_err(|source| self.failed("find a workflow", source))?
            .ok_or(WorkflowError::Unknown { id })
    }

    pub(super) fn find_named(&self, text: &str) -> Result<Workflow, WorkflowError> {
        let typed = typed_name(text)?;
        let matching = "code = ?1 OR substr(id, 1, length(?1)) = ?1";
        let found = many(&self.connection, matching, &[&typed])
            .map_err(|source| self.failed("find a workflow", source))?;
        pick(text, found)
    }

    pub(super) fn list_pending(&self, now: Timestamp) -> Result<Vec<Workflow>, WorkflowError> {
        let matching = format!("phase = 'pending' AND {LIVE} ORDER BY created_at, id");
        many(&self.connection, &matching, &[&now.millis()])
            .map_err(|source| self.failed("list what is pending", source))
    }

    pub(super) fn list_deadlines(&self) -> Result<Vec<(WorkflowId, Timestamp)>, WorkflowError> {
        let read = || -> rusqlite::Result<Vec<(WorkflowId, Timestamp)>> {
            let mut statement = self
                .connection
                .prepare_cached("SELECT id, expires_at FROM workflow WHERE phase <> 'final'")?;
            let rows =
                statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
            let mut deadlines = Vec::new();
            for row in rows {
                let (id, expires_at) = row?;
                // An id that a later pml writes otherwise is swept by the clock of the wall alone.
                if let Ok(id) = id.parse() {
                    deadlines.push((id, Timestamp::from_millis(expires_at)));
                }
            }
            Ok(deadlines)
        };
        read().map_err(|source| self.failed("look for a deadline", source))
    }

    pub(super) fn list_recent(&self, limit: usize) -> Result<Vec<Workflow>, WorkflowError> {
        let matching = "true ORDER BY created_at DESC, id LIMIT ?1";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        many(&self.connection, matching, &[&limit])
            .map_err(|source| self.failed("list what happened", source))
    }
}

/// Reads the one row that matches.
pub(super) fn one(
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
pub(super) fn many(
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
