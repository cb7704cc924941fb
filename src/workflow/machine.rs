//! The state machine of a suspended call, as one pure function: no IO, no async, no clock.
//!
//! The caller passes the current time in; an event that the state does not allow is a [`TransitionError`] with its own
//! message. Outside its lifetime a workflow is dead even if the store has not marked it as expired yet.

use serde::{Deserialize, Serialize};

use super::{Lifetime, Provenance, Timestamp};
use crate::protocol::Shown;
use crate::protocol::continuation::Scope;
use crate::protocol::question::QuestionAnswer;

/// The answer of the person or client that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Answer {
    /// The call may run.
    Approve {
        /// How far the approval reaches.
        scope: Scope,
    },
    /// The call must not run, the question is not answered.
    Refuse {
        /// The reason that the refusal gave.
        reason: Option<String>,
    },
    /// What a person says to questions, one answer each.
    Answers {
        /// The answers in the order of the questions.
        answers: Vec<QuestionAnswer>,
    },
}

/// The state of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Waits for its answer.
    Pending,
    /// Has its one answer; an approved call waits to be taken, a refused one never is.
    Answered {
        /// The first answer, which is the only one.
        answer: Answer,
        /// Where it came from.
        by: Provenance,
        /// When it came.
        at: Timestamp,
    },
    /// Was approved and handed to the one who runs it.
    Taken {
        /// The answer that allowed it.
        answer: Answer,
        /// The road on which that came.
        by: Provenance,
        /// When that came.
        at: Timestamp,
        /// When the call was handed out.
        taken_at: Timestamp,
    },
    /// Reached its deadline before it was taken.
    Expired,
    /// Was taken back by the one who asked.
    Withdrawn,
}

/// What a state still allows; the store keeps arguments only while something is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Can be answered.
    Pending,
    /// Has an answer that can be taken: an approval, or answers.
    Approved,
    /// Never changes again.
    Final,
}

impl State {
    /// Tells what this state still allows.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self {
            Self::Pending => Phase::Pending,
            Self::Answered {
                answer: Answer::Approve { .. } | Answer::Answers { .. },
                ..
            } => Phase::Approved,
            Self::Answered {
                answer: Answer::Refuse { .. },
                ..
            }
            | Self::Taken { .. }
            | Self::Expired
            | Self::Withdrawn => Phase::Final,
        }
    }
}

/// What may happen to a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An answer arrives.
    Answer {
        /// What they say.
        answer: Answer,
        /// The road on which it comes.
        by: Provenance,
    },
    /// The call is handed out to be run.
    Take,
    /// The deadline is noticed.
    Expire,
    /// The one who asked takes the call back, which counts where nothing was answered first.
    Withdraw,
}

/// Says why a workflow did not move; reads on after "workflow `abcde`".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    /// The deadline has passed.
    #[error("expired at {expires_at}")]
    Expired {
        /// The deadline.
        expires_at: Timestamp,
    },
    /// The deadline is still ahead.
    #[error("does not expire before {expires_at}")]
    NotDue {
        /// The deadline.
        expires_at: Timestamp,
    },
    /// Another answer was first.
    #[error("was already {} by {by} at {at}; the first answer counts", word(.answer))]
    AlreadyAnswered {
        /// The first answer.
        answer: Answer,
        /// Where it came from.
        by: Provenance,
        /// When it came.
        at: Timestamp,
    },
    /// The call was handed out before.
    #[error("was already used at {taken_at}")]
    AlreadyUsed {
        /// When it was handed out.
        taken_at: Timestamp,
    },
    /// No answer has arrived.
    #[error("is not answered yet")]
    NotAnswered,
    /// The answer was no.
    #[error("was refused by {by}{}", because(.reason.as_deref()))]
    Refused {
        /// The reason that the refusal gave.
        reason: Option<String>,
        /// The road on which the refusal came.
        by: Provenance,
    },
    /// The one who asked took it back.
    #[error("was withdrawn")]
    Withdrawn,
}

fn word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Approve { .. } => "approved",
        Answer::Refuse { .. } => "refused",
        Answer::Answers { .. } => "answered",
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {}", Shown::line(reason)))
}

/// Moves a workflow that lives for `lifetime` by `event` at the moment `now`, or says why it does not move.
pub fn transition(
    state: &State,
    lifetime: Lifetime,
    event: Event,
    now: Timestamp,
) -> Result<State, TransitionError> {
    let expires_at = lifetime.expires_at;
    match state {
        State::Expired => Err(TransitionError::Expired { expires_at }),
        State::Withdrawn => Err(TransitionError::Withdrawn),
        State::Taken { taken_at, .. } => Err(TransitionError::AlreadyUsed { taken_at: *taken_at }),
        State::Answered {
            answer: Answer::Refuse { reason },
            by,
            at,
        } => Err(match event {
            Event::Answer { .. } => TransitionError::AlreadyAnswered {
                answer: Answer::Refuse {
                    reason: reason.clone(),
                },
                by: by.clone(),
                at: *at,
            },
            Event::Take | Event::Expire | Event::Withdraw => TransitionError::Refused {
                reason: reason.clone(),
                by: by.clone(),
            },
        }),
        State::Pending
        | State::Answered {
            answer: Answer::Approve { .. } | Answer::Answers { .. },
            ..
        } if !lifetime.is_live_at(now) => match event {
            Event::Expire => Ok(State::Expired),
            Event::Answer { .. } | Event::Take | Event::Withdraw => {
                Err(TransitionError::Expired { expires_at })
            }
        },
        State::Pending => match event {
            Event::Answer { answer, by } => Ok(State::Answered { answer, by, at: now }),
            Event::Take => Err(TransitionError::NotAnswered),
            Event::Expire => Err(TransitionError::NotDue { expires_at }),
            Event::Withdraw => Ok(State::Withdrawn),
        },
        State::Answered {
            answer: answer @ (Answer::Approve { .. } | Answer::Answers { .. }),
            by,
            at,
        } => match event {
            // An answer that a person was told is recorded is not lost to whoever does not wait for it any more.
            Event::Answer { .. } | Event::Withdraw => Err(TransitionError::AlreadyAnswered {
                answer: answer.clone(),
                by: by.clone(),
                at: *at,
            }),
            Event::Take => Ok(State::Taken {
                answer: answer.clone(),
                by: by.clone(),
                at: *at,
                taken_at: now,
            }),
            Event::Expire => Err(TransitionError::NotDue { expires_at }),
        },
    }
}

/// Moves a workflow by an answer that wants to go on at once: an approval also takes the call.
///
/// Where the very same answer came first, it takes the call under that one. Where another approval came first, nothing
/// moves: what is granted beyond the call is written down before it is taken, and that was for this answer.
pub(super) fn answer_and_take(
    state: &State,
    lifetime: Lifetime,
    answer: Answer,
    by: Provenance,
    now: Timestamp,
) -> Result<State, TransitionError> {
    let approves = matches!(answer, Answer::Approve { .. } | Answer::Answers { .. });
    match state {
        State::Pending if approves => {
            let answered = transition(state, lifetime, Event::Answer { answer, by }, now)?;
            transition(&answered, lifetime, Event::Take, now)
        }
        // A refused call stays refused: the first answer counts.
        State::Answered {
            answer: Answer::Refuse { .. },
            ..
        } => transition(state, lifetime, Event::Take, now),
        State::Answered { answer: first, .. } if *first != answer => {
            transition(state, lifetime, Event::Answer { answer, by }, now)
        }
        _ if approves => transition(state, lifetime, Event::Take, now),
        _ => transition(state, lifetime, Event::Answer { answer, by }, now),
    }
}

#[cfg(test)]
mod tests;
