//! The configuration as calls see it: rules and plans made once, used until a file changes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::config::{Config, Environment, Server};
use crate::loader::{Plan, PlanError, plan};
use crate::permissions::Policy;
use crate::protocol::DependencyName;

/// One state of the configuration, ready to decide and to run.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) config: Arc<Config>,
    pub(crate) policy: Policy,
    plans: BTreeMap<DependencyName, OnceLock<Result<Arc<Plan>, Arc<PlanError>>>>,
}

impl View {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        let policy = Policy::new(&config);
        let plans = config
            .servers
            .keys()
            .map(|name| (name.clone(), OnceLock::new()))
            .collect();
        Self {
            config,
            policy,
            plans,
        }
    }

    /// Returns a declared server.
    pub(crate) fn server(&self, name: &DependencyName) -> Option<&Server> {
        self.config.servers.get(name)
    }

    /// Returns what would be installed and run for a declared server.
    pub(crate) fn plan(
        &self,
        name: &DependencyName,
        server: &Server,
        environment: &Environment,
    ) -> Result<Arc<Plan>, Arc<PlanError>> {
        let make = || plan(name, server, environment).map(Arc::new).map_err(Arc::new);
        match self.plans.get(name) {
            Some(made) => made.get_or_init(make).clone(),
            None => make(),
        }
    }
}
