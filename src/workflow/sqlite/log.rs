//! SQLite's own log, which holds the old bytes of what was erased until it is emptied.

use std::time::Duration;

use super::SqliteStore;
use super::schema;
use crate::workflow::{Traces, WorkflowError};

impl SqliteStore {
    /// Empties SQLite's log, which may hold erased arguments; gives up at once if another process is reading.
    pub(super) fn empty_log(&self) -> Result<Traces, WorkflowError> {
        let empty = || -> rusqlite::Result<Traces> {
            self.connection.busy_timeout(Duration::ZERO)?;
            let blocked = self
                .connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
            self.connection.busy_timeout(schema::BUSY_TIMEOUT)?;
            blocked.map(|blocked| if blocked { Traces::InUse } else { Traces::Erased })
        };
        empty().map_err(|source| self.failed("shorten the log", source))
    }
}
