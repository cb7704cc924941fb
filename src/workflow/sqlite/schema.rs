//! Opens the database: private to the user, in write-ahead mode, at the newest format.
//!
//! The non-obvious thing: closing *any* descriptor of a file drops the POSIX locks that SQLite holds on it in the
//! same process. So the file is created, and closed again, under a lock that every thread passes before it opens it.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::durability::CommitDurability;
use super::old_approvals::OldApprovals;
use super::{TransactionFault, approvals};
use crate::disk::{self, TurnQueue};
use crate::workflow::{Place, WorkflowError};

/// One entry per format; `user_version` counts how many of them a file has seen.
const MIGRATIONS: &[&str] = &[
    include_str!("1.sql"),
    include_str!("2.sql"),
    include_str!("3.sql"),
    include_str!("4.sql"),
    include_str!("5.sql"),
];

/// The first format whose approvals are in a table.
const APPROVALS_FORMAT: i64 = 3;

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
    migrate(&mut connection, place)?;
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
    CommitDurability::PowerCut.set(connection)?;
    // Arguments may hold secrets: what is deleted is overwritten.
    connection.pragma_update(None, "secure_delete", "ON")
}

/// Returns the queue of the processes that write in the database at `place`.
pub(super) fn turns(place: &Place) -> Option<TurnQueue> {
    let Place::File(path) = place else { return None };
    let mut name = path.as_os_str().to_owned();
    name.push("-turns");
    Some(TurnQueue::new(name.into()))
}

/// Overwrites what a commit that failed left at the end of the log.
///
/// It does not count, but its frames are whole: a process that recovers the log after all others were killed would take
/// them for committed. Any later commit overwrites them; this one changes nothing.
pub(super) fn overwrite_log(connection: &Connection) {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    // Where this fails too, the next change of any process does it.
    let _ = connection.pragma_update(None, "user_version", known);
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

fn migrate(connection: &mut Connection, place: &Place) -> Result<(), WorkflowError> {
    let path = place.path();
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let failed = |source| database_error("bring the tables up to date", path, source);
    let seen = |connection: &Connection| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, "user_version", |row| row.get(0))
    };
    let found = seen(connection).map_err(failed)?;
    let old_approvals = OldApprovals::beside(place)?;
    if found == known && old_approvals.is_some() {
        tracing::warn!(target: "pml::workflow", "what an older pml approved beside the database does not count");
    }
    if found != known {
        raise(connection, place, known, old_approvals.as_ref()).map_err(|fault| fault.named(failed))?;
    }
    if let Some(old_approvals) = old_approvals {
        old_approvals.set_aside();
    }
    approvals::restore_mark(connection, place).map_err(|fault| fault.named(failed))
}

/// Makes every change that is missing, all or none.
fn raise(
    connection: &mut Connection,
    place: &Place,
    known: i64,
    old_approvals: Option<&OldApprovals>,
) -> Result<(), TransactionFault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let missing = usize::try_from(found)
        .ok()
        .and_then(|found| MIGRATIONS.get(found..));
    let Some(missing) = missing else {
        return Err(WorkflowError::Future {
            path: place.path().to_owned(),
            found,
            known,
        }
        .into());
    };
    for migration in missing {
        transaction.execute_batch(migration)?;
    }
    if let Some(old_approvals) = old_approvals.filter(|_| found < APPROVALS_FORMAT) {
        old_approvals.import(&transaction, place)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests;
