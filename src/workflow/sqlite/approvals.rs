//! The table of approvals, and the mark that tells other processes when it changed.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::durability::CommitDurability;
use super::{SqliteStore, TransactionFault};
use crate::disk::{self, Stamp};
use crate::protocol::{DependencyName, Digest, LaunchApproval, Shown};
use crate::workflow::approvals::{key, mark};
use crate::workflow::{Approvals, ApprovedLaunch, FoundContent, Place, WorkflowError};

impl SqliteStore {
    pub(super) fn read_approvals(&mut self) -> Result<Approvals, WorkflowError> {
        let place = self.place.clone();
        // Under the lock of the writers: what the mark says now is what the table says.
        self.write("read the approvals", CommitDurability::Process, |transaction| {
            let stamp = match &place {
                Place::File(file) => Stamp::of(&mark(file)),
                Place::Memory => Stamp::Unknown,
            };
            Ok(Approvals::new(rows(transaction)?, stamp))
        })
    }

    pub(super) fn record_approval(&mut self, approved: &ApprovedLaunch) -> Result<(), WorkflowError> {
        let place = self.place.clone();
        self.write("record an approval", CommitDurability::PowerCut, |transaction| {
            put(transaction, &place, &approved.launch, &approved.approval)
        })
    }

    pub(super) fn complete_record(
        &mut self,
        launch: &Digest,
        found: &FoundContent,
    ) -> Result<Option<LaunchApproval>, WorkflowError> {
        let place = self.place.clone();
        self.write(
            "complete an approval",
            CommitDurability::PowerCut,
            |transaction| {
                let Some(approval) = find(transaction, launch)? else {
                    return Ok(None);
                };
                let completed = found.complete(approval.clone());
                if completed != approval {
                    put(transaction, &place, launch, &completed)?;
                }
                Ok(Some(completed))
            },
        )
    }

    pub(super) fn forget_records(
        &mut self,
        dependency: &DependencyName,
    ) -> Result<Vec<LaunchApproval>, WorkflowError> {
        let place = self.place.clone();
        self.write(
            "take back the approvals",
            CommitDurability::PowerCut,
            |transaction| {
                let forgotten: Vec<String> = transaction
                    .prepare_cached("DELETE FROM approval WHERE dependency = ?1 RETURNING record")?
                    .query_map([dependency.as_str()], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?;
                if !forgotten.is_empty() {
                    announce(&place)?;
                }
                // A row that cannot be read approved nothing.
                Ok(forgotten
                    .iter()
                    .filter_map(|record| serde_json::from_str(record).ok())
                    .collect())
            },
        )
    }
}

/// Records what an answer grants, in the transaction of the answer.
pub(super) fn put(
    transaction: &Transaction<'_>,
    place: &Place,
    launch: &Digest,
    approval: &LaunchApproval,
) -> Result<(), TransactionFault> {
    announce(place)?;
    insert(
        transaction,
        &key(launch),
        &approval.dependency,
        &serde_json::to_string(approval)?,
    )?;
    Ok(())
}

/// Writes one row, in place of another of the same launch.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    key: &str,
    dependency: &DependencyName,
    record: &str,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("INSERT OR REPLACE INTO approval (launch, dependency, record) VALUES (?1, ?2, ?3)")?
        .execute(params![key, dependency.as_str(), record])?;
    Ok(())
}

/// Lets every process that knows the approvals read them again; called before the change is committed.
pub(super) fn announce(place: &Place) -> Result<(), WorkflowError> {
    let Place::File(file) = place else { return Ok(()) };
    let path = mark(file);
    disk::grow(&path).map_err(|source| WorkflowError::Create { path, source })
}

/// Puts the mark back where approvals stand in the table without one: they would not be looked for.
pub(super) fn restore_mark(connection: &Connection, place: &Place) -> Result<(), TransactionFault> {
    let Place::File(file) = place else { return Ok(()) };
    if Stamp::of(&mark(file)) != Stamp::Missing {
        return Ok(());
    }
    let exist = "SELECT EXISTS (SELECT 1 FROM approval)";
    if connection.query_row(exist, [], |row| row.get(0))? {
        announce(place)?;
    }
    Ok(())
}

fn find(connection: &Connection, launch: &Digest) -> rusqlite::Result<Option<LaunchApproval>> {
    let record: Option<String> = connection
        .prepare_cached("SELECT record FROM approval WHERE launch = ?1")?
        .query_row([key(launch)], |row| row.get(0))
        .optional()?;
    Ok(record.and_then(|record| serde_json::from_str(&record).ok()))
}

fn rows(connection: &Connection) -> rusqlite::Result<HashMap<String, LaunchApproval>> {
    let mut statement = connection.prepare_cached("SELECT launch, record FROM approval")?;
    let mut rows = statement.query([])?;
    let mut found = HashMap::new();
    while let Some(row) = rows.next()? {
        let (key, record): (String, String) = (row.get(0)?, row.get(1)?);
        match serde_json::from_str(&record) {
            Ok(approval) => drop(found.insert(key, approval)),
            Err(error) => {
                let key = Shown::line(&key);
                tracing::warn!(target: "pml::workflow", %key, %error, "an approval cannot be read and does not count");
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
