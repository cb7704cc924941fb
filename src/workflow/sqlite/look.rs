//! The queries that change nothing: one workflow by its names, or several in an order.

use rusqlite::{Connection, OptionalExtension as _};

use super::{SqliteStore, row};
use crate::workflow::lifetime::LIVE;
use crate::workflow::store::{HeldArguments, Unfinished};
use crate::workflow::store::{pick, typed_name};
use crate::workflow::{ChangedWorkflows, Timestamp, Workflow, WorkflowError, WorkflowId, lifecycle};

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

    pub(super) fn list_unfinished(&self) -> Result<Vec<Unfinished>, WorkflowError> {
        let read = || -> rusqlite::Result<Vec<Unfinished>> {
            let mut statement = self.connection.prepare_cached(
                "SELECT id, expires_at, holds_arguments FROM workflow WHERE phase <> 'final'",
            )?;
            let mut rows = statement.query([])?;
            let mut unfinished = Vec::new();
            while let Some(row) = rows.next()? {
                // An id that a later pml writes otherwise is swept by the clock of the wall alone.
                if let Ok(id) = row.get::<_, String>(0)?.parse() {
                    unfinished.push(Unfinished {
                        id,
                        expires_at: Timestamp::from_millis(row.get(1)?),
                        arguments: if row.get(2)? {
                            HeldArguments::Held
                        } else {
                            HeldArguments::None
                        },
                    });
                }
            }
            Ok(unfinished)
        };
        read().map_err(|source| self.failed("look for a deadline", source))
    }

    pub(super) fn newest_revision(&self) -> Result<u64, WorkflowError> {
        let latest = self
            .connection
            .prepare_cached("SELECT latest FROM revision")
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)))
            .map_err(|source| self.failed("count the changes", source))?;
        Ok(u64::try_from(latest).unwrap_or_default())
    }

    /// Reads in one transaction, so that the revision belongs to the rows.
    pub(super) fn list_changed(&self, revision: u64) -> Result<ChangedWorkflows, WorkflowError> {
        let read = || -> rusqlite::Result<ChangedWorkflows> {
            let transaction = self.connection.unchecked_transaction()?;
            let (latest, deleted): (i64, i64) =
                transaction.query_row("SELECT latest, deleted FROM revision", [], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            let since = i64::try_from(revision).unwrap_or(i64::MAX);
            // Revisions from the future are those of another database.
            if since < deleted || since > latest {
                return Ok(ChangedWorkflows::ReadAnew);
            }
            let workflows = many(&transaction, "revision > ?1 ORDER BY revision", &[&since])?;
            Ok(ChangedWorkflows::These {
                latest: u64::try_from(latest).unwrap_or_default(),
                workflows,
            })
        };
        read().map_err(|source| self.failed("list what changed", source))
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
