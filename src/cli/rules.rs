//! `pml rules`: every rule of every file, the strongest first.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{CommandContext, output, rule};
use crate::config;
use crate::permissions::by_strength;

/// How to print them.
#[derive(Debug, Args)]
pub(crate) struct RulesArguments {
    /// Print the rules as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the rules so that the first one that covers a tool decides.
pub(crate) fn run(context: &CommandContext, arguments: &RulesArguments) -> anyhow::Result<ExitCode> {
    let config = config::read(&context.files())?;
    let mut rules: Vec<_> = config.rules.iter().collect();
    // Stable: of equally strong rules the earlier one counts.
    rules.sort_by(|one, other| by_strength(other, one));
    if arguments.json {
        let rules: Vec<_> = rules.into_iter().map(output::rule_json).collect();
        output::json(&json!({ "rules": rules }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = rules
        .iter()
        .map(|rule| rule.pattern.as_str().chars().count())
        .max()
        .unwrap_or(0);
    let lines: Vec<_> = rules
        .iter()
        .map(|rule| {
            format!(
                "{:5}  {:width$}  {}",
                rule.list.key(),
                rule.pattern.as_str(),
                context.place(rule.source.as_ref())
            )
        })
        .collect();
    output::data(&lines.join("\n"))?;
    for stray in rules
        .iter()
        .filter_map(|rule| rule::stray(&config, &rule.pattern))
    {
        output::note(&stray);
    }
    Ok(ExitCode::SUCCESS)
}
