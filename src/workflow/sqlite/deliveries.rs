//! The rows of deliveries and of channels.

use rusqlite::{OptionalExtension as _, Row, named_params, params};

use super::SqliteStore;
use super::durability::CommitDurability;
use crate::config::ChannelName;
use crate::workflow::delivery::{
    ChannelReport, ChannelState, Delivery, DeliveryKey, DeliveryState, ShownStanding,
};
use crate::workflow::{ProcessName, Timestamp, WorkflowError, WorkflowId};

/// The columns [`read`] expects, in its order.
const COLUMNS: &str = "workflow, channel, person, state, attempts, error, nonce, message, revision, standing";

/// How many deliveries are read at once: those of as many asks as may wait, to some people each.
const MOST: i64 = 2_000;

impl SqliteStore {
    /// Reads the deliveries that match, the newest asks first.
    pub(super) fn list_deliveries(
        &self,
        matching: &str,
        parameters: &[&dyn rusqlite::ToSql],
    ) -> Result<Vec<Delivery>, WorkflowError> {
        let read = || -> rusqlite::Result<Vec<Delivery>> {
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM delivery WHERE {matching} LIMIT {MOST}"
            ))?;
            let mut rows = statement.query(parameters)?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                // What a later pml wrote is not this one's business.
                found.extend(read(row)?);
            }
            Ok(found)
        };
        read().map_err(|source| self.failed("list deliveries", source))
    }

    /// Finds the delivery whose message carries a nonce.
    pub(super) fn find_pressed(
        &self,
        channel: ChannelName,
        nonce: &str,
    ) -> Result<Option<Delivery>, WorkflowError> {
        let look = || -> rusqlite::Result<Option<Delivery>> {
            let found = self
                .connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM delivery WHERE nonce = ?1 AND channel = ?2"
                ))?
                .query_row(params![nonce, channel.key()], read)
                .optional()?;
            Ok(found.flatten())
        };
        look().map_err(|source| self.failed("find a delivery", source))
    }

    /// Writes a delivery of an ask that is still kept; tells whether it is.
    pub(super) fn write_delivery(&mut self, delivery: &Delivery) -> Result<bool, WorkflowError> {
        // What is being sent must be known after a power cut, or it would be sent again.
        let durability = match delivery.state {
            DeliveryState::Sending => CommitDurability::PowerCut,
            DeliveryState::Queued | DeliveryState::Sent | DeliveryState::Failed | DeliveryState::Closed => {
                CommitDurability::Process
            }
        };
        self.write("record a delivery", durability, |transaction| {
            let Delivery {
                key,
                state,
                attempts,
                error,
                nonce,
                message,
                revision,
                standing,
            } = delivery;
            let written = transaction.execute(
                "INSERT OR REPLACE INTO delivery
                     (workflow, channel, person, state, attempts, error, nonce, message, revision, standing)
                 SELECT :workflow, :channel, :person, :state, :attempts, :error, :nonce, :message, :revision, :standing
                 WHERE EXISTS (SELECT 1 FROM workflow WHERE id = :workflow)",
                named_params! {
                    ":workflow": key.workflow.to_string(),
                    ":channel": key.channel.key(),
                    ":person": key.person,
                    ":state": state.word(),
                    ":attempts": attempts,
                    ":error": error,
                    ":nonce": nonce,
                    ":message": message.as_ref().map(ToString::to_string),
                    ":revision": i64::try_from(*revision).unwrap_or(i64::MAX),
                    ":standing": standing.word(),
                },
            )?;
            Ok(written > 0)
        })
    }

    /// Writes how a channel stands.
    pub(super) fn write_report(&mut self, report: &ChannelReport) -> Result<(), WorkflowError> {
        self.write("report a channel", CommitDurability::Process, |transaction| {
            transaction.execute(
                "INSERT OR REPLACE INTO channel (name, state, error, pid, started, reported_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    report.channel.key(),
                    report.state.word(),
                    report.error,
                    report.process.pid,
                    i64::try_from(report.process.started).unwrap_or(i64::MAX),
                    report.reported_at.millis(),
                ],
            )?;
            Ok(())
        })
    }

    /// Forgets how a channel stands.
    pub(super) fn remove_report(&mut self, channel: ChannelName) -> Result<(), WorkflowError> {
        self.write("report a channel", CommitDurability::Process, |transaction| {
            transaction.execute("DELETE FROM channel WHERE name = ?1", [channel.key()])?;
            Ok(())
        })
    }

    /// Reads how every channel stands.
    pub(super) fn list_reports(&self) -> Result<Vec<ChannelReport>, WorkflowError> {
        let read = || -> rusqlite::Result<Vec<ChannelReport>> {
            let mut statement = self
                .connection
                .prepare_cached("SELECT name, state, error, pid, started, reported_at FROM channel")?;
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let name: String = row.get(0)?;
                let word: String = row.get(1)?;
                let state = ChannelState::ALL.into_iter().find(|state| state.word() == word);
                let Some((channel, state)) = name.parse().ok().zip(state) else {
                    continue;
                };
                found.push(ChannelReport {
                    channel,
                    state,
                    error: row.get(2)?,
                    process: ProcessName {
                        pid: row.get(3)?,
                        started: u64::try_from(row.get::<_, i64>(4)?).unwrap_or_default(),
                    },
                    reported_at: Timestamp::from_millis(row.get(5)?),
                });
            }
            Ok(found)
        };
        read().map_err(|source| self.failed("look at the channels", source))
    }
}

/// Reads a row; `None` where this pml does not know its words.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<Delivery>> {
    let text = |column| row.get::<_, String>(column);
    let (workflow, channel, state, standing) = (text(0)?, text(1)?, text(3)?, text(9)?);
    let workflow: Option<WorkflowId> = workflow.parse().ok();
    let channel: Option<ChannelName> = channel.parse().ok();
    let state = DeliveryState::ALL.into_iter().find(|known| known.word() == state);
    let standing = ShownStanding::ALL
        .into_iter()
        .find(|known| known.word() == standing);
    let (Some(workflow), Some(channel), Some(state), Some(standing)) = (workflow, channel, state, standing)
    else {
        return Ok(None);
    };
    let message: Option<String> = row.get(7)?;
    Ok(Some(Delivery {
        key: DeliveryKey {
            workflow,
            channel,
            person: text(2)?,
        },
        state,
        attempts: row.get(4)?,
        error: row.get(5)?,
        nonce: text(6)?,
        message: message.and_then(|message| serde_json::from_str(&message).ok()),
        revision: u64::try_from(row.get::<_, i64>(8)?).unwrap_or_default(),
        standing,
    }))
}

#[cfg(test)]
mod tests;
