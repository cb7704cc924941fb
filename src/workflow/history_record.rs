//! The records of asks, their answers and their lapses in the history: names and digests, never arguments, reasons or
//! words.

use crate::history::{AnswerShape, ChangedContent, LapseReason, Record, Text};
use crate::protocol::continuation::Scope;

use super::machine::{Answer, State};
use super::record::{Ask, Workflow};
use super::{SweepReport, WorkflowId};

/// Records that a person was asked.
pub(super) fn asked(workflow: &Workflow) -> Record {
    Record::Ask {
        id: Text::of(&workflow.id.to_string()),
        kind: workflow.ask.kind(),
        tool: Text::of(&workflow.call.tool.to_string()),
        launch: workflow.call.launch.clone(),
        project: Text::path(&workflow.project),
        client: workflow.origin.client.name.as_deref().map(Text::of),
        change: change(&workflow.ask),
    }
}

/// Names what an ask would have accepted, where something changed.
fn change(ask: &Ask) -> Option<ChangedContent> {
    let Ask::Integrity { dependency } = ask else {
        return None;
    };
    let change = dependency.installation.change.as_ref()?;
    Some(ChangedContent {
        of: change.part,
        content: change.content.clone(),
    })
}

/// Records that an ask ended unused; `None` where it did not.
pub(super) fn lapsed(workflow: &Workflow) -> Option<Record> {
    let why = match &workflow.state {
        State::Expired => LapseReason::Expired,
        State::Withdrawn => LapseReason::Withdrawn,
        State::Pending | State::Answered { .. } | State::Taken { .. } => return None,
    };
    Some(lapse(workflow.id, why))
}

/// Records what a sweep ended. Only the process that ended an ask has it in its report, so that it is recorded once.
pub(super) fn swept(report: &SweepReport) -> Vec<Record> {
    let expired = report.expired.iter();
    expired.map(|id| lapse(*id, LapseReason::Expired)).collect()
}

fn lapse(id: WorkflowId, why: LapseReason) -> Record {
    Record::Lapse {
        id: Text::of(&id.to_string()),
        why,
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
        change: change(&workflow.ask),
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
    use crate::protocol::Digest;
    use crate::protocol::approval::{ChangedPart, ShownChange, ShownContents};
    use crate::workflow::samples::{NOON, answers, new, question, workflow};
    use crate::workflow::{Road, Timestamp};

    fn in_state(state: State) -> Workflow {
        Workflow {
            state,
            ..workflow(new("{}").ask)
        }
    }

    #[test]
    fn what_would_be_accepted_of_a_changed_server_is_recorded_with_the_ask_and_with_its_answer() {
        let mut dependency = new("{}").ask.dependency().unwrap().clone();
        assert_eq!(
            change(&Ask::Install {
                dependency: dependency.clone()
            }),
            None
        );
        assert_eq!(
            change(&Ask::Integrity {
                dependency: dependency.clone()
            }),
            None
        );
        for part in [
            ChangedPart::Package,
            ChangedPart::Launch,
            ChangedPart::Tools,
            ChangedPart::Scripts,
        ] {
            let content = Digest::of([format!("{part:?}")]);
            dependency.installation.change = Some(ShownChange {
                part,
                content: content.clone(),
                lines: vec!["! a word of the server".to_owned()],
                summary: Vec::new(),
                missing: 0,
                contents: ShownContents::Whole,
            });
            let ask = Ask::Integrity {
                dependency: dependency.clone(),
            };
            let expected = Some(ChangedContent {
                of: part,
                content: content.clone(),
            });
            assert_eq!(change(&ask), expected);
            let asking = workflow(ask);
            let answering = Workflow {
                state: answered_at_noon(Answer::Approve { scope: Scope::Once }),
                ..asking.clone()
            };
            for record in [asked(&asking), answered(&answering).unwrap()] {
                let written = serde_json::to_value(&record).unwrap();
                assert_eq!(written["content"], content.as_str(), "{written}");
                assert_eq!(written["of"], serde_json::to_value(part).unwrap(), "{written}");
                assert!(!written.to_string().contains("a word of the server"), "{written}");
            }
        }
    }

    #[test]
    fn only_what_ended_unused_is_a_lapse() {
        let id = Text::of(&uuid::Uuid::nil().to_string());
        let approve = || Answer::Approve { scope: Scope::Once };
        for (state, why) in [
            (State::Expired, Some(LapseReason::Expired)),
            (State::Withdrawn, Some(LapseReason::Withdrawn)),
            (State::Pending, None),
            (answered_at_noon(approve()), None),
            (taken(approve(), NOON), None),
        ] {
            let expected = why.map(|why| Record::Lapse { id: id.clone(), why });
            assert_eq!(lapsed(&in_state(state)), expected);
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
                change: None,
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
                        change: None,
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
