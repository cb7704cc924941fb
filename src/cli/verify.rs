//! `pml verify [NAME…]`: compares what is installed with what was installed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::terminal::StepDisplay;
use super::{CommandContext, Haste, install, output};
use crate::loader::{Packages, Plan, VerifiedFiles, VerifiedInstallation, plan};
use crate::protocol::{DependencyName, Shown};

/// More names than this of one kind are counted only.
const NAMED: usize = 20;

/// What `pml verify --help` adds.
pub(super) const HELP: &str = "\
Examples:
  pml verify                           everything in the store, also what no server here uses
  pml verify time files
  pml verify --json

Reads every file of an installation, and compares it with what it was when it was installed; so the kept locks with
their digests, and the records with both. What a server wrote into its own installation is named as `added`: a file
there may be code that runs. What an older pml installed cannot be verified until it is installed anew.
Exit code: 0 everything is as it was installed, 1 something is not or cannot be verified, 2 error.";

/// What to verify, and how to print it.
#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The servers to verify; without a name, everything in the store
    #[arg(value_name = "NAME")]
    names: Vec<DependencyName>,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

/// One installation, and the servers that run it.
struct Verified {
    servers: Vec<DependencyName>,
    found: VerifiedInstallation,
}

/// Verifies installations and prints what became of each.
pub(crate) fn run(context: &CommandContext, arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let config = context.read()?;
    for name in &arguments.names {
        install::declared(&config, name)?;
    }
    let packages = Packages::new(
        &context.locations,
        &context.environment,
        context.history(),
        context.release_age(Haste::None),
    );
    let environment = context.planning_environment();
    let plans: Vec<Plan> = config
        .servers
        .iter()
        .filter_map(|(name, server)| plan(name, server, &environment).ok())
        .collect();
    let servers_of = |directory: &Path| -> Vec<DependencyName> {
        let using = plans
            .iter()
            .filter(|plan| packages.is_installation(plan, directory));
        using.map(|plan| plan.dependency().clone()).collect()
    };
    let names = &arguments.names;
    let steps = StepDisplay::new();
    let wanted = |directory: &Path| {
        let is_wanted = names.is_empty() || servers_of(directory).iter().any(|name| names.contains(name));
        if is_wanted && !arguments.json {
            steps.step(&format!("reading {}", context.path(directory)));
        }
        is_wanted
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let found = runtime.block_on(packages.verify(wanted));
    steps.clear();
    let found = found?;
    let verified: Vec<Verified> = found
        .into_iter()
        .map(|found| Verified {
            servers: servers_of(&found.directory),
            found,
        })
        .collect();
    let is_found = |name: &&DependencyName| verified.iter().any(|verified| verified.servers.contains(name));
    let absent: Vec<&DependencyName> = names.iter().filter(|name| !is_found(name)).collect();
    for name in &absent {
        output::note(&format!("`{name}` is not installed"));
    }
    let is_intact = absent.is_empty() && verified.iter().all(|verified| verified.found.is_intact());
    let code = u8::from(!is_intact);
    let written = if arguments.json {
        let installations: Vec<Value> = verified.iter().map(Verified::json).collect();
        output::json(&json!({ "intact": is_intact, "installations": installations }))
    } else if verified.is_empty() {
        output::say("nothing is installed");
        Ok(())
    } else {
        let lines: Vec<String> = verified.iter().flat_map(Verified::lines).collect();
        output::data(&lines.join("\n"))
    };
    if !is_intact && !arguments.json {
        let broken = verified.iter().filter(|verified| !verified.found.is_intact());
        let broken: BTreeSet<_> = broken.flat_map(|verified| &verified.servers).collect();
        for name in broken {
            output::say(&format!(
                "to install it anew: pml uninstall {name}, then pml install {name}"
            ));
        }
        for name in &absent {
            output::say(&format!("to install it: pml install {name}"));
        }
    }
    Ok(output::verdict(code, written)?)
}

impl Verified {
    /// Says what became of the installation: a line, and one more for each fault.
    fn lines(&self) -> Vec<String> {
        let VerifiedInstallation {
            directory,
            package,
            files,
            faults,
        } = &self.found;
        let package = match package {
            Some(package) => Shown::line(package).to_string(),
            None => Shown::path(directory),
        };
        let title = match self.servers.as_slice() {
            [] => format!("{package} (no server here)"),
            servers => {
                let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
                format!("{}: {package}", servers.join(", "))
            }
        };
        let state = match (files, faults.is_empty()) {
            (VerifiedFiles::Unchanged, true) => "ok",
            (VerifiedFiles::Unchanged, false) => "its files are as they were installed, but",
            (VerifiedFiles::Different(_), _) => "CHANGED since it was installed",
            (VerifiedFiles::Missing, _) => "MISSING",
            (VerifiedFiles::Unverifiable, _) => {
                "not verifiable: an older pml installed it, or it has too many files"
            }
        };
        let mut lines = vec![format!("{title}: {state}")];
        if let VerifiedFiles::Different(difference) = files {
            for (word, names) in [
                ("changed", &difference.changed),
                ("missing", &difference.missing),
                ("added", &difference.added),
            ] {
                let shown = names.iter().take(NAMED);
                lines.extend(shown.map(|name| format!("  {word}: {}", Shown::line(name))));
                if names.len() > NAMED {
                    lines.push(format!("  {word}: {} more", names.len() - NAMED));
                }
            }
        }
        lines.extend(faults.iter().map(|fault| format!("  {}", Shown::line(fault))));
        lines
    }

    fn json(&self) -> Value {
        let VerifiedInstallation {
            directory,
            package,
            files,
            faults,
        } = &self.found;
        let mut value = json!({
            "servers": self.servers,
            "package": package,
            "directory": directory.to_string_lossy(),
            "state": match files {
                VerifiedFiles::Unchanged => "ok",
                VerifiedFiles::Different(_) => "changed",
                VerifiedFiles::Missing => "missing",
                VerifiedFiles::Unverifiable => "notVerifiable",
            },
            "intact": self.found.is_intact(),
            "faults": faults,
        });
        if let VerifiedFiles::Different(difference) = files {
            let named = |names: &[String]| names.iter().take(NAMED).cloned().collect::<Vec<_>>();
            value["changed"] = json!(named(&difference.changed));
            value["missing"] = json!(named(&difference.missing));
            value["added"] = json!(named(&difference.added));
            value["counts"] = json!({
                "changed": difference.changed.len(),
                "missing": difference.missing.len(),
                "added": difference.added.len(),
            });
        }
        value
    }
}
