//! Keeps what a person approved beyond the call it was asked for: the server at exactly this launch.

use crate::permissions::Approved;
use crate::permissions::approved::{ApprovedError, Record};
use crate::protocol::continuation::Scope;
use crate::workflow::{Answer, Ask, State, Timestamp, Workflow};

/// What an approval grants beyond the call it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The server may run from now on, as it was shown.
    Server,
    /// Nothing.
    Nothing,
}

/// Records the approval that an answered workflow stands for; blocking.
///
/// Where `package` is not known here, the first use adds it.
pub fn keep(
    approved: &Approved,
    workflow: &Workflow,
    package: Option<String>,
    now: Timestamp,
) -> Result<Kept, ApprovedError> {
    let (State::Answered { answer, .. } | State::Taken { answer, .. }) = &workflow.state else {
        return Ok(Kept::Nothing);
    };
    let (Ask::Install { dependency } | Ask::Connect { dependency }) = &workflow.ask else {
        return Ok(Kept::Nothing);
    };
    let Answer::Approve {
        scope: Scope::Once | Scope::Always,
    } = answer
    else {
        return Ok(Kept::Nothing);
    };
    let record = Record {
        dependency: workflow.call.tool.dependency().clone(),
        version: dependency.version.clone(),
        integrity: dependency.integrity.clone(),
        package,
        lock: dependency.installation.lock.clone(),
        at_unix_ms: u64::try_from(now.millis()).unwrap_or_default(),
    };
    approved.record(&workflow.call.launch, &record)?;
    Ok(Kept::Server)
}
