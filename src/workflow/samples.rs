//! Sample workflows for the tests of this module.

use std::path::PathBuf;
use std::time::Duration;

use super::{
    Answer, Arguments, Ask, AskAttendance, Asker, NewWorkflow, Origin, Provenance, RecordedAnswer, Scope,
    SuspendedCall, Timestamp, ToolExpectation,
};
use crate::config::By;
use crate::protocol::approval::ShownDependency;
use crate::protocol::question::{Question, QuestionAnswer, Selection};
use crate::protocol::{Digest, ToolName};

pub(super) const NOON: Timestamp = Timestamp::from_millis(1_794_830_400_000);
pub(super) const FIVE_MINUTES: Duration = Duration::from_mins(5);
pub(super) const APPROVE: Answer = Answer::Approve { scope: Scope::Once };
pub(super) const REFUSE: Answer = Answer::Refuse { reason: None };

pub(super) fn tool() -> ToolName {
    "serena:analyze".parse().unwrap()
}

pub(super) fn on_its_tool() -> ToolExpectation {
    ToolExpectation::Tool(tool())
}

pub(super) fn question() -> Question {
    Question {
        question: "Which way?".to_owned(),
        header: None,
        options: Vec::new(),
        selection: Selection::One,
    }
}

/// An answer to [`question`].
pub(super) fn answers() -> Answer {
    Answer::Answers {
        answers: vec![QuestionAnswer {
            labels: Vec::new(),
            text: Some("that way".to_owned()),
        }],
    }
}

/// An answer that approves nothing beyond its call.
pub(super) fn given(answer: Answer, by: Provenance) -> RecordedAnswer {
    RecordedAnswer {
        answer,
        by,
        approves: None,
    }
}

/// A call of `serena:analyze` that waits five minutes.
pub(super) fn new(arguments: &str) -> NewWorkflow {
    NewWorkflow {
        ask: Ask::Install {
            dependency: ShownDependency {
                name: "serena".to_owned(),
                version: Some("0.5.0".to_owned()),
                install: "npm install serena@0.5.0".to_owned(),
                integrity: None,
                scripts: false,
                surroundings: Box::default(),
                installation: Box::default(),
                remote: None,
            },
        },
        call: SuspendedCall {
            tool: tool(),
            arguments: Arguments::Json(arguments.to_owned()),
            launch: Digest::of(["serena", "0.5.0"]),
        },
        time_to_live: FIVE_MINUTES,
        project: PathBuf::from("/project"),
        origin: Origin {
            config: PathBuf::from("/project/.pml.json"),
            by: By::Client,
            asker: Asker::from(uuid::Uuid::nil()),
        },
        attended: AskAttendance::ByItsCall,
        twin: 0,
    }
}
