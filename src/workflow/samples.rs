//! Sample workflows for the tests of this module.

use std::path::PathBuf;
use std::time::Duration;

use super::{
    Answer, Arguments, Ask, AskAttendance, Asker, AskingClient, Code, LastCheck, NewWorkflow, Origin,
    Provenance, RecordedAnswer, Scope, State, SuspendedCall, Timestamp, ToolExpectation, Workflow,
    WorkflowId,
};
use crate::config::By;
use crate::protocol::approval::ShownDependency;
use crate::protocol::question::{Choice, Question, QuestionAnswer, Selection};
use crate::protocol::{Digest, ToolName};

pub(crate) const NOON: Timestamp = Timestamp::from_millis(1_794_830_400_000);
pub(crate) const FIVE_MINUTES: Duration = Duration::from_mins(5);
pub(crate) const APPROVE: Answer = Answer::Approve { scope: Scope::Once };
pub(crate) const REFUSE: Answer = Answer::Refuse { reason: None };

pub(crate) fn tool() -> ToolName {
    "serena:analyze".parse().unwrap()
}

pub(crate) fn on_its_tool() -> ToolExpectation {
    ToolExpectation::Tool(tool())
}

pub(crate) fn question() -> Question {
    Question {
        question: "Which way?".to_owned(),
        header: None,
        options: Vec::new(),
        selection: Selection::One,
    }
}

/// A question with choices.
pub(crate) fn choice(text: &str, labels: &[&str]) -> Question {
    let options = labels.iter().map(|label| Choice {
        label: (*label).to_owned(),
        description: None,
    });
    Question {
        question: text.to_owned(),
        header: None,
        options: options.collect(),
        selection: Selection::One,
    }
}

/// An ask that waits since noon.
pub(crate) fn workflow(ask: Ask) -> Workflow {
    let new = new("{}");
    Workflow {
        id: WorkflowId::new(uuid::Uuid::nil()),
        code: Code::of_bits(0),
        ask,
        call: new.call,
        project: "/pro\u{1b}ject".into(),
        origin: new.origin,
        created_at: NOON,
        expires_at: NOON.plus(FIVE_MINUTES),
        state: State::Pending,
        attended: new.attended,
        channel: None,
        revision: 0,
    }
}

/// An answer to [`question`].
pub(crate) fn answers() -> Answer {
    Answer::Answers {
        answers: vec![QuestionAnswer {
            labels: Vec::new(),
            text: Some("that way".to_owned()),
        }],
    }
}

/// An answer that approves nothing beyond its call.
pub(crate) fn given(answer: Answer, by: Provenance) -> RecordedAnswer {
    RecordedAnswer {
        answer,
        by,
        approves: None,
        check: LastCheck::none(),
    }
}

/// A call of `serena:analyze` that waits five minutes.
pub(crate) fn new(arguments: &str) -> NewWorkflow {
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
            client: AskingClient::default(),
        },
        attended: AskAttendance::ByItsCall,
        twin: 0,
        channel: None,
    }
}
