//! `pml diff NAME`: what differs between a server as it was accepted and as it is declared, or its newest version.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::candidate::{Candidate, unresolved};
use super::terminal::StepDisplay;
use super::{CommandContext, Haste, install, interruption, lock, output, person};
use crate::config::{Config, Server};
use crate::loader::process::supervisor;
use crate::loader::{Catalog, InstallStep, Packages, plan};
use crate::pins::{PackagePin, Pin, difference};
use crate::protocol::{DependencyName, Shown};
use crate::proxy::now;

/// Which server, and against what.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The server
    #[arg(value_name = "NAME")]
    name: DependencyName,
    /// Compare with this version instead of what is declared, or the newest
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// Compare with it also if it was published too short a time ago ("minReleaseAgeDays")
    #[arg(long)]
    now: bool,
    /// Print the difference as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the difference; the exit code is 1 if there is one.
pub(crate) fn run(
    context: &CommandContext,
    config: &Config,
    arguments: &DiffArguments,
) -> anyhow::Result<ExitCode> {
    install::declared(config, &arguments.name)?;
    let Some(server) = config.servers.get(&arguments.name) else {
        return Ok(ExitCode::from(2));
    };
    let haste = Haste::of(arguments.now);
    person::required_for_haste(context, "diff", haste)?;
    let with_handed = context.with_handed(server);
    let context = &with_handed;
    let packages = Packages::new(
        &context.locations,
        &context.environment,
        context.history(),
        context.release_age(haste),
    )
    .supervised_by(supervisor::program()?);
    let compared = interruption::until_interrupted(compare(context, &packages, server, arguments))?;
    let Some(compared) = compared else {
        return Ok(ExitCode::from(1));
    };
    let (before, after) = compared?;
    let declared = plan(&arguments.name, server, &context.environment)?;
    let launch = context.launch_change(server, &declared)?.into_iter();
    let namesakes = context.tool_names(config).beside(&arguments.name);
    let lines: Vec<String> = launch
        .chain(difference(&before, &after))
        .flat_map(|change| change.lines(&namesakes))
        .collect();
    let code = u8::from(!lines.is_empty());
    let version = |pin: &Pin| pin.package.as_ref().map(|package| package.version.clone());
    if arguments.json {
        let written = output::json(&json!({
            "name": arguments.name,
            "before": { "version": version(&before) },
            "now": {
                "version": version(&after),
                "published": after.package.as_ref().and_then(|package| package.published),
                "age": after.package.as_ref().and_then(lock::age),
                "provenance": after.package.as_ref().and_then(|package| package.provenance.proven()),
            },
            "lines": lines,
        }));
        return Ok(output::verdict(code, written)?);
    }
    if lines.is_empty() {
        output::say(&format!("`{}` is what was accepted", arguments.name));
        return Ok(ExitCode::SUCCESS);
    }
    let coloured: Vec<String> = lines.iter().map(|line| output::colour(line)).collect();
    let written = output::data(&coloured.join("\n"));
    if let Some(package) = &after.package {
        say_facts(package);
    }
    Ok(output::verdict(code, written)?)
}

/// Returns what was accepted, and what it is compared with.
async fn compare(
    context: &CommandContext,
    packages: &Packages,
    server: &Server,
    arguments: &DiffArguments,
) -> anyhow::Result<(Pin, Pin)> {
    let name = &arguments.name;
    let steps = StepDisplay::new();
    let mut left_out = None;
    let compared = async {
        let before = present(context, packages, name, server, &steps).await?;
        let step = |at: InstallStep| steps.step(&format!("{name}: {at}"));
        if let Some(version) = &arguments.to {
            let candidate = Candidate::named(context, packages, name, server, version).await?;
            let package = packages.lock(&candidate.plan, &step).await;
            let package = package.map_err(|source| unresolved(name, Some(version), source))?;
            return Ok((before, of_package(package)));
        }
        let declared = plan(name, server, &context.environment)?;
        let seen = Catalog::new(&context.locations).find(declared.catalog_key(), None);
        let now = Pin {
            package: match declared.package() {
                Some(_) => Some(packages.lock(&declared, &step).await?),
                None => None,
            },
            tools: seen.map(|seen| seen.tool_pins()),
            ..Pin::default()
        };
        if !difference(&before, &now).is_empty() || context.launch_change(server, &declared)?.is_some() {
            return Ok((before, now));
        }
        // Nothing waits to be accepted: what an upgrade would bring.
        let newest = Candidate::newest(context, packages, name, server).await?;
        left_out = newest.left_out;
        match newest.candidate {
            Some(candidate) => {
                let package = packages.lock(&candidate.plan, &step).await;
                let package = package.map_err(|source| unresolved(name, None, source))?;
                Ok((before, of_package(package)))
            }
            None => Ok((before, now)),
        }
    }
    .await;
    steps.clear();
    if let Some(left_out) = &left_out {
        output::note(left_out);
    }
    compared
}

fn of_package(package: PackagePin) -> Pin {
    Pin {
        package: Some(package),
        ..Pin::default()
    }
}

/// Returns what a server is for the user now: what they accepted, else its lock, else what is declared.
pub(super) async fn present(
    context: &CommandContext,
    packages: &Packages,
    name: &DependencyName,
    server: &Server,
    steps: &StepDisplay,
) -> anyhow::Result<Pin> {
    let declared = plan(name, server, &context.environment)?;
    if let Some(known) = context.compared(server, &declared)? {
        return Ok(known);
    }
    let step = |at: InstallStep| steps.step(&format!("{name}: {at}"));
    Ok(match declared.package() {
        Some(_) => of_package(packages.lock(&declared, &step).await?),
        None => Pin::default(),
    })
}

/// Says what else a person should know of a version.
pub(super) fn say_facts(package: &PackagePin) {
    let published = package.published.map_or_else(
        || "the registry does not say when".to_owned(),
        |published| format!("{} ({})", published.ago(now().millis()), published),
    );
    let provenance = package.provenance.proven().map_or_else(
        || "not proved".to_owned(),
        |provenance| Shown::line(&provenance.to_string()).to_string(),
    );
    let scripts = match package.install_scripts.as_slice() {
        [] => "none".to_owned(),
        titles => Shown::line(&titles.join(", ")).to_string(),
    };
    output::say(&format!("published  {published}"));
    output::say(&format!("built by   {provenance}"));
    output::say(&format!("scripts    {scripts}"));
}
