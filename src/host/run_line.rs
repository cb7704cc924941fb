//! What surfaces are told of a run: the agent's own lines, and those of pml between them.

use serde::{Deserialize, Serialize};

use super::line::AgentLine;
use super::message::Priority;
use super::record::RunState;
use crate::workflow::WorkflowId;

/// One thing that happened in a run.
#[derive(Debug, Clone)]
pub enum RunLine {
    /// A line of the agent.
    Agent {
        /// The line as it came.
        raw: String,
        /// What it means.
        meaning: Box<AgentLine>,
    },
    /// A line of pml.
    Own(OwnLine),
}

impl RunLine {
    /// Reads a line of the log of a run.
    #[must_use]
    pub fn read(raw: String) -> Option<Self> {
        // Looked at first: members of its lines have names that the agent uses for something else.
        if let Some(line) = OwnLine::read(&raw) {
            return Some(Self::Own(line));
        }
        let meaning = Box::new(AgentLine::read(&raw)?);
        Some(Self::Agent { raw, meaning })
    }

    /// Returns about how many bytes it holds on to.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Agent { raw, .. } => raw.len(),
            Self::Own(OwnLine::Message { text, .. } | OwnLine::Text { text } | OwnLine::Note { text }) => {
                text.len()
            }
            Self::Own(OwnLine::State { .. } | OwnLine::Ask { .. } | OwnLine::Answered { .. }) => 0,
        }
    }
}

/// A line of pml; it has `"type": "pml"` in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum OwnLine {
    /// The run stands elsewhere.
    State {
        /// Where.
        state: RunState,
    },
    /// A person is asked.
    Ask {
        /// The ask in the store.
        id: WorkflowId,
        /// Its code.
        code: String,
        /// The agent's call.
        call: String,
    },
    /// An ask is over.
    Answered {
        /// The ask in the store.
        id: WorkflowId,
        /// What came of it.
        outcome: AskOutcome,
    },
    /// A person said something to the agent.
    Message {
        /// Its name.
        uuid: String,
        /// What they said.
        text: String,
        /// How many images came with it.
        images: usize,
        /// When the agent is to read it.
        priority: Priority,
    },
    /// Text of the model, as it came; the whole message follows.
    Text {
        /// The next piece of it.
        text: String,
    },
    /// Something to know.
    Note {
        /// What.
        text: String,
    },
}

/// What came of an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskOutcome {
    /// The agent has the answer.
    Delivered,
    /// The agent took it back, or does not wait any more.
    Withdrawn,
}

/// The `type` of every line of pml.
const TYPE: &str = "pml";

#[derive(Deserialize)]
struct ReadLine {
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    line: OwnLine,
}

#[derive(Serialize)]
struct Typed<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    line: &'a OwnLine,
}

impl OwnLine {
    /// Writes it as one line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let typed = Typed {
            kind: TYPE,
            line: self,
        };
        serde_json::to_string(&typed).unwrap_or_default()
    }

    /// Reads a line of pml; `None` where it is the agent's.
    fn read(line: &str) -> Option<Self> {
        let read: ReadLine = serde_json::from_str(line).ok()?;
        (read.kind == TYPE).then_some(read.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_pml_is_read_back_from_the_log() {
        let id = WorkflowId::new(uuid::Uuid::from_u128(7));
        let lines = [
            OwnLine::State {
                state: RunState::Running,
            },
            OwnLine::Ask {
                id,
                code: "abcde".to_owned(),
                call: "t1".to_owned(),
            },
            OwnLine::Answered {
                id,
                outcome: AskOutcome::Delivered,
            },
            OwnLine::Message {
                uuid: "u1".to_owned(),
                text: "use tabs".to_owned(),
                images: 1,
                priority: Priority::Now,
            },
            OwnLine::Text {
                text: "Hel".to_owned(),
            },
            OwnLine::Note {
                text: "a note".to_owned(),
            },
        ];
        for line in lines {
            match RunLine::read(line.json()) {
                Some(RunLine::Own(read)) => assert_eq!(read, line),
                other => panic!("{line:?}: {other:?}"),
            }
        }
    }
}
