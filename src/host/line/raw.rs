//! The shapes of the agent's lines as they are written, as far as they are read.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    AgentLine, AgentRequest, Block, PermissionReach, PermissionRequest, Proposal, ReceiptState, RuleReach,
    ToolOutcome, ToolResult, TurnResult,
};

/// How much of a tool's result is kept for a line on a screen.
const EXCERPT: usize = 4_000;

/// A line, with the members of every kind. A member that is not as it was measured is taken as missing: a later agent must not
/// make the rest of its line unreadable.
#[derive(Deserialize)]
pub(super) struct Raw<'a> {
    #[serde(rename = "type", default, deserialize_with = "fitting")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    subtype: Option<String>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    event: Option<&'a RawValue>,
    #[serde(borrow, default)]
    request: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "fitting")]
    request_id: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    parent_tool_use_id: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    model: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    uuid: Option<String>,
    #[serde(rename = "isReplay", default)]
    is_replay: Mark,
    #[serde(default, deserialize_with = "fitting")]
    command_uuid: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    state: Option<String>,
    #[serde(default)]
    is_error: Mark,
    #[serde(default, deserialize_with = "fitting")]
    result: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    errors: Option<Vec<Value>>,
    #[serde(default, deserialize_with = "fitting")]
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    deferred_tool_use: Option<DeferredCall>,
    #[serde(default, deserialize_with = "fitting")]
    total_cost_usd: Option<f64>,
    #[serde(default, deserialize_with = "fitting")]
    num_turns: Option<u64>,
    #[serde(default, deserialize_with = "fitting")]
    queued_turn_count: Option<u64>,
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
    #[serde(rename = "type", default, deserialize_with = "fitting")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    text: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    id: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    name: Option<String>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "fitting")]
    tool_use_id: Option<String>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Mark,
}

#[derive(Deserialize)]
struct RawEvent {
    #[serde(rename = "type", default, deserialize_with = "fitting")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    delta: Option<RawDelta>,
}

#[derive(Deserialize)]
struct RawDelta {
    #[serde(default, deserialize_with = "fitting")]
    text: Option<String>,
}

#[derive(Deserialize)]
struct RawRequest<'a> {
    #[serde(default, deserialize_with = "fitting")]
    subtype: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    tool_name: Option<String>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "fitting")]
    tool_use_id: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    permission_suggestions: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    default_to_no: Mark,
    #[serde(default)]
    suppress_always_allow_rule: Mark,
    #[serde(default)]
    requires_user_interaction: Mark,
    #[serde(default)]
    matched_ask_rule: Mark,
    #[serde(default, deserialize_with = "fitting")]
    mcp_server_name: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    message: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    mode: Option<String>,
    #[serde(borrow, default)]
    requested_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawHookInput<'a> {
    #[serde(default, deserialize_with = "fitting")]
    tool_name: Option<String>,
    #[serde(borrow, default)]
    tool_input: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "fitting")]
    tool_use_id: Option<String>,
    #[serde(default, deserialize_with = "fitting")]
    transcript_path: Option<String>,
}

#[derive(Deserialize)]
struct RawResponse {
    #[serde(default, deserialize_with = "fitting")]
    subtype: Option<String>,
    request_id: String,
    #[serde(default, deserialize_with = "fitting")]
    error: Option<String>,
}

/// Reads a member, or nothing where it is of another kind.
fn fitting<'de, D: Deserializer<'de>, T: DeserializeOwned>(member: D) -> Result<Option<T>, D::Error> {
    let raw = <&RawValue>::deserialize(member)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// A member that is there or not, which anything but a plain no raises.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mark {
    #[default]
    Down,
    Raised,
}

impl<'de> Deserialize<'de> for Mark {
    fn deserialize<D: Deserializer<'de>>(member: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(member)?;
        Ok(match raw.get() {
            "null" | "false" => Self::Down,
            _ => Self::Raised,
        })
    }
}

impl Raw<'_> {
    /// Tells what the line means.
    pub(super) fn meaning(self) -> AgentLine {
        match (self.kind.as_deref().unwrap_or_default(), self.subtype.as_deref()) {
            ("system", Some("init")) => AgentLine::Init { model: self.model },
            ("assistant", _) => AgentLine::Assistant {
                blocks: blocks(self.message).into_iter().filter_map(said).collect(),
                parent: self.parent_tool_use_id,
            },
            ("stream_event", _) if self.parent_tool_use_id.is_none() => {
                streamed(self.event).unwrap_or(AgentLine::Other)
            }
            ("user", _) if self.is_replay == Mark::Raised => AgentLine::Replay { uuid: self.uuid },
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
                let failed = self.is_error == Mark::Raised || subtype != Some("success");
                let words = self.result.filter(|words| !words.is_empty());
                let deferred = self.deferred_tool_use.map(|call| call.id);
                AgentLine::Result(TurnResult {
                    outcome: if failed {
                        ToolOutcome::Failed
                    } else {
                        ToolOutcome::Done
                    },
                    text: words.unwrap_or_else(|| lines_of(&self.errors.unwrap_or_default())),
                    deferred: deferred.filter(|_| self.stop_reason.as_deref() == Some("tool_deferred")),
                    cost: self.total_cost_usd,
                    turns: self.num_turns,
                    queued: self.queued_turn_count.unwrap_or_default(),
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
        let id = self.request_id?;
        let raw = self
            .request
            .and_then(|request| serde_json::from_str::<RawRequest<'_>>(request.get()).ok());
        let subtype = raw
            .as_ref()
            .and_then(|raw| raw.subtype.clone())
            .unwrap_or_default();
        // One that cannot be read is answered, too: the agent waits for that.
        let request = raw
            .and_then(RawRequest::read)
            .unwrap_or(AgentRequest::Unknown { subtype });
        Some(AgentLine::Request { id, request })
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

impl RawRequest<'_> {
    fn read(self) -> Option<AgentRequest> {
        let text =
            |value: Option<&RawValue>| value.map_or_else(|| "{}".to_owned(), |value| value.get().to_owned());
        let for_a_person = [
            self.default_to_no,
            self.suppress_always_allow_rule,
            self.requires_user_interaction,
            self.matched_ask_rule,
        ]
        .contains(&Mark::Raised);
        Some(match self.subtype.as_deref()? {
            "can_use_tool" => {
                let tool = self.tool_name?;
                let suggestions = self.permission_suggestions.unwrap_or_default();
                let (reach, rules) = if for_a_person {
                    (PermissionReach::OnceOnly, RuleReach::MayNotAllow)
                } else {
                    let proposal = Proposal::read(&tool, suggestions.iter().map(|one| one.get()));
                    let reach = proposal.map_or(PermissionReach::Lasting, PermissionReach::Proposed);
                    (reach, RuleReach::MayAllow)
                };
                AgentRequest::Permission(PermissionRequest {
                    tool,
                    input: text(self.input),
                    tool_use: self.tool_use_id.unwrap_or_default(),
                    reach,
                    rules,
                })
            }
            "hook_callback" => {
                let hook: RawHookInput<'_> = serde_json::from_str(self.input?.get()).ok()?;
                AgentRequest::Hook {
                    tool: hook.tool_name?,
                    input: text(hook.tool_input),
                    tool_use: hook.tool_use_id.or(self.tool_use_id).unwrap_or_default(),
                    transcript: hook.transcript_path,
                }
            }
            "elicitation" => AgentRequest::Elicitation {
                server: self.mcp_server_name.unwrap_or_default(),
                message: self.message.unwrap_or_default(),
                schema: match self.mode.as_deref() {
                    None | Some("form") => self.requested_schema.map(|schema| schema.get().to_owned()),
                    Some(_) => None,
                },
            },
            _ => return None,
        })
    }
}

/// Returns what went wrong in a turn, one line each.
fn lines_of(errors: &[Value]) -> String {
    let lines = errors.iter().map(|error| match error {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
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
    match block.kind.as_deref()? {
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
    (block.kind.as_deref() == Some("tool_result")).then_some(())?;
    Some(ToolResult {
        tool_use: block.tool_use_id?,
        outcome: if block.is_error == Mark::Raised {
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
    let event: RawEvent = serde_json::from_str(event?.get()).ok()?;
    match event.kind.as_deref()? {
        "message_start" => Some(AgentLine::MessageBegan),
        "message_stop" => Some(AgentLine::MessageEnded),
        "content_block_delta" => Some(AgentLine::TextDelta(event.delta?.text?)),
        _ => None,
    }
}
