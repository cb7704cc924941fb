//! `pml lock [NAME…]`: writes what every declared server is into `.pml.lock`, to be committed and reviewed.
//!
//! Resolves packages with everything that belongs to them; fetches and runs nothing of them. Tools are those that the
//! user accepted: what was never started has none in the lock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::candidate::{Candidate, too_young_for};
use super::server_pins::lock_beside;
use super::terminal::{self, StepDisplay};
use super::{CommandContext, Haste, install, interruption, output, person};
use crate::config::{Config, Server};
use crate::loader::process::supervisor;
use crate::loader::{Packages, Plan, plan};
use crate::pins::{LaunchSurroundings, PackagePin, Pin, lock_path};
use crate::protocol::DependencyName;
use crate::proxy::now;

/// What to lock.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word that can be typed")]
pub(crate) struct LockArguments {
    /// The servers to lock; without a name, all of them
    #[arg(value_name = "NAME")]
    names: Vec<DependencyName>,
    /// Give this server its newest version, in the configuration and in the lock; installs nothing
    #[arg(long, value_name = "NAME", conflicts_with = "names")]
    upgrade: Vec<DependencyName>,
    /// Give every server its newest version
    #[arg(long, conflicts_with_all = ["names", "upgrade"])]
    all: bool,
    /// Take versions also if they were published too short a time ago ("minReleaseAgeDays")
    #[arg(long)]
    now: bool,
    /// Change nothing; the exit code is 1 if a lock would change
    #[arg(long, conflicts_with_all = ["upgrade", "all"])]
    check: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Resolves servers and writes the locks beside the files that declare them.
pub(crate) fn run(
    context: &CommandContext,
    config: &Config,
    arguments: &LockArguments,
) -> anyhow::Result<ExitCode> {
    let wanted = if arguments.upgrade.is_empty() {
        &arguments.names
    } else {
        &arguments.upgrade
    };
    let names = install::selected(config, wanted)?;
    let haste = Haste::of(arguments.now);
    person::required_for_haste(context, "lock", haste)?;
    let packages = Packages::new(
        &context.locations,
        &context.environment,
        context.history(),
        context.release_age(haste),
    )
    .supervised_by(supervisor::program()?);
    packages.tell_waiting(terminal::tell);
    let done = interruption::until_interrupted(lock_all(context, arguments, &packages, &names))?;
    let Some(done) = done else {
        output::say("interrupted; no lock was changed");
        return Ok(ExitCode::from(1));
    };
    done
}

async fn lock_all(
    context: &CommandContext,
    arguments: &LockArguments,
    packages: &Packages,
    names: &[DependencyName],
) -> anyhow::Result<ExitCode> {
    let upgrades = arguments.all || !arguments.upgrade.is_empty();
    let mut pins: BTreeMap<PathBuf, BTreeMap<DependencyName, Pin>> = BTreeMap::new();
    let mut left_out = Vec::new();
    let steps = StepDisplay::new();
    for name in names {
        // Read for each: an upgrade before it may have changed the file.
        let config = context.read()?;
        let Some(server) = config.servers.get(name).cloned() else {
            continue;
        };
        let with_handed = context.with_handed(&server);
        let context = &with_handed;
        let found = plan(name, &server, &context.environment)?;
        steps.step(&format!("resolving {name}"));
        let mut chosen = None;
        let (server, plan) = match (upgrades, found.package()) {
            (true, Some(_)) => {
                let newest = Candidate::newest(context, packages, name, &server).await;
                let newest = newest.inspect_err(|_| steps.clear())?;
                left_out.extend(newest.left_out);
                match newest.candidate {
                    None => (server, found),
                    Some(candidate) => {
                        let (server, plan) = (candidate.server.clone(), candidate.plan.clone());
                        chosen = Some(candidate);
                        (server, plan)
                    }
                }
            }
            (true | false, _) => (server, found),
        };
        let upgrade = if chosen.is_some() { "--upgrade " } else { "" };
        let all_the_same = format!("lock --now {upgrade}{name}");
        let pin = pin_of(context, packages, &server, &plan, all_the_same, &steps).await;
        let pin = pin.inspect_err(|_| steps.clear())?;
        // Last: a version of which not everything is known is not declared.
        if let Some(candidate) = chosen {
            candidate.declare(context).inspect_err(|_| steps.clear())?;
        }
        pins.entry(server.source.file.clone())
            .or_default()
            .insert(name.clone(), pin);
    }
    steps.clear();
    for note in &left_out {
        output::note(note);
    }
    let whole = arguments.names.is_empty() && !upgrades;
    let mut changed = Vec::new();
    for (file, pins) in &pins {
        let declared: Vec<DependencyName> = declared_in(&context.read()?, file);
        let change = |mut lock: crate::pins::LockFile| {
            lock.servers
                .extend(pins.iter().map(|(name, pin)| (name.clone(), pin.clone())));
            if whole {
                // What is no longer declared is not locked either.
                lock.servers.retain(|name, _| declared.contains(name));
            }
            lock
        };
        let path = lock_path(file);
        if arguments.check {
            let before = lock_beside(file)?;
            if change(before.clone()) != before {
                changed.push(path);
            }
            continue;
        }
        let edited = context.edit_lock(file, change)?;
        output::warn(&edited.durability);
        if edited.changed() {
            changed.push(path);
        }
    }
    report(context, arguments, &pins, &changed)
}

fn report(
    context: &CommandContext,
    arguments: &LockArguments,
    pins: &BTreeMap<PathBuf, BTreeMap<DependencyName, Pin>>,
    changed: &[PathBuf],
) -> anyhow::Result<ExitCode> {
    let code = u8::from(arguments.check && !changed.is_empty());
    let servers = pins.values().flatten();
    if arguments.json {
        let servers: Vec<_> = servers
            .map(|(name, pin)| {
                let package = pin.package.as_ref();
                json!({
                    "name": name,
                    "package": package.map(|package| &package.name),
                    "version": package.map(|package| &package.version),
                    "published": package.and_then(|package| package.published),
                    "age": package.and_then(age),
                    "packages": package.map(|package| package.packages.len()),
                    "tools": pin.tools.as_ref().map(BTreeMap::len),
                })
            })
            .collect();
        let changed: Vec<_> = changed.iter().map(|path| path.to_string_lossy()).collect();
        let written = output::json(&json!({ "servers": servers, "changed": changed }));
        return Ok(output::verdict(code, written)?);
    }
    let mut unseen = Vec::new();
    for (name, pin) in servers {
        let what = match &pin.package {
            Some(package) => format!(
                "{}@{}, {} packages",
                package.name,
                package.version,
                package.packages.len()
            ),
            None => "a command or an address".to_owned(),
        };
        let tools = if let Some(tools) = &pin.tools {
            format!("{} tools", tools.len())
        } else {
            unseen.push(name.to_string());
            "tools not known yet".to_owned()
        };
        output::say(&format!("{name}: {what}, {tools}"));
    }
    for path in changed {
        let path = context.path(path);
        output::say(&if arguments.check {
            format!("{path} is not up to date")
        } else {
            format!("wrote {path}; commit it beside the configuration")
        });
    }
    if changed.is_empty() {
        output::say("every lock is up to date");
    }
    if !unseen.is_empty() {
        output::note(&format!(
            "the tools of {} are learned when they first run; then run `pml lock` again",
            unseen.join(", ")
        ));
    }
    if arguments.check && !changed.is_empty() {
        output::say("\nto write it: pml lock");
    }
    Ok(ExitCode::from(code))
}

/// Returns what a server is: its package as the registry has it, its tools as they were accepted or locked before.
///
/// `all_the_same` is the command that locks what is too young.
async fn pin_of(
    context: &CommandContext,
    packages: &Packages,
    server: &Server,
    plan: &Plan,
    all_the_same: String,
    steps: &StepDisplay,
) -> anyhow::Result<Pin> {
    let name = plan.dependency();
    let package = match plan.package() {
        Some(_) => {
            let step = |at: crate::loader::InstallStep| steps.step(&format!("{name}: {at}"));
            let locked = packages.lock(plan, &step).await;
            Some(locked.map_err(|source| too_young_for(name, all_the_same, source))?)
        }
        None => None,
    };
    let accepted = context.accepted(name, server)?;
    let accepted = accepted.as_ref().and_then(|accepted| accepted.of(plan.digest()));
    let tools = accepted.and_then(|accepted| accepted.pin.tools.clone());
    let tools = if tools.is_some() {
        tools
    } else {
        // What a colleague learned of this very package stays.
        let locked = lock_beside(&server.source.file)?.servers.remove(name);
        let is_same = |locked: &Pin| version(locked.package.as_ref()) == version(package.as_ref());
        locked.filter(is_same).and_then(|locked| locked.tools)
    };
    let pin = Pin {
        launch: server.launch.words(),
        surroundings: Some(LaunchSurroundings::shared_of(server)),
        package,
        tools,
    };
    Ok(pin.shared())
}

/// Says how long ago a version was published, where the registry tells.
pub(super) fn age(package: &PackagePin) -> Option<String> {
    package.published.map(|published| published.ago(now().millis()))
}

fn version(package: Option<&PackagePin>) -> Option<(&str, &str)> {
    package.map(|package| (package.name.as_str(), package.version.as_str()))
}

fn declared_in(config: &Config, file: &Path) -> Vec<DependencyName> {
    let servers = config.servers.iter();
    servers
        .filter(|(_, server)| server.source.file == file)
        .map(|(name, _)| name.clone())
        .collect()
}
