//! The tools that clients have of their own, so that a rule about one that is written wrongly is noticed.
//!
//! The list is not whole: what is not in it may exist, and nothing is refused by it.

use crate::protocol::{DependencyName, Pattern, ToolName, distance, nearest};

/// The tools of Claude Code, which asks pml about them by the names that it gives them.
const KNOWN: [&str; 28] = [
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "Edit",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "KillBash",
    "KillShell",
    "LS",
    "ListMcpResourcesTool",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "Read",
    "ReadMcpResourceTool",
    "Skill",
    "SlashCommand",
    "Task",
    "TaskOutput",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// More changes than these are another name.
const SLIPS: usize = 2;

/// Returns the tool of a client that was probably meant by a name; `None` for one that is known or like no other.
pub(super) fn meant(tool: &str) -> Option<ToolName> {
    let is_beside = tool.starts_with("mcp__");
    if is_beside || KNOWN.contains(&tool) {
        return None;
    }
    let near = nearest(tool, KNOWN)?;
    // A tool that is merely alike may well exist.
    let slips = distance(&tool.to_lowercase(), &near.to_lowercase())?;
    (slips <= SLIPS).then(|| ToolName::new(DependencyName::client(), near))
}

/// Says that the pattern of a rule names no known tool of a client, with the one that was probably meant.
pub(super) fn stray(pattern: &Pattern) -> Option<String> {
    let tool = pattern.only_name()?.parse::<ToolName>().ok()?;
    if *tool.dependency() != DependencyName::client() {
        return None;
    }
    let near = meant(tool.tool())?;
    Some(format!(
        "`{pattern}` names no tool of a client that pml knows; did you mean `{near}`?"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_wrongly_is_noticed_and_what_may_exist_is_not() {
        for (typed, expected) in [
            ("Bsah", Some("client:Bash")),
            ("webfetch", Some("client:WebFetch")),
            ("Bash", None),
            ("shell_command", None),
            ("mcp__github__create_issue", None),
        ] {
            let meant = meant(typed).map(|tool| tool.to_string());
            assert_eq!(meant.as_deref(), expected, "{typed}");
        }
        for plain in ["client:Ba*", "fake:Bsah", "client", "client:Bash(git status)"] {
            assert_eq!(stray(&plain.parse().unwrap()), None, "{plain}");
        }
    }
}
