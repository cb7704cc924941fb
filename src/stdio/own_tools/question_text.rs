//! What a model is told of its questions, and how the tools that ask them introduce themselves.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::config::AskUserTools;
use crate::protocol::continuation::{LONGEST_WAIT, MEMBER};
use crate::protocol::question::{Given, Question};
use crate::proxy::{Provenance, Questioned, Workflow};
use crate::stdio::own_tools::ask_user::{ASK_USER, ASK_USER_QUESTIONS, Asking};
use crate::stdio::own_tools::permission_prompt;
use crate::stdio::own_tools::status;

/// The seed's words for a question that nobody answered in time.
const TIMED_OUT: &str = "User did not respond within the timeout period. Proceeding with your best judgment.";

/// Tells how questions stand.
pub(crate) fn result(asking: Asking, questioned: Questioned) -> Value {
    match questioned {
        Questioned::Pending(workflow) => pending(asking, &workflow),
        Questioned::Rejected { reason } => {
            let mut text = "User rejected the question.".to_owned();
            if let Some(reason) = &reason {
                let _ = write!(text, " Reason: {reason}");
            }
            let told = json!({ "status": "rejected", "reason": reason, "message": text });
            json!({ "content": [{ "type": "text", "text": text }], "structuredContent": told })
        }
        Questioned::TimedOut => closed("timed_out", "The question timed out: nobody answered it."),
        Questioned::Withdrawn => closed("withdrawn", "The question was withdrawn."),
        Questioned::Answered {
            questions,
            answers,
            by,
        } => answered(asking, &questions, &answers, by),
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

fn answered(asking: Asking, questions: &[Question], answers: &[Given], by: Provenance) -> Value {
    let text = match asking {
        Asking::One => answers.first().map(Given::told).unwrap_or_default(),
        Asking::Several => {
            let line =
                |(question, given): (&Question, &Given)| format!("{}\n{}", question.question, given.told());
            questions
                .iter()
                .zip(answers)
                .map(line)
                .collect::<Vec<_>>()
                .join("\n\n")
        }
    };
    let keyed: Map<String, Value> = questions
        .iter()
        .zip(answers)
        .map(|(question, given)| (question.question.clone(), json!(given.values())))
        .collect();
    json!({
        "content": [{ "type": "text", "text": text }],
        "structuredContent": { "status": "answered", "message": text, "answers": keyed, "by": by },
    })
}

/// Tells that nobody has answered yet, and how to go on.
fn pending(asking: Asking, workflow: &Workflow) -> Value {
    let (name, id, code) = (asking.name(), workflow.id, &workflow.code);
    let field = match asking {
        Asking::One => "\"answer\":\"…\"",
        Asking::Several => "\"answers\":[\"…\"]",
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
pub(crate) fn timed_out(asking: Asking, workflow: &Workflow) -> Value {
    let (name, id) = (asking.name(), workflow.id);
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

/// The definitions of pml's own tools, `pml_continue` apart.
pub(crate) fn definitions(tools: AskUserTools) -> Vec<Value> {
    match tools {
        AskUserTools::Listed => {
            let mut all = questions_definitions().to_vec();
            all.extend([permission_prompt::definition(), status::definition()]);
            all
        }
        AskUserTools::Off => vec![status::definition()],
    }
}

fn questions_definitions() -> [Value; 2] {
    let option = |described: &[&str]| {
        json!({
            "type": "object",
            "required": described,
            "properties": {
                "label": { "type": "string", "description": "Short label for the option" },
                "description": { "type": "string", "description": "Longer explanation of what this option means" },
            },
        })
    };
    let continuation = |answers: Value| {
        let mut properties = json!({
            "workflow_id": { "type": "string" },
            "wait_seconds": { "type": "integer", "minimum": 0, "maximum": LONGEST_WAIT },
        });
        if let (Value::Object(all), Value::Object(answers)) = (&mut properties, answers) {
            all.extend(answers);
        }
        json!({
            "type": "object",
            "description": "Only to continue a question that answered `pending`. Leave it out otherwise.",
            "required": ["workflow_id"],
            "properties": properties,
            "additionalProperties": false,
        })
    };
    let text_or_list = json!({ "type": ["string", "array"], "items": { "type": "string" }, "description": "What the person said: a label, several labels, or their own words" });
    let list =
        json!({ "type": ["array", "object"], "description": "What the person said: one entry a question" });
    let question = json!({ "type": "string", "description": "The question to ask the user" });
    let header = json!({ "type": "string", "description": "A word or two that say what it is about" });
    let options = json!({ "type": "array", "description": "Optional list of choices for the user", "items": option(&["label"]) });
    let several = json!({ "type": "boolean", "default": false, "description": "Whether the user can select multiple options" });
    [
        json!({
            "name": ASK_USER,
            "title": "Ask the person",
            "description": "Ask the user a question and wait for their response. Use this when you need clarification, a choice between options, or confirmation before proceeding.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "question": question,
                    "header": header,
                    "options": options,
                    "multiSelect": several,
                    MEMBER: continuation(json!({ "answer": text_or_list })),
                },
            },
            "annotations": { "openWorldHint": true, "readOnlyHint": false },
            "_meta": { "anthropic/alwaysLoad": true },
        }),
        json!({
            "name": ASK_USER_QUESTIONS,
            "title": "Ask the person several questions",
            "description": "Ask the user one to four structured questions, each with two to four options; free text is always possible. Use this to gather several decisions at once. A single question may be given as `ask_user` takes it instead: `question`, with `options` or without.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "questions": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["question", "header", "options", "multiSelect"],
                            "properties": {
                                "question": { "type": "string", "description": "The question to ask the user" },
                                "header": { "type": "string", "maxLength": 12, "description": "A very short label" },
                                "options": { "type": "array", "minItems": 2, "maxItems": 4, "items": option(&["label", "description"]) },
                                "multiSelect": { "type": "boolean", "description": "Whether the user can select multiple options" },
                            },
                        },
                    },
                    // The short form. One of the two must be there, which no client reads from a schema.
                    "question": question,
                    "header": header,
                    "options": options,
                    "multiSelect": several,
                    MEMBER: continuation(json!({ "answers": list, "answer": text_or_list })),
                },
            },
            "annotations": { "openWorldHint": true, "readOnlyHint": false, "idempotentHint": true },
            "_meta": { "anthropic/alwaysLoad": true },
        }),
    ]
}
