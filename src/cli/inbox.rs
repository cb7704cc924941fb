//! The shared parts of the inbox commands: the store, an answer from this terminal, a workflow as JSON for scripts.
//!
//! They need no running pml: the store is shared by every process of the user, and a waiting pml looks there.

use serde_json::{Value, json};

use super::CommandContext;
use super::failure::Hinted as _;
use crate::proxy::now;
use crate::workflow::{Answer, Ask, Place, Provenance, RecordedAnswer, Store, Workflow, WorkflowError};

/// The hint to a person whose answer does not count any more.
const TOO_LATE: &str = "to see what became of it: pml log";

/// Opens the workflows of the user.
pub(super) fn open(context: &CommandContext) -> Result<Box<dyn Store>, WorkflowError> {
    Place::of(&context.locations).open()
}

/// Tells before a person thinks about it that an answer would come too late.
pub(super) fn still_open(workflow: &Workflow) -> anyhow::Result<()> {
    accepts(workflow, &Answer::Refuse { reason: None })
}

/// Checks that an answer from this terminal would count, without recording it.
pub(super) fn accepts(workflow: &Workflow, answer: &Answer) -> anyhow::Result<()> {
    let accepted = workflow.accepts(answer, Provenance::Cli, now());
    accepted.or_else(|error| not_recorded(workflow, error))
}

/// Returns an answer from this terminal that approves nothing beyond its call.
pub(super) fn plain(answer: Answer) -> RecordedAnswer {
    RecordedAnswer {
        answer,
        by: Provenance::Cli,
        approves: None,
    }
}

/// Records the answer of the person at this terminal, or says why it does not count.
pub(super) fn answer(
    store: &mut dyn Store,
    workflow: &Workflow,
    given: RecordedAnswer,
) -> anyhow::Result<Workflow> {
    match store.answer(workflow.id, given, now()) {
        Ok(answered) => {
            // A refusal erases the arguments; the log of the database must not keep them. A process that is reading
            // it now shortens it later.
            let _ = store.erase_traces();
            Ok(answered)
        }
        Err(error) => not_recorded(workflow, error),
    }
}

/// Says what to do instead where an answer does not count.
fn not_recorded<T>(workflow: &Workflow, error: WorkflowError) -> anyhow::Result<T> {
    let code = &workflow.code;
    match error {
        error @ WorkflowError::Unfit { .. } => Err(error).hint(match &workflow.ask {
            Ask::Questions { .. } => format!("to answer it: pml answer {code}"),
            Ask::Install { .. } | Ask::Connect { .. } | Ask::Permit { .. } | Ask::Use => {
                format!("to decide it: pml approve {code}, or pml refuse {code}")
            }
        }),
        error @ WorkflowError::Refused { .. } => Err(error).hint(TOO_LATE),
        error => Err(error.into()),
    }
}

/// Returns what scripts need to know a workflow again, without what is asked.
pub(super) fn json(workflow: &Workflow) -> Value {
    json!({
        "code": workflow.code,
        "id": workflow.id,
        "tool": workflow.call.tool,
        "kind": workflow.ask.kind(),
        "project": workflow.project.to_string_lossy(),
        "createdAt": workflow.created_at,
        "expiresAt": workflow.expires_at,
    })
}
