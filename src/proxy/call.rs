//! The steps of one call: it checks the rules and the approval, starts the server and returns the route to it.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::ask_reason::AskReason;
use super::route::{GrantKind, RouteApproval, Target, is_tool};
use super::server_pins::ToolCheck;
use super::{Outcome, Proxy, ReadyRequest, Refusal, RequestedItem, Route, View};
use crate::config::Server;
use crate::loader::{Content, KnownTool, Lease, LoadError, Plan, Started, Steps};
use crate::permissions::{AskKind, CONNECT, Ruling};
use crate::protocol::approval::ShownChange;
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

/// A message about a step of pml's own, sent to the client as progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress(pub String);

/// The result of running a permitted call.
pub(super) enum RunResult {
    /// The call came to this outcome.
    To(Outcome),
    /// The call was not sent: the rule or approval that permitted it changed meanwhile.
    NoLonger(Refusal),
    /// The call was not sent: its tool, or an install script of its server, is not what was accepted.
    Changed(ShownChange),
}

/// The result of checking a permitted call again, right before it is sent.
enum RunCheck {
    Permitted(Ruling),
    NoLonger(Refusal),
}

/// A call that may run.
pub(super) struct PermittedCall<'a> {
    pub(super) target: Target,
    pub(super) server: &'a Server,
    pub(super) plan: &'a Arc<Plan>,
    /// The content a person was shown or approved: nothing else may run under their approval.
    pub(super) expected: Content,
    /// For what their approval was given, where one was needed.
    pub(super) given: GrantKind,
    pub(super) notes: Vec<String>,
    /// The arguments that were suspended, in place of those the request came with.
    pub(super) suspended: Option<Arguments>,
}

impl Proxy {
    /// Asks for something: it may run, is suspended, or is refused.
    pub async fn call(&self, requested: RequestedItem<'_>, client_request: ClientRequest) -> Outcome {
        let view = match self.view() {
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
            let view = match self.view() {
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
        };
        let ran = match self.run(view, permitted, client_request.progress.clone()).await {
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
                return Box::pin(asked).await.map(RunResult::To);
            }
            ran => ran?,
        };
        // What a person granted for one tool until the end of the session is not looked up by its launch.
        let memorable = matches!(ruling, Ruling::Allow | Ruling::Ask(AskKind::First));
        if let (RunResult::To(Outcome::Ready(ready)), RequestedItem::Tool(name), true) =
            (&ran, requested, memorable)
            && ready.notes.is_empty()
            && let Ok(view) = self.view()
        {
            view.remember_route(name, &ready.route);
        }
        Ok(ran)
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

    /// Starts the dependency if it does not run; the request may go to it then, unless it may no longer.
    pub(super) async fn run(
        &self,
        view: &View,
        permitted: PermittedCall<'_>,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Result<RunResult, Refusal> {
        let PermittedCall {
            target,
            server,
            plan,
            expected,
            given,
            mut notes,
            suspended,
        } = permitted;
        let dependency = target.tool.dependency();
        self.watch_for_changes();
        let lease = match given {
            GrantKind::Standing => Lease::Standing,
            GrantKind::Once => Lease::OneCall,
        };
        let started = self
            .0
            .loader
            .start(
                plan,
                server,
                view.config.line_limit.0,
                &expected,
                lease,
                progress.map(step_sender),
            )
            .await;
        let started = match started {
            Ok(started) => started,
            Err(source) if matches!(*source, LoadError::Dismissed { .. }) => {
                let tool = target.tool.clone();
                return Ok(RunResult::NoLonger(Refusal::Changed { tool }));
            }
            Err(source) if let Some(found) = source.unaccepted_scripts().cloned() => {
                return Ok(RunResult::Changed(self.found_scripts(server, plan, &found)?));
            }
            Err(source) => {
                let dependency = dependency.clone();
                return Err(Refusal::Load { dependency, source });
            }
        };
        let notices = started.take_notes().into_iter();
        notes.extend(notices.map(|note| format!("pml: {note}")));
        // A call that a rule allows does not wait for the approvals.
        let rests_on_an_approval = self
            .view()
            .is_ok_and(|view| matches!(view.ruling(&target.tool), Ok(Ruling::Ask(_))));
        if rests_on_an_approval {
            match self.record_first_use(&target.tool, plan, &started).await {
                Ok(note) => notes.extend(note),
                Err(refusal) => {
                    started.session.settle();
                    return Ok(RunResult::NoLonger(refusal));
                }
            }
            self.learn_approvals().await;
        }
        let lists = started.session.list_changes();
        // Boxed: it holds what is written down, and every call would carry its size along.
        match Box::pin(self.check_tools(view, server, plan, &target.own, &started)).await {
            Ok(ToolCheck::Accepted(found)) => notes.extend(found),
            Ok(ToolCheck::Changed(change)) if is_tool(&target.tool) => {
                started.session.settle();
                return Ok(RunResult::Changed(change));
            }
            Ok(ToolCheck::Changed(_)) => {}
            Err(refusal) => {
                started.session.settle();
                return Err(refusal);
            }
        }
        // From here on nothing waits: what is decided now is what is sent.
        let ruling = match self.still_permitted(&target.tool, plan, given)? {
            RunCheck::Permitted(ruling) => ruling,
            RunCheck::NoLonger(refusal) => {
                started.session.settle();
                return Ok(RunResult::NoLonger(refusal));
            }
        };
        let known = started.known();
        if target.tool.tool() == CONNECT && !known.has_tool(CONNECT) {
            started.session.settle();
            let name = |tool: &KnownTool| ToolName::new(dependency.clone(), tool.name());
            let tools = known.tools.iter().map(name).collect();
            return Ok(RunResult::To(Outcome::Connected {
                dependency: dependency.clone(),
                tools,
                notes,
            }));
        }
        offered(view, &target).inspect_err(|_refusal| started.session.settle())?;
        let approval = match ruling {
            Ruling::Ask(_) => Some(route_approval(plan, &started, given)),
            Ruling::Allow | Ruling::Deny => None,
        };
        let route = Route::new(started.session, target, server.call_timeout, approval).decided_by(lists);
        Ok(RunResult::To(Outcome::Ready(ReadyRequest {
            route: Arc::new(route),
            suspended,
            notes,
        })))
    }

    /// Looks again whether a call may run, after everything that had to be waited for.
    fn still_permitted(&self, tool: &ToolName, plan: &Plan, given: GrantKind) -> Result<RunCheck, Refusal> {
        let view = self.view().map_err(Refusal::Config)?;
        let ruling = self.ruled(&view, tool)?;
        let (_, now) = self.planned(&view, tool)?;
        if now.digest() != plan.digest() {
            return Ok(RunCheck::NoLonger(Refusal::Changed { tool: tool.clone() }));
        }
        let permitted = match ruling {
            Ruling::Allow | Ruling::Deny => true,
            Ruling::Ask(_) if given == GrantKind::Once => true,
            Ruling::Ask(_) if self.0.grants.allows_tool(tool, plan.digest()) => true,
            Ruling::Ask(AskKind::First) => self.is_approved(plan),
            Ruling::Ask(AskKind::Every) => false,
        };
        Ok(if permitted {
            RunCheck::Permitted(ruling)
        } else {
            RunCheck::NoLonger(Refusal::Withdrawn { tool: tool.clone() })
        })
    }
}

/// Refuses a tool that its server's list takes away, even if it is called as a prompt or the stand-in of unknown tools is.
fn offered(view: &View, target: &Target) -> Result<(), Refusal> {
    match view.policy.not_offered(&target.tool) {
        Some(rule) if target.is_tool() => Err(Refusal::NotOffered {
            tool: target.tool.clone(),
            rule,
        }),
        Some(_) | None => Ok(()),
    }
}

fn route_approval(plan: &Plan, started: &Started, given: GrantKind) -> RouteApproval {
    let resolved = started.resolved.as_deref();
    RouteApproval {
        launch: plan.digest().clone(),
        content: Content {
            integrity: resolved.and_then(|resolved| resolved.integrity.clone()),
            lock: resolved.and_then(|resolved| resolved.lock.clone()),
            ..Content::default()
        },
        given,
    }
}

pub(super) fn step_sender(progress: mpsc::Sender<Progress>) -> Steps {
    // A client that reads slowly misses a step, never the answer.
    Box::new(move |text| drop(progress.try_send(Progress(text))))
}

/// Returns the arguments of a call, byte for byte.
pub(super) fn arguments_of(params: &Bytes) -> Arguments {
    let text = String::from_utf8_lossy(params);
    let arguments = Object::parse(&text).and_then(|object| object.value("arguments"));
    arguments.map_or(Arguments::Absent, |raw| Arguments::Json(raw.get().to_owned()))
}
