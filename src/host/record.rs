//! The record of a run: everything that another process needs to show it, to reach it and to resume it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::workflow::{Code, ProcessName, Timestamp, Workflow, WorkflowId};

/// The name of a run: five letters, as people type them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(Code);

impl RunId {
    /// Draws a name; whether another run has it is found out where its directory is made.
    #[must_use]
    pub fn random() -> Self {
        let (bits, _) = Uuid::new_v4().as_u64_pair();
        Self(Code::of_bits(bits))
    }

    /// Returns the five letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for RunId {
    type Err = crate::workflow::NotACode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A run, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// Its name.
    pub id: RunId,
    /// The agent's session.
    pub session: Uuid,
    /// The directory that the agent works in.
    pub directory: PathBuf,
    /// The configuration that was named on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
    /// The beginning of what the person wanted.
    pub title: String,
    /// What the person wanted first: a session that was lost before it was written is begun again.
    pub prompt: String,
    /// When it was begun, in milliseconds since 1970.
    pub created_at: i64,
    /// When this record was written, in milliseconds since 1970.
    pub changed_at: i64,
    /// Where it stands.
    pub state: RunState,
    /// The process that drives it now, or drove it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessName>,
    /// What no person has answered yet, or what was not delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<KeptAsk>,
    /// What was answered lately: an agent that was killed before it wrote an answer down asks for it again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<KeptAsk>,
    /// The call that was put off: until its result is recorded, the agent asks for it whenever it is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_off: Option<String>,
    /// How often it was resumed for an answer that its agent did not take; the agent may end at once, every time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resumed_in_vain: u32,
    /// Why it could not be resumed the last time, for a person to read; escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Where the agent keeps the conversation, as it said itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<PathBuf>,
    /// The model that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it has cost in dollars, as the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The arguments that the person gave for the agent itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_arguments: Vec<String>,
    /// How long it waits for a person before it is parked, in seconds; 0 for ever.
    pub patience_seconds: u64,
}

/// Where a run stands, for other processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum RunState {
    /// Its agent is being started.
    Starting,
    /// Its agent works.
    Running,
    /// Its agent waits for a person.
    Asking,
    /// Its agent has nothing to do.
    Idle,
    /// Its agent is not there; an answer to what it asked starts it again.
    Parked {
        /// The call that was put off; the agent asks for it again.
        call: String,
    },
    /// Its agent is gone without having ended; an answer to what it asked starts it again.
    Lost,
    /// It is over.
    Ended {
        /// How it went.
        outcome: RunOutcome,
    },
}

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunOutcome {
    /// The agent did its work.
    Done,
    /// The agent failed.
    Failed,
    /// A person ended it.
    Stopped,
}

/// How often a run is resumed for an answer that its agent does not take, before a person must have a look.
pub(super) const IN_VAIN: u32 = 3;

/// How long a run rests after it was resumed in vain; five times as long after each further time.
const REST: Duration = Duration::from_secs(2);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How many answered asks a run remembers: the calls of one message, several times over.
const ANSWERED: usize = 32;

impl RunRecord {
    /// Describes a run that begins now, with nothing said yet.
    pub(super) fn new(id: RunId, directory: PathBuf, patience: Duration, now: Timestamp) -> Self {
        Self {
            id,
            session: Uuid::new_v4(),
            directory,
            config: None,
            title: String::new(),
            prompt: String::new(),
            created_at: now.millis(),
            changed_at: now.millis(),
            state: RunState::Starting,
            process: None,
            asks: Vec::new(),
            answered: Vec::new(),
            put_off: None,
            resumed_in_vain: 0,
            trouble: None,
            transcript: None,
            model: None,
            cost: None,
            agent_arguments: Vec::new(),
            patience_seconds: patience.as_secs(),
        }
    }

    /// Takes note that the agent has the answers to these asks; tells whether any was open.
    pub(super) fn deliver(&mut self, is_delivered: impl Fn(&KeptAsk) -> bool) -> bool {
        let (delivered, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.asks).into_iter().partition(is_delivered);
        self.asks = open;
        let any = !delivered.is_empty();
        if any {
            self.resumed_in_vain = 0;
        }
        self.answered.extend(delivered);
        let surplus = self.answered.len().saturating_sub(ANSWERED);
        self.answered.drain(..surplus);
        any
    }

    /// Returns how long it rests before it is resumed again.
    #[must_use]
    pub fn rest(&self) -> Duration {
        match self.resumed_in_vain {
            0 => Duration::ZERO,
            times => REST * 5_u32.pow(times.min(IN_VAIN) - 1),
        }
    }

    /// Returns the call that was put off and that the agent will ask for again when it is resumed.
    pub(super) fn open_put_off(&self) -> Option<&String> {
        let call = self.put_off.as_ref()?;
        self.asks.iter().any(|ask| ask.call == *call).then_some(call)
    }

    /// Returns the ask of a call, answered or not.
    pub(super) fn ask_of(&self, call: &str) -> Option<&KeptAsk> {
        self.asks
            .iter()
            .chain(self.answered.iter().rev())
            .find(|ask| ask.call == call)
    }
}

impl RunState {
    /// Tells whether a process drives it; one that is killed leaves it so.
    #[must_use]
    pub fn is_driven(&self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Asking | Self::Idle)
    }

    /// Returns its name in one word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Asking => "asking",
            Self::Idle => "idle",
            Self::Parked { .. } => "parked",
            Self::Lost => "lost",
            Self::Ended {
                outcome: RunOutcome::Done,
            } => "done",
            Self::Ended {
                outcome: RunOutcome::Failed,
            } => "failed",
            Self::Ended {
                outcome: RunOutcome::Stopped,
            } => "stopped",
        }
    }
}

/// An ask of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptAsk {
    /// The ask in the store.
    pub workflow: WorkflowId,
    /// The agent's call.
    pub call: String,
    /// What the agent asked.
    pub kind: KeptAskKind,
}

impl KeptAsk {
    /// Describes an ask whose host was killed before it could write down for which call it was.
    pub(super) fn orphan(workflow: &Workflow) -> Self {
        Self {
            workflow: workflow.id,
            call: String::new(),
            kind: KeptAskKind::Server,
        }
    }
}

/// What an agent asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeptAskKind {
    /// Questions of its own tool.
    Questions,
    /// Questions of its own tool, which came without their hook.
    Unhooked,
    /// A question of one of pml's tools, whose call takes the answer.
    OwnTool,
    /// The use of a tool.
    Permission,
    /// A form of a server.
    Form,
    /// What pml itself asks about a server behind it; the process that serves the agent takes the answer.
    Server,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run that was just begun.
    pub(crate) fn record() -> RunRecord {
        let id = "abcde".parse().unwrap();
        RunRecord {
            session: Uuid::from_u128(7),
            title: "fix the test".to_owned(),
            prompt: "fix the test".to_owned(),
            ..RunRecord::new(
                id,
                "/work".into(),
                Duration::from_mins(10),
                Timestamp::from_millis(1),
            )
        }
    }

    #[test]
    fn a_record_reads_back_as_it_was() {
        let mut record = record();
        for state in [
            RunState::Parked {
                call: "t1".to_owned(),
            },
            RunState::Lost,
            RunState::Ended {
                outcome: RunOutcome::Stopped,
            },
        ] {
            record.state = state;
            record.asks = vec![KeptAsk {
                workflow: WorkflowId::new(Uuid::from_u128(9)),
                call: "t1".to_owned(),
                kind: KeptAskKind::OwnTool,
            }];
            let text = serde_json::to_string(&record).unwrap();
            assert_eq!(
                serde_json::from_str::<RunRecord>(&text).unwrap(),
                record,
                "{text}"
            );
        }
    }
}
