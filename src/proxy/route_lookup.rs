//! Finds the route of a request: the known one while rules, approval and session stand, else by the rules anew.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::permitted_call::{PermittedCall, RunResult};
use super::route::{
    GrantKind, ReadyRequest, RequestedItem, ResumedRoute, Route, RouteApproval, Target, UnknownItem,
};
use super::{Outcome, Proxy, Refusal, View};
use crate::loader::{Content, Plan};
use crate::permissions::{AskKind, Ruling};
use crate::protocol::{DependencyName, ToolName};

/// The longest name of a tool or prompt that is looked for, in bytes: longer ones are left out of all lists, and a rule
/// judges and an error repeats what is looked for.
const LONGEST_NAME: usize = 4096;

impl Proxy {
    /// Returns the known route to a tool, if its rules, its approval and its session are still what they were.
    ///
    /// `batch` tells one read from the client from the next: files are looked at once for all lines of a read.
    #[must_use]
    pub fn known_route(&self, name: &str, batch: u64) -> Option<Arc<Route>> {
        let view = self.view_for(batch)?;
        let route = view.route(name)?;
        // Where the server lists something else since, the tool is compared again.
        if !route.session.is_open() || route.session.list_changes() != route.lists {
            view.forget_route(name);
            return None;
        }
        if let Some(approval) = &route.approval
            && route.looked_at.load(Ordering::Relaxed) != batch
        {
            match self.still_approved(approval) {
                Some(true) => route.looked_at.store(batch, Ordering::Relaxed),
                Some(false) => {
                    view.forget_route(name);
                    return None;
                }
                // An approval changed somewhere: the call looks at it in a task.
                None => return None,
            }
        }
        Some(route)
    }

    /// Returns the route of a resumed call, unless a rule forbids it now or its approval was withdrawn.
    pub fn going_on(&self, route: &Route) -> Result<ResumedRoute, Refusal> {
        let tool = &route.tool;
        let ruling = self.view().map_err(Refusal::Config)?.ruling(tool)?;
        let stands = ruling == Ruling::Allow
            || route
                .approval
                .as_ref()
                .is_some_and(|approval| self.0.grants.allows_tool(tool, &approval.launch))
            || route
                .approval
                .as_ref()
                .is_none_or(|approval| self.holds(approval) == Some(true));
        let unknown = || {
            let held = route.approval.as_ref().map(|approval| self.holds(approval));
            held == Some(None)
        };
        match (stands, route.session.is_open()) {
            (true, true) => Ok(ResumedRoute::AsBefore),
            (true, false) => Ok(ResumedRoute::Anew),
            // An approval changed somewhere: the way that is found anew looks at it.
            (false, _) if unknown() => Ok(ResumedRoute::Anew),
            (false, _) => Err(Refusal::Withdrawn { tool: tool.clone() }),
        }
    }

    /// Finds a new route for a resumed call whose session has ended; no person is asked.
    pub async fn reopen(&self, route: &Route) -> Result<ReadyRequest, Refusal> {
        self.learn_approvals().await;
        let view = self.current_view().await.map_err(Refusal::Config)?;
        let tool = &route.tool;
        let ruling = view.ruling(tool)?;
        let (server, plan) = self.planned(&view, tool)?;
        let answered = route
            .approval
            .as_ref()
            .filter(|approval| approval.launch == *plan.digest());
        let expected = match (answered, ruling) {
            (Some(approval), _) if self.holds(approval) == Some(true) => approval.content.clone(),
            (Some(_), _) if !self.is_simple(&view, tool, &plan) => {
                return Err(Refusal::Withdrawn { tool: tool.clone() });
            }
            (None, _) if !self.is_simple(&view, tool, &plan) => {
                return Err(Refusal::Changed { tool: tool.clone() });
            }
            (_, Ruling::Ask(_)) => match self.approved(&plan) {
                Some(content) => content,
                None if self.0.grants.allows_tool(tool, plan.digest()) => self.approved_content(&plan),
                None => return Err(Refusal::Withdrawn { tool: tool.clone() }),
            },
            (_, Ruling::Allow | Ruling::Deny) => Content::default(),
        };
        self.learn_package(server, &plan).await?;
        if self.change_to_ask(ruling, server, &plan).await?.is_some() {
            return Err(Refusal::Changed { tool: tool.clone() });
        }
        let expected = expected.or(self.pinned_content(server, &plan)?);
        let permitted = PermittedCall {
            target: Target {
                tool: tool.clone(),
                own: route.own.clone(),
            },
            server,
            plan: &plan,
            expected,
            given: answered.map_or(GrantKind::Standing, |approval| approval.given),
            notes: Vec::new(),
            suspended: None,
            remembered_as: None,
        };
        match self.run(&view, permitted, None).await? {
            RunResult::To(Outcome::Ready(ready)) => Ok(ready),
            RunResult::NoLonger(refusal) => Err(refusal),
            RunResult::To(_) | RunResult::Changed(_) => Err(Refusal::Changed { tool: tool.clone() }),
        }
    }

    /// Tells whether a request runs without asking a person.
    pub async fn simply_runs(&self, requested: RequestedItem<'_>) -> bool {
        self.learn_approvals().await;
        let Ok(view) = self.current_view().await else {
            return false;
        };
        self.read_known(&view).await;
        let Ok(target) = self.target(&view, requested) else {
            return false;
        };
        let Ok((_, plan)) = self.planned(&view, &target.tool) else {
            return false;
        };
        self.is_simple(&view, &target.tool, &plan)
    }

    fn is_simple(&self, view: &View, tool: &ToolName, plan: &Plan) -> bool {
        match view.ruling(tool) {
            Ok(Ruling::Allow) => true,
            Ok(Ruling::Ask(_)) if self.0.grants.allows_tool(tool, plan.digest()) => true,
            Ok(Ruling::Ask(AskKind::First)) => self.is_approved(plan),
            Ok(Ruling::Ask(AskKind::Every) | Ruling::Deny) | Err(_) => false,
        }
    }

    /// Returns the routes to all running servers that may have a resource of unknown owner and need no approval.
    pub async fn possible_routes(&self, uri: &str) -> Vec<Route> {
        self.learn_approvals().await;
        let Ok(view) = self.current_view().await else {
            return Vec::new();
        };
        let sessions = self.sessions();
        let route = |dependency: DependencyName| {
            let session = sessions
                .iter()
                .find(|session| *session.dependency() == dependency)?;
            let target = Target::resource(dependency, uri.to_owned());
            let (server, plan) = self.planned(&view, &target.tool).ok()?;
            let usable = self.0.loader.is_running(&plan) && self.is_simple(&view, &target.tool, &plan);
            usable.then(|| Route::new(session.clone(), target, server.call_timeout, None))
        };
        let owners = self.possible_owners(&view, uri);
        owners.into_iter().filter_map(route).collect()
    }

    /// Tells whether what a call was let through by still lets it go on; `None` while the approvals are not known.
    fn holds(&self, approval: &RouteApproval) -> Option<bool> {
        match approval.given {
            GrantKind::Standing => self.still_approved(approval),
            GrantKind::Once => Some(true),
        }
    }

    fn still_approved(&self, approval: &RouteApproval) -> Option<bool> {
        let RouteApproval { launch, content, .. } = approval;
        if self.0.grants.allows_launch(launch) {
            return Some(true);
        }
        let approvals = self.0.workflows.known_approvals()?;
        Some(approvals.covers(launch, content.integrity.as_deref(), content.lock.as_ref()))
    }

    /// Finds the server that owns a requested item.
    pub(super) fn target(&self, view: &View, requested: RequestedItem<'_>) -> Result<Target, UnknownItem> {
        let unknown = |name: &str, nearest| UnknownItem {
            name: name.to_owned(),
            nearest,
        };
        match requested {
            RequestedItem::Tool(name) | RequestedItem::Prompt(name) if name.len() > LONGEST_NAME => {
                Err(unknown(name, None))
            }
            RequestedItem::Tool(name) => self
                .tool_named(view, name)
                .map(Target::tool)
                .map_err(|nearest| unknown(name, nearest)),
            RequestedItem::Prompt(name) => self
                .prompt_named(view, name)
                .map(|(dependency, own)| Target::prompt(dependency, own))
                .map_err(|nearest| unknown(name, nearest)),
            RequestedItem::Resource(uri) => self
                .resource_owner(view, uri)
                .map(|(dependency, own)| Target::resource(dependency, own))
                .map_err(|nearest| unknown(uri, nearest)),
            RequestedItem::Method(method) => {
                let mut enabled = view.config.servers.iter().filter(|(_, server)| !server.disabled);
                match (enabled.next(), enabled.next()) {
                    (Some((only, _)), None) => Ok(Target::tool(ToolName::new(only.clone(), method))),
                    _ => Err(unknown(method, None)),
                }
            }
        }
    }
}
