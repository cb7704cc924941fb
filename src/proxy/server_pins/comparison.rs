//! Compares a server with what the user accepted of it, as files tell: for calls, and for commands that foretell them.

use std::collections::HashSet;

use super::ServerPins;
use super::judged_tools::{Baseline, JudgedTools, Pinning};
use crate::config::{Config, Environment, Server};
use crate::loader::{Loader, Plan, Scripts, launch_change};
use crate::pins::{LaunchChange, Pin, PinError};
use crate::protocol::approval::ChangedPart;

/// What of a server is not what the user accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerDifference {
    /// The parts that differ, its tools apart.
    pub parts: Vec<ChangedPart>,
    /// The tools that differ.
    pub tools: HashSet<String>,
}

impl ServerPins {
    /// Returns what a server is compared with: what was accepted of this launch, else of the newest, else its lock.
    pub fn compared(&self, server: &Server, plan: &Plan) -> Result<Option<Pin>, PinError> {
        let accepted = self.accepted(server, plan.dependency())?;
        let launch = accepted
            .as_ref()
            .and_then(|accepted| accepted.of(plan.digest()).or_else(|| accepted.latest()));
        match launch {
            Some(launch) => Ok(Some(launch.pin.clone())),
            None => self.locked(&server.source.file, plan.dependency()),
        }
    }

    /// Tells whether the package that would run is another than was accepted, as far as it is known.
    pub fn has_other_package(&self, server: &Server, plan: &Plan, loader: &Loader) -> Result<bool, PinError> {
        let Some(now) = loader.package_in_short(plan) else {
            return Ok(false);
        };
        let accepted = self.compared(server, plan)?.and_then(|before| before.package);
        Ok(accepted.is_some_and(|accepted| !accepted.is_same_as(&now)))
    }

    /// Returns how a launch that is new differs from the one that was accepted last; from the lock where none was.
    pub fn launch_change(
        &self,
        server: &Server,
        plan: &Plan,
        environment: &Environment,
    ) -> Result<Option<LaunchChange>, PinError> {
        let name = plan.dependency();
        if let Some(accepted) = self.accepted(server, name)? {
            let other = accepted.latest().filter(|_| accepted.of(plan.digest()).is_none());
            return Ok(other.and_then(|latest| {
                let surroundings = latest.surroundings.as_ref();
                launch_change(name, server, &latest.pin.launch, surroundings, environment)
            }));
        }
        let locked = self.locked(&server.source.file, name)?;
        Ok(locked.and_then(|locked| {
            let surroundings = locked.surroundings.as_ref();
            let surroundings = surroundings.map(|shared| shared.in_project(&server.directory));
            launch_change(name, server, &locked.launch, surroundings.as_ref(), environment)
        }))
    }

    /// Returns everything that differs, without starting or resolving anything; reads files.
    pub fn difference(
        &self,
        config: &Config,
        server: &Server,
        plan: &Plan,
        loader: &Loader,
        environment: &Environment,
    ) -> Result<ServerDifference, PinError> {
        let mut parts = Vec::new();
        if self.has_other_package(server, plan, loader)? {
            parts.push(ChangedPart::Package);
        }
        if self.launch_change(server, plan, environment)?.is_some() {
            parts.push(ChangedPart::Launch);
        }
        if self.waits_for_scripts(server, plan, loader)? {
            parts.push(ChangedPart::Scripts);
        }
        let known = loader.known(plan);
        let accepted = self.accepted(server, plan.dependency())?;
        let baseline = accepted.map_or(Baseline::Nothing, Baseline::Accepted);
        let tools = known.map(|known| {
            let pinning = Pinning::of(config, plan);
            JudgedTools::new(&known, baseline, plan.digest(), pinning).asking()
        });
        Ok(ServerDifference {
            parts,
            tools: tools.unwrap_or_default(),
        })
    }

    /// Tells whether an installation would run scripts of which the user has accepted none.
    fn waits_for_scripts(&self, server: &Server, plan: &Plan, loader: &Loader) -> Result<bool, PinError> {
        if plan.scripts() != Scripts::Allowed || !loader.needs_install(plan) {
            return Ok(false);
        }
        let has_scripts = { loader.packages().pin(plan) }.is_some_and(|pin| !pin.install_scripts.is_empty());
        let accepted = self.accepted.find(&server.source.file, plan.dependency())?;
        let is_new = accepted.is_none_or(|accepted| accepted.scripts().is_none());
        Ok(has_scripts && is_new)
    }
}
