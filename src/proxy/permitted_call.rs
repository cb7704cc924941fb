//! Runs a permitted call: starts its server, compares what that is with what was accepted, and finds the route to it.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::progress::{Progress, step_sender};
use super::route::{GrantKind, RouteApproval, Target, is_tool};
use super::server_pins::ToolCheck;
use super::{Outcome, Proxy, ReadyRequest, Refusal, Route, View};
use crate::config::Server;
use crate::loader::{Content, KnownTool, Lease, LoadError, Plan, Started};
use crate::permissions::{AskKind, CONNECT, Ruling};
use crate::protocol::ToolName;
use crate::protocol::approval::ShownChange;
use crate::workflow::Arguments;

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
    /// The name by which the next call finds the same route at once, where it may.
    pub(super) remembered_as: Option<&'a str>,
}

impl Proxy {
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
            remembered_as,
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
        let ended = |result: Result<RunResult, Refusal>| {
            started.session.settle();
            result
        };
        let notices = started.take_notes().into_iter();
        notes.extend(notices.map(|note| format!("pml: {note}")));
        match self.record_reliance(&target.tool, plan, &started).await {
            Ok(note) => notes.extend(note),
            Err(refusal) => return ended(Ok(RunResult::NoLonger(refusal))),
        }
        let lists = started.session.list_changes();
        // Boxed: it holds what is written down, and every call would carry its size along.
        match Box::pin(self.check_tools(view, server, plan, &target.own, &started)).await {
            Ok(ToolCheck::Accepted(found)) => notes.extend(found),
            Ok(ToolCheck::Changed(change)) if is_tool(&target.tool) => {
                return ended(Ok(RunResult::Changed(change)));
            }
            Ok(ToolCheck::Changed(_)) => {}
            Err(refusal) => return ended(Err(refusal)),
        }
        let now = self.current_view().await.map_err(Refusal::Config);
        // From here on nothing waits: what is decided now is what is sent.
        let checked = now.and_then(|now| Ok((self.still_permitted(&now, &target.tool, plan, given)?, now)));
        let (ruling, now) = match checked.inspect_err(|_refusal| started.session.settle())? {
            (RunCheck::Permitted(ruling), now) => (ruling, now),
            (RunCheck::NoLonger(refusal), _) => return ended(Ok(RunResult::NoLonger(refusal))),
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
        offered(&now, &target).inspect_err(|_refusal| started.session.settle())?;
        let approval = match ruling {
            Ruling::Ask(_) => Some(route_approval(plan, &started, given)),
            Ruling::Allow | Ruling::Deny => None,
        };
        let route = Route::new(started.session, target, server.call_timeout, approval).decided_by(lists);
        let route = Arc::new(route);
        // What a person granted for one tool until the end of the session is not looked up by its launch.
        let memorable = matches!(ruling, Ruling::Allow | Ruling::Ask(AskKind::First));
        if let (Some(name), true, true) = (remembered_as, memorable, notes.is_empty()) {
            // With the rules that it was checked by: it does not count under later ones.
            now.remember_route(name, &route);
        }
        Ok(RunResult::To(Outcome::Ready(ReadyRequest {
            route,
            suspended,
            notes,
        })))
    }

    /// Records what was started under an approval, if the call rests on one; one that a rule allows does not wait for that.
    async fn record_reliance(
        &self,
        tool: &ToolName,
        plan: &Plan,
        started: &Started,
    ) -> Result<Option<String>, Refusal> {
        let now = self.current_view().await;
        let rests_on_an_approval = now.is_ok_and(|now| matches!(now.ruling(tool), Ok(Ruling::Ask(_))));
        if !rests_on_an_approval {
            return Ok(None);
        }
        let note = self.record_first_use(tool, plan, started).await?;
        self.learn_approvals().await;
        Ok(note)
    }

    /// Looks again whether a call may run, after everything that had to be waited for.
    fn still_permitted(
        &self,
        view: &View,
        tool: &ToolName,
        plan: &Plan,
        given: GrantKind,
    ) -> Result<RunCheck, Refusal> {
        let ruling = self.ruled(view, tool)?;
        let (_, now) = self.planned(view, tool)?;
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
