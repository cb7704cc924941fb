//! Suspends a call: finds the ask or the answer that is there already, or writes a new row.

use rusqlite::Transaction;
use uuid::Uuid;

use super::durability::CommitDurability;
use super::look::{many, one};
use super::{SqliteStore, advance, capacity, row};
use crate::protocol::Digest;
use crate::workflow::lifetime::LIVE;
use crate::workflow::store::is_left_by_its_owner;
use crate::workflow::{
    Arguments, Asker, Code, CreationReport, NewWorkflow, State, Suspension, Timestamp, Workflow,
    WorkflowError, WorkflowId, digests, lifecycle,
};

impl SqliteStore {
    pub(super) fn suspend(
        &mut self,
        new: NewWorkflow,
        now: Timestamp,
    ) -> Result<CreationReport, WorkflowError> {
        if new.call.arguments == Arguments::Erased {
            return Err(WorkflowError::Erased { tool: new.call.tool });
        }
        let found = |suspension| CreationReport {
            suspension,
            expired: None,
        };
        let report = self.write("suspend a call", CommitDurability::Process, |transaction| {
            let (identity, alike) = (digests::ask_digest(&new)?, digests::call_digest(&new)?);
            if let Some(answered) = answered(transaction, &alike, new.origin.asker, now)? {
                return Ok(found(Suspension::Answered(answered)));
            }
            let same = one(
                transaction,
                "identity = ?1 AND phase = 'pending'",
                &identity.as_str(),
            )?;
            let expired = match same {
                Some(same) if same.is_live_at(now) => return Ok(found(Suspension::Existing(same))),
                Some(dead) => Some(advance(transaction, dead, State::Expired)?),
                None => None,
            };
            if let Some(cap) = capacity::waiting(transaction, &new, now)?.exceeded() {
                return Err(WorkflowError::Full { cap }.into());
            }
            let mut workflow = Workflow {
                id: WorkflowId::new(Uuid::new_v4()),
                code: free_code(transaction)?,
                ask: new.ask,
                call: new.call,
                project: new.project,
                origin: new.origin,
                created_at: now,
                expires_at: now.plus(new.time_to_live),
                state: State::Pending,
                attended: new.attended,
                channel: new.channel,
                revision: 0,
            };
            row::insert(transaction, &workflow, (&identity, &alike))?;
            workflow.revision = row::revision(transaction, workflow.id)?;
            Ok(CreationReport {
                suspension: Suspension::New(workflow),
                expired,
            })
        })?;
        if let Some(expired) = &report.expired {
            lifecycle::moved(&State::Pending, expired);
        }
        if let Suspension::New(workflow) = &report.suspension {
            lifecycle::created(workflow);
        }
        Ok(report)
    }
}

/// Finds the answer to an identical call that waits to be taken, the oldest first.
fn answered(
    transaction: &Transaction<'_>,
    likeness: &Digest,
    asker: Asker,
    now: Timestamp,
) -> rusqlite::Result<Option<Workflow>> {
    let approved = format!("phase = 'approved' AND likeness = ?2 AND {LIVE}");
    let oldest_first = "ORDER BY created_at, id";
    let (likeness, now_millis, asker) = (likeness.as_str(), now.millis(), asker.to_string());
    let free = format!("{approved} AND (asker = ?3 OR attended = 0) {oldest_first}");
    let found = many(transaction, &free, &[&now_millis, &likeness, &asker])?;
    if let Some(first) = found.into_iter().next() {
        return Ok(Some(first));
    }
    let attended = format!("{approved} {oldest_first}");
    let found = many(transaction, &attended, &[&now_millis, &likeness])?;
    Ok(found
        .into_iter()
        .find(|workflow| is_left_by_its_owner(workflow, now)))
}

/// Draws a code that no live workflow has.
fn free_code(transaction: &Transaction<'_>) -> rusqlite::Result<Code> {
    loop {
        // The low half of a random UUID has 62 random bits below its variant.
        let code = Code::of_bits(Uuid::new_v4().as_u64_pair().1 & (u64::MAX >> 2));
        let taken: bool = transaction.query_row(
            "SELECT EXISTS (SELECT 1 FROM workflow WHERE code = ?1 AND phase <> 'final')",
            [code.as_str()],
            |row| row.get(0),
        )?;
        if !taken {
            return Ok(code);
        }
    }
}
