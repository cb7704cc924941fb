//! The pins of declared servers, as the store knows them.

use std::collections::BTreeMap;

use super::server_pins::lock_beside;
use super::{CommandContext, install};
use crate::config::Config;
use crate::loader::{Packages, plan};
use crate::pins::Pin;
use crate::protocol::DependencyName;

/// Which packages count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// Those that are in the store, or in the lock beside the configuration.
    Installed,
    /// Also those whose lock alone is kept: they would be installed from it.
    Locked,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct PinnedServers {
    /// The pin of each server with a package.
    pub(super) pins: BTreeMap<DependencyName, Pin>,
    /// Why there is none of other servers; of those without a package only where they were named.
    pub(super) notes: Vec<String>,
}

/// Reads the pins of the named servers, or of all that are declared.
pub(super) fn of_store(
    context: &CommandContext,
    config: &Config,
    packages: &Packages,
    names: &[DependencyName],
    kept: Kept,
) -> anyhow::Result<PinnedServers> {
    for name in names {
        install::declared(config, name)?;
    }
    let mut found = PinnedServers::default();
    for (name, server) in &config.servers {
        let is_named = names.contains(name);
        if !names.is_empty() && !is_named {
            continue;
        }
        let plan = match plan(name, server, &context.environment) {
            Ok(plan) => plan,
            Err(error) => {
                let error = crate::report::render_hinted(&error);
                found.notes.push(format!("`{name}` is left out: {error}"));
                continue;
            }
        };
        if plan.package().is_none() {
            if is_named {
                found.notes.push(format!("`{name}` has no package"));
            }
            continue;
        }
        let counts = match kept {
            Kept::Installed => packages.installed(&plan)?.is_some(),
            Kept::Locked => true,
        };
        let pin = packages.pin(&plan).filter(|_| counts);
        let pin = match (pin, kept) {
            // What a team locked is known without an installation.
            (None, Kept::Installed) => lock_beside(&server.source.file)?
                .servers
                .remove(name)
                .and_then(|locked| locked.package),
            (pin, _) => pin,
        };
        let Some(pin) = pin.filter(|pin| !pin.packages.is_empty()) else {
            found.notes.push(format!("`{name}` is not installed"));
            continue;
        };
        let pin = Pin {
            package: Some(pin),
            ..Pin::default()
        };
        found.pins.insert(name.clone(), pin);
    }
    Ok(found)
}
