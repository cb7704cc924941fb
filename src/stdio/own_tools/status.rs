//! `pml_status`: what is installed, running, pending, answered late and denied, for a model that wonders.

use serde_json::{Value, json};

use super::question_text::keyed;
use crate::protocol::own_tool::STATUS;
use crate::protocol::{Shown, wire_name};
use crate::proxy::Proxy;

/// Reports how things stand; never arguments, values of variables, or answers that a call has taken.
pub(super) async fn status(proxy: &Proxy) -> Value {
    let status = proxy.status().await;
    let servers: Vec<Value> = status
        .servers
        .iter()
        .map(|server| {
            json!({
                "name": server.name,
                "state": server.state,
                "approved": server.approved,
                "tools": server.tools.as_ref().map(|tools| tools.iter().map(wire_name).collect::<Vec<_>>()),
                "problem": server.problem,
            })
        })
        .collect();
    let answered: Vec<Value> = status
        .answered
        .iter()
        .map(|late| {
            json!({
                "code": late.code,
                "workflow_id": late.id.uuid(),
                "answers": keyed(&late.questions, &late.answers),
                "by": late.by.road,
            })
        })
        .collect();
    let note = match (&status.file, &status.unreached) {
        (_, Some(unreached)) => Some(unreached.to_string()),
        (None, None) => Some(format!(
            "there is no .pml.json for `{}`; a person writes one by `pml init` or `pml add`",
            Shown::path(&status.directory)
        )),
        (Some(_), None) => None,
    };
    let structured = json!({
        "config": { "file": status.file, "problem": status.problem, "note": note },
        "servers": servers,
        "pending": status.pending,
        "answered": answered,
        "denied": status.denied,
    });
    let text = Shown::json(&format!("{structured:#}"));
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": structured })
}

/// The definition of the tool.
pub(super) fn definition() -> Value {
    json!({
        "name": STATUS,
        "title": "How pml stands",
        "description": "Tells which servers stand behind pml, whether they are installed, running and approved, what waits \
            for a person, what they answered after a call had returned, and what is denied by which rule. Use it when a tool you expect is missing or refused.",
        "inputSchema": { "type": "object", "properties": {} },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}
