//! The outcome of a call as plain data; the conversation words it for the wire.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use uuid::Uuid;

use crate::card::{Card, Complaint};
use crate::config::{By, ConfigError, Rule};
use crate::loader::{Ended, LoadError, PlanError};
use crate::pins::PinError;
use crate::protocol::approval::{ApprovalType, AskSubject};
use crate::protocol::continuation::ContinuationError;
use crate::protocol::{DependencyName, Shown, ToolName, shell};
use crate::report::Hint;
use crate::workflow::{Answer, Arguments, Code, TransitionError, WorkflowError, WorkflowId};

use super::authority::{NotEntitled, PersonalRoad};
use super::rule_error::RuleError;
use super::rule_place::{place, taken_away};
use super::{Claim, ReadyRequest, UnknownItem};

/// The outcome of a call.
#[derive(Debug)]
pub enum Outcome {
    /// It may go to its dependency.
    Ready(ReadyRequest),
    /// A person must decide; the call is suspended.
    Asked(PendingAsk),
    /// A person is being asked by an identical call of the same conversation; its answer counts for this one too.
    Joined(WorkflowId),
    /// The dependency was started, as the call requested.
    Connected {
        /// The dependency.
        dependency: DependencyName,
        /// Its tools.
        tools: Vec<ToolName>,
        /// What pml has to say about it.
        notes: Vec<String>,
    },
    /// A person has not decided yet, and only a person may.
    Waiting(PendingAsk),
    /// A person said no.
    Aborted {
        /// Why, in their words.
        reason: Option<String>,
        /// What pml has to say about it.
        notes: Vec<String>,
    },
    /// A person said yes to something that must be asked for again: it was no tool.
    Granted {
        /// What rules call it.
        tool: ToolName,
        /// What pml has to say about it.
        notes: Vec<String>,
    },
    /// No declared server has such a thing.
    Unknown(UnknownItem),
    /// The call did not run, or did not come back.
    Refused(Refusal),
}

/// A suspended call as a person is shown it.
#[derive(Debug)]
pub struct PendingAsk {
    /// Why a person is asked.
    pub kind: ApprovalType,
    /// The tool that was called.
    pub tool: ToolName,
    /// What is asked about.
    pub subject: Box<AskSubject>,
    /// The arguments of the call.
    pub arguments: Arguments,
    /// What a person is shown of it, and may say.
    pub card: Box<Card>,
    /// Whether anything would be installed before it runs.
    pub installs: bool,
    /// The id that continues the call.
    pub workflow_id: Uuid,
    /// The name by which people speak of it.
    pub code: Code,
    /// Who may decide.
    pub by: By,
    /// Where the person can answer besides a dialog.
    pub road: PersonalRoad,
    /// How long the id is valid.
    pub expires_in: Duration,
    /// The right of the call to the answer, where it is the one that waits for it.
    pub claim: Option<Claim>,
    /// Whether it was made for this call.
    pub ownership: AskOwnership,
}

/// Whose ask a call is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskOwnership {
    /// It was made for this call, which its id continues.
    OfThisCall,
    /// Another call asked about the same; this one runs when it is made again after the answer.
    OfAnotherCall,
}

/// A tool of the list.
#[derive(Debug, Clone)]
pub enum ListedTool {
    /// A tool of a dependency that was seen before.
    Known {
        /// Its name.
        tool: ToolName,
        /// Its definition, byte for byte.
        definition: Arc<RawValue>,
        /// Where its own name stands in the definition.
        place: Range<usize>,
        /// Whether calling it may answer with a question.
        asking: AskPossibility,
    },
    /// The one tool of a dependency that was never seen: calling it starts the dependency.
    Connect {
        /// Its name.
        tool: ToolName,
        /// What it is and what calling it does.
        about: String,
    },
}

/// Whether calling a tool may answer with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskPossibility {
    /// A person may have to decide first.
    Possible,
    /// It simply runs.
    Never,
}

/// Why a call did not run, or did not come back.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The configuration does not parse: nothing runs until it does.
    #[error("no call runs while the configuration cannot be read")]
    Config(#[source] Arc<ConfigError>),
    /// A rule forbids it.
    #[error("`{}` is denied by rule `{}`\n  in {}", shown(.tool), .rule.pattern, place(.rule))]
    Denied {
        /// The tool.
        tool: ToolName,
        /// The rule.
        rule: Arc<Rule>,
    },
    /// The list `tools` of its server takes it away.
    #[error(
        "`{}` is not offered: `tools` of `{}` {}\n  in {}",
        shown(.tool),
        .tool.dependency(),
        taken_away(.tool, .rule),
        place(.rule)
    )]
    NotOffered {
        /// The tool.
        tool: ToolName,
        /// What takes it away.
        rule: Arc<Rule>,
    },
    /// The server is switched off.
    #[error("server `{dependency}` is disabled in its configuration")]
    Disabled {
        /// The server.
        dependency: DependencyName,
    },
    /// What is declared cannot be run.
    #[error("`{dependency}` cannot be started as it is declared")]
    Plan {
        /// The server.
        dependency: DependencyName,
        /// Why.
        #[source]
        source: Arc<PlanError>,
    },
    /// It could not be installed, started or connected to.
    #[error("`{dependency}` could not be started or reached")]
    Load {
        /// The server.
        dependency: DependencyName,
        /// Why.
        #[source]
        source: Arc<LoadError>,
    },
    /// It died before it answered.
    #[error("`{dependency}` {}{}", .ended.reason, tail(.ended))]
    Died {
        /// The server.
        dependency: DependencyName,
        /// How it ended.
        ended: Arc<Ended>,
    },
    /// It answered something that cannot be passed on.
    #[error("`{dependency}` sent no usable answer: {reason}")]
    Unusable {
        /// The server.
        dependency: DependencyName,
        /// Why.
        reason: String,
    },
    /// It did not answer in time.
    #[error("`{}` did not answer within {} seconds", shown(.tool), .after.as_secs())]
    TimedOut {
        /// The tool.
        tool: ToolName,
        /// Its `callTimeoutSeconds`.
        after: Duration,
    },
    /// It does not read what it is sent.
    #[error("`{dependency}` does not read its input: {} MiB wait for it", .waiting >> 20)]
    Stuffed {
        /// The server.
        dependency: DependencyName,
        /// How many bytes wait for it.
        waiting: usize,
    },
    /// It asks its client something that this client cannot answer.
    #[error("`{dependency}` asks `{}` of its client, which this client cannot answer", Shown::line(.method))]
    Unanswerable {
        /// The server.
        dependency: DependencyName,
        /// What it asks.
        method: String,
    },
    /// The id continues nothing.
    #[error("Workflow expired or not found")]
    Expired,
    /// What a continuation said cannot be read as a decision.
    #[error(transparent)]
    Continuation(#[from] ContinuationError),
    /// What would run is not what a person was shown.
    #[error("`{}` changed since the person was asked: what would run is not what was shown", shown(.tool))]
    Changed {
        /// The tool.
        tool: ToolName,
    },
    /// The approval it was let through by is no more.
    #[error("`{}` does not go on: the approval of its server was taken back meanwhile", shown(.tool))]
    Withdrawn {
        /// The tool.
        tool: ToolName,
    },
    /// What a client brings back belongs to another call.
    #[error("`requestState` belongs to another call")]
    OtherCall,
    /// No person answered while the call waited.
    #[error("no person answered the question about `{}` in time, and none refused it", shown(.tool))]
    Unanswered {
        /// The tool.
        tool: ToolName,
    },
    /// The answer does not count on the road it came on.
    #[error("this answer to `{code}` does not count: {why}")]
    NotEntitled {
        /// The workflow.
        code: Code,
        /// Why.
        why: NotEntitled,
    },
    /// What was said is no answer to what was asked; the ask still waits.
    #[error("`{code}` cannot be answered so")]
    Unfit {
        /// The workflow.
        code: Code,
        /// Why not.
        #[source]
        complaint: Complaint,
    },
    /// Only a person may answer this.
    #[error("waiting for a person: only they can answer `{code}`")]
    NeedsPerson {
        /// The workflow.
        code: Code,
    },
    /// The server cannot be compared with what the user accepted of it.
    #[error("no call runs while a server cannot be compared with what was accepted of it")]
    Pins(#[source] Box<PinError>),
    /// The workflow cannot be suspended, found or moved.
    #[error(transparent)]
    Workflow(#[from] WorkflowError),
    /// The approval could not be recorded.
    #[error(
        "the approval could not be recorded, so nothing was run; it still waits, and the same answer may be given again"
    )]
    NotRecorded(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file was accepted by an answer that counts, and its mark could not be kept.
    #[error("the answer stands, but that the file is accepted could not be written")]
    TrustNotKept(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<PinError> for Refusal {
    fn from(error: PinError) -> Self {
        Self::Pins(Box::new(error))
    }
}

/// Says what a client whose answer did not count should do next.
fn next_step(error: &WorkflowError) -> Option<&'static str> {
    let WorkflowError::Refused { refusal, .. } = error else {
        return None;
    };
    match refusal {
        TransitionError::AlreadyUsed { .. } => Some(
            "it was let run, and its result went to the call that continued it, unless that was cancelled; for another run, call the tool again \
             with its arguments",
        ),
        TransitionError::AlreadyAnswered {
            answer: Answer::Refuse { .. },
            ..
        }
        | TransitionError::Refused { .. } => Some("do not call it again unless the person asks for it"),
        TransitionError::AlreadyAnswered { .. } => {
            Some("do not answer it again; to take the first answer, continue with its `workflow_id` alone")
        }
        TransitionError::Expired { .. } | TransitionError::Withdrawn => {
            Some("call the tool again with its arguments; a person is asked anew")
        }
        TransitionError::NotAnswered | TransitionError::NotDue { .. } => None,
    }
}

fn shown(tool: &ToolName) -> String {
    Shown::line(&tool.to_string()).to_string()
}

fn tail(ended: &Ended) -> String {
    let lines = ended.last_lines();
    if lines.is_empty() {
        return String::new();
    }
    format!("; the last lines it wrote:\n{}", Shown::block(lines.trim_end()))
}

impl Hint for Refusal {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Config(error) => error
                .hint()
                .or_else(|| Some("to check it after the fix: pml rules".to_owned())),
            Self::Denied { rule, .. } => Some(format!(
                "only a person can lift it: pml forget {}",
                shell::operand(rule.pattern.as_str())
            )),
            Self::NotOffered { .. } => Some(
                "only a person can offer it: they edit `tools` there; do not try other names for it"
                    .to_owned(),
            ),
            Self::Plan { source, .. } => source.hint(),
            Self::Pins(error) => error.hint(),
            Self::Load { source, .. } => source.hint(),
            Self::Died { .. } => Some("calling it again starts it anew".to_owned()),
            Self::TimedOut { .. } => {
                Some("raise \"callTimeoutSeconds\" of this server in .pml.json, or leave it out".to_owned())
            }
            Self::Expired | Self::OtherCall | Self::Changed { .. } | Self::Withdrawn { .. } => {
                Some("call the tool again with its arguments; a person is asked anew".to_owned())
            }
            Self::Unanswered { .. } => {
                Some("tell the person that it waits for them; the next call asks again".to_owned())
            }
            Self::NotEntitled { code, .. } => Some(format!(
                "a person decides it in a terminal: pml approve {code}, or pml refuse {code}"
            )),
            Self::Continuation(_) => Some(
                "send {\"workflow_id\": \"…\", \"approved\": true or false, \"always\": true or false}"
                    .to_owned(),
            ),
            Self::NeedsPerson { code } => Some(format!(
                "they can run `pml answer {code}` in a terminal, or the prompt `answer {code}` of pml"
            )),
            Self::Workflow(error) => next_step(error).map(str::to_owned).or_else(|| error.hint()),
            Self::NotRecorded(error) => {
                let server = error.downcast_ref::<WorkflowError>().and_then(Hint::hint);
                server.or_else(|| error.downcast_ref::<RuleError>().and_then(Hint::hint))
            }
            Self::TrustNotKept(_) => Some("to accept the file: pml trust".to_owned()),
            Self::Unfit { .. }
            | Self::Disabled { .. }
            | Self::Unusable { .. }
            | Self::Stuffed { .. }
            | Self::Unanswerable { .. } => None,
        }
    }
}
