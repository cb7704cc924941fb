//! `pml upgrade NAME`: shows what a newer version changes, asks, installs and starts it, and only then declares it.
//!
//! Whatever fails or is refused leaves the configuration, the lock and the old installation as they were. What the new
//! version's tools say is known once it ran: where they differ from what was accepted, the person is asked once more.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::candidate::{Candidate, Newest, unresolved};
use super::failure::{Hinted as _, Refused};
use super::introduction::{FoundServer, Newcomer, NotIntroduced, ShownServer};
use super::terminal::{self, StepDisplay, TerminalReply};
use super::{CommandContext, Haste, authority, diff, install, interruption, output, uses};
use crate::config::Server;
use crate::loader::Loader;
use crate::protocol::DependencyName;

/// Which server to upgrade, and how far.
#[derive(Debug, Args)]
pub(crate) struct UpgradeArguments {
    /// The server
    #[arg(value_name = "NAME")]
    name: DependencyName,
    /// This version instead of the newest; an older one goes back
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// Take it also if it was published too short a time ago ("minReleaseAgeDays")
    #[arg(long)]
    now: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

impl UpgradeArguments {
    /// Returns whether `--now` was given.
    pub(crate) fn haste(&self) -> Haste {
        Haste::of(self.now)
    }
}

/// What came of an upgrade.
enum UpgradeOutcome {
    Done { from: Option<String>, to: String },
    Newest(String),
    Declined,
}

/// Upgrades a server, if the person agrees to what changes.
pub(crate) fn run(context: &CommandContext, arguments: &UpgradeArguments) -> anyhow::Result<ExitCode> {
    // The new version is started once, with what it gets in its client.
    let declared = context.read()?.servers.remove(&arguments.name);
    let with_handed = declared.map(|declared| context.with_handed(&declared));
    let context = with_handed.as_ref().unwrap_or(context);
    let outcome = interruption::with_loader(context, arguments.haste(), async |loader| {
        upgrade(context, arguments, loader).await
    })?;
    let name = &arguments.name;
    match outcome {
        None => {
            output::say("\ninterrupted; nothing was changed");
            Ok(ExitCode::from(1))
        }
        Some(Err(error)) => Err(error),
        Some(Ok(UpgradeOutcome::Declined)) => {
            output::say("nothing was changed");
            Ok(ExitCode::from(1))
        }
        Some(Ok(UpgradeOutcome::Newest(version))) => {
            if arguments.json {
                output::json(&json!({ "name": name, "version": version, "changed": false }))?;
            } else {
                output::data(&format!("{name}: {version} is its newest version"))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(Ok(UpgradeOutcome::Done { from, to })) => {
            if arguments.json {
                output::json(&json!({ "name": name, "from": from, "version": to, "changed": true }))?;
            } else {
                output::data(&format!("{name}: runs at {to} from now on"))?;
                if let Some(from) = from {
                    output::say(&format!("to go back: pml upgrade {name} --to {from}"));
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn upgrade(
    context: &CommandContext,
    arguments: &UpgradeArguments,
    loader: &Loader,
) -> anyhow::Result<UpgradeOutcome> {
    let name = &arguments.name;
    let config = context.read()?;
    install::declared(&config, name)?;
    authority::ruled(context, &config, name, &[])?;
    let Some(server) = config.servers.get(name).filter(|server| !server.disabled) else {
        return Err(Refused(format!("`{name}` is disabled in its configuration")).into());
    };
    let packages = loader.packages();
    let steps = StepDisplay::new();
    steps.step(&format!("asking the registry for {name}"));
    let found = match &arguments.to {
        Some(version) => Candidate::named(context, packages, name, server, version)
            .await
            .map(|candidate| Newest {
                candidate: Some(candidate),
                left_out: None,
            }),
        None => Candidate::newest(context, packages, name, server).await,
    };
    let before = diff::present(context, packages, name, server, &steps).await;
    steps.clear();
    let (found, before) = (found?, before?);
    if let Some(left_out) = &found.left_out {
        output::note(left_out);
    }
    let from = before.package.as_ref().map(|package| package.version.clone());
    let Some(candidate) = found.candidate else {
        return Ok(UpgradeOutcome::Newest(from.unwrap_or_default()));
    };
    candidate.check(context)?;
    let step = |at: crate::loader::InstallStep| steps.step(&format!("{name}: {at}"));
    let package = packages.lock(&candidate.plan, &step).await;
    steps.clear();
    let mut package = package.map_err(|source| unresolved(name, arguments.to.as_ref(), source))?;
    if let Some(before) = &before.package {
        package.follow(before);
    }
    let command = format!("pml upgrade --yes {name}");
    let plan = Arc::new(candidate.plan.clone());
    let newcomer = Newcomer {
        name,
        server: &candidate.server,
        plan: &plan,
        line_limit: config.line_limit.0,
        beforehand: &command,
        yes: arguments.yes,
    };
    let facts = package.clone();
    let shown = newcomer.show(context, Some(before), FoundServer::Package(Box::new(package)))?;
    diff::say_facts(&facts);
    output::say("");
    let to = candidate.resolved.version.clone();
    if !agreed(arguments, &format!("Upgrade {name} to {to}?")).await? {
        return Ok(UpgradeOutcome::Declined);
    }
    let was_installed = !loader.needs_install(&candidate.plan);
    let done = install_and_declare(context, loader, &candidate, &newcomer, shown).await;
    if !matches!(done, Ok(true))
        && !was_installed
        && let Some(package) = candidate.plan.package()
        && let Ok(others) = uses::others(context, name)
        && let Err(left) = loader.packages().uninstall(name, package, &others).await
    {
        tracing::warn!(error = %left, "what was installed could not be removed again");
    }
    Ok(if done? {
        UpgradeOutcome::Done { from, to }
    } else {
        UpgradeOutcome::Declined
    })
}

async fn agreed(arguments: &UpgradeArguments, question: &str) -> anyhow::Result<bool> {
    if arguments.yes {
        return Ok(true);
    }
    match terminal::confirm(question).await? {
        TerminalReply::Yes => Ok(true),
        TerminalReply::No => Ok(false),
        TerminalReply::Nobody => Err(Refused(format!(
            "`{}` was not upgraded: there is no terminal to ask in",
            arguments.name
        )))
        .hint(format!(
            "to agree beforehand: pml upgrade --yes {}",
            arguments.name
        )),
    }
}

/// Installs and starts the new version; declares it once its tools are accepted too.
async fn install_and_declare(
    context: &CommandContext,
    loader: &Loader,
    candidate: &Candidate,
    newcomer: &Newcomer<'_>,
    shown: ShownServer,
) -> anyhow::Result<bool> {
    let name = newcomer.name;
    let introduced = match newcomer.start(context, loader, shown).await {
        Ok(introduced) => introduced,
        Err(NotIntroduced::Declined) => return Ok(false),
        Err(NotIntroduced::Other(error)) => return Err(error),
        Err(NotIntroduced::Start(source)) => {
            return Err(anyhow::Error::new(source).context(format!(
                "`{name}` stays as it was: its new version does not start"
            )));
        }
    };
    // Minutes may have passed at the questions: the rules and the declaration of now count.
    let config = context.read()?;
    authority::ruled(context, &config, name, &[])?;
    let same = |server: &Server| server.source.file == candidate.server.source.file;
    if !config.servers.get(name).is_some_and(same) {
        return Err(Refused(format!("`{name}` was declared anew meanwhile")).into());
    }
    let started = introduced.started.clone();
    let pin = newcomer.record(context, loader, introduced)?;
    candidate.declare(context)?;
    context.put_into_lock(&candidate.server.source.file, name, &pin);
    for note in started.take_notes() {
        output::note(&note);
    }
    Ok(true)
}
