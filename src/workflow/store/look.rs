//! Looking without moving: one workflow by its names, or several in an order.

use super::{Store, database_error, many, one};
use crate::protocol::Shown;
use crate::workflow::lifetime::LIVE;
use crate::workflow::{Phase, Timestamp, Workflow, WorkflowError, WorkflowId};

impl Store {
    /// Finds a workflow by its id.
    pub fn find(&self, id: WorkflowId) -> Result<Workflow, WorkflowError> {
        one(&self.connection, "id = ?1", &id.to_string())
            .map_err(|source| database_error("find a workflow", self.place.path(), source))?
            .ok_or(WorkflowError::Unknown { id })
    }

    /// Finds the one workflow a person means by a code or by the beginning of an id.
    ///
    /// A live workflow is meant before a finished one; several of a kind are refused.
    pub fn find_by_code_or_prefix(&self, text: &str) -> Result<Workflow, WorkflowError> {
        let typed = text.trim().to_ascii_lowercase();
        let shown = || Shown::line(text).to_string();
        if typed.is_empty() {
            return Err(WorkflowError::NoMatch { text: shown() });
        }
        let matching = "code = ?1 OR substr(id, 1, length(?1)) = ?1";
        let found = many(&self.connection, matching, &[&typed])
            .map_err(|source| database_error("find a workflow", self.place.path(), source))?;
        let (live, finished): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|workflow| workflow.state.phase() != Phase::Final);
        let mut meant = if live.is_empty() { finished } else { live };
        match (meant.pop(), meant.len()) {
            (None, _) => Err(WorkflowError::NoMatch { text: shown() }),
            (Some(workflow), 0) => Ok(workflow),
            (Some(_), others) => Err(WorkflowError::Ambiguous {
                text: shown(),
                matches: others + 1,
            }),
        }
    }

    /// Lists what waits for an answer, the oldest first.
    pub fn pending(&self, now: Timestamp) -> Result<Vec<Workflow>, WorkflowError> {
        let matching = format!("phase = 'pending' AND {LIVE} ORDER BY created_at, id");
        many(&self.connection, &matching, &[&now.millis()])
            .map_err(|source| database_error("list what is pending", self.place.path(), source))
    }

    /// Returns the deadline of every workflow that was neither taken nor ended.
    pub fn deadlines(&self) -> Result<Vec<(WorkflowId, Timestamp)>, WorkflowError> {
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
        read().map_err(|source| database_error("look for a deadline", self.place.path(), source))
    }

    /// Lists every workflow that is still kept, the newest first.
    pub fn recent(&self, limit: usize) -> Result<Vec<Workflow>, WorkflowError> {
        let matching = "true ORDER BY created_at DESC, id LIMIT ?1";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        many(&self.connection, matching, &[&limit])
            .map_err(|source| database_error("list what happened", self.place.path(), source))
    }
}
