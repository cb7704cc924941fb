//! How a run goes on after an answer that came while no process drove it.
//!
//! | the run | what the agent gets |
//! |---|---|
//! | parked | nothing: it asks again before the very call, and is answered there |
//! | lost | a message that says what it asked and what was answered; a use that was approved is let through once when it comes again |

use super::claude::Opening;
use super::driver::Beginning;
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

/// Decides how a run goes on; `asks` are its asks as they stand in the store.
#[must_use]
pub(super) fn resumption(record: &RunRecord, asks: &[Workflow]) -> Resumption {
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
            let text = format!("{}\nContinue.", words.join("\n"));
            Resumption::Goes(Beginning {
                opening: Opening::Resume,
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
