//! `pml call SERVER TOOL [JSON]`: calls one tool through the gate that clients pass, and shows what came back.
//!
//! It is a client like any other: `pml stdio` decides, asks, installs and starts. Where a person must decide, they are
//! asked in this terminal, and their answer takes the road of `pml approve`.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};

use super::desk::{TerminalDesk, Verb};
use super::failure::{Hinted as _, Refused};
use super::stdio_client::{Notified, StdioClient};
use super::terminal::{self, StepDisplay, TerminalReply};
use super::{CommandContext, approve, install, interruption, output, refuse};
use crate::card::Decision;
use crate::protocol::{DependencyName, Shown, ToolName};
use crate::proxy::now;

/// Which tool, and with what.
#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// The server, as it is declared
    #[arg(value_name = "SERVER")]
    server: DependencyName,
    /// The tool, by the server's own name
    #[arg(value_name = "TOOL")]
    tool: String,
    /// Its arguments, as a JSON object
    #[arg(value_name = "JSON", value_parser = arguments, default_value = "{}")]
    arguments: Value,
    /// Print the whole result as JSON
    #[arg(long)]
    json: bool,
}

fn arguments(text: &str) -> Result<Value, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("arguments are a JSON object, such as '{\"path\": \".\"}'".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Calls the tool; exit code 0 says that it did what it should.
pub(crate) fn run(context: &CommandContext, asked: &CallArguments) -> anyhow::Result<ExitCode> {
    let config = context.read()?;
    install::declared(&config, &asked.server)?;
    let with_handed = config
        .servers
        .get(&asked.server)
        .map(|server| context.with_handed(server));
    let context = with_handed.as_ref().unwrap_or(context);
    let tool = ToolName::new(asked.server.clone(), asked.tool.as_str());
    let Some(mut result) = call(context, &tool, &asked.arguments)? else {
        return Ok(interrupted());
    };
    // An approval of the server may be followed by a question about this very call.
    for _ in 0..3 {
        let Some(code) = waiting(&result) else { break };
        if !decided(context, &tool, &code)? {
            return Ok(ExitCode::from(1));
        }
        let Some(again) = call(context, &tool, &asked.arguments)? else {
            return Ok(interrupted());
        };
        result = again;
    }
    let failed = result.get("isError") == Some(&Value::Bool(true)) || waiting(&result).is_some();
    let written = if asked.json {
        output::json(&result)
    } else {
        output::data(&words(&result))
    };
    Ok(output::verdict(u8::from(failed), written)?)
}

fn interrupted() -> ExitCode {
    output::say("\ninterrupted");
    ExitCode::from(1)
}

/// Calls the tool once, in a conversation of its own.
fn call(context: &CommandContext, tool: &ToolName, arguments: &Value) -> anyhow::Result<Option<Value>> {
    interruption::until_interrupted(async {
        let mut client = StdioClient::start(context)?;
        client.open("pml-call").await?;
        let passing = StepDisplay::new();
        let steps = passing.clone();
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "call" } });
        let result = client
            .request("tools/call", &params, |notified| match notified {
                Notified::Progress(text) => steps.step(&Shown::line(&text).to_string()),
            })
            .await;
        passing.clear();
        let result = result?;
        client.close().await?;
        Ok(result)
    })?
    .transpose()
}

/// Returns the code of the ask that a result tells of.
fn waiting(result: &Value) -> Option<String> {
    let told = result.get("structuredContent")?;
    let code = told.get("code").and_then(Value::as_str)?;
    let waits = told.get("approval_required") == Some(&Value::Bool(true))
        || told.get("status").and_then(Value::as_str) == Some("waiting_for_person");
    waits.then(|| code.to_owned())
}

/// Shows what waits and lets the person at this terminal decide; tells whether they agreed.
fn decided(context: &CommandContext, tool: &ToolName, code: &str) -> anyhow::Result<bool> {
    let inbox = TerminalDesk::open(context)?;
    let workflow = inbox.meant(Some(code), Verb::Approve)?;
    output::say(&workflow.summary(now()));
    let shown = tool.to_string();
    let question = format!("Let `{}` run?", Shown::line(&shown));
    match inbox.wait_for(terminal::confirm(&question))? {
        TerminalReply::Yes => {
            approve::record(context, &inbox, &workflow, Decision::Once)?;
            Ok(true)
        }
        TerminalReply::No => {
            refuse::record(&inbox, &workflow, None)?;
            Ok(false)
        }
        TerminalReply::Nobody => Err(Refused(format!(
            "`{}` waits for you, and there is no terminal to ask in",
            Shown::line(&shown)
        )))
        .hint(format!(
            "to let it run: pml approve {code}, then the same command again"
        )),
    }
}

/// Returns the texts of a result; what is no text is named.
fn words(result: &Value) -> String {
    let blocks = result
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let words: Vec<String> = blocks.map(block).collect();
    match (words.is_empty(), result.get("structuredContent")) {
        (true, Some(structured)) => Shown::json(&format!("{structured:#}")),
        _ => words.join("\n"),
    }
}

fn block(block: &Value) -> String {
    let empty = Map::new();
    let members = block.as_object().unwrap_or(&empty);
    if let Some(text) = members.get("text").and_then(Value::as_str) {
        return Shown::block(text).to_string();
    }
    let kind = members.get("type").and_then(Value::as_str).unwrap_or("unknown");
    format!("[{}; to see it: --json]", Shown::line(kind))
}
