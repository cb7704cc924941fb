//! `pml pending`: what waits for a person, the oldest first; `pml pending CODE`: one ask with its arguments whole.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::desk::{self, TerminalDesk};
use super::{CommandContext, output};
use crate::proxy::now;
use crate::workflow::{Ask, Workflow};

/// Which, and how to print it.
#[derive(Debug, Args)]
pub(crate) struct PendingArguments {
    /// Show this ask alone, with its arguments whole: its five letters, or the beginning of its id
    #[arg(value_name = "CODE")]
    code: Option<String>,
    /// Print what waits as JSON; times are milliseconds since 1970
    #[arg(long)]
    json: bool,
}

/// Prints what waits, with everything a person must see before they decide.
pub(crate) fn run(context: &CommandContext, arguments: &PendingArguments) -> anyhow::Result<ExitCode> {
    let now = now();
    let inbox = TerminalDesk::open(context)?;
    let pending = match &arguments.code {
        Some(code) => {
            let workflow = inbox.named(code)?;
            desk::still_open(&workflow)?;
            vec![workflow]
        }
        None => inbox.pending()?,
    };
    if arguments.json {
        let pending: Vec<_> = pending.iter().map(whole).collect();
        output::json(&json!({ "pending": pending }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if pending.is_empty() {
        output::say("nothing waits for an answer");
        return Ok(ExitCode::SUCCESS);
    }
    let summary: Vec<_> = pending
        .iter()
        .map(|workflow| {
            let summary = match &arguments.code {
                Some(_) => workflow.full_summary(now),
                None => workflow.summary(now),
            };
            format!("{summary}\n  {}", next_step(workflow))
        })
        .collect();
    output::data(&summary.join("\n\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn whole(workflow: &Workflow) -> serde_json::Value {
    let mut value = desk::json(workflow);
    match &workflow.ask {
        Ask::Install { dependency }
        | Ask::Connect { dependency }
        | Ask::Permit { dependency }
        | Ask::Integrity { dependency } => {
            value["dependency"] = json!(dependency);
        }
        Ask::Use { .. } => {}
        Ask::Trust { file } => value["projectFile"] = json!(file),
        Ask::Questions { questions } => value["questions"] = json!(questions),
    }
    if let Some(arguments) = workflow.whole_arguments() {
        value["arguments"] = json!(arguments);
    }
    value
}

fn next_step(workflow: &Workflow) -> String {
    let code = &workflow.code;
    match &workflow.ask {
        Ask::Questions { .. } => format!("answer     pml answer {code}"),
        Ask::Install { .. }
        | Ask::Connect { .. }
        | Ask::Permit { .. }
        | Ask::Use { .. }
        | Ask::Trust { .. }
        | Ask::Integrity { .. } => {
            format!("decide     pml approve {code}, or pml refuse {code}")
        }
    }
}
