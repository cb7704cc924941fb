//! What an agent sent to the API: the whole conversation, with every turn again.

use serde_json::Value;

/// One request for a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    body: Value,
}

/// What a tool returned, as a model reads it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolResult {
    pub(crate) tool_use_id: String,
    /// Empty where the conversation does not have the call.
    pub(crate) tool: String,
    pub(crate) input: Value,
    pub(crate) is_error: bool,
    pub(crate) text: String,
}

impl Request {
    pub(super) fn new(body: Value) -> Self {
        Self { body }
    }

    /// The body as it came.
    pub(crate) fn body(&self) -> &Value {
        &self.body
    }

    pub(crate) fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Whether a text occurs in the first message of the user.
    pub(crate) fn began_with(&self, text: &str) -> bool {
        let first = self.messages().iter().find(|message| message["role"] == "user");
        first.is_some_and(|message| texts(&message["content"]).iter().any(|told| told.contains(text)))
    }

    /// What tools returned, in the order of the conversation.
    pub(crate) fn tool_results(&self) -> Vec<ToolResult> {
        let blocks = self.blocks("user");
        let results = blocks.filter(|block| block["type"] == "tool_result");
        results.map(|block| self.tool_result(block)).collect()
    }

    /// The text of the tool result that came last; empty where there is none.
    pub(crate) fn last_result(&self) -> String {
        let last = self.tool_results().pop();
        last.map_or_else(String::new, |result| result.text)
    }

    /// What the user said, in the order of the conversation; not what tools returned.
    ///
    /// With what Claude Code says in the conversation: what a user says in the middle of a turn, it passes on in a
    /// message of the role `system`.
    pub(crate) fn user_texts(&self) -> Vec<String> {
        let messages = self.messages().iter();
        let said = messages.filter(|message| message["role"] != "assistant");
        said.flat_map(|message| texts(&message["content"])).collect()
    }

    fn tool_result(&self, block: &Value) -> ToolResult {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let call = self
            .blocks("assistant")
            .find(|call| call["type"] == "tool_use" && call["id"] == id);
        ToolResult {
            tool_use_id: id.to_owned(),
            tool: call
                .and_then(|call| call["name"].as_str())
                .unwrap_or_default()
                .to_owned(),
            input: call.map_or(Value::Null, |call| call["input"].clone()),
            is_error: block["is_error"] == true,
            text: texts(&block["content"]).join("\n"),
        }
    }

    /// The blocks of all messages of a role.
    fn blocks<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a Value> {
        let messages = self
            .messages()
            .iter()
            .filter(move |message| message["role"] == role);
        messages.flat_map(|message| message["content"].as_array().into_iter().flatten())
    }
}

/// The texts of a content, which is one text or a list of blocks.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}
