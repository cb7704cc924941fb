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
use super::record::{IN_VAIN, RunRecord, RunState};
use crate::proxy::{Answer, Ask, State, Workflow};

/// How a run goes on.
#[derive(Debug)]
pub enum Resumption {
    /// It waits for a person.
    Waits,
    /// It is over, or another process drives it.
    Not,
    /// No person answered in time: no answer can come any more.
    Expired,
    /// It was resumed several times, and its agent ended every time before it took the answer: a person must have a look.
    InVain,
    /// It can go on.
    Goes(Beginning),
}

impl Resumption {
    /// Says that a run was resumed in vain.
    #[must_use]
    pub fn in_vain() -> String {
        format!("the agent ended {IN_VAIN} times before it took the answer")
    }
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
    let goes = match &record.state {
        RunState::Parked { call } => {
            let kept = record.asks.iter().find(|ask| ask.call == *call);
            let ask = kept.and_then(|kept| asks.iter().find(|ask| ask.id == kept.workflow));
            match ask {
                Some(ask) if ask.state == State::Pending => return Resumption::Waits,
                // The agent asks again and is told.
                Some(ask) if is_decided(ask) => Beginning {
                    opening: Opening::Resume,
                    messages: Vec::new(),
                    input: Input::Ended,
                    told: Vec::new(),
                },
                Some(_) | None => return Resumption::Expired,
            }
        }
        RunState::Lost if record.asks.is_empty() => return Resumption::Not,
        RunState::Lost if asks.iter().any(|ask| ask.state == State::Pending) => return Resumption::Waits,
        RunState::Lost if !asks.iter().any(is_decided) => return Resumption::Expired,
        RunState::Lost => match told_so_far(record, asks, session) {
            Some(mut beginning) => {
                if let (Opening::Resume, Some(first)) = (beginning.opening, beginning.messages.first_mut()) {
                    first.text.push_str("\nContinue.");
                }
                beginning
            }
            None => return Resumption::Expired,
        },
        RunState::Starting
        | RunState::Running
        | RunState::Asking
        | RunState::Idle
        | RunState::Ended { .. } => return Resumption::Not,
    };
    if record.resumed_in_vain >= IN_VAIN {
        return Resumption::InVain;
    }
    Resumption::Goes(goes)
}

/// Tells a lost agent what it asked and what came of it, as far as that is decided.
pub(super) fn told_so_far(record: &RunRecord, asks: &[Workflow], session: KeptSession) -> Option<Beginning> {
    let decided: Vec<_> = asks.iter().filter(|ask| ask.state != State::Pending).collect();
    if decided.is_empty() && session == KeptSession::Written {
        return None;
    }
    let words: Vec<String> = decided.iter().map(|ask| words(ask)).collect();
    let words = words.join("\n");
    let (opening, text) = match session {
        KeptSession::Written => (Opening::Resume, words),
        // There is nothing to go on with: what was wanted is said again, with what was answered since.
        KeptSession::Missing => (
            Opening::Begin,
            format!("{}\n\n{words}", record.prompt).trim_end().to_owned(),
        ),
    };
    Some(Beginning {
        opening,
        messages: vec![Message {
            uuid: uuid::Uuid::new_v4().to_string(),
            text,
            images: Vec::new(),
            priority: Priority::Next,
        }],
        input: Input::Ended,
        told: decided.iter().map(|ask| ask.id).collect(),
    })
}

/// Tells whether a person has said something to an ask.
fn is_decided(ask: &Workflow) -> bool {
    matches!(ask.state, State::Answered { .. } | State::Taken { .. })
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
                Some(Answer::Approve { .. }) if matches!(workflow.state, State::Taken { .. }) => format!(
                    "{wanted} The user approved it, and the session ended before its result was recorded: whether it ran is not known. Look first, and make the call again only where it is still needed; the user is asked again then."
                ),
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
    fn an_approval_that_was_used_is_not_said_to_run_again() {
        let mut used = asked(
            Ask::Use {
                reach: crate::workflow::UseReach::Lasting,
            },
            None,
        );
        used.state = State::Taken {
            answer: Answer::Approve { scope: Scope::Once },
            by: Road::Web.into(),
            at: samples::NOON,
            taken_at: samples::NOON,
        };
        let told = text(decided(RunState::Lost, &used, KeptSession::Written))
            .1
            .unwrap();
        assert!(
            told.contains("whether it ran is not known") && !told.contains("it will run once"),
            "{told}"
        );
    }

    #[test]
    fn a_run_whose_asks_are_forgotten_or_over_is_over() {
        let parked = RunState::Parked {
            call: "t1".to_owned(),
        };
        for state in [parked, RunState::Lost] {
            for over in [State::Expired, State::Withdrawn] {
                let mut workflow = asked(choice(), None);
                workflow.state = over;
                let left = decided(state.clone(), &workflow, KeptSession::Written);
                assert!(matches!(left, Resumption::Expired), "{left:?}");
            }
            let workflow = asked(choice(), None);
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
            let left = resumption(&record, &[], KeptSession::Written);
            assert!(matches!(left, Resumption::Expired), "{left:?}");
        }
    }

    #[test]
    fn a_run_is_not_resumed_for_ever_where_its_agent_never_takes_the_answer() {
        let workflow = asked(choice(), Some(pg()));
        let kept = KeptAsk {
            workflow: workflow.id,
            call: "t1".to_owned(),
            kind: KeptAskKind::Questions,
        };
        let mut lost = RunRecord {
            state: RunState::Lost,
            asks: vec![kept],
            ..record()
        };
        let mut rests = Vec::new();
        for _ in 0..IN_VAIN {
            let goes = resumption(&lost, std::slice::from_ref(&workflow), KeptSession::Written);
            assert!(matches!(goes, Resumption::Goes(_)), "{goes:?}");
            rests.push(lost.rest().as_secs());
            lost.resumed_in_vain += 1;
        }
        assert_eq!(rests, [0, 2, 10]);
        let left = resumption(&lost, std::slice::from_ref(&workflow), KeptSession::Written);
        assert!(matches!(left, Resumption::InVain), "{left:?}");
        assert!(lost.deliver(|_| true));
        assert_eq!(lost.resumed_in_vain, 0);
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
