//! How pml introduces itself, in either era.

use rmcp::model::{
    DiscoverResult, Implementation, InitializeResult, PromptsCapability, ServerCapabilities, ToolsCapability,
};
use serde_json::json;

use super::era::{self, Era};
use super::present::{self, Answer};

/// What a model is told about pml once, at the start.
const INSTRUCTIONS: &str = "pml stands in front of other MCP servers. A tool named `server__connect` belongs to a \
    server that has not been started yet: call it to see that server's tools. A call may answer `approval_required`: \
    then show the person exactly what would run, let them decide, and continue as the result says. Never approve on \
    your own. To ask the person something, use `ask_user` or `ask_user_questions`; `pml_status` tells how things stand.";

/// Answers `initialize`.
pub(crate) fn initialize(requested: Option<&str>) -> Answer {
    let mut result = InitializeResult::new(capabilities()).with_instructions(INSTRUCTIONS);
    result.protocol_version = era::negotiate(requested);
    result.server_info = implementation();
    present::own_result(json!(result), Era::Legacy)
}

/// Answers `server/discover`.
pub(crate) fn discover() -> Answer {
    let mut result = DiscoverResult::new(era::versions(), capabilities());
    result.instructions = Some(INSTRUCTIONS.to_owned());
    let mut result = json!(result);
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": implementation() });
    present::own_result(result, Era::Modern)
}

fn capabilities() -> ServerCapabilities {
    let mut tools = ToolsCapability::default();
    tools.list_changed = Some(true);
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(tools);
    capabilities.prompts = Some(PromptsCapability::default());
    capabilities
}

fn implementation() -> Implementation {
    Implementation::new("pml", env!("CARGO_PKG_VERSION")).with_title("pml")
}
