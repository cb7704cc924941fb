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
                    // No command writes the list of a server; it takes away as a deny does.
                    RuleList::Deny | RuleList::Tools => RuleChange::Deny(pattern),
                    RuleList::Ask => RuleChange::Ask(pattern),
                }
            }
            ConfigChange::AllowTool { tool } => RuleChange::Allow(Text::of(&Pattern::exact_text(tool))),
            ConfigChange::ForgetRule { pattern } => RuleChange::Forget(Text::of(pattern)),
            ConfigChange::PutServer { name, .. } | ConfigChange::PinServer { name, .. } => {
                RuleChange::Declare(Text::of(name))
            }
            ConfigChange::RemoveServer { name } => RuleChange::Remove(Text::of(name)),
            ConfigChange::AddPerson { channel, id } => RuleChange::Pair(Text::of(&format!("{channel} {id}"))),
            ConfigChange::RemovePerson { channel, id } => {
                RuleChange::Unpair(Text::of(&format!("{channel} {id}")))
            }
        },
        by: Text::of(by),
    };
    changes.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::permissions::edit::LaunchWord;
    use crate::permissions::writer::WriteDurability;

    #[test]
    fn each_change_of_an_edit_is_recorded_by_its_name_and_none_where_nothing_changed() {
        let text = "{}".to_owned();
        let unchanged = FileEdit {
            file: "/project/.pml.json".into(),
            before: Some(text.clone()),
            after: text,
            durability: WriteDurability::Confirmed,
        };
        let add = |list| ConfigChange::AddRule {
            list,
            pattern: "a:*".parse().unwrap(),
        };
        let name = || "server".to_owned();
        let (pattern, server) = (Text::of("a:*"), Text::of("server"));
        let expected = [
            (add(RuleList::Allow), RuleChange::Allow(pattern.clone())),
            (add(RuleList::Deny), RuleChange::Deny(pattern.clone())),
            (add(RuleList::Ask), RuleChange::Ask(pattern)),
            (
                ConfigChange::AllowTool {
                    tool: "a:b*".parse().unwrap(),
                },
                RuleChange::Allow(Text::of("a:b\\*")),
            ),
            (
                ConfigChange::ForgetRule {
                    pattern: "a".to_owned(),
                },
                RuleChange::Forget(Text::of("a")),
            ),
            (
                ConfigChange::PutServer {
                    name: name(),
                    entry: serde_json::json!({"env": {"KEY": "secret"}}),
                },
                RuleChange::Declare(server.clone()),
            ),
            (
                ConfigChange::PinServer {
                    name: name(),
                    word: LaunchWord::Package,
                    text: "x@1.0.0".to_owned(),
                },
                RuleChange::Declare(server.clone()),
            ),
            (
                ConfigChange::RemoveServer { name: name() },
                RuleChange::Remove(server),
            ),
        ];
        let (changes, recorded): (Vec<_>, Vec<_>) = expected.into_iter().unzip();
        assert_eq!(change_records(&unchanged, &changes, "cli"), []);
        let created = FileEdit {
            before: None,
            ..unchanged
        };
        let recorded: Vec<Record> = recorded
            .into_iter()
            .map(|change| Record::Rule {
                file: Text::path(&created.file),
                change,
                by: Text::of("cli"),
            })
            .collect();
        assert_eq!(change_records(&created, &changes, "cli"), recorded);
    }
}
