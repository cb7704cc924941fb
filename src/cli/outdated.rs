//! `pml outdated`: which servers have newer versions than they are declared at.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::candidate::Candidate;
use super::terminal::StepDisplay;
use super::{CommandContext, Haste, install, interruption, output};
use crate::config::Config;
use crate::loader::process::supervisor;
use crate::loader::{Packages, plan};
use crate::protocol::DependencyName;
use crate::proxy::now;

/// Which servers to look at.
#[derive(Debug, Args)]
pub(crate) struct OutdatedArguments {
    /// The servers; without a name, all of them
    #[arg(value_name = "NAME")]
    names: Vec<DependencyName>,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// A server that has a newer version.
struct Outdated {
    name: DependencyName,
    present: String,
    newest: String,
    published: Option<String>,
}

/// What was found of all servers.
#[derive(Default)]
struct Findings {
    outdated: Vec<Outdated>,
    /// Which newer versions are too young.
    left_out: Vec<String>,
    failed: Vec<String>,
}

/// Lists the servers that have newer versions; the exit code is 1 if one has.
pub(crate) fn run(
    context: &CommandContext,
    config: &Config,
    arguments: &OutdatedArguments,
) -> anyhow::Result<ExitCode> {
    let names = install::selected(config, &arguments.names)?;
    let packages = Packages::new(
        &context.locations,
        &context.environment,
        context.history(),
        context.release_age(Haste::None),
    )
    .supervised_by(supervisor::program()?);
    let found = interruption::until_interrupted(look(context, config, &packages, &names))?;
    let Some(found) = found else {
        return Ok(ExitCode::from(1));
    };
    let Findings {
        outdated,
        left_out,
        failed,
    } = found?;
    let code = if failed.is_empty() {
        u8::from(!outdated.is_empty())
    } else {
        2
    };
    let written = if arguments.json {
        let outdated: Vec<_> = outdated
            .iter()
            .map(|server| {
                json!({
                    "name": server.name,
                    "version": server.present,
                    "newest": server.newest,
                    "published": server.published,
                })
            })
            .collect();
        output::json(&json!(outdated))
    } else {
        let lines = outdated.iter().map(|server| {
            let published = server.published.as_ref();
            let published =
                published.map_or_else(String::new, |published| format!("  (published {published})"));
            format!(
                "{:20} {:14} {}{published}",
                server.name, server.present, server.newest
            )
        });
        match lines.collect::<Vec<_>>() {
            lines if lines.is_empty() => Ok(()),
            lines => output::data(&format!(
                "{:20} {:14} NEWEST\n{}",
                "SERVER",
                "DECLARED",
                lines.join("\n")
            )),
        }
    };
    for note in &left_out {
        output::note(note);
    }
    for error in &failed {
        output::say(error);
    }
    match outdated.first() {
        Some(first) => output::say(&format!(
            "\nto see what one changes: pml diff {0}; to take it: pml upgrade {0}",
            first.name
        )),
        None if failed.is_empty() && left_out.is_empty() => {
            output::say("every server is at its newest version");
        }
        None => {}
    }
    Ok(output::verdict(code, written)?)
}

async fn look(
    context: &CommandContext,
    config: &Config,
    packages: &Packages,
    names: &[DependencyName],
) -> anyhow::Result<Findings> {
    let steps = StepDisplay::new();
    let mut findings = Findings::default();
    for name in names {
        let Some(server) = config.servers.get(name) else {
            continue;
        };
        let with_handed = context.with_handed(server);
        let context = &with_handed;
        steps.step(&format!("asking the registry for {name}"));
        let newest = match Candidate::newest(context, packages, name, server).await {
            Ok(newest) => newest,
            Err(error) => {
                let error = format!("error: {name}: {}", super::failure::text(&error));
                findings.failed.push(error);
                continue;
            }
        };
        findings.left_out.extend(newest.left_out);
        if let Some(candidate) = newest.candidate {
            let declared = plan(name, server, &context.environment)?;
            let package = declared.package();
            let present = package.map_or_else(String::new, |package| package.version().as_str().to_owned());
            findings.outdated.push(Outdated {
                name: name.clone(),
                present,
                newest: candidate.resolved.version,
                published: candidate
                    .resolved
                    .published
                    .map(|published| published.ago(now().millis())),
            });
        }
    }
    steps.clear();
    Ok(findings)
}
