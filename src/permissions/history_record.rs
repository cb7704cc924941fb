//! The records of changed rules in the history: patterns and names, never what a declaration holds.

use super::edit::ConfigChange;
use super::writer::FileEdit;
use crate::config::RuleList;
use crate::history::{Record, RuleChange, Text};
use crate::protocol::Pattern;

/// Returns the records of an edit, one for each change; none where nothing changed.
#[must_use]
pub fn change_records(edited: &FileEdit, changes: &[ConfigChange], by: &str) -> Vec<Record> {
    if !edited.changed() {
        return Vec::new();
    }
    let record = |change: &ConfigChange| Record::Rule {
        file: Text::path(&edited.file),
        change: match change {
            ConfigChange::AddRule { list, pattern } => {
                let pattern = Text::of(pattern.as_str());
                match list {
                    RuleList::Allow => RuleChange::Allow(pattern),
                    RuleList::Deny => RuleChange::Deny(pattern),
                    RuleList::Ask => RuleChange::Ask(pattern),
                }
            }
            ConfigChange::AllowTool { tool } => RuleChange::Allow(Text::of(&Pattern::exact_text(tool))),
            ConfigChange::ForgetRule { pattern } => RuleChange::Forget(Text::of(pattern)),
            ConfigChange::PutServer { name, .. } | ConfigChange::PinServer { name, .. } => {
                RuleChange::Declare(Text::of(name))
            }
            ConfigChange::RemoveServer { name } => RuleChange::Remove(Text::of(name)),
        },
        by: Text::of(by),
    };
    changes.iter().map(record).collect()
}
