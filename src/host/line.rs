//! The lines of an agent: what the run machine and the surfaces need of each, read without keeping the rest from passing.
//!
//! Pure. A line stays the bytes that came: the agent's vocabulary grows with every release, so members that are not known
//! here are neither lost nor refused, and a line of an unknown kind is [`AgentLine::Other`].

mod raw;

use raw::Raw;

use super::proposal::Proposal;
use crate::workflow::UseReach;

/// The meaning of one line of the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentLine {
    /// A turn begins: the agent tells what it runs with.
    Init {
        /// The model that answers.
        model: Option<String>,
    },
    /// The model said something, whole.
    Assistant {
        /// What it said, in order.
        blocks: Vec<Block>,
        /// The call of a subagent that this belongs to.
        parent: Option<String>,
    },
    /// The model begins to say something.
    MessageBegan,
    /// The model has said it to the end: no more calls belong to it.
    MessageEnded,
    /// A piece of text, as it comes.
    TextDelta(String),
    /// Tools have finished.
    ToolResults(Vec<ToolResult>),
    /// A line of the person was taken in.
    Replay {
        /// Its name.
        uuid: Option<String>,
    },
    /// What became of a line of the person.
    Receipt {
        /// The line's name.
        uuid: String,
        /// How far it is.
        state: ReceiptState,
    },
    /// The agent asks the host for something.
    Request {
        /// The name of the request; the reply carries it.
        id: String,
        /// What is asked for.
        request: AgentRequest,
    },
    /// The agent takes a request back.
    RequestCancelled {
        /// The request.
        id: String,
    },
    /// The agent answers a request of the host.
    Response {
        /// The request.
        id: String,
        /// Why it failed; `None` where it did not.
        error: Option<String>,
    },
    /// A turn has ended.
    Result(TurnResult),
    /// Anything else.
    Other,
}

/// One block of what a model said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Text for the person.
    Text(String),
    /// A call of a tool.
    ToolUse {
        /// The name of the call.
        id: String,
        /// The tool.
        name: String,
        /// Its input as JSON text.
        input: String,
    },
}

/// The end of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The call.
    pub tool_use: String,
    /// Whether it failed.
    pub outcome: ToolOutcome,
    /// The beginning of what it returned.
    pub excerpt: String,
}

/// Whether a tool call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It did what it was for.
    Done,
    /// It failed, or was not allowed to run.
    Failed,
}

/// How far a line of the person is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptState {
    /// It waits for its turn.
    Queued,
    /// The model has it.
    Started,
    /// The turn that it began is over.
    Completed,
    /// It was dropped.
    Cancelled,
}

/// What an agent asks its host for.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentRequest {
    /// Whether a tool may be used.
    Permission(PermissionRequest),
    /// What to do about a call before it runs.
    Hook {
        /// The tool.
        tool: String,
        /// Its input as JSON text.
        input: String,
        /// The call.
        tool_use: String,
        /// Where the agent keeps the conversation.
        transcript: Option<String>,
    },
    /// A form that a server of the agent asks for.
    Elicitation {
        /// The server.
        server: String,
        /// What it says.
        message: String,
        /// The schema of the form as JSON text; `None` where it is no form.
        schema: Option<String>,
    },
    /// Something that this host does not know.
    Unknown {
        /// Its name.
        subtype: String,
    },
}

impl AgentRequest {
    /// Returns the call that it is about.
    pub(super) fn call(&self) -> Option<&str> {
        match self {
            Self::Permission(PermissionRequest { tool_use, .. }) | Self::Hook { tool_use, .. } => {
                (!tool_use.is_empty()).then_some(tool_use)
            }
            Self::Elicitation { .. } | Self::Unknown { .. } => None,
        }
    }
}

/// A use of a tool that the agent's own rules leave open.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRequest {
    /// The tool.
    pub tool: String,
    /// Its input as JSON text.
    pub input: String,
    /// The call.
    pub tool_use: String,
    /// How wide an approval may reach.
    pub reach: PermissionReach,
    /// Whether a rule may allow it, or only a person.
    pub rules: RuleReach,
}

/// How far the approval of a use may reach, as the agent says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionReach {
    /// Beyond this use, if the person wants that.
    Lasting,
    /// This use only.
    OnceOnly,
    /// Beyond this use; for as long as the agent runs, what it proposes itself.
    Proposed(Proposal),
}

impl PermissionReach {
    /// Returns it as it is put to a person.
    pub(super) fn asked(&self) -> UseReach {
        match self {
            Self::Lasting => UseReach::Lasting,
            Self::OnceOnly => UseReach::OnceOnly,
            Self::Proposed(proposal) => UseReach::Proposed {
                grants: proposal.grants.clone(),
            },
        }
    }
}

/// What a rule that allows a tool may do about one use of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleReach {
    /// It may let it run.
    MayAllow,
    /// A person decides in any case: the agent says so of this use.
    MayNotAllow,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnResult {
    /// Whether the agent succeeded.
    pub outcome: ToolOutcome,
    /// Its last words, or what went wrong.
    pub text: String,
    /// The call that was put off until the run is resumed.
    pub deferred: Option<String>,
    /// What the session has cost so far in dollars, as the agent reports it.
    pub cost: Option<f64>,
    /// How many turns the model took.
    pub turns: Option<u64>,
    /// How many lines of the person wait for a turn of their own.
    pub queued: u64,
}

impl AgentLine {
    /// Reads a line; `None` where it is no JSON object.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        // A list would be read as the members of one in their order.
        if !line.trim_start().starts_with('{') {
            return None;
        }
        let raw: Raw<'_> = serde_json::from_str(line).ok()?;
        Some(raw.meaning())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: &serde_json::Value) -> AgentLine {
        AgentLine::read(&value.to_string()).unwrap()
    }

    #[test]
    fn what_the_model_says_is_read_block_by_block_and_unknown_blocks_are_left_out() {
        let line = json!({ "type": "assistant", "message": { "content": [
            { "type": "thinking", "thinking": "…" },
            { "type": "text", "text": "I look." },
            { "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "ls" } },
        ] }, "parent_tool_use_id": null, "of_next_year": 1 });
        let call = Block::ToolUse {
            id: "t1".to_owned(),
            name: "Bash".to_owned(),
            input: r#"{"command":"ls"}"#.to_owned(),
        };
        let blocks = vec![Block::Text("I look.".to_owned()), call];
        assert_eq!(read(&line), AgentLine::Assistant { blocks, parent: None });
    }

    #[test]
    fn members_that_are_not_as_they_were_measured_cost_no_more_than_themselves() {
        let read = |line: serde_json::Value| AgentLine::read(&line.to_string()).unwrap();
        let result = json!({ "type": "result", "subtype": "success", "result": "Done.", "errors": null,
            "model": 3, "state": {}, "num_turns": "many", "queued_turn_count": null, "total_cost_usd": "free" });
        let AgentLine::Result(result) = read(result) else {
            panic!("the end of a turn is one")
        };
        assert_eq!(
            (result.text.as_str(), result.outcome),
            ("Done.", ToolOutcome::Done)
        );
        let failed = read(json!({ "type": "result", "subtype": "error", "errors": [{ "code": 3 }, "late"] }));
        let AgentLine::Result(failed) = failed else {
            panic!("the end of a turn is one")
        };
        assert_eq!(failed.text, "{\"code\":3}\nlate");
        assert_eq!(read(json!({ "type": 3 })), AgentLine::Other);
    }

    #[test]
    fn a_request_that_cannot_be_read_is_one_that_is_answered_and_a_strange_mark_counts_as_raised() {
        let read = |request: serde_json::Value| {
            let line = json!({ "type": "control_request", "request_id": "r1", "request": request });
            match AgentLine::read(&line.to_string()) {
                Some(AgentLine::Request { id, request }) if id == "r1" => request,
                other => panic!("{other:?}"),
            }
        };
        for subtype in ["hook_callback", "can_use_tool", "of_next_year"] {
            assert_eq!(
                read(json!({ "subtype": subtype, "input": [] })),
                AgentRequest::Unknown {
                    subtype: subtype.to_owned()
                }
            );
        }
        for request in [json!(null), json!([]), json!({ "subtype": 3 })] {
            let unread = AgentRequest::Unknown {
                subtype: String::new(),
            };
            assert_eq!(read(request), unread);
        }
        for (mark, reach) in [
            (json!(null), PermissionReach::Lasting),
            (json!(false), PermissionReach::Lasting),
            (json!("yes"), PermissionReach::OnceOnly),
        ] {
            let asked = read(
                json!({ "subtype": "can_use_tool", "tool_name": "Bash", "input": {},
                "permission_suggestions": null, "default_to_no": mark }),
            );
            let AgentRequest::Permission(asked) = asked else {
                panic!("{mark}")
            };
            assert_eq!(asked.reach, reach, "{mark}");
        }
    }

    #[test]
    fn a_permission_carries_what_the_agent_proposes_and_whether_it_may_last() {
        let asked = |more: serde_json::Value| {
            let mut request = json!({ "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": "touch x" },
                "tool_use_id": "t1", "permission_suggestions": [{ "type": "setMode", "mode": "acceptEdits" }, { "type": "new" }] });
            request
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            read(&json!({ "type": "control_request", "request_id": "r1", "request": request }))
        };
        let expected = |reach, rules| AgentLine::Request {
            id: "r1".to_owned(),
            request: AgentRequest::Permission(PermissionRequest {
                tool: "Bash".to_owned(),
                input: r#"{"command":"touch x"}"#.to_owned(),
                tool_use: "t1".to_owned(),
                reach,
                rules,
            }),
        };
        let proposal = Proposal::read("Bash", [r#"{"type":"setMode","mode":"acceptEdits"}"#]).unwrap();
        assert_eq!(
            asked(json!({})),
            expected(PermissionReach::Proposed(proposal), RuleReach::MayAllow)
        );
        assert_eq!(
            asked(json!({ "permission_suggestions": [] })),
            expected(PermissionReach::Lasting, RuleReach::MayAllow)
        );
        for flag in [
            json!({ "default_to_no": true }),
            json!({ "suppress_always_allow_rule": true }),
            json!({ "requires_user_interaction": true }),
            json!({ "matched_ask_rule": { "toolName": "Bash" } }),
        ] {
            assert_eq!(
                asked(flag.clone()),
                expected(PermissionReach::OnceOnly, RuleReach::MayNotAllow),
                "{flag}"
            );
        }
    }

    #[test]
    fn a_turn_that_was_put_off_names_its_call_only_where_that_is_why_it_ended() {
        let ended = |stop: &str| {
            read(
                &json!({ "type": "result", "subtype": "success", "stop_reason": stop, "result": "",
                "deferred_tool_use": { "id": "t1", "name": "AskUserQuestion", "input": {} } }),
            )
        };
        let deferred = |line| match line {
            AgentLine::Result(result) => result.deferred,
            other => panic!("{other:?}"),
        };
        assert_eq!(deferred(ended("tool_deferred")).as_deref(), Some("t1"));
        assert_eq!(deferred(ended("end_turn")), None);
    }

    #[test]
    fn results_of_tools_are_read_from_texts_and_blocks() {
        let line = json!({ "type": "user", "message": { "content": [
            { "type": "tool_result", "tool_use_id": "t1", "content": "one" },
            { "type": "tool_result", "tool_use_id": "t2", "is_error": true,
              "content": [{ "type": "text", "text": "two" }, { "type": "image" }] },
        ] } });
        let result = |id: &str, outcome, text: &str| ToolResult {
            tool_use: id.to_owned(),
            outcome,
            excerpt: text.to_owned(),
        };
        let results = vec![
            result("t1", ToolOutcome::Done, "one"),
            result("t2", ToolOutcome::Failed, "two"),
        ];
        assert_eq!(read(&line), AgentLine::ToolResults(results));
    }

    #[test]
    fn what_is_not_known_passes_and_what_is_no_line_is_none() {
        assert_eq!(read(&json!({ "type": "of_next_year" })), AgentLine::Other);
        assert_eq!(
            read(&json!({ "type": "control_request", "request_id": "r", "request": { "subtype": "new" } })),
            AgentLine::Request {
                id: "r".to_owned(),
                request: AgentRequest::Unknown {
                    subtype: "new".to_owned()
                }
            }
        );
        assert_eq!(AgentLine::read("Warning: something"), None);
        assert_eq!(AgentLine::read("[1]"), None);
    }
}
