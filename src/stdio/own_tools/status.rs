//! `pml_status`: what is installed, running, pending and denied, for a model that wonders.

use serde_json::{Value, json};

use crate::protocol::{Shown, wire_name};
use crate::stdio::conversation::Conversation;

/// The tool's name.
pub(crate) const STATUS: &str = "pml_status";

impl Conversation {
    /// Tells how things stand; never arguments, values of variables or answers.
    pub(crate) async fn status(&self) -> Value {
        let status = self.0.proxy.status().await;
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
        let told = json!({
            "config": { "file": status.file, "problem": status.problem },
            "servers": servers,
            "pending": status.pending,
            "denied": status.denied,
        });
        let text = Shown::json(&format!("{told:#}"));
        json!({ "content": [{ "type": "text", "text": text }], "structuredContent": told })
    }
}

/// The definition of the tool.
pub(crate) fn definition() -> Value {
    json!({
        "name": STATUS,
        "title": "How pml stands",
        "description": "Tells which servers stand behind pml, whether they are installed, running and approved, what waits \
            for a person, and what is denied by which rule. Use it when a tool you expect is missing or refused.",
        "inputSchema": { "type": "object", "properties": {} },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}
