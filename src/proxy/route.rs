//! The route of a request: the requested item, the server that owns it, and the session that answers it.
//!
//! A route is found by the rules once per tool and state of the files, then used until a file changes: the
//! configuration, the approval it rests on, or the session itself.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;

use crate::loader::{Content, Session};
pub(super) use crate::permissions::{PROMPTS, RESOURCES};
use crate::protocol::{DependencyName, Digest, ToolName, quoted};
use crate::workflow::Arguments;

/// An item that a client requests, by the name under which the client knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestedItem<'a> {
    /// To call a tool.
    Tool(&'a str),
    /// To get or complete a prompt.
    Prompt(&'a str),
    /// To read, complete or watch a resource.
    Resource(&'a str),
    /// Something that names no owner, by its method.
    Method(&'a str),
}

/// The owner of a requested item, and the item's names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Its name in rules, logs and workflows.
    pub(super) tool: ToolName,
    /// What its dependency calls it.
    pub(super) own: String,
}

impl Target {
    pub(super) fn tool(tool: ToolName) -> Self {
        let own = tool.tool().to_owned();
        Self { tool, own }
    }

    /// Tells whether it is a tool of its server, whatever its name looks like.
    pub(super) fn is_tool(&self) -> bool {
        self.own == self.tool.tool()
    }

    pub(super) fn prompt(dependency: DependencyName, own: String) -> Self {
        let tool = ToolName::new(dependency, format!("{PROMPTS}{own}"));
        Self { tool, own }
    }

    pub(super) fn resource(dependency: DependencyName, own: String) -> Self {
        let tool = ToolName::new(dependency, format!("{RESOURCES}{own}"));
        Self { tool, own }
    }
}

/// Something that no declared server has.
#[derive(Debug)]
pub struct UnknownItem {
    /// What was wanted.
    pub name: String,
    /// The nearest name that exists.
    pub nearest: Option<String>,
}

/// The route to a running dependency that a request may take.
#[derive(Debug)]
pub struct Route {
    /// The conversation with the dependency.
    pub session: Session,
    /// What rules call the thing that is wanted.
    pub tool: ToolName,
    /// What the dependency calls it.
    pub own: String,
    /// The same, as JSON.
    pub own_json: Bytes,
    /// How long a call may take; `None` is for ever.
    pub timeout: Option<Duration>,
    /// The approval it rests on; `None` where a rule allows it.
    pub(super) approval: Option<RouteApproval>,
    /// The batch of lines for which the approval was last looked at.
    pub(super) looked_at: AtomicU64,
    /// How often the lists of the session had changed when the tool was compared with what was accepted.
    pub(super) lists: u64,
}

impl Route {
    pub(super) fn new(
        session: Session,
        target: Target,
        timeout: Option<Duration>,
        approval: Option<RouteApproval>,
    ) -> Self {
        Self {
            session,
            tool: target.tool,
            own_json: quoted(&target.own).into(),
            own: target.own,
            timeout,
            approval,
            looked_at: AtomicU64::new(u64::MAX),
            lists: 0,
        }
    }

    /// Returns the route with the state of the lists that its tool was compared in.
    pub(super) fn decided_by(self, lists: u64) -> Self {
        Self { lists, ..self }
    }
}

/// The approval that a route rests on.
#[derive(Debug)]
pub(super) struct RouteApproval {
    pub(super) launch: Digest,
    pub(super) content: Content,
    pub(super) given: GrantKind,
}

/// The kind of an approval: for the dependency, or for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantKind {
    /// For the dependency, until it is taken back.
    Standing,
    /// For this one call: there is nothing to take back.
    Once,
}

/// The route that a resumed call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumedRoute {
    /// The route it took before.
    AsBefore,
    /// A new route: its session has ended.
    Anew,
}

/// A request that may be forwarded.
#[derive(Debug)]
pub struct ReadyRequest {
    /// The route it takes.
    pub route: Arc<Route>,
    /// The arguments that were suspended, in place of those it came with.
    pub suspended: Option<Arguments>,
    /// What pml has to say about it, once it is answered.
    pub notes: Vec<String>,
}
/// Tells whether a name is that of a tool, not of a prompt or a resource.
pub(super) fn is_tool(name: &ToolName) -> bool {
    !name.tool().starts_with(PROMPTS) && !name.tool().starts_with(RESOURCES)
}
