//! `pml history` alone: what was asked, what came of it, and on which road the answer came.
//!
//! Never shows what a call was given; what people said to questions stands in `--json` only.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::desk::{self, TerminalDesk};
use crate::cli::{CommandContext, output};
use crate::protocol::Shown;
use crate::proxy::now;
use crate::workflow::{Answer, Ask, Provenance, Scope, State, Timestamp, Workflow};

/// How much of it, and how to print it.
#[derive(Debug, Args)]
pub(in crate::cli) struct AskListArguments {
    /// Print it as JSON; times are milliseconds since 1970
    #[arg(long)]
    pub(super) json: bool,
    /// Only the newest N
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// Prints every workflow that is still kept, the newest first.
pub(super) fn list(context: &CommandContext, arguments: &AskListArguments) -> anyhow::Result<ExitCode> {
    let now = now();
    let kept = TerminalDesk::open(context)?.recent(arguments.limit.unwrap_or(usize::MAX))?;
    if arguments.json {
        let kept: Vec<_> = kept.iter().map(|workflow| whole(workflow, now)).collect();
        output::json(&json!({ "workflows": kept }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if kept.is_empty() {
        output::say("nothing was asked lately");
        return Ok(ExitCode::SUCCESS);
    }
    let tools: Vec<String> = kept
        .iter()
        .map(|workflow| Shown::line(&workflow.call.tool.to_string()).to_string())
        .collect();
    let width = tools.iter().map(|tool| tool.chars().count()).max().unwrap_or(0);
    let width = width.max("TOOL".len());
    let mut lines = vec![format!(
        "{:20}  {:5}  {:width$}  {:9}  {:12}  SCOPE",
        "ASKED", "CODE", "TOOL", "STATE", "BY"
    )];
    for (workflow, tool) in kept.iter().zip(&tools) {
        let by = answered(&workflow.state).map_or_else(|| "-".to_owned(), |(_, by, _)| by.to_string());
        let line = format!(
            "{:20}  {:5}  {tool:width$}  {:9}  {by:12}  {}",
            workflow.created_at.to_string(),
            workflow.code.as_str(),
            word(workflow, now),
            scope(&workflow.state).map_or("-", |scope| reach(&workflow.ask, scope)),
        );
        lines.push(line);
    }
    output::data(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn whole(workflow: &Workflow, now: Timestamp) -> Value {
    let mut value = desk::json(workflow);
    value["state"] = json!(word(workflow, now));
    let Some((answer, by, at)) = answered(&workflow.state) else {
        return value;
    };
    // The decision with its scope, its reason or its answers.
    value["answer"] = json!(answer);
    value["by"] = json!(by);
    value["answeredAt"] = json!(at);
    if let State::Taken { taken_at, .. } = &workflow.state {
        value["usedAt"] = json!(taken_at);
    }
    value
}

/// Names the state; a deadline counts also before a sweep has marked it.
fn word(workflow: &Workflow, now: Timestamp) -> &'static str {
    let over = !workflow.is_live_at(now);
    match &workflow.state {
        State::Answered {
            answer: Answer::Refuse { .. },
            ..
        } => "refused",
        State::Taken { .. } => "used",
        State::Withdrawn => "withdrawn",
        State::Expired => "expired",
        State::Pending | State::Answered { .. } if over => "expired",
        State::Pending => "pending",
        State::Answered {
            answer: Answer::Answers { .. },
            ..
        } => "answered",
        State::Answered { .. } => "approved",
    }
}

fn answered(state: &State) -> Option<(&Answer, &Provenance, Timestamp)> {
    match state {
        State::Answered { answer, by, at } | State::Taken { answer, by, at, .. } => Some((answer, by, *at)),
        State::Pending | State::Expired | State::Withdrawn => None,
    }
}

fn scope(state: &State) -> Option<Scope> {
    match answered(state)?.0 {
        Answer::Approve { scope } => Some(*scope),
        Answer::Refuse { .. } | Answer::Answers { .. } => None,
    }
}

/// Says how far an approval reaches; that of a server reaches further than that of one call.
fn reach(ask: &Ask, scope: Scope) -> &'static str {
    match (ask, scope) {
        (Ask::Integrity { dependency }, _) if dependency.awaits_contents() => "once",
        (Ask::Install { .. } | Ask::Connect { .. }, Scope::Once) | (Ask::Integrity { .. }, _) => "server",
        (Ask::Trust { .. }, _) => "file",
        (Ask::Permit { .. } | Ask::Use { .. } | Ask::Questions { .. }, Scope::Once) => "once",
        (_, Scope::Session) => "session",
        (_, Scope::Always) => "always",
    }
}
