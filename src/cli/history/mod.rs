//! `pml history`: what was asked and what came of it; whether the record of everything is as it was written.

mod asks;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{CommandContext, output, person};
use crate::history::{Fault, Verdict, prune, verify};
use crate::protocol::Shown;
use crate::proxy::now;

/// What to do with the history; alone it is listed.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HistoryArguments {
    #[command(flatten)]
    asks: asks::AskListArguments,
    #[command(subcommand)]
    command: Option<HistoryCommand>,
}

#[derive(Debug, Subcommand)]
enum HistoryCommand {
    /// Find lines of the record that were removed, edited or moved
    #[command(after_help = "Exit code: 0 intact, 1 broken, 2 error.")]
    Verify(VerifyArguments),
    /// Remove old parts of the record, and record that
    #[command(after_help = "\
Examples:
  pml history prune --older 90d        the parts whose last line is older than 90 days

A part holds up to 30 days or 8 MiB; only whole parts are removed.")]
    Prune(PruneArguments),
}

#[derive(Debug, Args)]
struct VerifyArguments {
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PruneArguments {
    /// How old a part must be, such as `90d` or `12h`
    #[arg(long, value_name = "AGE", value_parser = age)]
    older: Duration,
    /// Print what was removed as JSON
    #[arg(long)]
    json: bool,
}

/// Lists what was asked, verifies the record or prunes it.
pub(crate) fn run(context: &CommandContext, arguments: &HistoryArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        None => asks::list(context, &arguments.asks),
        Some(HistoryCommand::Verify(arguments)) => verified(context, arguments),
        Some(HistoryCommand::Prune(arguments)) => {
            // What an agent has done is not its own to remove, whatever `approvals.by` says.
            person::required_to_accept(context, "history prune")?;
            pruned(context, arguments)
        }
    }
}

fn verified(context: &CommandContext, arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let directory = context.locations.history();
    let verdict = verify(&directory)?;
    let code = u8::from(!verdict.is_intact());
    if arguments.json {
        let written = output::json(&json!({
            "directory": Shown::path(&directory),
            "intact": verdict.is_intact(),
            "parts": verdict.parts,
            "lines": verdict.lines,
            "faults": verdict.faults,
            "notes": verdict.notes,
        }));
        return Ok(output::verdict(code, written)?);
    }
    let shown = context.path(&directory);
    for note in &verdict.notes {
        output::note(&place(note));
    }
    let Verdict { parts, lines, .. } = verdict;
    if verdict.faults.is_empty() {
        output::say(&match lines {
            0 => format!("nothing is recorded in {shown} yet"),
            _ => format!("intact: {lines} lines in {parts} part(s) in {shown}"),
        });
        return Ok(ExitCode::SUCCESS);
    }
    let faults: Vec<String> = verdict.faults.iter().map(place).collect();
    let written = output::data(&faults.join("\n"));
    output::say(&format!("broken: the record in {shown} is not as pml wrote it"));
    Ok(output::verdict(code, written)?)
}

/// Says what is wrong, after the place as editors open it.
fn place(fault: &Fault) -> String {
    match fault.line {
        0 => format!("{}: {}", fault.file, fault.what),
        line => format!("{}:{line}: {}", fault.file, fault.what),
    }
}

fn pruned(context: &CommandContext, arguments: &PruneArguments) -> anyhow::Result<ExitCode> {
    let directory = context.locations.history();
    let now = now();
    let pruned = prune(&directory, now.millis(), now.minus(arguments.older).millis())?;
    if arguments.json {
        output::json(&json!({
            "directory": Shown::path(&directory),
            "removedParts": pruned.parts,
            "removedLines": pruned.lines,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = context.path(&directory);
    output::say(&match pruned.parts {
        0 => format!("no part in {shown} is that old; nothing was removed"),
        parts => format!(
            "removed {parts} part(s) with {} lines from {shown}; the record says so",
            pruned.lines
        ),
    });
    Ok(ExitCode::SUCCESS)
}

/// Reads a number of days or hours.
fn age(text: &str) -> Result<Duration, String> {
    let hours = |number: &str, each: u64| number.parse::<u32>().ok().map(|number| u64::from(number) * each);
    let read = match text.char_indices().next_back() {
        Some((at, 'd')) => hours(&text[..at], 24),
        Some((at, 'h')) => hours(&text[..at], 1),
        _ => None,
    };
    read.map(Duration::from_hours)
        .ok_or_else(|| "an age is a number of days or hours, such as `90d` or `12h`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_of_days_or_hours() {
        assert_eq!(age("90d"), Ok(Duration::from_hours(90 * 24)));
        assert_eq!(age("12h"), Ok(Duration::from_hours(12)));
        for text in ["", "d", "90", "-1d", "1m", "1.5d", "99999999999d", "9ü"] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
