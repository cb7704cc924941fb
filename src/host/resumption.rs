//! How a run goes on after an answer that came while no process drove it.
//!
//! | the run | what the agent gets |
//! |---|---|
//! | parked | nothing: it asks again before the very call, and is answered there |
//! | lost before its session was written | what was wanted once more, with what was answered since |
//! | lost | a message that says what it asked and what was answered; a use that was approved is let through once when it comes again |

use super::claude::Opening;
use super::hosted_run::Beginning;
use super::machine::Input;
use super::message::{Message, Priority};
use super::record::{RunRecord, RunState};
use crate::proxy::{Answer, Ask, State, Workflow, WorkflowId};

/// How a run goes on.
#[derive(Debug)]
pub enum Resumption {
    /// It waits for a person.
    Waits,
    /// It is over, or another process drives it.
    Not,
    /// It can go on.
    Goes(Beginning),
}

/// Whether an agent wrote its session down before it was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptSession {
    /// It did, as far as is known.
    Written,
    /// It was killed in its first moments.
    Missing,
}

/// Decides how a run goes on; `asks` are its asks as they stand in the store.
#[must_use]
pub(super) fn resumption(record: &RunRecord, asks: &[Workflow], session: KeptSession) -> Resumption {
    let open = |workflow: &&Workflow| workflow.state == State::Pending;
    match &record.state {
        RunState::Parked { call } => {
            let kept = record.asks.iter().find(|ask| ask.call == *call);
            let ask = kept.and_then(|kept| asks.iter().find(|ask| ask.id == kept.workflow));
            match ask {
                Some(ask) if ask.state == State::Pending => Resumption::Waits,
                // Answered, expired or withdrawn: the agent asks again and is told.
                Some(_) | None => Resumption::Goes(Beginning {
                    opening: Opening::Resume,
                    messages: Vec::new(),
                    input: Input::Ended,
                    told: Vec::new(),
                }),
            }
        }
        RunState::Lost if record.asks.is_empty() => Resumption::Not,
        RunState::Lost if asks.iter().any(|ask| open(&ask)) => Resumption::Waits,
        RunState::Lost => {
            let told: Vec<WorkflowId> = asks.iter().map(|ask| ask.id).collect();
            let words: Vec<String> = asks.iter().map(words).collect();
            let (opening, text) = match session {
                KeptSession::Written => (Opening::Resume, format!("{}\nContinue.", words.join("\n"))),
                // There is nothing to go on with: what was wanted is said again, with what was answered since.
                KeptSession::Missing => (
                    Opening::Begin,
                    format!("{}\n\n{}", record.prompt, words.join("\n")),
                ),
            };
            Resumption::Goes(Beginning {
                opening,
                messages: vec![Message {
                    uuid: uuid::Uuid::new_v4().to_string(),
                    text,
                    images: Vec::new(),
                    priority: Priority::Next,
                }],
                input: Input::Ended,
                told,
            })
        }
        RunState::Starting
        | RunState::Running
        | RunState::Asking
        | RunState::Idle
        | RunState::Ended { .. } => Resumption::Not,
    }
}

/// Says to the agent what it asked and what came of it.
fn words(workflow: &Workflow) -> String {
    match (&workflow.ask, workflow.answer()) {
        (Ask::Questions { questions }, Some(Answer::Answers { answers })) => {
            let pairs = questions.iter().zip(answers).map(|(question, answer)| {
                let given = if answer.is_unanswered() {
                    "The user left it unanswered.".to_owned()
                } else {
                    format!("The user answered: {}.", answer.values().join(", "))
                };
                format!("You previously asked: {} {given}", question.question)
            });
            pairs.collect::<Vec<_>>().join("\n")
        }
        (Ask::Questions { questions }, answer) => {
            let asked: Vec<_> = questions
                .iter()
                .map(|question| question.question.as_str())
                .collect();
            let reason = match answer {
                Some(Answer::Refuse { reason: Some(reason) }) => {
                    format!("The user would not answer: {reason}")
                }
                Some(Answer::Refuse { reason: None }) => "The user would not answer.".to_owned(),
                _ => "No answer came. Do not assume one.".to_owned(),
            };
            format!("You previously asked: {} {reason}", asked.join(" "))
        }
        (_, answer) => {
            let tool = workflow.call.tool.tool();
            let wanted = format!("You previously asked for permission to use {tool}.");
            match answer {
                Some(Answer::Approve { .. }) => format!(
                    "{wanted} It did not run. The user has approved it since: make the very same call again, and it will run once."
                ),
                Some(Answer::Refuse { reason: Some(reason) }) => {
                    format!("{wanted} It did not run, and the user refused it: {reason}")
                }
                Some(Answer::Refuse { reason: None }) => {
                    format!("{wanted} It did not run, and the user refused it.")
                }
                Some(Answer::Answers { .. }) | None => {
                    format!("{wanted} It did not run, and no answer came.")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::record::tests::record;
    use crate::host::record::{KeptAsk, KeptAskKind};
    use crate::protocol::question::QuestionAnswer;
    use crate::workflow::{Road, Scope, samples};

    fn asked(ask: Ask, answer: Option<Answer>) -> Workflow {
        let mut workflow = samples::workflow(ask);
        if let Some(answer) = answer {
            workflow.state = State::Answered {
                answer,
                by: Road::Web.into(),
                at: samples::NOON,
            };
        }
        workflow
    }

    fn choice() -> Ask {
        Ask::Questions {
            questions: vec![samples::choice("Which db?", &["pg", "sqlite"])],
        }
    }

    fn pg() -> Answer {
        let answer = QuestionAnswer {
            labels: vec!["pg".to_owned()],
            text: None,
        };
        Answer::Answers {
            answers: vec![answer],
        }
    }

    fn decided(state: RunState, workflow: &Workflow, session: KeptSession) -> Resumption {
        let kept = KeptAsk {
            workflow: workflow.id,
            call: "t1".to_owned(),
            kind: KeptAskKind::Questions,
        };
        let record = RunRecord {
            state,
            asks: vec![kept],
            ..record()
        };
        resumption(&record, std::slice::from_ref(workflow), session)
    }

    fn text(resumption: Resumption) -> (Opening, Option<String>) {
        match resumption {
            Resumption::Goes(beginning) => (
                beginning.opening,
                beginning.messages.into_iter().next().map(|first| first.text),
            ),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_parked_run_goes_on_without_a_message_once_it_is_answered() {
        let parked = || RunState::Parked {
            call: "t1".to_owned(),
        };
        let open = decided(parked(), &asked(choice(), None), KeptSession::Written);
        assert!(matches!(open, Resumption::Waits), "{open:?}");
        let answered = decided(parked(), &asked(choice(), Some(pg())), KeptSession::Written);
        assert_eq!(text(answered), (Opening::Resume, None));
    }

    #[test]
    fn a_lost_run_is_told_what_it_asked_and_what_was_answered() {
        let told = |ask, answer| {
            text(decided(
                RunState::Lost,
                &asked(ask, Some(answer)),
                KeptSession::Written,
            ))
            .1
            .unwrap()
        };
        assert_eq!(
            told(choice(), pg()),
            "You previously asked: Which db? The user answered: pg.\nContinue."
        );
        let no = Answer::Refuse {
            reason: Some("not now".to_owned()),
        };
        assert_eq!(
            told(choice(), no),
            "You previously asked: Which db? The user would not answer: not now\nContinue."
        );
        let yes = told(
            Ask::Use {
                reach: crate::workflow::UseReach::Lasting,
            },
            Answer::Approve { scope: Scope::Once },
        );
        assert!(
            yes.contains("make the very same call again, and it will run once"),
            "{yes}"
        );
    }

    #[test]
    fn a_session_that_was_never_written_is_begun_again_with_what_was_wanted() {
        let begun = decided(RunState::Lost, &asked(choice(), Some(pg())), KeptSession::Missing);
        let expected = "fix the test\n\nYou previously asked: Which db? The user answered: pg.".to_owned();
        assert_eq!(text(begun), (Opening::Begin, Some(expected)));
    }

    #[test]
    fn a_run_that_is_over_or_asks_nothing_does_not_go_on() {
        let lost = RunRecord {
            state: RunState::Lost,
            ..record()
        };
        assert!(matches!(
            resumption(&lost, &[], KeptSession::Written),
            Resumption::Not
        ));
        let running = decided(
            RunState::Running,
            &asked(choice(), Some(pg())),
            KeptSession::Written,
        );
        assert!(matches!(running, Resumption::Not), "{running:?}");
    }
}
