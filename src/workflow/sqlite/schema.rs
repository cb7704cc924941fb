//! Opens the database: private to the user, in write-ahead mode, at the newest format.
//!
//! The non-obvious thing: closing *any* descriptor of a file drops the POSIX locks that SQLite holds on it in the
//! same process. So the file is created, and closed again, under a lock that every thread passes before it opens it.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::disk;
use crate::workflow::{Place, WorkflowError};

/// One entry per format; `user_version` counts how many of them a file has seen.
const MIGRATIONS: &[&str] = &[include_str!("1.sql"), include_str!("2.sql")];

/// Every transaction here is a few rows; who waits longer than this waits for a process that hangs.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens or creates the database at `place`.
pub(super) fn open(place: &Place) -> Result<Connection, WorkflowError> {
    let path = place.path();
    let connection = match place {
        Place::File(path) => {
            prepare_directory(path)?;
            prepare_file(path).map_err(|source| WorkflowError::Create {
                path: path.clone(),
                source,
            })?;
            connect(path)
        }
        Place::Memory => Connection::open_in_memory(),
    };
    let mut connection = connection.map_err(|source| database_error("open the database", path, source))?;
    configure(&connection).map_err(|source| database_error("open the database", path, source))?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// Sorts what SQLite said: a file that is broken needs other advice than one that is busy.
pub(super) fn database_error(attempted: &'static str, path: &Path, source: rusqlite::Error) -> WorkflowError {
    let path = path.to_owned();
    let code = source.sqlite_error_code();
    let source = source.into();
    match code {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => WorkflowError::Corrupt { path, source },
        _ => WorkflowError::Database {
            attempted,
            path,
            source,
        },
    }
}

fn prepare_directory(file: &Path) -> Result<(), WorkflowError> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let prepare = || -> io::Result<()> {
        disk::create_private_directory(directory)?;
        // The directory is pml's own; something else may have created it with a wider mode.
        disk::restrict(directory, 0o700)
    };
    prepare().map_err(|source| WorkflowError::Directory {
        path: directory.to_owned(),
        source,
    })
}

fn prepare_file(path: &Path) -> io::Result<()> {
    static CREATING: Mutex<()> = Mutex::new(());
    let creating = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    // It has mode 0600 from its first moment; the log files of SQLite inherit it.
    match disk::write_new(path, b"") {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    drop(creating);
    disk::restrict(path, 0o600)
}

#[expect(clippy::disallowed_methods, reason = "the one place that opens the database")]
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    write_ahead(connection)?;
    // A power cut must not bring back a call that was already taken: every commit is synced.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Arguments may hold secrets: what is deleted is overwritten.
    connection.pragma_update(None, "secure_delete", "ON")
}

/// Switches to write-ahead mode, which SQLite refuses without waiting while another process does the same.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        let switched: rusqlite::Result<String> =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0));
        match switched {
            Ok(_) => return Ok(()),
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), WorkflowError> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let failed = |source| database_error("bring the tables up to date", path, source);
    let seen = |connection: &Connection| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, "user_version", |row| row.get(0))
    };
    let found = seen(connection).map_err(failed)?;
    if found == known {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    // Another process may have been faster.
    let found = seen(&transaction).map_err(failed)?;
    let Some(missing) = usize::try_from(found)
        .ok()
        .and_then(|found| MIGRATIONS.get(found..))
    else {
        return Err(WorkflowError::Future {
            path: path.to_owned(),
            found,
            known,
        });
    };
    for migration in missing {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction
        .pragma_update(None, "user_version", known)
        .map_err(failed)?;
    transaction.commit().map_err(failed)
}

#[cfg(test)]
mod tests;
