//! How the tools of pml itself introduce themselves.

use serde_json::{Value, json};

use super::{permission_prompt, status};
use crate::config::{AskUserTools, By};
use crate::protocol::continuation::{self, LONGEST_WAIT, MEMBER};
use crate::protocol::own_tool::{ASK_USER, ASK_USER_QUESTIONS, CONTINUE};

/// Returns the definitions of pml's own tools.
pub(crate) fn definitions(tools: AskUserTools, by: By) -> Vec<Value> {
    let mut all = match tools {
        AskUserTools::Listed => question_tools().to_vec(),
        AskUserTools::Off => Vec::new(),
    };
    if tools == AskUserTools::Listed {
        all.push(permission_prompt::definition());
    }
    all.extend([status::definition(), continue_tool(by)]);
    all
}

fn question_tools() -> [Value; 2] {
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
    let text_or_list = json!({
        "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
        "description": "What the person said: a label, several labels, or their own words",
    });
    let list = json!({
        "anyOf": [{ "type": "array", "items": {} }, { "type": "object" }],
        "description": "What the person said: one entry a question, null for one they left unanswered",
    });
    let question = json!({ "type": "string", "description": "The question to ask the user" });
    let header = json!({ "type": "string", "description": "A word or two that say what it is about" });
    let options = json!({ "type": "array", "description": "Optional list of choices for the user", "items": option(&["label"]) });
    let channel = json!({ "type": "string", "description": "Only where the user wants to be asked on a chat channel of theirs: slack, telegram, whatsapp, ntfy or webhook. It is an error at once if it cannot be asked there." });
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
                    "channel": channel,
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
                    "channel": channel,
                    MEMBER: continuation(json!({ "answers": list, "answer": text_or_list })),
                },
            },
            "annotations": { "openWorldHint": true, "readOnlyHint": false, "idempotentHint": true },
            "_meta": { "anthropic/alwaysLoad": true },
        }),
    ]
}

/// Where only a person counts, a continuation fetches what they decided: clients need not ask one before it.
fn continue_tool(by: By) -> Value {
    let description = match by {
        By::Client => {
            "Continues a tool call that answered `approval_required`, after a person has decided about it. \
             Ask the person first; never decide for them. The suspended call runs with its original arguments and its \
             result is returned here."
        }
        By::Human => {
            "Fetches what became of a tool call that answered `approval_required`. A person decides about it outside \
             this tool; `approved` does not count here. Once they have approved, the suspended call runs with its \
             original arguments and its result is returned here; `wait_seconds` waits for them."
        }
    };
    json!({
        "name": CONTINUE,
        "title": "Continue a suspended call",
        "description": description,
        "inputSchema": continuation::schema(),
        "annotations": { "readOnlyHint": false, "destructiveHint": true, "openWorldHint": true },
        "_meta": { "anthropic/alwaysLoad": true },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::own_tool;

    #[test]
    fn what_is_reserved_is_what_pml_lists_of_its_own() {
        let own = definitions(AskUserTools::Listed, By::Client);
        let mut names: Vec<&str> = own.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        names.sort_unstable();
        let mut reserved = own_tool::ALL;
        reserved.sort_unstable();
        assert_eq!(names, reserved);
    }
}
