//! The lines that a host writes to its agent. Pure.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::message::{Image, Message, Priority};
use crate::protocol::question::{Question, QuestionAnswer};

/// The name of the hook that sees calls before they run.
const HOOK: &str = "ask";

/// How long the agent leaves a hook open: longer than any run is patient, as it would go on without the answer. Many
/// clocks count milliseconds in 32 bits, and ring at once beyond 24.8 days.
const HOOK_SECONDS: u64 = 24 * 24 * 3_600;

/// The longest that an agent is left waiting for a person, also where it is to wait for ever: then it is put aside, before
/// its hook ends without an answer.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(HOOK_SECONDS - 24 * 3_600);

/// The request that opens a conversation and asks to see every call before it runs.
#[must_use]
pub(super) fn initialize(id: &str) -> String {
    let hooks = json!({ "PreToolUse": [{ "hookCallbackIds": [HOOK], "timeout": HOOK_SECONDS }] });
    request(id, &json!({ "subtype": "initialize", "hooks": hooks }))
}

/// The request to break off what the agent does, and to drop what waits for its turn.
#[must_use]
pub(super) fn interrupt(id: &str) -> String {
    request(id, &json!({ "subtype": "interrupt", "cancel_queued": true }))
}

fn request(id: &str, request: &Value) -> String {
    json!({ "type": "control_request", "request_id": id, "request": request }).to_string()
}

/// A line of the person.
#[must_use]
pub(super) fn message(message: &Message) -> String {
    let images = message.images.iter().map(|Image { media_type, data }| {
        json!({ "type": "image", "source": { "type": "base64", "media_type": media_type, "data": data } })
    });
    // The service refuses a text that is empty or blank.
    let text = (!message.text.trim().is_empty()).then(|| json!({ "type": "text", "text": message.text }));
    let content: Vec<Value> = text.into_iter().chain(images).collect();
    let mut line = json!({
        "type": "user",
        "uuid": message.uuid,
        "message": { "role": "user", "content": content },
        "parent_tool_use_id": null,
    });
    match message.priority {
        Priority::Next => {}
        Priority::Now => line["priority"] = "now".into(),
        Priority::Later => line["priority"] = "later".into(),
    }
    line.to_string()
}

/// Lets a tool be used with the input that was judged, and takes over wider permissions that a person chose.
#[must_use]
pub(super) fn allow(id: &str, input: &str, permissions: &[String]) -> String {
    // The very bytes that were judged: the agent runs what stands here.
    let input = raw(input);
    let permissions: Vec<_> = permissions.iter().map(|one| raw(one)).collect();
    let permissions = if permissions.is_empty() {
        String::new()
    } else {
        let list: Vec<_> = permissions.iter().map(|one| one.get()).collect();
        format!(r#","updatedPermissions":[{}]"#, list.join(","))
    };
    let answer = format!(
        r#"{{"behavior":"allow","updatedInput":{}{permissions}}}"#,
        input.get()
    );
    success(id, &raw(&answer))
}

/// Does not let a tool be used, and tells the model why.
#[must_use]
pub(super) fn deny(id: &str, message: &str) -> String {
    success(id, &value(&json!({ "behavior": "deny", "message": message })))
}

/// Leaves a call to the agent's own rules.
#[must_use]
pub(super) fn no_opinion(id: &str) -> String {
    success(id, &raw("{}"))
}

/// Lets a hooked call run as it is.
#[must_use]
pub(super) fn hook_allow(id: &str) -> String {
    hook(id, &json!({ "permissionDecision": "allow" }))
}

/// Does not let a hooked call run, and tells the model why.
#[must_use]
pub(super) fn hook_deny(id: &str, reason: &str) -> String {
    hook(
        id,
        &json!({ "permissionDecision": "deny", "permissionDecisionReason": reason }),
    )
}

/// Puts a hooked call off: the agent ends, and asks again when its session is resumed.
#[must_use]
pub(super) fn hook_defer(id: &str) -> String {
    hook(id, &json!({ "permissionDecision": "defer" }))
}

/// Gives the agent's own question tool its answers.
#[must_use]
pub(super) fn hook_answers(
    id: &str,
    input: &str,
    questions: &[Question],
    answers: &[QuestionAnswer],
) -> String {
    let input = answered_input(input, questions, answers);
    hook(
        id,
        &json!({ "permissionDecision": "allow", "updatedInput": input }),
    )
}

/// Adds the answers to the input of the agent's own question tool, as that reads them.
pub(super) fn answered_input(input: &str, questions: &[Question], answers: &[QuestionAnswer]) -> Value {
    let mut input: Map<String, Value> = serde_json::from_str(input).unwrap_or_default();
    let pairs = || questions.iter().zip(answers);
    let given = pairs().filter(|(_, answer)| !answer.is_unanswered());
    let given = given.map(|(question, answer)| (question.question.clone(), joined(answer).into()));
    input.insert("answers".to_owned(), Value::Object(given.collect()));
    let skipped = pairs().filter(|(_, answer)| answer.is_unanswered());
    let skipped: Map<_, _> = skipped
        .map(|(question, _)| (question.question.clone(), json!({ "unanswered": "skipped" })))
        .collect();
    if !skipped.is_empty() {
        input.insert("annotations".to_owned(), Value::Object(skipped));
    }
    Value::Object(input)
}

fn hook(id: &str, decision: &Value) -> String {
    let mut output = json!({ "hookEventName": "PreToolUse" });
    if let (Some(output), Some(decision)) = (output.as_object_mut(), decision.as_object()) {
        output.extend(decision.clone());
    }
    success(id, &value(&json!({ "hookSpecificOutput": output })))
}

/// Fills in a form of a server.
#[must_use]
pub(super) fn form_accepted(id: &str, content: &Map<String, Value>) -> String {
    success(id, &value(&json!({ "action": "accept", "content": content })))
}

/// Does not fill in a form of a server.
#[must_use]
pub(super) fn form_declined(id: &str) -> String {
    success(id, &value(&json!({ "action": "decline" })))
}

/// Refuses a request that this host does not know.
#[must_use]
pub(super) fn failure(id: &str, error: &str) -> String {
    let response = json!({ "subtype": "error", "request_id": id, "error": error });
    json!({ "type": "control_response", "response": response }).to_string()
}

fn success(id: &str, response: &RawValue) -> String {
    let id = value(&id.into());
    format!(
        r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{},"response":{}}}}}"#,
        id.get(),
        response.get()
    )
}

/// Joins several choices for the agent's tool, which reads a list by its commas: a label with one stands in quotes.
fn joined(answer: &QuestionAnswer) -> String {
    let values = answer.values();
    match values.as_slice() {
        [one] => (*one).to_owned(),
        several => {
            let quoted = several.iter().map(|label| {
                if label.contains(',') {
                    format!("\"{label}\"")
                } else {
                    (*label).to_owned()
                }
            });
            quoted.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Wraps JSON text that was read before; what is none becomes an empty object, which allows nothing more.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| value(&json!({})))
}

fn value(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(text: &str, labels: &[&str]) -> Question {
        let options: Vec<_> = labels.iter().map(|label| json!({ "label": label })).collect();
        serde_json::from_value(json!({ "question": text, "options": options })).unwrap()
    }

    fn chosen(labels: &[&str]) -> QuestionAnswer {
        QuestionAnswer {
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            text: None,
        }
    }

    fn response(line: &str) -> Value {
        let line: Value = serde_json::from_str(line).unwrap();
        line["response"]["response"].clone()
    }

    #[test]
    fn an_allowed_input_is_the_very_text_that_was_judged() {
        let input = r#"{ "n":1.0,"big":12345678901234567890123,"n":2 }"#;
        let line = allow(
            "r\"1",
            input,
            &[r#"{"type":"setMode","mode":"acceptEdits"}"#.to_owned()],
        );
        assert!(
            line.contains(&format!(
                r#""updatedInput":{input},"updatedPermissions":[{{"type":"setMode""#
            )),
            "{line}"
        );
        assert!(line.contains(r#""request_id":"r\"1""#), "{line}");
    }

    #[test]
    fn labels_with_commas_stand_in_quotes_where_there_are_several() {
        let questions = [
            question("Which?", &["a, b", "c"]),
            question("One?", &["x, y"]),
            question("Left?", &["z"]),
        ];
        let answers = [
            chosen(&["a, b", "c"]),
            chosen(&["x, y"]),
            QuestionAnswer::unanswered(),
        ];
        let line = hook_answers("r1", r#"{"questions":[]}"#, &questions, &answers);
        let output = &response(&line)["hookSpecificOutput"];
        assert_eq!(output["permissionDecision"], "allow");
        assert_eq!(
            output["updatedInput"],
            json!({
                "questions": [],
                "answers": { "Which?": "\"a, b\", c", "One?": "x, y" },
                "annotations": { "Left?": { "unanswered": "skipped" } },
            })
        );
    }

    #[test]
    fn a_hook_is_open_for_longer_than_any_wait_and_within_what_a_clock_counts() {
        let line: Value = serde_json::from_str(&initialize("i")).unwrap();
        let hook = &line["request"]["hooks"]["PreToolUse"][0];
        let seconds = hook["timeout"].as_u64().unwrap();
        assert!(seconds * 1_000 < 1 << 31, "{seconds}");
        assert!(LONGEST_WAIT < Duration::from_secs(seconds));
        assert_eq!(hook.get("matcher"), None, "every tool");
    }

    #[test]
    fn a_denial_always_has_a_message() {
        assert_eq!(
            response(&deny("r", "no")),
            json!({ "behavior": "deny", "message": "no" })
        );
        let hook = response(&hook_deny("r", "no"));
        assert_eq!(
            hook["hookSpecificOutput"],
            json!({
                "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no",
            })
        );
    }

    #[test]
    fn a_picture_goes_without_an_empty_text() {
        let shown = |text: &str| {
            let message = Message {
                uuid: "u1".to_owned(),
                text: text.to_owned(),
                images: vec![Image {
                    media_type: "image/png".to_owned(),
                    data: "AAAA".to_owned(),
                }],
                priority: Priority::Next,
            };
            let line: Value = serde_json::from_str(&super::message(&message)).unwrap();
            let content = line["message"]["content"].as_array().unwrap().clone();
            content
                .iter()
                .map(|block| block["type"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(""), ["image"]);
        assert_eq!(shown(" \n"), ["image"]);
        assert_eq!(shown("this"), ["text", "image"]);
    }

    #[test]
    fn a_message_says_when_it_is_to_be_read_only_where_that_is_not_next() {
        let line = |priority| {
            let message = Message {
                uuid: "u".to_owned(),
                text: "use tabs".to_owned(),
                images: Vec::new(),
                priority,
            };
            serde_json::from_str::<Value>(&super::message(&message)).unwrap()
        };
        assert_eq!(line(Priority::Next).get("priority"), None);
        assert_eq!(line(Priority::Now)["priority"], "now");
        assert_eq!(line(Priority::Later)["priority"], "later");
    }
}
