//! The shapes of the agent's lines as they are written, as far as they are read.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    AgentLine, AgentRequest, Block, PermissionReach, PermissionRequest, Proposal, ReceiptState, RuleReach,
    ToolOutcome, ToolResult, TurnResult,
};

/// How much of a tool's result is kept for a line on a screen.
const EXCERPT: usize = 4_000;

/// A line, with the members of every kind.
#[derive(Deserialize)]
pub(super) struct Raw<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    event: Option<&'a RawValue>,
    #[serde(borrow, default)]
    request: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(default)]
    request_id: Option<String>,
    #[serde(default)]
    parent_tool_use_id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    uuid: Option<String>,
    #[serde(rename = "isReplay", default)]
    is_replay: bool,
    #[serde(default)]
    command_uuid: Option<String>,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    result: Option<String>,
    #[serde(default)]
    errors: Vec<String>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    deferred_tool_use: Option<DeferredCall>,
    #[serde(default)]
    total_cost_usd: Option<f64>,
    #[serde(default)]
    num_turns: Option<u64>,
    #[serde(default)]
    queued_turn_count: u64,
}

#[derive(Deserialize)]
struct DeferredCall {
    id: String,
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawBlock<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    delta: Option<RawDelta>,
}

#[derive(Deserialize)]
struct RawDelta {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize)]
struct RawRequest<'a> {
    subtype: String,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(borrow, default)]
    permission_suggestions: Vec<&'a RawValue>,
    #[serde(default)]
    default_to_no: bool,
    #[serde(default)]
    suppress_always_allow_rule: bool,
    #[serde(default)]
    requires_user_interaction: bool,
    #[serde(borrow, default)]
    matched_ask_rule: Option<&'a RawValue>,
    #[serde(default)]
    mcp_server_name: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    mode: Option<String>,
    #[serde(borrow, default)]
    requested_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawHookInput<'a> {
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(borrow, default)]
    tool_input: Option<&'a RawValue>,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(default)]
    transcript_path: Option<String>,
}

#[derive(Deserialize)]
struct RawResponse {
    #[serde(default)]
    subtype: Option<String>,
    request_id: String,
    #[serde(default)]
    error: Option<String>,
}

impl Raw<'_> {
    /// Tells what the line means.
    pub(super) fn meaning(self) -> AgentLine {
        match (&*self.kind, self.subtype.as_deref()) {
            ("system", Some("init")) => AgentLine::Init { model: self.model },
            ("assistant", _) => AgentLine::Assistant {
                blocks: blocks(self.message).into_iter().filter_map(said).collect(),
                parent: self.parent_tool_use_id,
            },
            ("stream_event", _) if self.parent_tool_use_id.is_none() => {
                streamed(self.event).unwrap_or(AgentLine::Other)
            }
            ("user", _) if self.is_replay => AgentLine::Replay { uuid: self.uuid },
            ("user", _) => {
                let results: Vec<_> = blocks(self.message).into_iter().filter_map(finished).collect();
                if results.is_empty() {
                    AgentLine::Other
                } else {
                    AgentLine::ToolResults(results)
                }
            }
            ("command_lifecycle", _) => self.receipt().unwrap_or(AgentLine::Other),
            ("control_request", _) => self.asked().unwrap_or(AgentLine::Other),
            ("control_cancel_request", _) => self
                .request_id
                .map_or(AgentLine::Other, |id| AgentLine::RequestCancelled { id }),
            ("control_response", _) => self.answered().unwrap_or(AgentLine::Other),
            ("result", subtype) => {
                let failed = self.is_error || subtype != Some("success");
                let words = self.result.filter(|words| !words.is_empty());
                let deferred = self.deferred_tool_use.map(|call| call.id);
                AgentLine::Result(TurnResult {
                    outcome: if failed {
                        ToolOutcome::Failed
                    } else {
                        ToolOutcome::Done
                    },
                    text: words.unwrap_or_else(|| self.errors.join("\n")),
                    deferred: deferred.filter(|_| self.stop_reason.as_deref() == Some("tool_deferred")),
                    cost: self.total_cost_usd,
                    turns: self.num_turns,
                    queued: self.queued_turn_count,
                })
            }
            _ => AgentLine::Other,
        }
    }

    fn receipt(self) -> Option<AgentLine> {
        let state = match self.state.as_deref()? {
            "queued" => ReceiptState::Queued,
            "started" => ReceiptState::Started,
            "completed" => ReceiptState::Completed,
            "cancelled" => ReceiptState::Cancelled,
            _ => return None,
        };
        Some(AgentLine::Receipt {
            uuid: self.command_uuid?,
            state,
        })
    }

    fn asked(self) -> Option<AgentLine> {
        let raw: RawRequest<'_> = serde_json::from_str(self.request?.get()).ok()?;
        let text =
            |value: Option<&RawValue>| value.map_or_else(|| "{}".to_owned(), |value| value.get().to_owned());
        let asked_by_a_rule = raw
            .matched_ask_rule
            .is_some_and(|rule| !matches!(rule.get(), "null" | "false"));
        let for_a_person = raw.default_to_no
            || raw.suppress_always_allow_rule
            || raw.requires_user_interaction
            || asked_by_a_rule;
        let request = match raw.subtype.as_str() {
            "can_use_tool" => {
                let tool = raw.tool_name?;
                let suggestions = raw.permission_suggestions.iter().map(|one| one.get());
                let (reach, rules) = if for_a_person {
                    (PermissionReach::OnceOnly, RuleReach::MayNotAllow)
                } else {
                    let proposal = Proposal::read(&tool, suggestions);
                    let reach = proposal.map_or(PermissionReach::Lasting, PermissionReach::Proposed);
                    (reach, RuleReach::MayAllow)
                };
                AgentRequest::Permission(PermissionRequest {
                    tool,
                    input: text(raw.input),
                    tool_use: raw.tool_use_id.unwrap_or_default(),
                    reach,
                    rules,
                })
            }
            "hook_callback" => {
                let hook: RawHookInput<'_> = serde_json::from_str(raw.input?.get()).ok()?;
                AgentRequest::Hook {
                    tool: hook.tool_name?,
                    input: text(hook.tool_input),
                    tool_use: hook.tool_use_id.or(raw.tool_use_id).unwrap_or_default(),
                    transcript: hook.transcript_path,
                }
            }
            "elicitation" => AgentRequest::Elicitation {
                server: raw.mcp_server_name.unwrap_or_default(),
                message: raw.message.unwrap_or_default(),
                schema: match raw.mode.as_deref() {
                    None | Some("form") => raw.requested_schema.map(|schema| schema.get().to_owned()),
                    Some(_) => None,
                },
            },
            _ => AgentRequest::Unknown { subtype: raw.subtype },
        };
        Some(AgentLine::Request {
            id: self.request_id?,
            request,
        })
    }

    fn answered(self) -> Option<AgentLine> {
        let raw: RawResponse = serde_json::from_str(self.response?.get()).ok()?;
        let failed = raw.subtype.as_deref() == Some("error");
        Some(AgentLine::Response {
            id: raw.request_id,
            error: failed.then(|| raw.error.unwrap_or_else(|| "it gave no reason".to_owned())),
        })
    }
}

fn blocks(message: Option<&RawValue>) -> Vec<RawBlock<'_>> {
    let message = message.and_then(|message| serde_json::from_str::<RawMessage<'_>>(message.get()).ok());
    let content = message.and_then(|message| message.content);
    // What is a string is a line of the person.
    let list = content.and_then(|content| serde_json::from_str::<Vec<&RawValue>>(content.get()).ok());
    let list = list.unwrap_or_default().into_iter();
    list.filter_map(|block| serde_json::from_str(block.get()).ok())
        .collect()
}

fn said(block: RawBlock<'_>) -> Option<Block> {
    match &*block.kind {
        "text" => Some(Block::Text(block.text?)),
        "tool_use" => Some(Block::ToolUse {
            id: block.id?,
            name: block.name?,
            input: block
                .input
                .map_or_else(|| "{}".to_owned(), |input| input.get().to_owned()),
        }),
        _ => None,
    }
}

fn finished(block: RawBlock<'_>) -> Option<ToolResult> {
    (block.kind == "tool_result").then_some(())?;
    Some(ToolResult {
        tool_use: block.tool_use_id?,
        outcome: if block.is_error {
            ToolOutcome::Failed
        } else {
            ToolOutcome::Done
        },
        excerpt: block.content.map(excerpt).unwrap_or_default(),
    })
}

/// Returns the beginning of the text of a tool's result, which is a string or a list of blocks.
fn excerpt(content: &RawValue) -> String {
    let whole = serde_json::from_str::<String>(content.get()).ok();
    let text = whole.unwrap_or_else(|| {
        let list = serde_json::from_str::<Vec<&RawValue>>(content.get()).unwrap_or_default();
        let blocks = list
            .into_iter()
            .filter_map(|block| serde_json::from_str::<RawBlock<'_>>(block.get()).ok());
        blocks
            .filter_map(|block| block.text)
            .collect::<Vec<_>>()
            .join("\n")
    });
    text.chars().take(EXCERPT).collect()
}

fn streamed(event: Option<&RawValue>) -> Option<AgentLine> {
    let event: RawEvent<'_> = serde_json::from_str(event?.get()).ok()?;
    match &*event.kind {
        "message_start" => Some(AgentLine::MessageBegan),
        "message_stop" => Some(AgentLine::MessageEnded),
        "content_block_delta" => Some(AgentLine::TextDelta(event.delta?.text?)),
        _ => None,
    }
}
