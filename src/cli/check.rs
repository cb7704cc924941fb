//! `pml check TOOL`: what the rules say about a tool, and which of them says it.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{Ground, output};
use crate::config::{self, Launch};
use crate::permissions::{AskKind, Decision, Policy};
use crate::protocol::{DependencyName, Shown, ToolName};

/// Which tool.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The tool, as `server:tool` or as the client spells it, `server__tool`
    #[arg(value_name = "TOOL", value_parser = tool)]
    tool: ToolName,
    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,
}

/// Reads both spellings, and the one with which clients show a tool to the model.
fn tool(name: &str) -> Result<ToolName, crate::protocol::NameError> {
    let own = name.strip_prefix("mcp__pml__").unwrap_or(name);
    match own.split_once("__") {
        Some((dependency, tool)) if !own.contains(':') && !tool.is_empty() => {
            Ok(ToolName::new(dependency.parse()?, tool))
        }
        _ => own.parse(),
    }
}

/// Prints the verdict; exit code 0 says allow.
pub(crate) fn run(ground: &Ground, arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let config = config::read(&ground.files())?;
    let tool = &arguments.tool;
    let verdict = Policy::new(&config).check(tool);
    let server = config.servers.get(tool.dependency());
    let is_elsewhere = server.is_some_and(|server| matches!(server.launch, Launch::Remote { .. }));
    let (word, says, code) = match verdict.decision {
        Decision::Allow => ("allow", "runs without a question", 0),
        Decision::Ask(AskKind::First) if is_elsewhere => {
            ("ask", "asks before its server is first connected to", 1)
        }
        Decision::Ask(AskKind::First) => ("ask", "asks before its server is first installed or started", 1),
        Decision::Ask(AskKind::Every) => ("ask", "asks before every call", 1),
        Decision::Deny => ("deny", "never runs", 1),
    };
    if arguments.json {
        let every = match verdict.decision {
            Decision::Ask(AskKind::First) => Some("first"),
            Decision::Ask(AskKind::Every) => Some("every"),
            Decision::Allow | Decision::Deny => None,
        };
        output::json(&json!({
            "tool": tool,
            "decision": word,
            "asks": every,
            "rule": verdict.rule.as_deref().map(output::rule_json),
        }))?;
        return Ok(ExitCode::from(code));
    }
    let shown = tool.to_string();
    let shown = Shown::line(&shown);
    output::data(&match &verdict.rule {
        Some(rule) => format!(
            "{word}: `{shown}` {says}\n  rule `{}` in the {} list ({})",
            rule.pattern,
            rule.list.key(),
            ground.place(rule.source.as_ref())
        ),
        None => format!("{word}: `{shown}` {says}\n  no rule covers it"),
    })?;
    if !config.servers.contains_key(tool.dependency()) {
        let names = config.servers.keys().map(DependencyName::as_str);
        let meant = config::nearest(tool.dependency().as_str(), names)
            .map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"));
        output::note(&format!("no server `{}` is declared{meant}", tool.dependency()));
    }
    Ok(ExitCode::from(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_tool_is_understood() {
        for spelling in ["fs:read_file", "fs__read_file", "mcp__pml__fs__read_file"] {
            assert_eq!(tool(spelling).unwrap().to_string(), "fs:read_file");
        }
        assert_eq!(tool("fs:a__b").unwrap().to_string(), "fs:a__b");
        assert_eq!(tool("a_b__c__d").unwrap().to_string(), "a_b:c__d");
        assert!(tool("fs").is_err());
        assert!(tool("fs__").is_err());
    }
}
