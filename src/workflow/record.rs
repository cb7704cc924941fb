//! The record of a workflow: the suspended call and the ask that a person answers. Plain data, pure.
//!
//! The arguments may hold secrets. Their `Debug` shows a length only, and they exist only while the call can
//! still run: see [`Arguments::Erased`].

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Answer, Asker, AskingClient, Code, Event, Lifetime, Provenance, Road, State, Timestamp, TransitionError,
    WorkflowError, WorkflowId, machine,
};
use crate::config::{By, ChannelName};
use crate::protocol::approval::{ShownDependency, ShownProjectFile};
use crate::protocol::question::Question;
use crate::protocol::{Digest, Excerpt, ToolName};

/// What a person is asked; which tool it is about stands once, in the [`SuspendedCall`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// May this dependency be installed, or started for the first time at this version?
    Install {
        /// What the person is shown of it.
        dependency: ShownDependency,
    },
    /// May this server elsewhere be connected to for the first time?
    Connect {
        /// What the person is shown of it.
        dependency: ShownDependency,
    },
    /// May this very call run?
    Permit {
        /// What the person is shown of the dependency it goes to.
        dependency: ShownDependency,
    },
    /// May the client use one of its own tools, with the arguments of the call?
    Use {
        /// How far an approval may reach, as the client says.
        #[serde(default, skip_serializing_if = "UseReach::is_lasting")]
        reach: UseReach,
    },
    /// Does this file of a project count as the person's word?
    Trust {
        /// What the person is shown of it.
        file: ShownProjectFile,
    },
    /// May this server run although it is not what the person accepted?
    Integrity {
        /// What the person is shown of it, with what differs.
        dependency: ShownDependency,
    },
    /// What does the person say to these?
    Questions {
        /// The questions.
        questions: Vec<Question>,
    },
}

/// How far the approval of a use may reach, as the client says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UseReach {
    /// Beyond this use, if the person wants that.
    #[default]
    Lasting,
    /// This use only: the client wants its person to be asked each time.
    OnceOnly,
    /// Beyond this use, and for a session as wide as the client proposes.
    Proposed {
        /// What it proposes not to ask about again, one thing each. They repeat arguments, so they leave the disk with those.
        grants: Vec<String>,
    },
}

impl UseReach {
    fn is_lasting(&self) -> bool {
        *self == Self::Lasting
    }
}

impl Ask {
    /// Tells whether an answer is one to this ask; a refusal always is.
    #[must_use]
    pub fn takes(&self, answer: &Answer) -> bool {
        match answer {
            Answer::Refuse { .. } => true,
            Answer::Approve { .. } => !matches!(self, Self::Questions { .. }),
            Answer::Answers { answers } => {
                matches!(self, Self::Questions { questions } if questions.len() == answers.len())
            }
        }
    }

    /// Says what an answer to this must be.
    #[must_use]
    pub fn wants(&self) -> &'static str {
        match self {
            Self::Install { .. }
            | Self::Connect { .. }
            | Self::Permit { .. }
            | Self::Use { .. }
            | Self::Trust { .. }
            | Self::Integrity { .. } => "an approval or a refusal",
            Self::Questions { .. } => "an answer to each of its questions",
        }
    }

    /// Names what kind of ask this is.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Install { .. } => "install",
            Self::Connect { .. } => "connect",
            Self::Permit { .. } => "permit",
            Self::Use { .. } => "use",
            Self::Trust { .. } => "trust",
            Self::Integrity { .. } => "integrity",
            Self::Questions { .. } => "questions",
        }
    }

    /// Returns what the person is shown of the dependency, where it is about one.
    #[must_use]
    pub fn dependency(&self) -> Option<&ShownDependency> {
        match self {
            Self::Install { dependency }
            | Self::Connect { dependency }
            | Self::Permit { dependency }
            | Self::Integrity { dependency } => Some(dependency),
            Self::Use { .. } | Self::Trust { .. } | Self::Questions { .. } => None,
        }
    }

    /// Returns what an approval for the session grants where a client proposes that itself, as a person is shown it. It
    /// repeats arguments, so it is escaped as they are, and its secrets are hidden.
    #[must_use]
    pub fn proposed_grants(&self) -> Vec<String> {
        let grants: &[String] = match self {
            Self::Use {
                reach: UseReach::Proposed { grants },
            } => grants,
            _ => &[],
        };
        let shown = grants.iter().map(|grant| {
            let quoted = Excerpt::whole(&serde_json::Value::from(grant.as_str()).to_string()).text;
            let bare = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            bare.unwrap_or(&quoted).to_owned()
        });
        shown.collect()
    }
}

/// The call that runs if it is approved; it comes from the store, so a continuation cannot change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspendedCall {
    /// The tool, as policy names it.
    pub tool: ToolName,
    /// The arguments, byte for byte as they came.
    pub arguments: Arguments,
    /// The digest of what would be launched, as it was when the person was asked.
    pub launch: Digest,
}

/// The arguments of a suspended call.
#[derive(Clone, PartialEq, Eq)]
pub enum Arguments {
    /// The call came without any.
    Absent,
    /// The JSON text exactly as it came.
    Json(String),
    /// The call can never run again, or was handed to another caller: its arguments are gone.
    Erased,
}

impl Arguments {
    /// Returns the text as bytes; `None` where there is none.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Absent | Self::Erased => None,
            Self::Json(text) => Some(text.as_bytes()),
        }
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => formatter.write_str("Absent"),
            Self::Json(text) => write!(formatter, "Json({} bytes)", text.len()),
            Self::Erased => formatter.write_str("Erased"),
        }
    }
}

/// The conversation that asks, and the configuration it asks under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The project's file of that configuration.
    pub config: PathBuf,
    /// Who may answer, as the configuration said when the ask was made.
    pub by: By,
    /// The conversation.
    pub asker: Asker,
    /// Its client, for people.
    pub client: AskingClient,
}

/// Whether a call waits for the answer to its ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskAttendance {
    /// It does, and takes the answer as soon as there is one.
    ByItsCall,
    /// It was answered with the ask itself; the answer is fetched later, if at all.
    ByNone,
}

/// The data of a workflow that is to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWorkflow {
    /// What a person is asked.
    pub ask: Ask,
    /// What runs if they approve.
    pub call: SuspendedCall,
    /// How long the answer may take.
    pub time_to_live: Duration,
    /// The project the call belongs to.
    pub project: PathBuf,
    /// Who asks.
    pub origin: Origin,
    /// Whether the call waits for the answer.
    pub attended: AskAttendance,
    /// Tells apart identical asks of one conversation whose calls wait at the same time; 0 for the first.
    pub twin: u32,
    /// The channel that the asker named.
    pub channel: Option<ChannelName>,
}

/// A call suspended until one answer arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// The name that continues it.
    pub id: WorkflowId,
    /// The name by which people speak of it.
    pub code: Code,
    /// What a person is asked.
    pub ask: Ask,
    /// What runs if they approve.
    pub call: SuspendedCall,
    /// The project the call belongs to.
    pub project: PathBuf,
    /// Who asks.
    pub origin: Origin,
    /// When it was suspended.
    pub created_at: Timestamp,
    /// When it dies unless it was taken before.
    pub expires_at: Timestamp,
    /// Where it stands.
    pub state: State,
    /// Whether its call waits for the answer.
    pub attended: AskAttendance,
    /// The channel that the asker named.
    pub channel: Option<ChannelName>,
    /// Which change of all workflows was the newest of this one.
    pub revision: u64,
}

impl Workflow {
    /// Returns from when to when it can be answered and taken.
    #[must_use]
    pub fn lifetime(&self) -> Lifetime {
        Lifetime {
            created_at: self.created_at,
            expires_at: self.expires_at,
        }
    }

    /// Returns the key of the channel that the asker named.
    #[must_use]
    pub fn channel_key(&self) -> Option<&'static str> {
        self.channel.map(ChannelName::key)
    }

    /// Returns the answer it has, taken or not.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        match &self.state {
            State::Answered { answer, .. } | State::Taken { answer, .. } => Some(answer),
            State::Pending | State::Expired | State::Withdrawn => None,
        }
    }

    /// Checks that an answer would still be recorded at `now`; whether it fits is not asked.
    pub fn takes_answers_at(&self, now: Timestamp) -> Result<(), WorkflowError> {
        // A refusal is an answer to every ask.
        let event = Event::Answer {
            answer: Answer::Refuse { reason: None },
            by: Road::Rule.into(),
        };
        let moved = machine::transition(&self.state, self.lifetime(), event, now);
        moved.map(drop).map_err(|refusal| self.refused(refusal))
    }

    /// Checks that the call would be taken at `now` by this answer, or without one, and does not take it.
    pub fn yields_to(
        &self,
        answer: Option<&(Answer, Provenance)>,
        now: Timestamp,
    ) -> Result<(), WorkflowError> {
        let moved = match answer {
            Some((answer, by)) => {
                let answer = self.fitting(answer)?;
                machine::answer_and_take(&self.state, self.lifetime(), answer, by.clone(), now)
            }
            None => machine::transition(&self.state, self.lifetime(), Event::Take, now),
        };
        moved.map(drop).map_err(|refusal| self.refused(refusal))
    }

    fn fitting(&self, answer: &Answer) -> Result<Answer, WorkflowError> {
        if self.ask.takes(answer) {
            return Ok(answer.clone());
        }
        Err(WorkflowError::Unfit {
            code: self.code.clone(),
            wanted: self.ask.wants(),
        })
    }

    fn refused(&self, refusal: TransitionError) -> WorkflowError {
        WorkflowError::Refused {
            code: self.code.clone(),
            refusal,
        }
    }

    /// Tells whether it is within its lifetime at `now`; whether it still waits is told by its state.
    #[must_use]
    pub fn is_live_at(&self, now: Timestamp) -> bool {
        self.lifetime().is_live_at(now)
    }
}

/// The result of suspending a call: a new workflow, or one that already asks or has answered the very same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspension {
    /// No workflow asked this yet.
    New(Workflow),
    /// The same conversation asks the same about the same call; this is it, with its own deadline.
    Existing(Workflow),
    /// An identical call was answered, and its answer waits to be taken.
    Answered(Workflow),
}

impl Suspension {
    /// Returns the workflow of any variant.
    #[must_use]
    pub fn workflow(self) -> Workflow {
        match self {
            Self::New(workflow) | Self::Existing(workflow) | Self::Answered(workflow) => workflow,
        }
    }
}

/// The report of suspending a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreationReport {
    /// Where the call stands.
    pub suspension: Suspension,
    /// The workflow that asked the same before, where its life was over and nothing had marked that yet.
    pub expired: Option<Workflow>,
}

/// The tool that a continued workflow must belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolExpectation {
    /// The continuation came in a call of this tool: the workflow must belong to it.
    Tool(ToolName),
    /// The continuation came by the tool that continues every workflow.
    AnyTool,
}

/// The report of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepReport {
    /// The workflows whose life was over.
    pub expired: Vec<WorkflowId>,
    /// How many finished rows were too old to keep.
    pub deleted: usize,
}

#[cfg(test)]
mod tests {
    use super::super::samples::{APPROVE, FIVE_MINUTES, NOON, REFUSE, answers, new, question, workflow};
    use super::*;

    #[test]
    fn an_answer_fits_its_kind_of_ask_and_a_refusal_fits_every_one() {
        let install = new("{}").ask;
        let asked = Ask::Questions {
            questions: vec![question()],
        };
        let twice = Ask::Questions {
            questions: vec![question(), question()],
        };
        for (ask, answer, fits) in [
            (&install, APPROVE, true),
            (&install, answers(), false),
            (&asked, APPROVE, false),
            (&asked, answers(), true),
            (&twice, answers(), false),
            (&install, REFUSE, true),
            (&asked, REFUSE, true),
        ] {
            assert_eq!(ask.takes(&answer), fits, "{ask:?} {answer:?}");
        }
        assert_eq!(install.wants(), "an approval or a refusal");
        assert_eq!(asked.wants(), "an answer to each of its questions");
    }

    #[test]
    fn an_ask_takes_answers_until_it_is_answered_or_over() {
        let pending = workflow(new("{}").ask);
        assert!(pending.takes_answers_at(NOON).is_ok());
        let too_late = NOON.plus(FIVE_MINUTES).plus(FIVE_MINUTES);
        assert!(pending.takes_answers_at(too_late).is_err());
        for state in [
            State::Expired,
            State::Withdrawn,
            State::Answered {
                answer: APPROVE,
                by: Road::Cli.into(),
                at: NOON,
            },
        ] {
            let over = Workflow {
                state,
                ..pending.clone()
            };
            assert!(over.takes_answers_at(NOON).is_err(), "{:?}", over.state);
        }
    }
}
