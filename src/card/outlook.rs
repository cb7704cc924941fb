//! What an answer will reach: told to a person before they answer.

use serde::Serialize;

use crate::workflow::{Ask, AskAttendance, Workflow};

/// Whether the process that asked still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It does.
    Running,
    /// It does not, or it cannot be told any more which process it was.
    Gone,
}

/// What an answer will reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outlook {
    /// The call that waits for it.
    Call,
    /// The agent, when it comes back for the answer.
    Continuation,
    /// The next time that an agent of this project asks the same.
    NextQuestion,
    /// The next identical call, once.
    NextCall,
    /// The file itself, from now on.
    File,
    /// The run that asked, which goes on with it.
    Run,
}

impl Outlook {
    /// Tells what an answer to an ask will reach.
    #[must_use]
    pub fn of(workflow: &Workflow, presence: Presence) -> Self {
        match (presence, workflow.attended, &workflow.ask) {
            (Presence::Running, AskAttendance::ByItsCall, _) => Self::Call,
            _ if workflow.origin.client.run.is_some() => Self::Run,
            (Presence::Running, AskAttendance::ByNone, _) => Self::Continuation,
            (Presence::Gone, _, Ask::Questions { .. }) => Self::NextQuestion,
            (
                Presence::Gone,
                _,
                Ask::Install { .. }
                | Ask::Connect { .. }
                | Ask::Permit { .. }
                | Ask::Use { .. }
                | Ask::Integrity { .. },
            ) => Self::NextCall,
            (Presence::Gone, _, Ask::Trust { .. }) => Self::File,
        }
    }

    /// Says it to a person.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Call => "the agent waits for this",
            Self::Continuation => "the agent went on and comes back for your answer",
            Self::NextQuestion => "the agent is gone; your answer is kept for its next question",
            Self::NextCall => {
                "the agent is gone; a yes lets its next identical call run once, until the deadline"
            }
            Self::Run => "the agent was put aside; your answer resumes it",
            Self::File => "the agent is gone; a yes counts for the file from now on",
        }
    }
}
