//! What a person probably meant by the pattern of a rule: spellings of clients, and tools that a server does not have.

use super::failure::{Hinted as _, Refused};
use super::{CommandContext, Haste};
use crate::config::{Config, RuleList, nearest};
use crate::loader::{KnownTool, plan};
use crate::protocol::{CoveredTools, DependencyName, Pattern, PatternError, Shown, ToolName, shell};

/// A pattern as it is written into a list, and how it was typed where that differs.
#[derive(Debug, Clone)]
pub(super) struct TypedPattern {
    pub(super) pattern: Pattern,
    pub(super) typed: Option<String>,
}

/// The pattern that covers every tool of every server.
const EVERYTHING: &str = "*";

/// Reads a pattern; the names that clients show are written as rules spell them.
pub(super) fn read(text: &str) -> Result<TypedPattern, PatternError> {
    let own = text.strip_prefix("mcp__pml__").unwrap_or(text);
    let meant = if own.contains(':') {
        None
    } else if own.starts_with("mcp__") {
        // A server that the client has beside pml: its tools are the client's own.
        Some(format!("{}:{own}", DependencyName::client()))
    } else {
        let split = own
            .split_once("__")
            .filter(|(server, tool)| !server.is_empty() && !tool.is_empty());
        split.map(|(server, tool)| format!("{server}:{tool}"))
    };
    let pattern: Pattern = meant.as_deref().unwrap_or(text).parse()?;
    // Everything has one spelling: with two of them, a rule that allows everything and one that asks would both stand.
    let everything = (pattern.is_catch_all() && text != EVERYTHING).then_some(EVERYTHING);
    Ok(TypedPattern {
        pattern: everything.map_or(Ok(pattern), str::parse)?,
        typed: meant.as_deref().or(everything).map(|_| text.to_owned()),
    })
}

/// Refuses patterns that cannot mean what they say: of tools that are known, none is covered.
pub(super) fn check(
    context: &CommandContext,
    config: &Config,
    list: RuleList,
    patterns: &[Pattern],
) -> anyhow::Result<()> {
    for pattern in patterns {
        if pattern.tools() == CoveredTools::ReadOnly && list != RuleList::Allow {
            return Err(Refused(format!(
                "`{pattern}` can only be allowed: what a server says of its tools may loosen nothing that forbids"
            ))
            .into());
        }
        covers_something(context, config, list, pattern)?;
    }
    Ok(())
}

fn covers_something(
    context: &CommandContext,
    config: &Config,
    list: RuleList,
    pattern: &Pattern,
) -> anyhow::Result<()> {
    let Some((part, tool)) = pattern.as_str().split_once(':') else {
        return Ok(());
    };
    // Prompts, resources and the stand-in for unknown tools are in no list of tools.
    let apart = ["prompts/", "resources/", crate::permissions::CONNECT, "*"];
    if apart.iter().any(|beginning| tool.starts_with(beginning)) {
        return Ok(());
    }
    let Ok(servers) = part.parse::<Pattern>() else {
        return Ok(());
    };
    let meant = config
        .servers
        .keys()
        .filter(|name| servers.covers(&format!("{name}:qzx")));
    let mut known: Vec<ToolName> = Vec::new();
    let mut names = Vec::new();
    for name in meant {
        let Some(tools) = known_tools(context, config, name) else {
            return Ok(());
        };
        known.extend(tools);
        names.push(format!("`{name}`"));
    }
    if known.is_empty() || known.iter().any(|tool| pattern.matches(tool)) {
        return Ok(());
    }
    let near = nearest(tool, known.iter().map(ToolName::tool));
    let near = near.and_then(|near| known.iter().find(|known| known.tool() == near));
    let near = near.map_or_else(String::new, |near| {
        format!("; did you mean `{}`?", Shown::line(&Pattern::exact_text(near)))
    });
    let quoted = shell::operand(pattern.as_str());
    Err(Refused(format!(
        "`{pattern}` covers none of the {} known tools of {}{near}",
        known.len(),
        names.join(", ")
    )))
    .hint(format!(
        "to see them: pml list --tools\nto write it anyway: pml {} --force {quoted}",
        list.key()
    ))
}

/// Returns the tools of a server; `None` where it was never started.
pub(super) fn known_tools(
    context: &CommandContext,
    config: &Config,
    name: &DependencyName,
) -> Option<Vec<ToolName>> {
    let server = config.servers.get(name)?;
    let plan = plan(name, server, &context.planning_environment()).ok()?;
    let loader = context.loader(Haste::None);
    let known = loader.known(&plan)?;
    let tools = known.tools.iter().map(KnownTool::name);
    Some(tools.map(|tool| ToolName::new(name.clone(), tool)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_clients_show_are_written_as_rules_spell_them() {
        for (typed, meant) in [
            ("git__git_status", "git:git_status"),
            ("mcp__pml__git__git_status", "git:git_status"),
            ("git__*", "git:*"),
            ("mcp__github__create_issue", "client:mcp__github__create_issue"),
            ("*:*", "*"),
        ] {
            let read = read(typed).unwrap();
            assert_eq!(
                (read.pattern.as_str(), read.typed.as_deref()),
                (meant, Some(typed))
            );
        }
        for plain in [
            "git",
            "git:a__b",
            "*",
            "client:Bash(git status)",
            "git:*@readonly",
            "__x",
        ] {
            let read = read(plain).unwrap();
            assert_eq!((read.pattern.as_str(), read.typed), (plain, None));
        }
    }
}
