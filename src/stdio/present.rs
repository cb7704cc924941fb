//! How an outcome is told to the client: results and errors in the words and shapes of its era.
//!
//! What a model must know stands in the text *and* in `structuredContent`: some clients show it only one of them.
//! A result of a dependency stays the bytes it was, but for `resultType` and the notes of pml.

use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::{Value, json};

use super::era::{Era, Fault};
use super::listing::CONTINUE;
use super::promises::Expected;
use crate::config::By;
use crate::protocol::approval::{ApprovalContext, ApprovalType};
use crate::protocol::continuation::MEMBER;
use crate::protocol::{Object, Shown, Splice, wire_name};
use crate::proxy::{Asked, Outcome, Refusal};
use crate::report;

/// An answer on its way to the client, without its envelope.
#[derive(Debug)]
pub(crate) enum Answer {
    Result(Vec<Bytes>),
    /// An error object.
    Error(Vec<Bytes>),
}

impl From<Fault> for Answer {
    fn from(fault: Fault) -> Self {
        Self::Error(vec![Bytes::from(fault.to_json())])
    }
}

/// Writes a result of pml's own.
pub(crate) fn own_result(mut result: Value, era: Era) -> Answer {
    if let (Era::Modern, Some(members)) = (era, result.as_object_mut()) {
        members.insert("resultType".to_owned(), json!("complete"));
    }
    Answer::Result(vec![Bytes::from(result.to_string())])
}

/// Writes a result of pml's own in place of what a tool would return.
///
/// A client that holds the tool's output schema lets nothing else pass but an error in words: the TypeScript client
/// checks `structuredContent` even of errors.
fn in_place_of_output(mut result: Value, expected: Expected, era: Era) -> Answer {
    if let (Expected::Schema, Some(members)) = (expected, result.as_object_mut()) {
        members.shift_remove("structuredContent");
        members.insert("isError".to_owned(), json!(true));
    }
    own_result(result, era)
}

/// Presents what became of a `tools/call`.
pub(crate) fn outcome(outcome: Outcome, expected: Expected, era: Era) -> Answer {
    match outcome {
        Outcome::Result { raw, notes } => Answer::Result(forwarded(raw, &notes, era)),
        Outcome::Error(raw) => Answer::Error(vec![raw]),
        Outcome::Asked(asked) => in_place_of_output(approval_required(&asked), expected, era),
        Outcome::Connected {
            dependency,
            tools,
            notes,
        } => {
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
        Outcome::Waiting(asked) => in_place_of_output(waiting(&asked), expected, era),
        Outcome::Aborted { reason } => in_place_of_output(aborted(reason.as_deref()), expected, era),
        Outcome::UnknownTool { name, nearest } => {
            let mut message = format!("Unknown tool: {}", Shown::line(&name));
            if let Some(nearest) = nearest {
                let _ = write!(message, "; did you mean `{nearest}`?");
            }
            Fault::new(Fault::INVALID_PARAMS, message).into()
        }
        Outcome::Refused(refused) => own_result(refused_result(&refused), era),
    }
}

/// A refusal as a result the model can read: first what happened, then what would help.
fn refused_result(refused: &Refusal) -> Value {
    use report::Hint as _;
    refusal(&report::render(refused, None), refused.hint().as_deref())
}

/// Writes an `isError` result: what happened, then the next step as a text of its own.
pub(crate) fn refusal(what: &str, hint: Option<&str>) -> Value {
    let mut content = vec![json!({ "type": "text", "text": what })];
    content.extend(hint.map(|hint| json!({ "type": "text", "text": format!("hint: {hint}") })));
    json!({ "content": content, "isError": true })
}

fn approval_required(asked: &Asked) -> Value {
    let wire = wire_name(&asked.tool);
    let context = ApprovalContext {
        kind: asked.kind,
        tool: asked.tool.clone(),
        dependency: asked.dependency.clone(),
        workflow_id: asked.workflow_id,
    };
    let what = headline(asked);
    let instruction = instruction(asked, &wire);
    json!({
        "content": [{ "type": "text", "text": what }, { "type": "text", "text": instruction }],
        "approval_required": true,
        "approval_context": context,
        "structuredContent": {
            "approval_required": true,
            "approval_context": context,
            "message": what,
            "instructions": instruction,
        },
    })
}

fn aborted(reason: Option<&str>) -> Value {
    let what = "Workflow aborted by user";
    let mut content = vec![json!({ "type": "text", "text": what })];
    let mut told = json!({ "status": "aborted", "message": what });
    if let Some(reason) = reason {
        content.push(json!({ "type": "text", "text": format!("Their reason: {reason}") }));
        told["reason"] = json!(reason);
    }
    json!({ "content": content, "structuredContent": told })
}

/// How a call stands that only a person may let go on.
fn waiting(asked: &Asked) -> Value {
    let what = format!("Waiting for a person to decide: {}", headline(asked));
    let instruction = instruction(asked, &wire_name(&asked.tool));
    json!({
        "content": [{ "type": "text", "text": what }, { "type": "text", "text": instruction }],
        "structuredContent": {
            "status": "waiting_for_person",
            "message": what,
            "instructions": instruction,
            "workflow_id": asked.workflow_id,
            "code": asked.code,
        },
    })
}

fn headline(asked: &Asked) -> String {
    let dependency = &asked.dependency;
    let named = match &dependency.version {
        Some(version) => format!("{}@{version}", dependency.name),
        None => dependency.name.clone(),
    };
    match (asked.kind, asked.installs) {
        (ApprovalType::DependencyInstall, true) => format!("Approval required to install {named}"),
        (ApprovalType::DependencyInstall, false) => format!("Approval required to run {named}"),
        (ApprovalType::RemoteConnect, _) => format!("Approval required to connect to {named}"),
        (ApprovalType::ToolPermission, _) => {
            format!(
                "Approval required to call {}",
                Shown::line(&asked.tool.to_string())
            )
        }
    }
}

fn instruction(asked: &Asked, wire: &str) -> String {
    let dependency = &asked.dependency;
    let id = asked.workflow_id;
    let minutes = asked.expires_in.as_secs().div_ceil(60);
    let mut shown = format!("  {}\n", dependency.install);
    match &dependency.integrity {
        Some(integrity) => {
            let _ = writeln!(shown, "  integrity {integrity}");
        }
        None if asked.installs => {
            shown.push_str(
                "  (integrity not known yet: it is recorded at first use, and the result says so)\n",
            );
        }
        None => {}
    }
    if dependency.scripts {
        shown.push_str("  install scripts of the package WILL run (\"allowScripts\")\n");
    }
    let would = match &dependency.remote {
        Some(_) => "what would be connected to",
        None => "what would run",
    };
    let valid = format!(
        "The id is valid for {minutes} minute{}.",
        if minutes == 1 { "" } else { "s" }
    );
    match asked.by {
        By::Client => format!(
            "A person must decide this; do not decide for them. Show them exactly {would}:\n\
             {shown}\
             If they say yes, call `{wire}` with the arguments\n  \
             {{\"{MEMBER}\":{{\"workflow_id\":\"{id}\",\"approved\":true}}}}\n\
             and nothing else: the original call is kept and runs as it was. If they want this tool allowed from now \
             on, add \"always\":true. If they say no, send \"approved\":false. \
             A client that rejects those arguments can call `{CONTINUE}` with \
             {{\"workflow_id\":\"{id}\",\"approved\":true}} instead. {valid}"
        ),
        By::Human => format!(
            "Only a person can approve this, and not through you. Show them exactly {would}:\n\
             {shown}\
             and how to decide: `pml approve {code}` or `pml refuse {code}` in a terminal, or the prompt \
             `approve {code}` of pml (in Claude Code: /mcp__pml__approve {code}). Once they have decided, call \
             `{CONTINUE}` with {{\"workflow_id\":\"{id}\",\"approved\":true}} to go on: the original call is kept \
             and runs as it was. {valid}",
            code = asked.code,
        ),
    }
}

/// Passes a dependency's result on, with what its reader's era requires and the notes of pml.
fn forwarded(raw: Bytes, notes: &[String], era: Era) -> Vec<Bytes> {
    if era == Era::Legacy && notes.is_empty() {
        return vec![raw];
    }
    let text = String::from_utf8_lossy(&raw);
    let Some(object) = Object::parse(&text) else {
        return vec![raw.clone()];
    };
    let mut splice = Splice::new(raw.clone());
    let mut front = String::new();
    if era == Era::Modern && object.value("resultType").is_none() {
        front.push_str(r#""resultType":"complete""#);
    }
    if !notes.is_empty() {
        let blocks: Vec<String> = notes
            .iter()
            .map(|note| json!({ "type": "text", "text": note }).to_string())
            .collect();
        let blocks = blocks.join(",");
        if let Some(place) = object
            .place("content")
            .filter(|place| text[place.clone()].starts_with('['))
        {
            let empty = text[place.start + 1..place.end - 1].trim().is_empty();
            let comma = if empty { "" } else { "," };
            splice.replace(place.end - 1..place.end - 1, format!("{comma}{blocks}"));
        } else {
            let comma = if front.is_empty() { "" } else { "," };
            let _ = write!(front, "{comma}\"content\":[{blocks}]");
        }
    }
    if !front.is_empty() {
        if !object.is_empty() {
            front.push(',');
        }
        splice.replace(object.front()..object.front(), front);
    }
    splice.into_parts()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(raw: &str, notes: &[&str], era: Era) -> String {
        let notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
        let parts = forwarded(Bytes::from(raw.to_owned()), &notes, era);
        String::from_utf8(parts.concat()).unwrap()
    }

    #[test]
    fn a_client_that_holds_an_output_schema_is_told_in_words() {
        let aborted = |expected| match outcome(Outcome::Aborted { reason: None }, expected, Era::Legacy) {
            Answer::Result(parts) => serde_json::from_slice::<Value>(&parts.concat()).unwrap(),
            Answer::Error(_) => panic!("not an error of the protocol"),
        };
        let content = json!([{ "type": "text", "text": "Workflow aborted by user" }]);
        assert_eq!(
            aborted(Expected::Anything),
            json!({
                "content": content,
                "structuredContent": { "status": "aborted", "message": "Workflow aborted by user" },
            })
        );
        assert_eq!(
            aborted(Expected::Schema),
            json!({ "content": content, "isError": true })
        );
    }

    #[test]
    fn a_legacy_client_gets_the_very_bytes() {
        let raw = r#"{ "content":[{"type":"odd","n":12345678901234567890123}], "x":1.0, "tools":null }"#;
        assert_eq!(passed(raw, &[], Era::Legacy), raw);
        assert_eq!(passed("[1]", &[], Era::Modern), "[1]");
    }

    #[test]
    fn a_modern_client_gets_a_result_type_and_nothing_else_changes() {
        assert_eq!(
            passed(r#"{ "x":1.0 }"#, &[], Era::Modern),
            r#"{"resultType":"complete", "x":1.0 }"#
        );
        assert_eq!(passed("{}", &[], Era::Modern), r#"{"resultType":"complete"}"#);
        assert_eq!(
            passed(r#"{"resultType":"complete"}"#, &[], Era::Modern),
            r#"{"resultType":"complete"}"#
        );
    }

    #[test]
    fn notes_follow_the_content_of_the_dependency() {
        assert_eq!(
            passed(
                r#"{"content":[{"type":"text","text":"a"}],"b":1}"#,
                &["note"],
                Era::Legacy
            ),
            r#"{"content":[{"type":"text","text":"a"},{"text":"note","type":"text"}],"b":1}"#.replace(
                r#"{"text":"note","type":"text"}"#,
                r#"{"type":"text","text":"note"}"#
            )
        );
        assert_eq!(
            passed(r#"{"content":[ ]}"#, &["n"], Era::Legacy),
            r#"{"content":[ {"type":"text","text":"n"}]}"#
        );
        assert_eq!(
            passed(r#"{"a":1}"#, &["n"], Era::Modern),
            r#"{"resultType":"complete","content":[{"type":"text","text":"n"}],"a":1}"#
        );
    }
}
