//! The results that tell a model how its questions stand.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::question_tool::QuestionTool;
use crate::protocol::continuation::{LONGEST_WAIT, MEMBER};
use crate::protocol::question::{Question, QuestionAnswer};
use crate::proxy::{QuestionStatus, RelayError, Workflow};
use crate::report::{self, Hint as _};

/// The seed's words for a question that nobody answered in time.
const TIMED_OUT: &str = "User did not respond within the timeout period. Proceeding with your best judgment.";

/// Says that silence and failure are no answer.
const NO_ANSWER: &str = "Nobody refused. Do not assume an answer.";

/// Tells how questions stand.
pub(super) fn result(tool: QuestionTool, questioned: QuestionStatus) -> Value {
    match questioned {
        QuestionStatus::Pending(workflow) => pending(tool, &workflow),
        QuestionStatus::Rejected { reason } => {
            let mut text = "User rejected the question.".to_owned();
            if let Some(reason) = &reason {
                let _ = write!(text, " Reason: {reason}");
            }
            let next = "Do not ask it again unless they want you to.";
            let structured =
                json!({ "status": "rejected", "reason": reason, "message": text, "instructions": next });
            let content = [&text as &str, next].map(|text| json!({ "type": "text", "text": text }));
            json!({ "content": content, "structuredContent": structured })
        }
        QuestionStatus::TimedOut => closed("timed_out", "The question timed out: nobody answered it."),
        QuestionStatus::Withdrawn => closed("withdrawn", "The question was withdrawn."),
        QuestionStatus::Answered {
            questions,
            answers,
            by,
        } => answered(tool, &questions, &answers, &json!(by.road)),
    }
}

/// Tells that a question can no longer be answered.
fn closed(status: &str, text: &str) -> Value {
    json!({
        "content": [{ "type": "text", "text": text }],
        "structuredContent": { "status": status, "message": text },
        "isError": true,
    })
}

/// Tells what a person answered, on the road `by`.
pub(super) fn answered(
    tool: QuestionTool,
    questions: &[Question],
    answers: &[QuestionAnswer],
    by: &Value,
) -> Value {
    let text = match tool {
        QuestionTool::One => answers.first().map(QuestionAnswer::summary).unwrap_or_default(),
        QuestionTool::Several => listed(questions, answers),
    };
    json!({
        "content": [{ "type": "text", "text": text }],
        "structuredContent": {
            "status": "answered",
            "message": text,
            "answers": keyed(questions, answers),
            "by": by,
        },
    })
}

/// Tells why a relayed question has no answer, and what was answered before it.
pub(super) fn unanswered(questions: &[Question], answers: &[QuestionAnswer], error: &RelayError) -> Value {
    let message = report::render(error, None);
    let status = match error {
        RelayError::TimedOut => "timed_out",
        _ => "failed",
    };
    let mut texts = vec![message.clone(), NO_ANSWER.to_owned()];
    texts.extend(error.hint().map(|hint| format!("hint: {hint}")));
    let mut structured = json!({ "status": status, "message": message, "instructions": NO_ANSWER });
    if !answers.is_empty() {
        texts.push(format!("Answered before that:\n\n{}", listed(questions, answers)));
        structured["answers"] = json!(keyed(questions, answers));
    }
    let content: Vec<Value> = texts
        .iter()
        .map(|text| json!({ "type": "text", "text": text }))
        .collect();
    json!({ "content": content, "structuredContent": structured, "isError": true })
}

/// Writes each question that has an answer, and its answer below it.
fn listed(questions: &[Question], answers: &[QuestionAnswer]) -> String {
    let pairs = questions.iter().zip(answers);
    let texts: Vec<String> = pairs
        .map(|(question, given)| format!("{}\n{}", question.question, given.summary()))
        .collect();
    texts.join("\n\n")
}

/// Returns the answers by their questions.
pub(super) fn keyed(questions: &[Question], answers: &[QuestionAnswer]) -> Map<String, Value> {
    let pairs = questions.iter().zip(answers);
    pairs
        .map(|(question, given)| (question.question.clone(), json!(given.values())))
        .collect()
}

/// Tells that nobody has answered yet, and how to go on.
fn pending(tool: QuestionTool, workflow: &Workflow) -> Value {
    let (name, id, code) = (tool.name(), workflow.id, &workflow.code);
    let field = match tool {
        QuestionTool::One => "\"answer\":\"…\"",
        QuestionTool::Several => "\"answers\":[\"…\"]",
    };
    let what = "The question waits for the person.";
    let instructions = format!(
        "Show the person the question. When they have told you their answer, call `{name}` with \
         {{\"{MEMBER}\":{{\"workflow_id\":\"{id}\",{field}}}}}. They can also answer with `pml answer {code}` in a \
         terminal; to wait for that, call `{name}` with \
         {{\"{MEMBER}\":{{\"workflow_id\":\"{id}\",\"wait_seconds\":{LONGEST_WAIT}}}}}. Never answer for them."
    );
    json!({
        "content": [{ "type": "text", "text": what }, { "type": "text", "text": instructions }],
        "structuredContent": {
            "status": "pending",
            "message": what,
            "instructions": instructions,
            "workflow_id": id.uuid(),
            "code": code,
        },
    })
}

/// Tells that nobody answered while the call waited.
pub(super) fn timed_out(tool: QuestionTool, workflow: &Workflow) -> Value {
    let (name, id) = (tool.name(), workflow.id);
    let late = format!(
        "The question stays open: an answer that comes later is told by `{name}` with \
         {{\"{MEMBER}\":{{\"workflow_id\":\"{id}\"}}}}."
    );
    json!({
        "content": [{ "type": "text", "text": TIMED_OUT }, { "type": "text", "text": late }],
        "structuredContent": { "status": "timed_out", "message": TIMED_OUT, "instructions": late, "workflow_id": id.uuid() },
        "isError": true,
    })
}
