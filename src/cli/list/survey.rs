//! The survey of declared servers, from the configuration, the store, the approvals and the catalog.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use super::super::forecast::Standings;
use super::super::{CommandContext, Haste, entry_variables, forecast};
use super::tool::{Outlook, Tool};
use crate::config::{Config, FilePosition, Server, Startup};
use crate::loader::{Known, LastFailure, Package, Plan, PlanError, VersionSpec, plan};
use crate::permissions::{CONNECT, Forecast, ForecastOutcome, Policy, Ruling};
use crate::protocol::approval::ShownDependency;
use crate::protocol::{DependencyName, Imitation, LaunchApproval, Shown, ToolName};
use crate::report::render_hinted;
use crate::workflow::{Place, Timestamp};

/// One declared server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerSurvey {
    pub(super) name: DependencyName,
    /// The exact version, or the declared range while it is not resolved; `None` for a plain command.
    pub(super) version: Option<String>,
    /// Whether its package is in the store; `None` where there is nothing to install.
    pub(super) installed: Option<bool>,
    /// How much of the disk its installation takes.
    pub(super) bytes: Option<u64>,
    /// When it was called last, as it is declared.
    pub(super) last_use: Option<Timestamp>,
    /// Why it failed last, as it is declared.
    pub(super) last_failure: Option<LastFailure>,
    /// Whether a call of it needs a person; `None` if it cannot be called at all.
    pub(super) access: Option<Access>,
    /// The approval that covers it as it is declared and installed.
    pub(super) approval: Option<LaunchApproval>,
    /// What a call of a tool that is not known yet would do; `None` if it cannot be called at all.
    pub(super) next: Option<Forecast>,
    /// Its tools; `None` while the server was never started.
    pub(super) tools: Option<Vec<Tool>>,
    pub(super) startup: Startup,
    pub(super) disabled: bool,
    pub(super) source: FilePosition,
    /// What is installed and run.
    pub(super) shown: Option<ShownDependency>,
    /// What keeps it or one of its tools from working, or from being found under its name.
    pub(super) problems: Vec<String>,
    /// What else a person should know of it.
    pub(super) notes: Vec<String>,
}

/// Whether a call of a server needs a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// A person approved it as it is declared and installed.
    Approved,
    /// The rules let all its tools run.
    Allowed,
    /// The next call asks, about the server or about what of it changed.
    Asks,
    /// The rules let none of its tools run.
    Denied,
}

impl ServerSurvey {
    /// Returns what all calls of it do; `None` if they differ, or if it cannot be called at all.
    pub(super) fn happens(&self) -> Option<ForecastOutcome> {
        let tools = self.tools.iter().flatten().filter(|tool| !tool.hidden);
        let tools = tools.map(|tool| tool.forecast.happens);
        let mut all = tools.collect::<Vec<_>>();
        if all.is_empty() {
            all.extend(self.next.as_ref().map(|next| next.happens));
        }
        let first = *all.first()?;
        all.iter().all(|happens| *happens == first).then_some(first)
    }

    /// Returns everything as scripts see it.
    pub(super) fn json(&self, context: &CommandContext) -> Value {
        let shown = self.shown.as_ref();
        let tools = self
            .tools
            .as_ref()
            .map(|tools| tools.iter().map(|tool| tool.json(context)).collect::<Vec<_>>());
        json!({
            "name": self.name,
            "version": self.version,
            "integrity": shown.and_then(|shown| shown.integrity.as_deref()),
            "published": shown.and_then(|shown| shown.installation.published.as_deref()),
            "age": shown.and_then(|shown| shown.installation.age.as_deref()),
            "install": shown.map(|shown| shown.install.as_str()),
            "scripts": shown.is_some_and(|shown| shown.scripts),
            "cwd": shown.and_then(|shown| shown.surroundings.cwd.as_deref()),
            "env": shown.map(|shown| &shown.surroundings.env),
            "envFile": shown.and_then(|shown| shown.surroundings.env_file.as_deref()),
            "atStart": shown.map(|shown| shown.installation.at_start.as_slice()).unwrap_or_default(),
            "withdrawn": shown.and_then(|shown| shown.installation.withdrawn.as_deref()),
            "provenance": shown.and_then(|shown| shown.installation.provenance.as_ref()),
            "installed": self.installed,
            "bytes": self.bytes,
            "lastUse": self.last_use,
            "lastFailure": self.last_failure.as_ref().map(|failure| json!({
                "at": failure.at,
                "what": failure.what,
                "log": failure.log.to_string_lossy(),
            })),
            "approved": self.access == Some(Access::Approved),
            "access": self.access.map(|access| match access {
                Access::Approved => "approved",
                Access::Allowed => "allowed",
                Access::Asks => "asks",
                Access::Denied => "denied",
            }),
            "approval": self.approval.as_ref().map(forecast::approval_json),
            "calls": self.next.as_ref().map(|next| json!({
                "decision": forecast::decision(next.happens),
                "asks": forecast::asks(next.happens),
                "reason": forecast::reason(context, next),
                "outlook": forecast::outlook(next, &ToolName::new(self.name.clone(), CONNECT)),
            })),
            "tools": tools,
            "startup": match self.startup {
                Startup::Lazy => "lazy",
                Startup::Eager => "eager",
            },
            "disabled": self.disabled,
            "file": self.source.file.to_string_lossy(),
            "line": self.source.line,
            "problems": self.problems,
            "notes": self.notes,
        })
    }
}

/// Looks at every declared server; starts, installs and resolves nothing.
pub(super) fn servers(context: &CommandContext, config: &Config) -> Vec<ServerSurvey> {
    let policy = context.policy(config);
    let loader = context.loader(Haste::None);
    let approvals = Place::of(&context.locations).approvals();
    let handed = context.handed();
    let environment = handed.planning(&context.environment);
    let standings = Standings {
        context,
        config,
        loader: &loader,
        environment: &environment,
        approvals: approvals.as_ref().ok(),
    };
    let mut listed: Vec<_> = config
        .servers
        .iter()
        .map(|(name, server)| {
            let mut listed = match plan(name, server, &environment) {
                Ok(plan) => {
                    let mut listed = planned(server, &plan, &standings, &policy);
                    listed
                        .problems
                        .extend(approvals.as_ref().err().map(render_hinted));
                    listed
                }
                Err(error) => unplanned(name, server, &error),
            };
            listed
                .notes
                .extend(entry_variables::notes(context, &handed, server));
            listed
        })
        .collect();
    report_collisions(&mut listed);
    let names = context.tool_names(config);
    for server in listed.iter_mut().filter(|server| !server.disabled) {
        let tools = server.tools.iter().flatten().map(|tool| tool.name.tool());
        let mistakable = names.beside(&server.name).notice(tools);
        server.notes.extend(
            mistakable.map(|tools| format!("its tools can be mistaken for those of other servers: {tools}")),
        );
    }
    listed
}

fn unplanned(name: &DependencyName, server: &Server, error: &PlanError) -> ServerSurvey {
    let problem = render_hinted(error);
    // Whose it is stands before it.
    let problem = problem.strip_prefix(&format!("`{name}`: ")).unwrap_or(&problem);
    ServerSurvey {
        name: name.clone(),
        version: None,
        installed: None,
        bytes: None,
        last_use: None,
        last_failure: None,
        access: None,
        approval: None,
        next: None,
        tools: None,
        startup: server.startup,
        disabled: server.disabled,
        source: server.source.clone(),
        shown: None,
        problems: vec![problem.to_owned()],
        notes: Vec::new(),
    }
}

fn planned(server: &Server, plan: &Plan, standings: &Standings<'_>, policy: &Policy) -> ServerSurvey {
    let loader = standings.loader;
    let mut notes = Vec::new();
    let (standing, mut problems) = standings.read(server, plan);
    let resolved = loader.resolved(plan);
    let installed = plan.package().map(|_| match loader.packages().installed(plan) {
        Ok(installed) => installed.is_some(),
        Err(error) => {
            problems.push(render_hinted(&error));
            false
        }
    });
    let outlook = Outlook {
        policy,
        standing: &standing,
    };
    if let (None, Some(VersionSpec::Floating(_))) = (&resolved, plan.package().map(Package::version)) {
        problems.push("its version is not pinned; the first use decides which one it is".to_owned());
    }
    let name = plan.dependency();
    let tools = loader
        .known(plan)
        .map(|known| tools(name, &known, &outlook, &mut problems));
    let next = outlook.of(&ToolName::new(name.clone(), CONNECT));
    let access = access(name, tools.as_deref(), policy, &next, standing.approval.as_ref());
    let shown = loader.shown(plan);
    notes.extend(shown.notes());
    ServerSurvey {
        name: name.clone(),
        version: shown.version.clone(),
        installed,
        bytes: plan.package().and_then(|package| loader.packages().size(package)),
        last_use: loader.last_use(plan).map(Timestamp::from_millis),
        last_failure: loader.last_failure(plan),
        access: Some(access),
        next: Some(next),
        approval: standing.approval,
        tools,
        startup: server.startup,
        disabled: server.disabled,
        source: server.source.clone(),
        shown: Some(shown),
        problems,
        notes,
    }
}

/// Returns the tools as the client gets them; what is lost or renamed on the way is a problem.
fn tools(
    name: &DependencyName,
    known: &Known,
    outlook: &Outlook<'_>,
    problems: &mut Vec<String>,
) -> Vec<Tool> {
    let mut seen = HashSet::new();
    let mut tools = Vec::new();
    let left_out = known.left_out.tools + known.left_out.prompts + known.left_out.resources;
    if left_out > 0 {
        problems.push(format!(
            "{left_out} of what it lists is left out: too many, too long or without a name"
        ));
    }
    for (list, count) in known.mended() {
        problems.push(format!(
            "clients cannot read the definitions of {count} of its {list}; they are listed mended"
        ));
    }
    for tool in &known.tools {
        for imitation in Imitation::of(tool.name(), tool.definition().get()) {
            let text = format!("{name}:{}", tool.name());
            problems.push(format!("`{}` {}", Shown::line(&text), imitation.describe()));
        }
        let definition = tool.definition().get();
        let tool = Tool::new(ToolName::new(name.clone(), tool.name()), definition, outlook);
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

fn access(
    name: &DependencyName,
    tools: Option<&[Tool]>,
    policy: &Policy,
    next: &Forecast,
    approval: Option<&LaunchApproval>,
) -> Access {
    let ruling = |tool: &ToolName| policy.check(tool).ruling;
    let rulings: Vec<Ruling> = match tools {
        Some(tools) if tools.iter().any(|tool| !tool.hidden) => {
            let offered = tools.iter().filter(|tool| !tool.hidden);
            offered.map(|tool| ruling(&tool.name)).collect()
        }
        _ => vec![ruling(&ToolName::new(name.clone(), CONNECT))],
    };
    if rulings.iter().all(|ruling| *ruling == Ruling::Deny) {
        Access::Denied
    } else if next.happens == ForecastOutcome::AsksAboutChange {
        Access::Asks
    } else if approval.is_some() {
        Access::Approved
    } else if rulings.iter().any(|ruling| matches!(ruling, Ruling::Ask(_))) {
        Access::Asks
    } else {
        Access::Allowed
    }
}

/// Tells of tools that share a name on the wire: a client keeps one of them.
fn report_collisions(listed: &mut [ServerSurvey]) {
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
    use crate::permissions::ForecastReason;

    fn listed(name: &str, tools: &[(&str, &str)]) -> ServerSurvey {
        let name: DependencyName = name.parse().unwrap();
        let tools = tools
            .iter()
            .map(|(tool, wire)| Tool {
                name: ToolName::new(name.clone(), *tool),
                wire_name: (*wire).to_owned(),
                forecast: Forecast {
                    happens: ForecastOutcome::Runs,
                    because: ForecastReason::Rules,
                    rule: None,
                },
                hidden: false,
                bytes: 0,
            })
            .collect();
        ServerSurvey {
            name,
            version: None,
            installed: None,
            bytes: None,
            last_use: None,
            last_failure: None,
            access: None,
            approval: None,
            next: None,
            tools: Some(tools),
            startup: Startup::Lazy,
            disabled: false,
            source: FilePosition {
                file: "/f".into(),
                line: 1,
                column: 1,
            },
            shown: None,
            problems: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn tools_that_share_a_wire_name_are_told_on_both_sides() {
        let mut servers = [
            listed("a", &[("x", "same"), ("y", "a__y")]),
            listed("b", &[("z", "same")]),
        ];
        report_collisions(&mut servers);
        let problem = "`a:x` and `b:z` are all `same` to clients; deny all but one";
        assert_eq!(servers[0].problems, [problem]);
        assert_eq!(servers[1].problems, [problem]);
    }
}
