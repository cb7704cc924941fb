//! `pml list`: every declared server, how far it is, and what is wrong with it.
//!
//! Reads what is on disk and starts nothing. A tool whose name had to change for the client, or that another one
//! hides, is always reported: a person does not look for a tool that is merely missing.

mod cost;
mod survey;
mod tool;

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use self::survey::{Access, ServerSurvey};
use self::tool::Tool;
use super::{CommandContext, forecast, gc, output};
use crate::config::{self, Startup};
use crate::permissions::ForecastOutcome;
use crate::protocol::Shown;
use crate::workflow::Timestamp;

/// How to print them.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Print the tools too, and what a call of each would do
    #[arg(long)]
    tools: bool,
    /// Print what the definitions of the listed tools cost a model's context, and the ten heaviest
    #[arg(long, conflicts_with = "tools")]
    cost: bool,
    /// Print everything that is known as JSON
    #[arg(long)]
    json: bool,
}

/// Prints a line for each server.
pub(crate) fn run(context: &CommandContext, arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let files = context.files();
    let config = config::read(&files)?;
    let listed = survey::servers(context, &config);
    if arguments.cost {
        return costs(arguments, &listed);
    }
    if arguments.json {
        let servers: Vec<_> = listed.iter().map(|server| server.json(context)).collect();
        output::json(&json!({ "servers": servers }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if listed.is_empty() {
        output::say(&format!(
            "no server is declared in {} or {}",
            context.path(&files.project),
            context.path(&files.user)
        ));
        output::say("to declare one: pml add NAME -- COMMAND…");
        return Ok(ExitCode::SUCCESS);
    }
    output::data(&table(context, arguments, &listed))?;
    let approved = listed.iter().find(|server| {
        server.access == Some(Access::Approved) && server.happens() == Some(ForecastOutcome::Runs)
    });
    if let Some(server) = approved {
        output::note(&format!(
            "what was approved runs unasked; to be asked each time: pml ask '{}:*'",
            server.name
        ));
    }
    for server in &listed {
        for problem in server.problems.iter().chain(&server.notes) {
            output::note(&format!("`{}`: {problem}", server.name));
        }
        if let Some(failure) = &server.last_failure {
            output::note(&format!(
                "`{}` failed on {}: {}\n  all of it: {}",
                server.name,
                Timestamp::from_millis(failure.at),
                failure.what,
                context.path(&failure.log)
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what the tools cost; what is not known was never started.
fn costs(arguments: &ListArguments, listed: &[ServerSurvey]) -> anyhow::Result<ExitCode> {
    if arguments.json {
        output::json(&cost::json(listed))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::data(&cost::table(listed))?;
    output::note(
        "about 4 bytes are taken for a token; what a rule denies or `tools` leaves out costs nothing",
    );
    let unknown = listed
        .iter()
        .filter(|server| !server.disabled && server.tools.is_none());
    for server in unknown {
        output::note(&format!(
            "`{0}`: its tools are not known before it is started: pml approve {0}",
            server.name
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Lays out the servers in columns as wide as they need to be.
fn table(context: &CommandContext, arguments: &ListArguments, listed: &[ServerSurvey]) -> String {
    let head = [
        "NAME",
        "VERSION",
        "PUBLISHED",
        "INSTALLED",
        "LAST USE",
        "APPROVED",
        "CALLS",
        "TOOLS",
        "STARTUP",
        "DECLARED IN",
    ];
    let rows: Vec<_> = listed.iter().map(|server| row(context, server)).collect();
    let head = head.map(str::to_owned);
    let width = |column: usize| {
        let cells = std::iter::once(&head).chain(&rows);
        cells.map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    let widths: [usize; 10] = std::array::from_fn(width);
    let line = |row: &[String; 10]| {
        let cells: Vec<_> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(&head)];
    for (server, row) in listed.iter().zip(&rows) {
        lines.push(line(row));
        if arguments.tools {
            lines.extend(
                server
                    .tools
                    .iter()
                    .flatten()
                    .map(|tool| format!("  {}", tool_line(context, tool))),
            );
        }
    }
    lines.join("\n")
}

/// Returns the day of a time, in UTC like every time that pml prints.
fn day(at: Timestamp) -> String {
    let text = at.to_string();
    text.split('T').next().unwrap_or_default().to_owned()
}

fn row(context: &CommandContext, server: &ServerSurvey) -> [String; 10] {
    let none = || "-".to_owned();
    let yes_or_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let startup = match (server.disabled, server.startup) {
        (true, _) => "disabled",
        (false, Startup::Lazy) => "lazy",
        (false, Startup::Eager) => "eager",
    };
    [
        server.name.to_string(),
        server.version.clone().unwrap_or_else(none),
        server
            .shown
            .as_ref()
            .and_then(|shown| shown.installation.age.clone())
            .unwrap_or_else(none),
        match (server.installed, server.bytes) {
            (Some(true), Some(bytes)) => gc::megabytes(bytes),
            (installed, _) => installed.map_or_else(none, yes_or_no),
        },
        server.last_use.map_or_else(none, day),
        match server.access {
            None => none(),
            Some(Access::Approved) => "yes".to_owned(),
            Some(Access::Allowed) => "by rule".to_owned(),
            Some(Access::Asks) => "no".to_owned(),
            Some(Access::Denied) => "denied".to_owned(),
        },
        match (&server.next, server.happens()) {
            (None, _) => none(),
            (Some(_), Some(happens)) => calls(happens).to_owned(),
            (Some(_), None) => "mixed".to_owned(),
        },
        server.tools.as_ref().map_or_else(
            || "?".to_owned(),
            |tools| match tools.iter().filter(|tool| !tool.hidden).count() {
                offered if offered == tools.len() => offered.to_string(),
                offered => format!("{offered} of {}", tools.len()),
            },
        ),
        startup.to_owned(),
        context.place(Some(&server.source)),
    ]
}

/// Says in a word or two what calls do.
fn calls(happens: ForecastOutcome) -> &'static str {
    match happens {
        ForecastOutcome::Runs => "run",
        ForecastOutcome::AsksFirst => "ask first",
        ForecastOutcome::AsksEvery => "ask each",
        ForecastOutcome::AsksAboutChange => "changed",
        ForecastOutcome::Never => "never",
    }
}

fn tool_line(context: &CommandContext, tool: &Tool) -> String {
    let name = tool.name.to_string();
    let shown = Shown::line(&name);
    let changed = tool
        .changed()
        .then(|| format!("  (the client sees `{}`)", tool.wire_name));
    let says = match tool.forecast.happens {
        ForecastOutcome::Never if tool.hidden => "hidden",
        ForecastOutcome::Runs => "runs",
        ForecastOutcome::AsksFirst => "asks before the first use",
        ForecastOutcome::AsksEvery => "asks before every call",
        ForecastOutcome::AsksAboutChange => "asks about what changed",
        ForecastOutcome::Never => "never runs",
    };
    format!(
        "{shown}{}  {says}: {}",
        changed.unwrap_or_default(),
        forecast::reason(context, &tool.forecast).trim_start_matches("it is not offered: ")
    )
}
