//! Logs what happens to workflows: their names, never their arguments or the words of an answer.

use super::machine::State;
use super::record::Workflow;
use crate::protocol::Shown;

const TARGET: &str = "pml::workflow";

/// Logs that a call was suspended.
pub(super) fn created(workflow: &Workflow) {
    let Workflow { id, code, call, .. } = workflow;
    let tool = call.tool.to_string();
    tracing::info!(target: TARGET, %id, %code, tool = %Shown::line(&tool), "created");
}

/// Logs every step that led from `before` to where the workflow stands.
pub(super) fn moved(before: &State, workflow: &Workflow) {
    let Workflow {
        id,
        code,
        call,
        state,
        ..
    } = workflow;
    let tool = call.tool.to_string();
    let tool = Shown::line(&tool);
    match state {
        State::Pending => {}
        State::Answered { by, .. } => tracing::info!(target: TARGET, %id, %code, %tool, %by, "answered"),
        State::Taken { by, .. } => {
            if *before == State::Pending {
                tracing::info!(target: TARGET, %id, %code, %tool, %by, "answered");
            }
            tracing::info!(target: TARGET, %id, %code, %tool, "taken");
        }
        State::Expired => tracing::info!(target: TARGET, %id, %code, %tool, "expired"),
        State::Withdrawn => tracing::info!(target: TARGET, %id, %code, %tool, "withdrawn"),
    }
}

/// Logs that a row met its deadline, by what the row itself says.
pub(super) fn expired(id: &str, code: &str, tool: &str) {
    let (id, code, tool) = (Shown::line(id), Shown::line(code), Shown::line(tool));
    tracing::info!(target: TARGET, %id, %code, %tool, "expired");
}

/// Warns that a row was left out because this pml cannot read it.
pub(super) fn unreadable(id: &str, error: &dyn std::error::Error) {
    let id = Shown::line(id);
    tracing::warn!(target: TARGET, %id, %error, "a workflow cannot be read and is left out");
}
