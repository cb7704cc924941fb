//! Decides about one call: checks the rules, the approval and what changed, and runs it or asks a person.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::ask_reason::AskReason;
use super::permitted_call::{PermittedCall, RunResult};
use super::progress::Progress;
use super::route::{GrantKind, Target};
use super::{Outcome, Proxy, Refusal, RequestedItem, View};
use crate::config::Server;
use crate::loader::{Content, Plan};
use crate::permissions::{AskKind, Ruling};
use crate::protocol::{Object, ToolName};
use crate::workflow::Arguments;

/// The number of times a call is decided anew because rules, approvals or declarations changed while its server was started.
const ROUNDS: usize = 5;

/// A request as the client sent it.
#[derive(Debug, Clone)]
pub struct ClientRequest {
    /// The raw `params` object.
    pub params: Bytes,
    /// Where progress goes, if the client wants any.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// How it waits for a person, if one must decide.
    pub patience: WaitMode,
}

/// How a call waits for a person who must decide about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// It stays open while a dialog is; it joins the dialog of an identical call where that is about the server.
    InTheCall,
    /// It returns a form, and the client's next request brings the answer.
    ForARetry,
    /// It returns the ask.
    None,
}

impl Proxy {
    /// Asks for something: it may run, is suspended, or is refused.
    pub async fn call(&self, requested: RequestedItem<'_>, client_request: ClientRequest) -> Outcome {
        let view = match self.current_view().await {
            Ok(view) => view,
            Err(error) => return Outcome::Refused(Refusal::Config(error)),
        };
        self.read_known(&view).await;
        let target = match self.target(&view, requested) {
            Ok(target) => target,
            Err(unknown) => return Outcome::Unknown(unknown),
        };
        let tool = target.tool.clone();
        let mut changed = Refusal::Changed { tool };
        for _ in 0..ROUNDS {
            // Read again each time: while a server is installed and started, the rules may change.
            let view = match self.current_view().await {
                Ok(view) => view,
                Err(error) => return Outcome::Refused(Refusal::Config(error)),
            };
            // Boxed: a call on a known route never gets here, and every other one would carry its size along.
            let deciding = Box::pin(self.decide(&view, requested, target.clone(), &client_request));
            match deciding.await {
                Ok(RunResult::To(outcome)) => return outcome,
                Ok(RunResult::NoLonger(refusal)) => changed = refusal,
                // A call that is decided anew is asked about above.
                Ok(RunResult::Changed(_)) => {}
                Err(refusal) => return Outcome::Refused(refusal),
            }
        }
        Outcome::Refused(changed)
    }

    async fn decide(
        &self,
        view: &View,
        requested: RequestedItem<'_>,
        target: Target,
        client_request: &ClientRequest,
    ) -> Result<RunResult, Refusal> {
        let tool = target.tool.clone();
        let ruling = self.ruled(view, &tool)?;
        let (server, plan) = self.planned(view, &tool)?;
        let approved = match ruling {
            Ruling::Ask(_) => {
                self.learn_approvals().await;
                self.approved(&plan)
            }
            Ruling::Allow | Ruling::Deny => None,
        };
        let reason = match ruling {
            Ruling::Ask(_) if view.needs_trust(&tool, server) => {
                let granted = self.0.grants.allows_tool(&tool, plan.digest());
                let stands = granted || ruling == Ruling::Ask(AskKind::First) && approved.is_some();
                (!stands).then_some(AskReason::ProjectTrust)
            }
            Ruling::Allow | Ruling::Deny | Ruling::Ask(_) => None,
        };
        self.learn_package(server, &plan).await?;
        // Neither a rule nor an earlier approval lets run what is not what was accepted.
        let reason = match reason {
            None => self.change_to_ask(ruling, server, &plan).await?,
            reason => reason,
        };
        let reason = reason.or(match ruling {
            Ruling::Allow | Ruling::Deny => None,
            Ruling::Ask(_) if self.0.grants.allows_tool(&tool, plan.digest()) => None,
            Ruling::Ask(AskKind::First) if approved.is_some() => None,
            Ruling::Ask(AskKind::First) => Some(AskReason::FirstUse),
            Ruling::Ask(AskKind::Every) => Some(AskReason::EveryCall),
        });
        if let Some(reason) = reason {
            let asked = self.ask(view, requested, &tool, &plan, reason, client_request);
            return Box::pin(asked).await.map(RunResult::To);
        }
        // Nor does a rule or an approval of the server accept its install scripts.
        if let Some(change) = self.known_scripts(server, &plan)? {
            let reason = AskReason::ServerChanged(change);
            let asked = self.ask(view, requested, &tool, &plan, reason, client_request);
            return Box::pin(asked).await.map(RunResult::To);
        }
        let approved = match ruling {
            Ruling::Allow | Ruling::Deny => Content::default(),
            Ruling::Ask(_) => approved.unwrap_or_else(|| self.approved_content(&plan)),
        };
        let expected = approved.or(self.pinned_content(server, &plan)?);
        let permitted = PermittedCall {
            target,
            server,
            plan: &plan,
            expected,
            given: GrantKind::Standing,
            notes: Vec::new(),
            suspended: None,
            remembered_as: match requested {
                RequestedItem::Tool(name) => Some(name),
                RequestedItem::Prompt(_) | RequestedItem::Resource(_) | RequestedItem::Method(_) => None,
            },
        };
        match self.run(view, permitted, client_request.progress.clone()).await {
            // What would have to be installed now was never shown: the call becomes a question about it.
            Err(Refusal::Load { source, .. })
                if source.is_changed_package()
                    && Box::pin(self.is_changed_at_registry(server, &plan)).await? =>
            {
                let reason = AskReason::PackageChanged;
                let asked = self.ask(view, requested, &tool, &plan, reason, client_request);
                return Box::pin(asked).await.map(RunResult::To);
            }
            Err(Refusal::Load { source, .. })
                if source.is_other_content()
                    && ruling == Ruling::Ask(AskKind::First)
                    && !self.is_approved(&plan) =>
            {
                let reason = AskReason::FirstUse;
                let asked = self.ask(view, requested, &tool, &plan, reason, client_request);
                return Box::pin(asked).await.map(RunResult::To);
            }
            Ok(RunResult::Changed(change)) => {
                let reason = AskReason::ServerChanged(change);
                let asked = self.ask(view, requested, &tool, &plan, reason, client_request);
                Box::pin(asked).await.map(RunResult::To)
            }
            ran => ran,
        }
    }

    /// Returns what would run for a tool.
    pub(super) fn planned<'v>(
        &self,
        view: &'v View,
        tool: &ToolName,
    ) -> Result<(&'v Server, Arc<Plan>), Refusal> {
        let dependency = tool.dependency();
        let server = view
            .server(dependency)
            .filter(|server| !server.disabled)
            .ok_or_else(|| Refusal::Disabled {
                dependency: dependency.clone(),
            })?;
        let plan = view
            .plan(dependency, server, &self.0.environment)
            .map_err(|source| Refusal::Plan {
                dependency: dependency.clone(),
                source,
            })?;
        Ok((server, plan))
    }
}

/// Returns the arguments of a call, byte for byte.
pub(super) fn arguments_of(params: &Bytes) -> Arguments {
    let text = String::from_utf8_lossy(params);
    let arguments = Object::parse(&text).and_then(|object| object.value("arguments"));
    arguments.map_or(Arguments::Absent, |raw| Arguments::Json(raw.get().to_owned()))
}
