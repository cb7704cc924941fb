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
use super::install_scripts::{self, ScriptsQuestion};
use super::output::say_lines;
use super::terminal::{self, StepDisplay, TerminalReply};
use super::{CommandContext, Haste, authority, diff, install, interruption, output, uses};
use crate::config::Server;
use crate::loader::{Content, Lease, LoadError, Loader, Plan, Started};
use crate::pins::{PackagePin, Pin, ToolNames, difference, tool_changes};
use crate::protocol::{DependencyName, LaunchApproval};
use crate::proxy::now;
use crate::workflow::{ApprovedLaunch, Place};

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
    show_package(&candidate, &before, &package);
    let to = candidate.resolved.version.clone();
    if !agreed(arguments, &format!("Upgrade {name} to {to}?")).await? {
        return Ok(UpgradeOutcome::Declined);
    }
    let was_installed = !loader.needs_install(&candidate.plan);
    let done = install_and_declare(context, arguments, loader, &candidate, &before, package).await;
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

/// Shows what another version changes, before anything of it is fetched.
fn show_package(candidate: &Candidate, before: &Pin, package: &PackagePin) {
    let now_pin = Pin {
        package: Some(package.clone()),
        ..Pin::default()
    };
    let changes = difference(before, &now_pin);
    output::say(&format!("{}:", candidate.name));
    // No tools yet: they are known once it runs.
    let namesakes = ToolNames::default().beside(&candidate.name);
    say_lines(changes.iter().flat_map(|change| change.lines(&namesakes)));
    diff::say_facts(package);
    output::say("");
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
    arguments: &UpgradeArguments,
    loader: &Loader,
    candidate: &Candidate,
    before: &Pin,
    package: PackagePin,
) -> anyhow::Result<bool> {
    let name = &arguments.name;
    let expected = Content {
        scripts: context.accepted_scripts(name, &candidate.server)?,
        ..Content::of(package.clone())
    };
    let plan = Arc::new(candidate.plan.clone());
    let limit = context.read()?.line_limit.0;
    let question = ScriptsQuestion {
        name,
        server: &candidate.server,
        beforehand: &format!("pml upgrade --yes {name}"),
        yes: arguments.yes,
    };
    let started = start(loader, candidate, &plan, limit, &expected).await;
    let found = started
        .as_ref()
        .err()
        .and_then(|error| error.unaccepted_scripts().cloned());
    let (started, scripts) = match found {
        Some(found) => {
            let agreed = install_scripts::agreed(context, question, &found).await?;
            let Some(agreed) = agreed else {
                return Ok(false);
            };
            let expected = Content {
                scripts: Some(agreed.digest.clone()),
                ..expected
            };
            let started = start(loader, candidate, &plan, limit, &expected).await;
            (started, Some(agreed))
        }
        None => (started, None),
    };
    let started: Started = started.map_err(|source| {
        anyhow::Error::new(source).context(format!(
            "`{name}` stays as it was: its new version does not start"
        ))
    })?;
    let known = started.known();
    let changes = before
        .tools
        .as_ref()
        .map(|before| tool_changes(before, &known.tool_pins()))
        .unwrap_or_default();
    if !changes.is_empty() {
        output::say("its tools, which are known now:");
        let namesakes = context.tool_names(&context.read()?).beside(name);
        say_lines(changes.iter().flat_map(|change| change.lines(&namesakes)));
        output::say("");
        if !agreed(arguments, "Accept its tools as they are now?").await? {
            return Ok(false);
        }
    }
    // Minutes may have passed at the questions: the rules and the declaration of now count.
    let config = context.read()?;
    authority::ruled(context, &config, name, &[])?;
    let same = |server: &Server| server.source.file == candidate.server.source.file;
    if !config.servers.get(name).is_some_and(same) {
        return Err(Refused(format!("`{name}` was declared anew meanwhile")).into());
    }
    approve(context, &plan, &package)?;
    let pin = context.accept(&candidate.server, &plan, Some(package), &known)?;
    if let Some(scripts) = scripts {
        context.accept_scripts(name, &candidate.server, scripts)?;
    }
    candidate.declare(context)?;
    context.put_into_lock(&candidate.server.source.file, name, &pin);
    for note in started.take_notes() {
        output::note(&note);
    }
    Ok(true)
}

/// Installs and starts a version that is not declared yet.
async fn start(
    loader: &Loader,
    candidate: &Candidate,
    plan: &Arc<Plan>,
    limit: usize,
    expected: &Content,
) -> Result<Started, Arc<LoadError>> {
    let steps = StepDisplay::new();
    let shown = steps.clone();
    let telling: crate::loader::Steps = Box::new(move |text| shown.step(&text));
    let started = loader
        .start(
            plan,
            &candidate.server,
            limit,
            expected,
            Lease::Standing,
            Some(telling),
        )
        .await;
    steps.clear();
    started
}

fn approve(context: &CommandContext, plan: &Plan, package: &PackagePin) -> anyhow::Result<()> {
    let approved = ApprovedLaunch {
        launch: plan.digest().clone(),
        approval: LaunchApproval {
            dependency: plan.dependency().clone(),
            version: Some(package.version.clone()),
            integrity: package.integrity.clone(),
            package: plan.package().map(ToString::to_string),
            lock: package.package_lock.clone(),
            at_unix_ms: u64::try_from(now().millis()).unwrap_or_default(),
        },
    };
    Place::of(&context.locations).open()?.approve_launch(&approved)?;
    Ok(())
}
