//! `pml uninstall NAME`: unpins a server's package and removes its files.

use std::process::ExitCode;

use clap::Args;

use super::{Ground, install};
use crate::config::Config;
use crate::loader::{Packages, Uninstalled, plan};
use crate::protocol::DependencyName;
use crate::report::render_hinted;

/// Removes the package of a declared server.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The server whose package is removed
    #[arg(value_name = "NAME")]
    pub(crate) name: DependencyName,
}

/// Removes the package; what a person approved is forgotten by the caller.
pub(crate) fn run(ground: &Ground, config: &Config, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let name = &arguments.name;
    install::declared(config, name)?;
    let Some(server) = config.servers.get(name) else {
        return Ok(ExitCode::from(1));
    };
    let plan =
        plan(name, server, &ground.environment).map_err(|error| anyhow::anyhow!(render_hinted(&error)))?;
    let Some(package) = plan.package() else {
        anstream::println!("{name}: a plain command, nothing to remove");
        return Ok(ExitCode::SUCCESS);
    };
    let packages = Packages::new(&ground.locations, &ground.environment);
    let done = packages
        .uninstall(package)
        .map_err(|error| anyhow::anyhow!(render_hinted(&error)))?;
    match done {
        Uninstalled::Nothing => anstream::println!("{name}: {} was not installed", package.spec()),
        Uninstalled::StillNeeded { version } => {
            anstream::println!(
                "{name}: {} is no longer pinned; another declaration still uses its files",
                package.at(&version)
            );
        }
        Uninstalled::Removed { version, .. } => {
            anstream::println!("{name}: {} is removed", package.at(&version))
        }
    }
    Ok(ExitCode::SUCCESS)
}
