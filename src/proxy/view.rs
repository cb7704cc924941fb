//! The view of the configuration that calls use: rules and plans, made once and used until a file changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::config::{Config, Environment, RuleList, Server};
use crate::loader::{Plan, PlanError, plan};
use crate::permissions::{Policy, ReadOnlyTools, Ruling, Verdict};
use crate::protocol::{DependencyName, ToolName, wire_name};

use super::{Refusal, Route};

/// The number of routes a view remembers: more tools than a client calls. A client may call any number of names that a
/// rule allows, so beyond this the routes are forgotten and found again.
const ROUTES: usize = 10_000;

/// The longest name whose route is remembered: longer than any that a client is listed.
const ROUTE_NAME: usize = 1024;

/// What would be run for a server, or why nothing can be.
pub(crate) type PlanResult = Result<Arc<Plan>, Arc<PlanError>>;

/// One state of the configuration, ready to decide and to run.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) config: Arc<Config>,
    pub(crate) policy: Policy,
    /// The rules as they would be if the project's file were accepted; `None` where it counts already.
    pub(super) wished: Option<Policy>,
    plans: BTreeMap<DependencyName, OnceLock<PlanResult>>,
    /// The routes that were found under these rules, by the name the client calls.
    routes: Mutex<HashMap<String, Arc<Route>>>,
}

impl View {
    pub(crate) fn new(config: Arc<Config>, read_only: ReadOnlyTools) -> Self {
        let policy = Policy::knowing(&config, read_only);
        let wished = config
            .project
            .unaccepted()
            .map(|_file| Policy::if_accepted(&config));
        let plans = config
            .servers
            .keys()
            .map(|name| (name.clone(), OnceLock::new()))
            .collect();
        Self {
            config,
            policy,
            wished,
            plans,
            routes: Mutex::default(),
        }
    }

    /// Returns the route to a tool that was found before.
    pub(crate) fn route(&self, name: &str) -> Option<Arc<Route>> {
        self.routes().get(name).cloned()
    }

    /// Remembers the route to a tool.
    pub(crate) fn remember_route(&self, name: &str, route: &Arc<Route>) {
        if name.len() > ROUTE_NAME {
            return;
        }
        let mut routes = self.routes();
        if routes.len() >= ROUTES {
            routes.clear();
        }
        routes.insert(name.to_owned(), Arc::clone(route));
    }

    /// Forgets the route to a tool.
    pub(crate) fn forget_route(&self, name: &str) {
        self.routes().remove(name);
    }

    fn routes(&self) -> MutexGuard<'_, HashMap<String, Arc<Route>>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a declared server.
    pub(crate) fn server(&self, name: &DependencyName) -> Option<&Server> {
        self.config.servers.get(name)
    }

    /// Returns the enabled servers that can be planned, each with what would be run.
    pub(crate) fn enabled<'a>(
        &'a self,
        environment: &'a Environment,
    ) -> impl Iterator<Item = (&'a Server, Arc<Plan>)> {
        let enabled = self.config.servers.iter().filter(|(_, server)| !server.disabled);
        enabled.filter_map(|(name, server)| Some((server, self.plan(name, server, environment).ok()?)))
    }

    /// Splits a wire name that did not have to change into its server, which must be declared, and what it has there.
    pub(crate) fn split(&self, wire: &str) -> Option<ToolName> {
        let (dependency, name) = wire.split_once("__")?;
        let name = ToolName::new(dependency.parse::<DependencyName>().ok()?, name);
        (self.server(name.dependency()).is_some() && wire_name(&name) == wire).then_some(name)
    }

    /// Returns what the rules say, a deny being the end.
    pub(crate) fn ruling(&self, tool: &ToolName) -> Result<Ruling, Refusal> {
        Self::judged(tool, self.policy.check(tool))
    }

    /// Returns what a verdict on a call says, a deny being the end.
    pub(crate) fn judged(tool: &ToolName, verdict: Verdict) -> Result<Ruling, Refusal> {
        match (verdict.ruling, verdict.rule) {
            (Ruling::Deny, Some(rule)) if rule.list == RuleList::Tools => Err(Refusal::NotOffered {
                tool: tool.clone(),
                rule,
            }),
            (Ruling::Deny, Some(rule)) => Err(Refusal::Denied {
                tool: tool.clone(),
                rule,
            }),
            (ruling, _) => Ok(ruling),
        }
    }

    /// Returns what would be installed and run for a declared server.
    pub(crate) fn plan(
        &self,
        name: &DependencyName,
        server: &Server,
        environment: &Environment,
    ) -> PlanResult {
        let planned = || plan(name, server, environment).map(Arc::new).map_err(Arc::new);
        match self.plans.get(name) {
            Some(made) => made.get_or_init(planned).clone(),
            None => planned(),
        }
    }
}
