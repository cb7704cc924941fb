//! `pml pending`: what waits for a person, the oldest first.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{Ground, inbox, output};
use crate::proxy::now;
use crate::workflow::{Ask, Workflow};

/// How to print it.
#[derive(Debug, Args)]
pub(crate) struct PendingArguments {
    /// Print what waits as JSON; times are milliseconds since 1970
    #[arg(long)]
    json: bool,
}

/// Prints what waits, with everything a person must see before they decide.
pub(crate) fn run(ground: &Ground, arguments: &PendingArguments) -> anyhow::Result<ExitCode> {
    let now = now();
    let pending = inbox::open(ground)?.pending(now)?;
    if arguments.json {
        let pending: Vec<_> = pending.iter().map(whole).collect();
        output::json(&json!({ "pending": pending }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if pending.is_empty() {
        output::say("nothing waits for an answer");
        return Ok(ExitCode::SUCCESS);
    }
    let told: Vec<_> = pending
        .iter()
        .map(|workflow| format!("{}\n  {}", workflow.told(now), next_step(workflow)))
        .collect();
    output::data(&told.join("\n\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn whole(workflow: &Workflow) -> serde_json::Value {
    let mut value = inbox::json(workflow);
    match &workflow.ask {
        Ask::Install { dependency } | Ask::Connect { dependency } | Ask::Permit { dependency } => {
            value["dependency"] = json!(dependency);
        }
        Ask::Use => {}
        Ask::Questions { questions } => value["questions"] = json!(questions),
    }
    if let Some(arguments) = workflow.shown_arguments() {
        value["arguments"] = json!(arguments);
    }
    value
}

fn next_step(workflow: &Workflow) -> String {
    let code = &workflow.code;
    match &workflow.ask {
        Ask::Questions { .. } => format!("answer     pml answer {code}"),
        Ask::Install { .. } | Ask::Connect { .. } | Ask::Permit { .. } | Ask::Use => {
            format!("decide     pml approve {code}, or pml refuse {code}")
        }
    }
}
