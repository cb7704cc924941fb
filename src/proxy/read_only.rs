//! Which tools only read, for rules such as `*@readonly`.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::config::{Config, Environment};
use crate::loader::plan;
use crate::permissions::ReadOnlyTools;
use crate::pins::AcceptedPins;
use crate::protocol::{DependencyName, Digest, ToolName};

/// Tells which tools only read, by their definitions as they were accepted of exactly the launch that is declared now.
///
/// Where definitions of a server are not compared with what was accepted, none of its tools counts: it could say
/// anything. The files are looked at when a rule depends on them.
#[must_use]
pub fn tools(config: &Arc<Config>, accepted: Arc<AcceptedPins>, environment: &Environment) -> ReadOnlyTools {
    let (config, environment) = (Arc::clone(config), environment.clone());
    let launches: HashMap<DependencyName, OnceLock<Option<Digest>>> = config
        .servers
        .keys()
        .map(|name| (name.clone(), OnceLock::new()))
        .collect();
    ReadOnlyTools::told_by(move |name| {
        let Ok(tool) = name.parse::<ToolName>() else {
            return false;
        };
        let name = tool.dependency();
        let (Some(server), Some(launch)) = (config.servers.get(name), launches.get(name)) else {
            return false;
        };
        let planned = || {
            plan(name, server, &environment)
                .ok()
                .map(|plan| plan.digest().clone())
        };
        let Some(launch) = launch.get_or_init(planned) else {
            return false;
        };
        let found = accepted.find(&server.source.file, name).ok().flatten();
        config.pin_tools.covers(name) && found.is_some_and(|found| found.is_read_only(launch, tool.tool()))
    })
}
