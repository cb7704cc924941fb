//! The list of tools: complete and instant from the catalog, without starting anything.

use std::collections::HashSet;
use std::sync::Arc;

use super::server_pins::JudgedTools;
use super::{AskPossibility, ListedTool, Proxy, Refusal, View};
use crate::config::{Server, nearest};
use crate::loader::{KnownTool, Plan};
use crate::permissions::{AskKind, CONNECT, Ruling, ServerVerdict};
use crate::protocol::{DependencyName, ToolName, wire_name};

/// What a list of tools follows from. Lists that follow from equal ones are equal, so that one need not be made again.
///
/// It keeps what it points at, so that nothing else can come to stand at the same place.
pub struct ListBasis {
    view: Arc<View>,
    servers: Vec<ServerBasis>,
}

enum ServerBasis {
    /// It is disabled.
    Hidden,
    /// Its tools are not known, or it cannot be planned: what is said instead.
    Connect(String),
    /// Its tools are known.
    Known {
        judged: Arc<JudgedTools>,
        approved: ServerApproval,
    },
}

/// Whether a person has approved a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerApproval {
    Given,
    Missing,
}

impl PartialEq for ListBasis {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.view, &other.view) && self.servers == other.servers
    }
}

impl PartialEq for ServerBasis {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Hidden, Self::Hidden) => true,
            (Self::Connect(one), Self::Connect(other)) => one == other,
            (
                Self::Known { judged, approved },
                Self::Known {
                    judged: other_judged,
                    approved: other_approved,
                },
            ) => Arc::ptr_eq(judged, other_judged) && approved == other_approved,
            (Self::Hidden | Self::Connect(_) | Self::Known { .. }, _) => false,
        }
    }
}

impl Proxy {
    /// Returns what the list of tools follows from now; costs as much as there are servers, however many tools they have.
    ///
    /// `None` while the configuration cannot be read: nothing is listed then, since every call would be refused.
    #[must_use]
    pub fn list_basis(&self) -> Option<ListBasis> {
        match self.view() {
            Ok(view) => Some(self.basis_of(view)),
            Err(error) => {
                tracing::warn!(%error, "no tools are listed while the configuration cannot be read");
                None
            }
        }
    }

    fn basis_of(&self, view: Arc<View>) -> ListBasis {
        let server = |(name, server): (&DependencyName, &Server)| {
            if server.disabled {
                return ServerBasis::Hidden;
            }
            let plan = match view.plan(name, server, &self.0.environment) {
                Ok(plan) => plan,
                Err(error) => {
                    let about = format!("`{name}` cannot be started as it is declared: {error}");
                    return ServerBasis::Connect(about);
                }
            };
            if let Some(known) = self.0.loader.known(&plan) {
                let approved = if self.is_approved(&plan) {
                    ServerApproval::Given
                } else {
                    ServerApproval::Missing
                };
                let judged = self.judged_tools(&view.config, server, &plan, &known);
                return ServerBasis::Known { judged, approved };
            }
            let connect = ToolName::new(name.clone(), CONNECT);
            match view.policy.check(&connect).ruling {
                Ruling::Deny => ServerBasis::Hidden,
                Ruling::Allow | Ruling::Ask(_) => ServerBasis::Connect(self.about(&plan)),
            }
        };
        let servers = view.config.servers.iter().map(server).collect();
        ListBasis { view, servers }
    }

    /// Lists every tool that a call could reach, in a stable order.
    #[must_use]
    pub fn list(&self, basis: &ListBasis) -> Vec<ListedTool> {
        let ListBasis { view, servers } = basis;
        let mut listed = Vec::new();
        for (name, server) in view.config.servers.keys().zip(servers) {
            let (judged, approved) = match server {
                ServerBasis::Hidden => continue,
                ServerBasis::Connect(about) => {
                    listed.push(ListedTool::Connect {
                        tool: ToolName::new(name.clone(), CONNECT),
                        about: about.clone(),
                    });
                    continue;
                }
                ServerBasis::Known { judged, approved } => (judged, *approved),
            };
            let mut seen = HashSet::new();
            for tool in &judged.shown.tools {
                let name = ToolName::new(name.clone(), tool.name());
                let ruling = view.policy.check(&name).ruling;
                if view.policy.not_offered(&name).is_some() {
                    continue;
                }
                // A tool that can never be called is no tool; one listed twice would shadow itself.
                if ruling == Ruling::Deny || !seen.insert(tool.name()) {
                    continue;
                }
                let asking = match ruling {
                    _ if judged.asks_for(tool.name()) => AskPossibility::Possible,
                    Ruling::Allow => AskPossibility::Never,
                    Ruling::Ask(AskKind::First) if approved == ServerApproval::Given => AskPossibility::Never,
                    Ruling::Ask(_) | Ruling::Deny => AskPossibility::Possible,
                };
                listed.push(ListedTool::Known {
                    tool: name,
                    definition: tool.definition().clone(),
                    place: tool.place(),
                    asking,
                });
            }
        }
        listed
    }

    /// Lists the tools that a client sees under a configuration.
    pub(super) fn list_of(&self, view: &Arc<View>) -> Vec<ListedTool> {
        self.list(&self.basis_of(Arc::clone(view)))
    }

    fn about(&self, plan: &Plan) -> String {
        let shown = plan.shown(self.0.loader.resolved(plan).as_ref(), super::now().millis());
        let (verb, what) = match &shown.remote {
            Some(_) => ("Connects to", "Where it is"),
            None => ("Starts", "What runs"),
        };
        format!(
            "{verb} the MCP server `{}` and lists its tools; they are not known yet. {what}: `{}`. \
             Unless a rule allows it, calling this asks a person for approval first.",
            shown.name, shown.install
        )
    }

    /// Finds the tool a client means by either spelling.
    pub(super) fn tool_named(&self, view: &View, name: &str) -> Result<ToolName, Option<String>> {
        if let Ok(tool) = name.parse::<ToolName>() {
            let declared = view.server(tool.dependency()).is_some();
            return if declared {
                Ok(tool)
            } else {
                Err(self.nearest(view, name))
            };
        }
        // A name that had to change for the wire ends in a digest and is looked up; others split at their first `__`.
        let looked_up = if ends_in_digest(name) {
            self.spelled(view, name)
        } else {
            None
        };
        looked_up
            .or_else(|| view.split(name))
            .ok_or_else(|| self.nearest(view, name))
    }

    /// Returns the tool that pml lists under exactly this name, if it lists one.
    pub fn listed_as(&self, wire: &str) -> Result<Option<ToolName>, Refusal> {
        let view = self.view().map_err(Refusal::Config)?;
        let enabled = |tool: &ToolName| {
            view.server(tool.dependency())
                .is_some_and(|server| !server.disabled)
        };
        Ok(self.spelled(&view, wire).filter(enabled))
    }

    fn spelled(&self, view: &View, wire: &str) -> Option<ToolName> {
        self.names(view).into_iter().find(|tool| wire_name(tool) == wire)
    }

    fn nearest(&self, view: &View, name: &str) -> Option<String> {
        let names: Vec<String> = self.names(view).iter().map(wire_name).collect();
        nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
    }

    fn names(&self, view: &View) -> Vec<ToolName> {
        let mut names = Vec::new();
        for (name, server) in &view.config.servers {
            let known = view
                .plan(name, server, &self.0.environment)
                .ok()
                .and_then(|plan| self.0.loader.known(&plan));
            match known {
                Some(known) => {
                    names.extend(
                        known
                            .tools
                            .iter()
                            .map(|tool| ToolName::new(name.clone(), tool.name())),
                    );
                }
                None => names.push(ToolName::new(name.clone(), CONNECT)),
            }
        }
        names
    }

    /// Tells whether a dependency may be started ahead of its first call: a person approved it, or one of its tools
    /// is simply allowed.
    pub(super) fn may_start(&self, view: &View, name: &DependencyName, plan: &Plan) -> bool {
        let known = self.0.loader.known(plan);
        let tools = known.iter().flat_map(|known| known.tools.iter());
        let tools: Vec<&str> = tools.map(KnownTool::name).collect();
        match view.policy.server(name, &tools) {
            ServerVerdict::Allowed => true,
            ServerVerdict::Asks => self.is_approved(plan),
            ServerVerdict::Denied(_) => false,
        }
    }
}

fn ends_in_digest(wire: &str) -> bool {
    wire.rsplit_once('_')
        .is_some_and(|(_, end)| end.len() == 6 && end.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
