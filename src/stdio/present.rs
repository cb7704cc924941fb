//! How an outcome is told to the client: results and errors in the words and shapes of its era.
//!
//! What a model must know stands in the text *and* in `structuredContent`: some clients show it only one of them.
//! A result of a dependency stays the bytes it was, but for `resultType` and the notes of pml.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::protocol::{DependencyName, Shown, ToolName, repeated, wire_name};
use crate::proxy::{Outcome, Refusal, UnknownItem};
use crate::report;
use crate::stdio::ask::wording::{approval_fault, approval_required, waiting};
use crate::stdio::client::answer::{ResponseBody, error_result, own_result};
use crate::stdio::era::{Era, RpcError};
use crate::stdio::lists::output_schemas::ExpectedContent;
use crate::stdio::translation::request::{Method, Request};

/// Writes a result of pml's own in place of what a tool would return.
///
/// A client that holds the tool's output schema lets nothing else pass but an error in words: the TypeScript client
/// checks `structuredContent` even of errors.
pub(super) fn in_place_of_output(mut result: Value, expected: ExpectedContent, era: Era) -> ResponseBody {
    if let (ExpectedContent::Schema, Some(members)) = (expected, result.as_object_mut()) {
        members.shift_remove("structuredContent");
        members.insert("isError".to_owned(), json!(true));
    }
    own_result(result, era)
}

/// Presents what became of a request.
pub(super) fn outcome(outcome: Outcome, expected: ExpectedContent, request: &Request) -> ResponseBody {
    let era = request.era;
    match (outcome, &request.method) {
        (Outcome::Unknown(missing), method) => unknown(method, &missing, era),
        (Outcome::Refused(refusal), method) => refused(&refusal, method, era),
        (Outcome::Asked(asked) | Outcome::Waiting(asked), method) if *method != Method::Call => {
            approval_fault(&asked).into()
        }
        (Outcome::Aborted { reason, notes }, method) if *method != Method::Call => {
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            let mut words = vec![format!(
                "Aborted by user{reason}. Do not ask for it again unless they want it"
            )];
            words.extend(notes);
            RpcError::new(RpcError::REFUSED, words.join("\n")).into()
        }
        (Outcome::Asked(asked), _) => in_place_of_output(approval_required(&asked), expected, era),
        (
            Outcome::Connected {
                dependency,
                tools,
                notes,
            },
            _,
        ) => connected(&dependency, &tools, &notes, era),
        (Outcome::Waiting(asked), _) => in_place_of_output(waiting(&asked), expected, era),
        (Outcome::Aborted { reason, notes }, _) => {
            in_place_of_output(aborted(reason.as_deref(), &notes), expected, era)
        }
        (Outcome::Granted { tool, notes }, _) => {
            let text = format!(
                "Approved: `{}`. Ask for it again.",
                Shown::line(&tool.to_string())
            );
            let mut content = vec![json!({ "type": "text", "text": text })];
            content.extend(notes.iter().map(|note| json!({ "type": "text", "text": note })));
            own_result(json!({ "content": content }), era)
        }
        // Whatever may run is sent to its dependency instead, and what joins another call waits for it.
        (Outcome::Ready(_) | Outcome::Joined(_), _) => {
            RpcError::new(RpcError::INTERNAL, "the request was lost").into()
        }
    }
}

fn connected(dependency: &DependencyName, tools: &[ToolName], notes: &[String], era: Era) -> ResponseBody {
    let names: Vec<String> = tools.iter().map(wire_name).collect();
    let mut text = format!("`{dependency}` is running. Its tools:\n");
    for name in &names {
        text.push_str("- ");
        text.push_str(name);
        text.push('\n');
    }
    let mut content = vec![json!({ "type": "text", "text": text.trim_end() })];
    content.extend(notes.iter().map(|note| json!({ "type": "text", "text": note })));
    own_result(
        json!({ "content": content, "structuredContent": { "dependency": dependency, "tools": names, "notes": notes } }),
        era,
    )
}

/// Says that nobody has what is wanted, in the code its method uses for that.
fn unknown(method: &Method, missing: &UnknownItem, era: Era) -> ResponseBody {
    let shown = repeated(&missing.name);
    let (code, mut message) = match (method, era) {
        (Method::Other(_), _) => (RpcError::METHOD_NOT_FOUND, "Method not found".to_owned()),
        (Method::Call, _) => (RpcError::INVALID_PARAMS, format!("Unknown tool: {shown}")),
        (Method::Prompt, _) => (RpcError::INVALID_PARAMS, format!("Unknown prompt: {shown}")),
        (Method::Complete, _) => (
            RpcError::INVALID_PARAMS,
            format!("Unknown prompt or resource: {shown}"),
        ),
        (_, Era::Legacy) => (
            RpcError::RESOURCE_NOT_FOUND,
            format!("Resource not found: {shown}"),
        ),
        (_, Era::Modern) => (RpcError::INVALID_PARAMS, format!("Resource not found: {shown}")),
    };
    if let Some(nearest) = &missing.nearest {
        let _ = write!(message, "; did you mean `{}`?", repeated(nearest));
    }
    RpcError::new(code, message).into()
}

/// Says why something did not run: to a tool's caller in a result that the model reads, to others in an error.
pub(super) fn refused(refusal: &Refusal, method: &Method, era: Era) -> ResponseBody {
    use report::Hint as _;
    if *method == Method::Call {
        return own_result(refused_result(refusal), era);
    }
    let text = report::render(refusal, None);
    let hint = refusal
        .hint()
        .map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    RpcError::new(RpcError::REFUSED, format!("{text}{hint}")).into()
}

/// A refusal as a result the model can read: first what happened, then what would help.
fn refused_result(refused: &Refusal) -> Value {
    use report::Hint as _;
    error_result(&report::render(refused, None), refused.hint().as_deref())
}

/// An error result: a program that looks at nothing else must not take it for success.
fn aborted(reason: Option<&str>, notes: &[String]) -> Value {
    let what = "Workflow aborted by user";
    let next = "It did not run. Do not call it again unless the person asks for it.";
    let mut content = vec![json!({ "type": "text", "text": what })];
    let mut structured = json!({ "status": "aborted", "message": what, "instructions": next });
    if let Some(reason) = reason {
        content.push(json!({ "type": "text", "text": format!("Their reason: {reason}") }));
        structured["reason"] = json!(reason);
    }
    content.push(json!({ "type": "text", "text": next }));
    if !notes.is_empty() {
        content.extend(notes.iter().map(|note| json!({ "type": "text", "text": note })));
        structured["notes"] = json!(notes);
    }
    json!({ "content": content, "structuredContent": structured, "isError": true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stdio::translation::request::Continuing;
    use bytes::Bytes;

    #[test]
    fn a_client_that_holds_an_output_schema_is_told_in_words() {
        let request = Request {
            method: Method::Call,
            params: Bytes::from_static(b"{}"),
            era: Era::Legacy,
            continuing: Continuing::No,
            batch: 0,
        };
        let aborted = || Outcome::Aborted {
            reason: None,
            notes: Vec::new(),
        };
        let aborted = |expected| match outcome(aborted(), expected, &request) {
            ResponseBody::Result(parts) => serde_json::from_slice::<Value>(&parts.concat()).unwrap(),
            ResponseBody::Error(_) => panic!("not an error of the protocol"),
        };
        let next = "It did not run. Do not call it again unless the person asks for it.";
        let content = json!([
            { "type": "text", "text": "Workflow aborted by user" },
            { "type": "text", "text": next },
        ]);
        assert_eq!(
            aborted(ExpectedContent::Anything),
            json!({
                "content": content,
                "structuredContent": { "status": "aborted", "message": "Workflow aborted by user", "instructions": next },
                "isError": true,
            })
        );
        assert_eq!(
            aborted(ExpectedContent::Schema),
            json!({ "content": content, "isError": true })
        );
    }
}
