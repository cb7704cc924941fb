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

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::workflow::samples::{NOON, answers, new, question, workflow};
    use crate::workflow::{Ask, Road, Timestamp};

    fn in_state(state: State) -> Workflow {
        Workflow {
            state,
            ..workflow(new("{}").ask)
        }
    }

    fn taken(answer: Answer, taken_at: Timestamp) -> State {
        State::Taken {
            answer,
            by: Road::Cli.into(),
            at: NOON,
            taken_at,
        }
    }

    fn answered_at_noon(answer: Answer) -> State {
        State::Answered {
            answer,
            by: Road::Cli.into(),
            at: NOON,
        }
    }

    #[test]
    fn an_ask_and_its_answer_are_recorded_without_arguments_and_words() {
        let mut asking = workflow(Ask::Questions {
            questions: vec![question()],
        });
        asking.origin.client.name = Some("a client".to_owned());
        let (id, tool) = (Text::of(&asking.id.to_string()), Text::of("serena:analyze"));
        assert_eq!(
            asked(&asking),
            Record::Ask {
                id: id.clone(),
                kind: "questions",
                tool: tool.clone(),
                launch: asking.call.launch.clone(),
                project: Text::path(&asking.project),
                client: Some(Text::of("a client")),
            }
        );
        let reason = Some("a word of the user".to_owned());
        for (answer, shape) in [
            (Answer::Approve { scope: Scope::Once }, AnswerShape::Once),
            (
                Answer::Approve {
                    scope: Scope::Session,
                },
                AnswerShape::Session,
            ),
            (Answer::Approve { scope: Scope::Always }, AnswerShape::Always),
            (Answer::Refuse { reason }, AnswerShape::Refuse),
            (answers(), AnswerShape::Answers),
        ] {
            for state in [answered_at_noon(answer.clone()), taken(answer.clone(), NOON)] {
                let answering = Workflow {
                    state,
                    ..asking.clone()
                };
                assert_eq!(
                    answered(&answering),
                    Some(Record::Answer {
                        id: id.clone(),
                        kind: "questions",
                        tool: tool.clone(),
                        launch: asking.call.launch.clone(),
                        answer: shape,
                        by: Text::of("cli"),
                    })
                );
            }
        }
        for state in [State::Pending, State::Expired, State::Withdrawn] {
            assert_eq!(answered(&in_state(state)), None);
        }
    }

    #[test]
    fn an_answer_is_new_to_the_call_that_brought_it_and_not_to_one_that_took_it_later() {
        let approve = || Answer::Approve { scope: Scope::Once };
        let later = Timestamp::from_millis(NOON.millis() + 1);
        for (state, expected) in [
            (taken(approve(), NOON), true),
            (taken(approve(), later), false),
            (answered_at_noon(approve()), true),
            (State::Pending, false),
            (State::Expired, false),
            (State::Withdrawn, false),
        ] {
            assert_eq!(is_new(&in_state(state)), expected);
        }
    }
}
