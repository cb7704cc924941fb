//! `pml check TOOL`: what a call of a tool would do now, and which rule or approval decides that.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{CommandContext, Haste, client_tools, entry_variables, forecast, output, rule_words};
use crate::config::{self, Config, Launch, nearest};
use crate::loader::plan;
use crate::permissions::{CONNECT, Forecast, ForecastOutcome, ForecastReason, Obstacle};
use crate::protocol::{DependencyName, Shown, ToolName};
use crate::report::render_hinted;
use crate::workflow::Place;

/// Which tool.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The tool, as `server:tool` or as the client spells it, `server__tool`
    #[arg(value_name = "TOOL", value_parser = called)]
    called: CheckedCall,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// A call whose outcome is wanted.
#[derive(Debug, Clone)]
struct CheckedCall {
    tool: ToolName,
    /// What the client's shell would run, in `client:Bash(git status)`.
    command: Option<String>,
}

/// Reads a tool, or a command of the client's shell.
fn called(name: &str) -> Result<CheckedCall, crate::protocol::NameError> {
    let shell = name
        .strip_prefix("client:Bash(")
        .and_then(|rest| rest.strip_suffix(')'));
    Ok(match shell {
        Some(command) => CheckedCall {
            tool: ToolName::new(DependencyName::client(), "Bash"),
            command: Some(command.to_owned()),
        },
        None => CheckedCall {
            tool: tool(name)?,
            command: None,
        },
    })
}

/// Reads both spellings, and the one with which clients show a tool to the model.
fn tool(name: &str) -> Result<ToolName, crate::protocol::NameError> {
    let own = name.strip_prefix("mcp__pml__").unwrap_or(name);
    if own.starts_with("mcp__") {
        // A server that the client has beside pml: its tools are the client's own.
        return Ok(ToolName::new(DependencyName::client(), own));
    }
    match own.split_once("__") {
        Some((dependency, tool)) if !own.contains(':') && !tool.is_empty() => {
            Ok(ToolName::new(dependency.parse()?, tool))
        }
        _ => own.parse(),
    }
}

/// Prints what a call would do; exit code 0 says that it runs.
pub(crate) fn run(context: &CommandContext, arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let config = config::read(&context.files())?;
    let CheckedCall { tool, command } = &arguments.called;
    let is_clients = *tool.dependency() == DependencyName::client();
    let server = config.servers.get(tool.dependency());
    let forecast = match command {
        Some(command) => forecast::ServerStanding::default()
            .forecast(context.policy(&config).check_command(tool, command), tool),
        None => forecast(context, &config, tool),
    };
    let happens = forecast.happens;
    let code = u8::from(happens != ForecastOutcome::Runs);
    let decision = forecast::decision(happens);
    let reason = forecast::reason(context, &forecast);
    let rule = forecast.rule.as_deref();
    let namesakes = context.tool_names(&config).beside(tool.dependency());
    let namesakes = namesakes.of(tool.tool());
    if arguments.json {
        let approval = match &forecast.because {
            ForecastReason::Approved(record) => Some(forecast::approval_json(record)),
            ForecastReason::Rules | ForecastReason::Changed(_) | ForecastReason::Obstacle(_) => None,
        };
        let written = output::json(&json!({
            "tool": tool,
            "command": command,
            "decision": decision,
            "asks": forecast::asks(happens),
            "reason": reason,
            "outlook": forecast::outlook(&forecast, tool),
            "approval": approval,
            "rule": rule.map(output::rule_json),
            "mistakableFor": namesakes,
        }));
        return Ok(output::verdict(code, written)?);
    }
    let from_clients = server.map_or_else(Vec::new, |server| {
        entry_variables::notes(context, &context.handed(), server)
    });
    let is_elsewhere = server.is_some_and(|server| matches!(server.launch, Launch::Remote { .. }));
    let says = match happens {
        ForecastOutcome::Runs => "runs without a question",
        ForecastOutcome::AsksFirst | ForecastOutcome::AsksEvery if is_clients => {
            "asks you where the client leaves it to pml (`pml run`, `approval_prompt`)"
        }
        ForecastOutcome::AsksFirst if is_elsewhere => "asks before its server is first connected to",
        ForecastOutcome::AsksFirst => "asks before its server is first installed or started",
        ForecastOutcome::AsksEvery => "asks before every call",
        ForecastOutcome::AsksAboutChange => "asks whether you accept what changed",
        ForecastOutcome::Never => "never runs",
    };
    let shown = match command {
        Some(command) => format!("{tool}({command})"),
        None => tool.to_string(),
    };
    let mut lines = format!("{decision}: `{}` {says}\n  {reason}", Shown::line(&shown));
    if let (ForecastReason::Approved(_), Some(rule)) = (&forecast.because, rule) {
        let place = context.place(rule.source.as_ref());
        let _ = write!(
            lines,
            "\n  without that it would ask: rule `{}` in the {} list ({place})",
            rule.pattern,
            rule.list.key()
        );
    }
    if let ForecastReason::Approved(_) = &forecast.because {
        let _ = write!(
            lines,
            "\n  to be asked each time: {}",
            forecast::ask_each_time(tool)
        );
    }
    if happens == ForecastOutcome::AsksAboutChange {
        let _ = write!(lines, "\n  {}", forecast::ways_to_accept(tool.dependency()));
    }
    let written = output::data(&lines);
    if let Some(others) = &namesakes {
        output::note(&format!("`{}` can be mistaken for {others}", Shown::line(&shown)));
    }
    for note in unknown_tool(context, &config, tool)
        .into_iter()
        .chain(from_clients)
    {
        output::note(&note);
    }
    if server.is_none() && !is_clients {
        let names = config.servers.keys().map(DependencyName::as_str);
        let meant = config::nearest(tool.dependency().as_str(), names)
            .map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"));
        output::note(&format!("no server `{}` is declared{meant}", tool.dependency()));
    }
    Ok(output::verdict(code, written)?)
}

/// Says that a tool is not among those that are known of its server, with the one that was probably meant.
fn unknown_tool(context: &CommandContext, config: &Config, tool: &ToolName) -> Option<String> {
    if *tool.dependency() == DependencyName::client() {
        let near = client_tools::meant(tool.tool())?;
        let shown = tool.to_string();
        let shown = Shown::line(&shown);
        return Some(format!(
            "no client that pml knows has `{shown}`; did you mean `{near}`?"
        ));
    }
    let apart = ["prompts/", "resources/"];
    if tool.tool() == CONNECT || apart.iter().any(|beginning| tool.tool().starts_with(beginning)) {
        return None;
    }
    let known = rule_words::known_tools(context, config, tool.dependency())?;
    if known.contains(tool) {
        return None;
    }
    let near = nearest(tool.tool(), known.iter().map(ToolName::tool)).map_or_else(
        || "; to see its tools: pml list --tools".to_owned(),
        |near| {
            let near = ToolName::new(tool.dependency().clone(), near).to_string();
            format!("; did you mean `{}`?", Shown::line(&near))
        },
    );
    Some(format!("`{}` has no such tool{near}", tool.dependency()))
}

/// Finds out what a call would do; what keeps a server from being planned or its records from being read is noted.
fn forecast(context: &CommandContext, config: &Config, tool: &ToolName) -> Forecast {
    let verdict = context.policy(config).check(tool);
    let Some(server) = config.servers.get(tool.dependency()) else {
        return forecast::ServerStanding::default().forecast(verdict, tool);
    };
    let environment = context.planning_environment();
    let plan = match plan(tool.dependency(), server, &environment) {
        Ok(plan) => plan,
        Err(error) if server.disabled => {
            output::note(&render_hinted(&error));
            return Forecast::hindered(verdict, Obstacle::Disabled);
        }
        Err(error) => {
            output::note(&render_hinted(&error));
            return forecast::ServerStanding::default().forecast(verdict, tool);
        }
    };
    let loader = context.loader(Haste::None);
    let approvals = Place::of(&context.locations).approvals();
    let approvals = approvals.inspect_err(|error| output::note(&render_hinted(error)));
    let standings = forecast::Standings {
        context,
        config,
        loader: &loader,
        environment: &environment,
        approvals: approvals.as_ref().ok(),
    };
    let (standing, problems) = standings.read(server, &plan);
    for problem in problems {
        output::note(&problem);
    }
    standing.forecast(verdict, tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_tool_is_understood() {
        for spelling in ["fs:read_file", "fs__read_file", "mcp__pml__fs__read_file"] {
            assert_eq!(tool(spelling).unwrap().to_string(), "fs:read_file");
        }
        let beside = tool("mcp__github__create_issue").unwrap();
        assert_eq!(beside.to_string(), "client:mcp__github__create_issue");
        assert_eq!(tool("fs:a__b").unwrap().to_string(), "fs:a__b");
        assert_eq!(tool("a_b__c__d").unwrap().to_string(), "a_b:c__d");
        assert!(tool("fs").is_err());
        assert!(tool("fs__").is_err());
    }
}
