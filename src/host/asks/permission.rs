//! The uses of the agent's own tools: decided by the rules, or put to a person.
//!
//! Where a rule wants a person to see every use, they are asked before the call, so that it can be put off. Otherwise the
//! agent's own rules come first, and what they leave open is asked in the middle of the call.

use serde_json::Value;

use super::{Asked, AskedThing, Asks, WaitingAsk, waiting};
use crate::host::claude::ASKING_TOOLS;
use crate::host::line::{PermissionReach, PermissionRequest, RuleReach};
use crate::host::record::{KeptAsk, KeptAskKind};
use crate::host::reply;
use crate::protocol::continuation::Scope;
use crate::protocol::{DependencyName, ToolName};
use crate::proxy::{Answer, Ask, Claim, ClientToolRuling, Refusal, State, Workflow};
use crate::report;

/// What a model is told after a refusal, so that it does not ask for the same again.
const NOT_AGAIN: &str = "Do not try it again unless they ask for it.";

/// How the tools behind pml are named by the agent: pml decides about them when they are called.
const BEHIND_PML: &str = "mcp__pml__";

/// What becomes of a use that a person decided about.
enum Permitted {
    /// It runs, and the agent asks no more about these.
    Yes(Vec<String>),
    /// It does not, for this reason.
    No(String),
}

impl Asks {
    /// Decides about a use that the agent's own rules leave open.
    pub(super) async fn permission(
        &self,
        id: &str,
        request: &PermissionRequest,
        kept: Option<&KeptAsk>,
    ) -> Result<Asked, Refusal> {
        if request.tool == ASKING_TOOLS[0] {
            return self.unhooked_question(id, request, kept).await;
        }
        let by_rule = request.rules == RuleReach::MayAllow || request.tool.starts_with(BEHIND_PML);
        match self.ruled(request)? {
            ClientToolRuling::Allow if by_rule => Ok(Asked::Reply(reply::allow(id, &request.input, &[]))),
            ClientToolRuling::Allow | ClientToolRuling::Ask => {
                let (workflow, claim) = self.use_of(request).await?;
                let what = AskedThing::Permission(request.clone());
                let waiting = waiting(id, workflow, &request.tool_use, KeptAskKind::Permission, what);
                Ok(waiting.claiming(claim).into())
            }
        }
    }

    /// Decides about a call before it runs, as far as the rules want that. What they do not name is left to the agent,
    /// which asks for a permission where its own rules leave it open.
    pub(super) async fn before_call(
        &self,
        id: &str,
        tool: &str,
        input: &str,
        tool_use: &str,
        before: Option<&KeptAsk>,
    ) -> Result<Asked, Refusal> {
        if tool.starts_with(BEHIND_PML) {
            return Ok(Asked::Reply(reply::no_opinion(id)));
        }
        let asks_every = match self
            .proxy
            .wants_person_for_every(tool, command_of(input).as_deref())
        {
            Ok(asks_every) => asks_every,
            // A denial is one whatever the agent's own rules say, and rules that cannot be read allow nothing.
            Err(refusal) => {
                let reason = report::render_hinted(&refusal);
                return Ok(Asked::Reply(reply::hook_deny(id, &reason)));
            }
        };
        // What was put off is taken up again, whatever the rules say now.
        let before = match before {
            Some(kept) => Some(self.proxy.workflow(kept.workflow).await?),
            None if asks_every => None,
            None => return Ok(Asked::Reply(reply::no_opinion(id))),
        };
        let request = PermissionRequest {
            tool: tool.to_owned(),
            input: input.to_owned(),
            tool_use: tool_use.to_owned(),
            reach: PermissionReach::OnceOnly,
            rules: RuleReach::MayNotAllow,
        };
        let (workflow, claim) = match before {
            // An approval that was used lets nothing more run: whether the call ran then is not known.
            Some(workflow) if !matches!(workflow.state, State::Taken { .. }) => (workflow, None),
            Some(_) | None => self.use_of(&request).await?,
        };
        let what = AskedThing::HookedPermission(request);
        let waiting = waiting(id, workflow, tool_use, KeptAskKind::Permission, what);
        Ok(waiting.claiming(claim).into())
    }

    async fn use_of(&self, request: &PermissionRequest) -> Result<(Workflow, Option<Claim>), Refusal> {
        let tool = ToolName::new(DependencyName::client(), request.tool.as_str());
        let patience = self.proxy.ask_user().kept;
        self.proxy
            .use_of(tool, request.input.clone(), request.reach.asked(), patience)
            .await
    }

    /// Writes the line that tells the agent what a person decided about a use.
    pub(super) async fn permitted(
        &self,
        ask: &WaitingAsk,
        request: &PermissionRequest,
    ) -> Result<String, Refusal> {
        let id = ask.request.as_str();
        let hooked = matches!(ask.what, AskedThing::HookedPermission(_));
        Ok(match (self.decision(ask, request).await?, hooked) {
            (Permitted::Yes(_), true) => reply::hook_allow(id),
            (Permitted::Yes(permissions), false) => reply::allow(id, &request.input, &permissions),
            (Permitted::No(reason), true) => reply::hook_deny(id, &reason),
            (Permitted::No(reason), false) => reply::deny(id, &reason),
        })
    }

    /// Asks the rules, which may name the command of a shell.
    fn ruled(&self, request: &PermissionRequest) -> Result<ClientToolRuling, Refusal> {
        let command = command_of(&request.input);
        self.proxy.client_tool_ruling(&request.tool, command.as_deref())
    }

    async fn decision(&self, ask: &WaitingAsk, request: &PermissionRequest) -> Result<Permitted, Refusal> {
        let tool = || ToolName::new(DependencyName::client(), request.tool.as_str());
        // A rule may have been written meanwhile: a denial wins over an answer.
        let ruled = self.ruled(request)?;
        let answer = self.proxy.take_answer(ask.workflow.id).await?;
        // An earlier process may have shown something else.
        let is_as_shown = matches!(&ask.workflow.ask, Ask::Use { reach } if *reach == request.reach.asked());
        Ok(match (answer, &request.reach) {
            (Some(Answer::Approve { .. }), PermissionReach::OnceOnly) => Permitted::Yes(Vec::new()),
            (Some(Answer::Approve { scope: Scope::Always }), _) => {
                if let Err(note) = self.proxy.allow_always(tool()).await {
                    tracing::warn!("{note}");
                }
                Permitted::Yes(Vec::new())
            }
            (
                Some(Answer::Approve {
                    scope: Scope::Session,
                }),
                reach,
            ) if is_as_shown => Permitted::Yes(match reach {
                PermissionReach::Proposed(proposal) => proposal.permissions.clone(),
                PermissionReach::Lasting | PermissionReach::OnceOnly => {
                    self.proxy.allow_for_session(tool());
                    Vec::new()
                }
            }),
            (Some(Answer::Approve { .. }), _) => Permitted::Yes(Vec::new()),
            (Some(Answer::Refuse { reason: Some(reason) }), _) => {
                Permitted::No(format!("The person refused: {reason}\n{NOT_AGAIN}"))
            }
            (Some(Answer::Refuse { reason: None } | Answer::Answers { .. }), _) => {
                Permitted::No(format!("The person refused.\n{NOT_AGAIN}"))
            }
            (None, _) if ruled == ClientToolRuling::Allow && request.rules == RuleReach::MayAllow => {
                Permitted::Yes(Vec::new())
            }
            (None, _) => {
                Permitted::No("No person answered, and none refused. Do not assume an answer.".to_owned())
            }
        })
    }
}

/// Reads what a shell is to run from the input of its tool.
fn command_of(input: &str) -> Option<String> {
    let input: Value = serde_json::from_str(input).ok()?;
    input.get("command")?.as_str().map(str::to_owned)
}
