//! The words for where a rule stands, and for what a list of tools takes away.

use crate::config::Rule;
use crate::protocol::{Shown, ToolName};

/// Says how the list of a server takes a tool away.
pub(super) fn taken_away(tool: &ToolName, rule: &Rule) -> String {
    let name = rule.pattern.as_str();
    match name.strip_prefix(&format!("{}:", tool.dependency())) {
        Some(pattern) => format!("excepts it by `!{}`", Shown::line(pattern)),
        None => "does not name it".to_owned(),
    }
}

/// Says where a rule stands, in the words of an error.
pub(crate) fn place(rule: &Rule) -> String {
    match &rule.source {
        Some(source) => format!(
            "the {} list of {}, line {}",
            rule.list.key(),
            Shown::path(&source.file),
            source.line
        ),
        None => format!("the built-in {} list", rule.list.key()),
    }
}
