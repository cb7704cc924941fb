//! SQLite's own log, which holds the old bytes of what was erased until it is emptied.

use std::time::Duration;

use super::schema::{self, database_error};
use super::{Store, WorkflowError};

/// What became of SQLite's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortened {
    /// It is empty.
    Empty,
    /// Another process reads it at this moment.
    InUse,
}

impl Store {
    /// Empties SQLite's log, which may hold erased arguments; gives up at once if another process is reading.
    pub fn shorten_log(&self) -> Result<Shortened, WorkflowError> {
        let shorten = || -> rusqlite::Result<Shortened> {
            self.connection.busy_timeout(Duration::ZERO)?;
            let blocked = self
                .connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
            self.connection.busy_timeout(schema::BUSY_TIMEOUT)?;
            blocked.map(|blocked| {
                if blocked {
                    Shortened::InUse
                } else {
                    Shortened::Empty
                }
            })
        };
        shorten().map_err(|source| database_error("shorten the log", self.place.path(), source))
    }
}
