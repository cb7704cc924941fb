//! `pml gc`: removes the packages that no configuration declares any more.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::failure::{Hinted as _, Refused};
use super::terminal::{self, TerminalReply};
use super::{CommandContext, Haste, interruption, output, uses};
use crate::loader::{Packages, StoredPackage, Uninstalled};
use crate::protocol::DependencyName;

/// How to go about it.
#[derive(Debug, Args)]
pub(crate) struct GcArguments {
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Shows what nothing declares, and removes it if the person agrees.
pub(crate) fn run(context: &CommandContext, arguments: &GcArguments) -> anyhow::Result<ExitCode> {
    let packages = Packages::new(
        &context.locations,
        &context.environment,
        context.history(),
        context.release_age(Haste::None),
    );
    let unused = packages.unused(&uses::declared(context)?);
    if unused.is_empty() || arguments.dry_run {
        return told(arguments, &unused, &[]);
    }
    for stored in &unused {
        output::say(&line(stored));
    }
    let done = interruption::until_interrupted(async {
        let reply = if arguments.yes {
            TerminalReply::Yes
        } else {
            terminal::confirm(&format!("Remove {}?", megabytes(total(&unused)))).await?
        };
        match reply {
            TerminalReply::Yes => removed(context, &packages, &unused).await.map(Some),
            TerminalReply::No => Ok(None),
            TerminalReply::Nobody => Err(Refused(
                "nothing was removed: there is no terminal to ask in".to_owned(),
            ))
            .hint("to agree beforehand: pml gc --yes"),
        }
    })?
    .transpose()?
    .flatten();
    let Some(removed) = done else {
        output::say("nothing was removed");
        return Ok(ExitCode::from(1));
    };
    told(arguments, &unused, &removed)
}

async fn removed(
    context: &CommandContext,
    packages: &Packages,
    unused: &[StoredPackage],
) -> anyhow::Result<Vec<String>> {
    // Under this name stays what a server wrote into its package.
    let name: DependencyName = "unused".parse()?;
    // Read again: something may have been declared while the person thought.
    let uses = uses::declared(context)?;
    let mut removed = Vec::new();
    for stored in unused {
        let done = packages.uninstall(&name, &stored.package, &uses).await?;
        if let Uninstalled::Removed { kept, .. } = done {
            removed.push(stored.package.at(&stored.version));
            for kept in kept {
                output::note(&format!("what the server wrote is kept in {}", kept.describe()));
            }
        }
    }
    Ok(removed)
}

fn told(arguments: &GcArguments, unused: &[StoredPackage], removed: &[String]) -> anyhow::Result<ExitCode> {
    if arguments.json {
        let one = |stored: &StoredPackage| -> Value {
            json!({ "package": stored.package.at(&stored.version), "bytes": stored.bytes })
        };
        output::json(&json!({
            "unused": unused.iter().map(one).collect::<Vec<_>>(),
            "bytes": total(unused),
            "removed": removed,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if unused.is_empty() {
        output::say("every installed package is declared");
    } else if arguments.dry_run {
        let lines: Vec<String> = unused.iter().map(line).collect();
        output::data(&lines.join("\n"))?;
        output::say(&format!(
            "{} would be removed; to remove it: pml gc",
            megabytes(total(unused))
        ));
    } else {
        output::say(&format!("removed {} of {} packages", removed.len(), unused.len()));
    }
    Ok(ExitCode::SUCCESS)
}

fn line(stored: &StoredPackage) -> String {
    format!(
        "{:>9}  {}",
        megabytes(stored.bytes),
        stored.package.at(&stored.version)
    )
}

fn total(unused: &[StoredPackage]) -> u64 {
    unused.iter().map(|stored| stored.bytes).sum()
}

/// Says a size as people compare them.
pub(super) fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}
