//! The records of asks and answers in the history: names and digests, never arguments, reasons or words.

use crate::history::{AnswerShape, Record, Text};
use crate::protocol::continuation::Scope;

use super::machine::{Answer, State};
use super::record::Workflow;

/// Records that a person was asked.
pub(super) fn asked(workflow: &Workflow) -> Record {
    Record::Ask {
        id: Text::of(&workflow.id.to_string()),
        kind: workflow.ask.kind(),
        tool: Text::of(&workflow.call.tool.to_string()),
        launch: workflow.call.launch.clone(),
        project: Text::path(&workflow.project),
        client: workflow.origin.client.name.as_deref().map(Text::of),
    }
}

/// Records an answer; `None` where there is none.
pub(super) fn answered(workflow: &Workflow) -> Option<Record> {
    let (answer, by) = match &workflow.state {
        State::Answered { answer, by, .. } | State::Taken { answer, by, .. } => (answer, by),
        State::Pending | State::Expired | State::Withdrawn => return None,
    };
    Some(Record::Answer {
        id: Text::of(&workflow.id.to_string()),
        kind: workflow.ask.kind(),
        tool: Text::of(&workflow.call.tool.to_string()),
        launch: workflow.call.launch.clone(),
        answer: match answer {
            Answer::Approve { scope: Scope::Once } => AnswerShape::Once,
            Answer::Approve {
                scope: Scope::Session,
            } => AnswerShape::Session,
            Answer::Approve { scope: Scope::Always } => AnswerShape::Always,
            Answer::Refuse { .. } => AnswerShape::Refuse,
            Answer::Answers { .. } => AnswerShape::Answers,
        },
        by: Text::of(&by.to_string()),
    })
}

/// Tells whether a workflow that was just answered and taken had no answer before.
pub(super) fn is_new(workflow: &Workflow) -> bool {
    match &workflow.state {
        State::Taken { at, taken_at, .. } => at == taken_at,
        State::Answered { .. } => true,
        State::Pending | State::Expired | State::Withdrawn => false,
    }
}
