//! `pml runs`: the runs there are, the newest first.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::hosting;
use crate::cli::{CommandContext, output};
use crate::host::RunRecord;
use crate::protocol::Shown;
use crate::proxy::now;

/// How the runs are listed.
#[derive(Debug, Args)]
pub(crate) struct RunsArguments {
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Lists the runs.
pub(crate) fn list(context: &CommandContext, arguments: &RunsArguments) -> anyhow::Result<ExitCode> {
    let runs = hosting(context)?.runs().list();
    if arguments.json {
        let text = json!(runs).to_string();
        output::data(&Shown::json(&text))?;
        return Ok(ExitCode::SUCCESS);
    }
    if runs.is_empty() {
        output::say("there are no runs; to begin one: pml run \"what is to be done\"");
        return Ok(ExitCode::SUCCESS);
    }
    let lines: Vec<String> = runs.iter().map(line).collect();
    output::data(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn line(run: &RunRecord) -> String {
    let age = ago(now().millis().saturating_sub(run.changed_at));
    let trouble = run.trouble.as_ref().map_or_else(String::new, |trouble| {
        format!("\n       {}", Shown::line(trouble))
    });
    let cost = run.cost.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
    format!(
        "{}  {:8} {age:>7}{cost}  {}\n       {}{trouble}",
        run.id,
        run.state.word(),
        Shown::line(&run.title),
        Shown::path(&run.directory)
    )
}

/// Says how long ago something was.
fn ago(millis: i64) -> String {
    match millis / 1_000 {
        seconds @ ..60 => format!("{} s", seconds.max(0)),
        seconds @ ..3_600 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
