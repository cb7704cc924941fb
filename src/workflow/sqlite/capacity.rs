//! Counts how many asks wait.

use rusqlite::{Transaction, params};

use super::row;
use crate::workflow::capacity::WaitingAsks;
use crate::workflow::lifetime::LIVE;
use crate::workflow::{NewWorkflow, Timestamp};

/// Counts what waits in the conversation of a new ask, in its project and in all.
pub(super) fn waiting(
    transaction: &Transaction<'_>,
    new: &NewWorkflow,
    now: Timestamp,
) -> rusqlite::Result<WaitingAsks> {
    let counted = format!(
        "SELECT count(*) FILTER (WHERE asker = ?2), count(*) FILTER (WHERE project = ?3), count(*)
         FROM workflow WHERE phase <> 'final' AND {LIVE}"
    );
    let parameters = params![
        now.millis(),
        new.origin.asker.to_string(),
        row::path_bytes(&new.project)
    ];
    transaction
        .prepare_cached(&counted)?
        .query_row(parameters, |row| {
            let count = |column| -> rusqlite::Result<usize> {
                let count: i64 = row.get(column)?;
                Ok(usize::try_from(count).unwrap_or(usize::MAX))
            };
            Ok(WaitingAsks {
                conversation: count(0)?,
                project: count(1)?,
                total: count(2)?,
            })
        })
}
