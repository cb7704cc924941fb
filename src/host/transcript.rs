//! The conversation that the agent keeps: tells which answers an agent had before it was lost.
//!
//! A host that is killed right after it passed on an answer has not taken note of that. The agent's own file is what the
//! model reads when the session is resumed, so that decides whether the answer must be told. It is only read.

use std::fs::File;
use std::io::{BufRead as _, BufReader};

use serde::Deserialize;
use serde_json::Value;

use super::record::{KeptAskKind, RunRecord, RunState};

/// How a call ends whose agent loses its host while it asks: in the name of the user, who said nothing, or as a failure of the
/// permission.
const HOST_GONE: [&str; 2] = [
    "The user doesn't want to take this action right now.",
    "Tool permission stream closed",
];

/// What is written down of a call that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// No result: the agent asks again if the call was put off.
    Open,
    /// The result that a person decided.
    Answered,
    /// A result of the agent's own.
    Abandoned,
}

/// Takes note of what a lost agent had, and of what it will ask for again. It blocks.
pub(super) fn reconcile(record: &mut RunRecord) {
    let calls: Vec<String> = record
        .asks
        .iter()
        .filter(|ask| {
            matches!(
                ask.kind,
                KeptAskKind::Questions
                    | KeptAskKind::Unhooked
                    | KeptAskKind::OwnTool
                    | KeptAskKind::Permission
            )
        })
        .map(|ask| ask.call.clone())
        .collect();
    for call in calls {
        match written(record, &call) {
            Written::Answered => {
                record.deliver(|ask| ask.call == call);
            }
            Written::Open if record.put_off.as_ref() == Some(&call) => {
                record.state = RunState::Parked { call };
            }
            Written::Open | Written::Abandoned => {}
        }
    }
}

/// Takes back that these answers were delivered, where an agent that was killed has not written them down. It blocks.
pub(super) fn take_back(record: &mut RunRecord, calls: &[String]) {
    let (taken, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut record.answered)
        .into_iter()
        .partition(|ask| calls.contains(&ask.call) && written(record, &ask.call) == Written::Open);
    record.answered = kept;
    record.asks.extend(taken);
}

/// Looks for the result of a call; a file that cannot be read has none.
fn written(record: &RunRecord, call: &str) -> Written {
    let Some(Ok(file)) = record.transcript.as_ref().map(File::open) else {
        return Written::Open;
    };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let mut results = lines.filter_map(|line| result_of(&line, call));
    results.next().unwrap_or(Written::Open)
}

#[derive(Deserialize)]
struct TranscriptLine {
    message: TranscriptMessage,
}

#[derive(Deserialize)]
struct TranscriptMessage {
    content: Vec<Value>,
}

/// Reads one line of the conversation; `None` where it has no result of the call.
fn result_of(line: &str, call: &str) -> Option<Written> {
    if !line.contains(call) {
        return None;
    }
    let line: TranscriptLine = serde_json::from_str(line).ok()?;
    let mut blocks = line.message.content.iter();
    let result = blocks.find(|block| block["type"] == "tool_result" && block["tool_use_id"] == call)?;
    let said = result["content"].to_string();
    let abandoned = result["is_error"] == true && HOST_GONE.iter().any(|words| said.contains(words));
    Some(if abandoned {
        Written::Abandoned
    } else {
        Written::Answered
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::host::record::KeptAsk;
    use crate::host::record::tests::record;
    use crate::workflow::WorkflowId;

    /// A lost run with one question, whose agent has written these blocks.
    fn lost(put_off: Option<&str>, blocks: &Value) -> (tempfile::TempDir, RunRecord) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("session.jsonl");
        let line = json!({ "type": "user", "message": { "role": "user", "content": blocks } });
        crate::disk::replace(&path, format!("{{\"type\":\"mode\"}}\n{line}\n").as_bytes()).unwrap();
        let mut record = record();
        record.state = RunState::Lost;
        record.put_off = put_off.map(str::to_owned);
        record.transcript = Some(path);
        record.asks = vec![KeptAsk {
            workflow: WorkflowId::new(uuid::Uuid::from_u128(9)),
            call: "t1".to_owned(),
            kind: KeptAskKind::Questions,
        }];
        (directory, record)
    }

    /// What becomes of such a run, and how many asks it has left.
    fn reconciled(put_off: Option<&str>, blocks: &Value) -> (RunState, usize) {
        let (_directory, mut record) = lost(put_off, blocks);
        reconcile(&mut record);
        (record.state, record.asks.len())
    }

    fn result(error: bool, text: &str) -> Value {
        json!([{ "type": "tool_result", "tool_use_id": "t1", "is_error": error, "content": text }])
    }

    #[test]
    fn an_answer_that_the_agent_wrote_down_is_not_told_again() {
        let answered = result(false, "Your questions have been answered");
        assert_eq!(reconciled(None, &answered), (RunState::Lost, 0));
        assert_eq!(reconciled(Some("t1"), &answered), (RunState::Lost, 0));
        let refused = result(true, "The person would not answer.");
        assert_eq!(reconciled(None, &refused), (RunState::Lost, 0));
    }

    #[test]
    fn what_the_agent_made_up_when_its_host_was_gone_is_no_answer() {
        for words in [
            "The user doesn't want to take this action right now. STOP what you are doing.",
            "Tool permission request failed: AbortError: Tool permission stream closed before response received",
        ] {
            let abandoned = result(true, words);
            assert_eq!(reconciled(None, &abandoned), (RunState::Lost, 1));
            assert_eq!(reconciled(Some("t1"), &abandoned), (RunState::Lost, 1));
        }
    }

    #[test]
    fn a_call_that_was_put_off_and_has_no_result_is_asked_again() {
        let called = json!([{ "type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": {} }]);
        let parked = RunState::Parked {
            call: "t1".to_owned(),
        };
        assert_eq!(reconciled(Some("t1"), &called), (parked, 1));
        assert_eq!(reconciled(None, &called), (RunState::Lost, 1));
        assert_eq!(reconciled(Some("t0"), &called), (RunState::Lost, 1));
    }

    #[test]
    fn an_answer_that_a_killed_agent_has_not_written_down_is_open_again() {
        let answered = result(false, "Your questions have been answered");
        for (blocks, calls, open) in [(json!([]), "t1", 1), (json!([]), "t2", 0), (answered, "t1", 0)] {
            let (_directory, mut record) = lost(None, &blocks);
            record.deliver(|_| true);
            take_back(&mut record, &[calls.to_owned()]);
            assert_eq!(
                (record.asks.len(), record.answered.len()),
                (open, 1 - open),
                "{blocks}"
            );
        }
    }
}
