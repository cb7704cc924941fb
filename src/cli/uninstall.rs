//! `pml uninstall NAME`: takes back the approval of a server, removes its package and forgets its tools.

use std::process::ExitCode;

use clap::Args;

use super::failure::Hinted as _;
use super::{Ground, output};
use crate::config::{self, Config};
use crate::loader::{Catalog, Packages, Plan, Uninstalled, plan};
use crate::permissions::Approved;
use crate::protocol::DependencyName;

/// Takes back what was approved and installed for a server.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The server, as `.pml.json` names it; it need not be declared any more
    #[arg(value_name = "NAME")]
    name: DependencyName,
}

/// Forgets the approval first: whatever fails after that, nothing runs unasked any more.
pub(crate) fn run(ground: &Ground, config: &Config, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let name = &arguments.name;
    let forgotten = Approved::of(&ground.locations).forget(name)?;
    let approvals = match forgotten {
        0 => "was not approved".to_owned(),
        1 => "its approval is taken back".to_owned(),
        count => format!("its {count} approvals are taken back"),
    };
    let Some(server) = config.servers.get(name) else {
        if forgotten == 0 {
            let names = config.servers.keys().map(DependencyName::as_str);
            let known = config::nearest(name.as_str(), names).map(str::to_owned);
            let error = anyhow::anyhow!("no server `{name}` is declared, and none of that name was approved");
            return match known {
                Some(known) => Err(error).hint(format!("did you mean `{known}`?")),
                None => Err(error).hint("to see what is declared: pml list"),
            };
        }
        output::data(&format!("{name}: {approvals}"))?;
        return Ok(ExitCode::SUCCESS);
    };
    let plan = plan(name, server, &ground.environment)?;
    Catalog::new(&ground.locations).forget(plan.catalog_key());
    output::data(&format!("{name}: {approvals}; {}", removed(ground, &plan)?))?;
    Ok(ExitCode::SUCCESS)
}

fn removed(ground: &Ground, plan: &Plan) -> anyhow::Result<String> {
    let Some(package) = plan.package() else {
        return Ok("it has no package to remove".to_owned());
    };
    let done = Packages::new(&ground.locations, &ground.environment).uninstall(package)?;
    Ok(match done {
        Uninstalled::Nothing => format!("{} was not installed", package.spec()),
        Uninstalled::StillNeeded { version } => {
            format!(
                "{} is no longer pinned, but another declaration still uses its files",
                package.at(&version)
            )
        }
        Uninstalled::Removed { version, .. } => format!("{} is removed", package.at(&version)),
    })
}
