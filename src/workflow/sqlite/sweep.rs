//! Ends the workflows whose life is over, and deletes what finished long ago.

use std::time::{Duration, Instant};

use rusqlite::types::Value;
use rusqlite::{Transaction, params};

use super::durability::CommitDurability;
use super::{SqliteStore, row};
use crate::workflow::lifetime::LIVE;
use crate::workflow::store::KEPT_AFTER_DEADLINE;
use crate::workflow::{State, SweepReport, Timestamp, WorkflowError, WorkflowId, lifecycle};

/// What finished so long ago that it is deleted. What lies further ahead than what is kept was written before the clock
/// was set back by that much.
const LONG_AGO: &str = "(expires_at <= ?1 OR created_at > ?2)";

/// Returns the parameters of [`LONG_AGO`].
fn long_ago(now: Timestamp) -> [i64; 2] {
    [
        now.minus(KEPT_AFTER_DEADLINE).millis(),
        now.plus(KEPT_AFTER_DEADLINE).millis(),
    ]
}

/// What the clocks of two processes differ by where both are read to the millisecond, and some more.
const ROUNDING: Duration = Duration::from_millis(5);

impl SqliteStore {
    pub(super) fn rows_to_sweep(&self, now: Timestamp) -> Result<bool, WorkflowError> {
        let look = || -> rusqlite::Result<bool> {
            let over =
                format!("SELECT EXISTS (SELECT 1 FROM workflow WHERE phase <> 'final' AND NOT {LIVE})");
            let old = format!("SELECT EXISTS (SELECT 1 FROM workflow WHERE {LONG_AGO})");
            Ok(self
                .connection
                .query_row(&over, [now.millis()], |row| row.get(0))?
                || self.connection.query_row(&old, long_ago(now), |row| row.get(0))?)
        };
        look().map_err(|source| self.failed("look for what is over", source))
    }

    pub(super) fn sweep_rows(
        &mut self,
        now: Timestamp,
        overdue: &[WorkflowId],
    ) -> Result<SweepReport, WorkflowError> {
        let asked_at = Instant::now();
        let (expired, deleted) = self.write("sweep", CommitDurability::Process, |transaction| {
            // Other processes go on asking while this one waits for its turn: what they wrote meanwhile is new, and not
            // from before the clock was set back.
            let newest = now.plus(asked_at.elapsed() + ROUNDING).millis();
            let over = format!("(created_at > {newest} OR expires_at <= ?1)");
            let mut expired = expire(transaction, &over, &now.millis().into())?;
            for id in overdue {
                expired.extend(expire(transaction, "id = ?1", &id.to_string().into())?);
            }
            let deleted =
                transaction.execute(&format!("DELETE FROM workflow WHERE {LONG_AGO}"), long_ago(now))?;
            Ok((expired, deleted))
        })?;
        for (id, code, tool) in &expired {
            lifecycle::expired(id, code, tool);
        }
        Ok(SweepReport {
            expired: expired.iter().filter_map(|(id, ..)| id.parse().ok()).collect(),
            deleted,
        })
    }
}

/// Ends the unfinished rows that match, and returns the id, the code and the tool of each.
///
/// In bulk and without reading the asks: the machine lets every live state expire, and a row that a later pml wrote
/// must not keep its arguments because this one cannot read it.
fn expire(
    transaction: &Transaction<'_>,
    matching: &str,
    parameter: &Value,
) -> rusqlite::Result<Vec<(String, String, String)>> {
    transaction
        .prepare(&format!(
            "UPDATE workflow SET state = ?2, phase = 'final', identity = NULL, likeness = NULL, arguments = NULL, ask = {BARE_ASK}
             WHERE phase <> 'final' AND {matching} RETURNING id, code, tool",
            BARE_ASK = row::BARE_ASK,
        ))?
        .query_map(params![parameter, row::written(&State::Expired)?], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect()
}
