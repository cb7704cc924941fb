//! What is known of each declared server, from the configuration, the store, the approvals and the catalog.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::super::Ground;
use crate::config::{Config, Server, Source, Startup};
use crate::loader::{Known, Loader, Package, Plan, PlanError, VersionSpec, plan};
use crate::permissions::{Approved, CONNECT, Decision, Policy};
use crate::protocol::approval::ShownDependency;
use crate::protocol::{DependencyName, Shown, ToolName, wire_name};
use crate::report::render_hinted;

/// One declared server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) name: DependencyName,
    /// The exact version, or the declared range while it is not resolved; `None` for a plain command.
    pub(super) version: Option<String>,
    /// Whether its package is in the store; `None` where there is nothing to install.
    pub(super) installed: Option<bool>,
    /// Whether a call of it needs a person; `None` if it cannot be called at all.
    pub(super) access: Option<Access>,
    /// Its tools; `None` while nobody has seen them.
    pub(super) tools: Option<Vec<Tool>>,
    pub(super) startup: Startup,
    pub(super) disabled: bool,
    pub(super) source: Source,
    /// What is installed and run.
    pub(super) shown: Option<ShownDependency>,
    /// What keeps it or one of its tools from working, or from being found under its name.
    pub(super) problems: Vec<String>,
}

/// Whether a call of a server needs a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// A person approved it as it is declared and installed.
    Approved,
    /// The rules let all its tools run.
    Allowed,
    /// The next call asks.
    Asks,
    /// The rules let none of its tools run.
    Denied,
}

/// One tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) name: ToolName,
    pub(super) wire_name: String,
    decision: Decision,
}

impl Tool {
    fn new(name: ToolName, policy: &Policy) -> Self {
        Self {
            wire_name: wire_name(&name),
            decision: policy.check(&name).decision,
            name,
        }
    }

    /// Tells whether the client sees another name than `dependency__tool`.
    pub(super) fn changed(&self) -> bool {
        self.wire_name != format!("{}__{}", self.name.dependency(), self.name.tool())
    }

    /// Tells whether a rule takes it away.
    pub(super) fn is_denied(&self) -> bool {
        self.decision == Decision::Deny
    }

    fn json(&self) -> Value {
        let decision = match self.decision {
            Decision::Allow => "allow",
            Decision::Ask(_) => "ask",
            Decision::Deny => "deny",
        };
        json!({ "tool": self.name, "wireName": self.wire_name, "decision": decision })
    }
}

impl Listed {
    /// Returns everything as scripts see it.
    pub(super) fn json(&self) -> Value {
        let shown = self.shown.as_ref();
        let tools = self
            .tools
            .as_ref()
            .map(|tools| tools.iter().map(Tool::json).collect::<Vec<_>>());
        json!({
            "name": self.name,
            "version": self.version,
            "integrity": shown.and_then(|shown| shown.integrity.as_deref()),
            "install": shown.map(|shown| shown.install.as_str()),
            "scripts": shown.is_some_and(|shown| shown.scripts),
            "installed": self.installed,
            "approved": self.access == Some(Access::Approved),
            "access": self.access.map(|access| match access {
                Access::Approved => "approved",
                Access::Allowed => "allowed",
                Access::Asks => "asks",
                Access::Denied => "denied",
            }),
            "tools": tools,
            "startup": match self.startup {
                Startup::Lazy => "lazy",
                Startup::Eager => "eager",
            },
            "disabled": self.disabled,
            "file": self.source.file.to_string_lossy(),
            "line": self.source.line,
            "problems": self.problems,
        })
    }
}

/// Looks at every declared server; starts, installs and resolves nothing.
pub(super) fn servers(ground: &Ground, config: &Config) -> Vec<Listed> {
    let policy = Policy::new(config);
    let loader = Loader::new(&ground.environment, &ground.locations, TaskTracker::new());
    let approved = Approved::of(&ground.locations);
    let mut listed: Vec<_> = config
        .servers
        .iter()
        .map(|(name, server)| match plan(name, server, &ground.environment) {
            Ok(plan) => planned(server, &plan, &loader, &policy, &approved),
            Err(error) => unplanned(name, server, &error),
        })
        .collect();
    report_collisions(&mut listed);
    listed
}

fn unplanned(name: &DependencyName, server: &Server, error: &PlanError) -> Listed {
    Listed {
        name: name.clone(),
        version: None,
        installed: None,
        access: None,
        tools: None,
        startup: server.startup,
        disabled: server.disabled,
        source: server.source.clone(),
        shown: None,
        problems: vec![render_hinted(error)],
    }
}

fn planned(server: &Server, plan: &Plan, loader: &Loader, policy: &Policy, approved: &Approved) -> Listed {
    let mut problems = Vec::new();
    let resolved = loader.resolved(plan);
    let installed = plan.package().map(|_| match loader.packages().installed(plan) {
        Ok(installed) => installed.is_some(),
        Err(error) => {
            problems.push(render_hinted(&error));
            false
        }
    });
    let integrity = resolved
        .as_ref()
        .and_then(|resolved| resolved.integrity.as_deref());
    let is_approved = approved.covers(plan.digest(), integrity).unwrap_or_else(|error| {
        problems.push(render_hinted(&error));
        false
    });
    if let (None, Some(VersionSpec::Floating(_))) = (&resolved, plan.package().map(Package::version)) {
        problems.push("its version is not pinned; the first use decides which one it is".to_owned());
    }
    let name = plan.dependency();
    let tools = loader
        .known(plan)
        .map(|known| tools(name, &known, policy, &mut problems));
    let access = access(name, tools.as_deref(), policy, is_approved);
    let shown = plan.shown(resolved.as_ref());
    Listed {
        name: name.clone(),
        version: shown.version.clone(),
        installed,
        access: Some(access),
        tools,
        startup: server.startup,
        disabled: server.disabled,
        source: server.source.clone(),
        shown: Some(shown),
        problems,
    }
}

/// Returns the tools as the client gets them; what is lost or renamed on the way is a problem.
fn tools(name: &DependencyName, known: &Known, policy: &Policy, problems: &mut Vec<String>) -> Vec<Tool> {
    let mut seen = HashSet::new();
    let mut tools = Vec::new();
    for tool in &known.tools {
        let tool = Tool::new(ToolName::new(name.clone(), tool.name()), policy);
        let text = tool.name.to_string();
        let shown = Shown::line(&text);
        if !seen.insert(text.clone()) {
            problems.push(format!(
                "it lists `{shown}` more than once; only the first is reachable"
            ));
            continue;
        }
        if tool.changed() {
            problems.push(format!(
                "`{shown}` does not fit clients, which see `{}`",
                tool.wire_name
            ));
        }
        tools.push(tool);
    }
    tools
}

fn access(name: &DependencyName, tools: Option<&[Tool]>, policy: &Policy, is_approved: bool) -> Access {
    let decisions: Vec<Decision> = match tools {
        Some(tools) if !tools.is_empty() => tools.iter().map(|tool| tool.decision).collect(),
        _ => vec![policy.check(&ToolName::new(name.clone(), CONNECT)).decision],
    };
    if decisions.iter().all(|decision| *decision == Decision::Deny) {
        Access::Denied
    } else if is_approved {
        Access::Approved
    } else if decisions
        .iter()
        .any(|decision| matches!(decision, Decision::Ask(_)))
    {
        Access::Asks
    } else {
        Access::Allowed
    }
}

/// Tells of tools that share a name on the wire: a client keeps one of them.
fn report_collisions(listed: &mut [Listed]) {
    let mut owners: HashMap<String, Vec<ToolName>> = HashMap::new();
    let tools = listed
        .iter()
        .filter(|server| !server.disabled)
        .flat_map(|server| server.tools.iter().flatten());
    for tool in tools {
        owners
            .entry(tool.wire_name.clone())
            .or_default()
            .push(tool.name.clone());
    }
    let mut found: BTreeMap<DependencyName, Vec<String>> = BTreeMap::new();
    for (wire, names) in owners.into_iter().filter(|(_, names)| names.len() > 1) {
        let all: Vec<_> = names
            .iter()
            .map(|name| format!("`{}`", Shown::line(&name.to_string())))
            .collect();
        for name in &names {
            found.entry(name.dependency().clone()).or_default().push(format!(
                "{} are all `{wire}` to clients; deny all but one",
                all.join(" and ")
            ));
        }
    }
    for server in listed {
        server
            .problems
            .extend(found.remove(&server.name).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, tools: &[(&str, &str)]) -> Listed {
        let name: DependencyName = name.parse().unwrap();
        let tools = tools
            .iter()
            .map(|(tool, wire)| Tool {
                name: ToolName::new(name.clone(), *tool),
                wire_name: (*wire).to_owned(),
                decision: Decision::Allow,
            })
            .collect();
        Listed {
            name,
            version: None,
            installed: None,
            access: None,
            tools: Some(tools),
            startup: Startup::Lazy,
            disabled: false,
            source: Source {
                file: "/f".into(),
                line: 1,
                column: 1,
            },
            shown: None,
            problems: Vec::new(),
        }
    }

    #[test]
    fn tools_that_share_a_wire_name_are_told_on_both_sides() {
        let mut servers = [
            listed("a", &[("x", "same"), ("y", "a__y")]),
            listed("b", &[("z", "same")]),
        ];
        report_collisions(&mut servers);
        let told = "`a:x` and `b:z` are all `same` to clients; deny all but one";
        assert_eq!(servers[0].problems, [told]);
        assert_eq!(servers[1].problems, [told]);
    }
}
