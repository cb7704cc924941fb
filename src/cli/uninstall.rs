//! `pml uninstall NAME`: takes back the approval of a server, removes its package and forgets its tools.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::failure::Hinted as _;
use super::{CommandContext, Haste, output, person, uses};
use crate::config::{self, Config};
use crate::history::{Record, Text};
use crate::loader::{Catalog, Package, Packages, Plan, Uninstalled, plan};
use crate::protocol::{DependencyName, LaunchApproval};
use crate::workflow::Place;

/// Takes back what was approved and installed for a server.
#[derive(Debug, Args)]
pub(crate) struct UninstallArguments {
    /// The server, as `.pml.json` names it; it need not be declared any more
    #[arg(value_name = "NAME")]
    name: DependencyName,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Forgets the approval first: whatever fails after that, nothing runs unasked any more.
pub(crate) fn run(
    context: &CommandContext,
    config: &Config,
    arguments: &UninstallArguments,
) -> anyhow::Result<ExitCode> {
    let name = &arguments.name;
    let forgotten = Place::of(&context.locations).forget_approvals(name)?;
    let declared = match config.servers.get(name) {
        Some(server) => Some(plan(name, server, &context.planning_environment())?),
        None if forgotten.is_empty() => {
            let names = config.servers.keys().map(DependencyName::as_str);
            let known = config::nearest(name.as_str(), names).map(str::to_owned);
            let error = anyhow::anyhow!("no server `{name}` is declared, and none of that name was approved");
            return match known {
                Some(known) => Err(error).hint(format!("did you mean `{known}`?")),
                None => Err(error).hint("to see what is declared: pml list"),
            };
        }
        None => None,
    };
    let is_agent = person::required_to_accept(context, "uninstall").is_err();
    let mut is_first_again = false;
    if let Some(server) = config.servers.get(name) {
        if !is_agent {
            is_first_again = context.forget_accepted(name, server)?;
        } else if context.accepted(name, server)?.is_some() {
            // Else the next use would be a first one, and whatever the server is then would count as accepted.
            output::note(&format!(
                "what you accepted of `{name}` is still remembered: only a person can have it forgotten, in a terminal of \
                 their own: pml uninstall {name}"
            ));
        }
    }
    if is_first_again || !forgotten.is_empty() {
        context.history().note_now(&[Record::Forget {
            server: Text::of(name.as_str()),
            approvals: forgotten.len(),
            accepted: is_first_again,
            by: Text::of(&person::provenance().to_string()),
        }]);
    }
    if let Some(plan) = &declared {
        Catalog::new(&context.locations).forget(plan.catalog_key());
    }
    let removed = removed(context, name, packages(declared.as_ref(), &forgotten))?;
    if arguments.json {
        let packages: Vec<_> = removed
            .iter()
            .map(|(package, done)| whole(package, done))
            .collect();
        output::json(&json!({
            "name": name,
            "approvalsTakenBack": forgotten.len(),
            "packages": packages,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let approvals = match forgotten.len() {
        0 => "was not approved".to_owned(),
        1 => "its approval is taken back".to_owned(),
        count => format!("its {count} approvals are taken back"),
    };
    let mut report = vec![approvals];
    report.extend(removed.iter().map(|(package, done)| in_words(package, done)));
    if removed.is_empty() && declared.is_some() {
        report.push("it has no package to remove".to_owned());
    }
    output::data(&format!("{name}: {}", report.join("; ")))?;
    for (_, done) in &removed {
        if let Uninstalled::Removed { kept, .. } = done {
            for kept in kept {
                output::note(&format!("what the server wrote is kept in {}", kept.describe()));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the packages of a server: the one that is declared, and those that were approved under its name.
fn packages(declared: Option<&Plan>, forgotten: &[LaunchApproval]) -> Vec<Package> {
    let approved = forgotten
        .iter()
        .filter_map(|record| Package::explicit(record.package.as_ref()?).ok());
    let declared = declared.and_then(Plan::package).cloned();
    let mut packages: Vec<Package> = Vec::new();
    for package in declared.into_iter().chain(approved) {
        if !packages
            .iter()
            .any(|known| known.to_string() == package.to_string())
        {
            packages.push(package);
        }
    }
    packages
}

fn removed(
    context: &CommandContext,
    name: &DependencyName,
    packages: Vec<Package>,
) -> anyhow::Result<Vec<(Package, Uninstalled)>> {
    let others = uses::others(context, name)?;
    let store = Packages::new(
        &context.locations,
        &context.environment,
        context.history(),
        context.release_age(Haste::None),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut removed = Vec::new();
        for package in packages {
            let done = store.uninstall(name, &package, &others).await?;
            removed.push((package, done));
        }
        Ok(removed)
    })
}

fn in_words(package: &Package, done: &Uninstalled) -> String {
    match done {
        Uninstalled::Nothing => format!("{} was not installed", package.spec()),
        Uninstalled::StillNeeded { version, by } if by.is_empty() => {
            format!(
                "{} is no longer pinned, but another declaration still uses its files",
                package.at(version)
            )
        }
        Uninstalled::StillNeeded { version, by } => {
            format!(
                "{} stays, because it is used by {}",
                package.at(version),
                by.join(", ")
            )
        }
        Uninstalled::Removed { version, .. } => format!("{} is removed", package.at(version)),
    }
}

fn whole(package: &Package, done: &Uninstalled) -> Value {
    let (state, version) = match done {
        Uninstalled::Nothing => ("notInstalled", None),
        Uninstalled::StillNeeded { version, .. } => ("stillNeeded", Some(version)),
        Uninstalled::Removed { version, .. } => ("removed", Some(version)),
    };
    let mut value = json!({ "package": package.to_string(), "state": state, "version": version });
    match done {
        Uninstalled::Nothing => {}
        Uninstalled::StillNeeded { by, .. } => value["usedBy"] = json!(by),
        Uninstalled::Removed {
            directories, kept, ..
        } => {
            value["directories"] = json!(directories);
            value["kept"] = json!(kept);
        }
    }
    value
}
