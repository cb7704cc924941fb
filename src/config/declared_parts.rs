//! The parts of a project's file, each as a digest of its value: words tell what a file wants, and what no word tells
//! must not change unseen.
//!
//! Two files with the same parts are read alike: they differ in comments, in the order of their members or in spelling.

use std::collections::BTreeMap;

use jsonc_parser::ast::{Object, Value};
use serde::{Deserialize, Serialize};

use super::document;
use crate::protocol::{Digest, quoted};

/// More parts than any person declares; beyond it a server, or all of them, is one part.
const PARTS: usize = 5_000;

/// The parts of a file by their names, such as `mcpServers/files/env/TOKEN`: only the last step of a name may hold a slash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeclaredParts(BTreeMap<String, Digest>);

impl DeclaredParts {
    /// Reads the parts of a text; of one that is no JSON object there are none.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let parsed = document::parse(text);
        let Ok(Value::Object(file)) = parsed else {
            return Self::default();
        };
        (0..=3)
            .rev()
            .map(|depth| Self::at_depth(&file, depth))
            .find(|parts| parts.0.len() <= PARTS)
            .unwrap_or_default()
    }

    fn at_depth(file: &Object<'_>, depth: usize) -> Self {
        let mut parts = BTreeMap::new();
        for member in &file.properties {
            let name = member.name.as_str();
            // What it says of the format has no effect.
            if name != "$schema" {
                let depth = if name == "mcpServers" { depth } else { 0 };
                add(&mut parts, name.to_owned(), &member.value, depth);
            }
        }
        Self(parts)
    }

    /// Tells whether nothing is known of a file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of the parts that are other values than `before`, new, or gone.
    #[must_use]
    pub fn changed_since(&self, before: &Self) -> Vec<String> {
        let names = self
            .0
            .keys()
            .chain(before.0.keys().filter(|name| !self.0.contains_key(*name)));
        let changed = names.filter(|name| self.0.get(*name) != before.0.get(*name));
        let mut changed: Vec<String> = changed.cloned().collect();
        changed.sort();
        changed
    }
}

fn add(parts: &mut BTreeMap<String, Digest>, name: String, value: &Value<'_>, depth: usize) {
    match value {
        Value::Object(object) if depth > 0 && !object.properties.is_empty() => {
            for member in &object.properties {
                add(
                    parts,
                    format!("{name}/{}", member.name.as_str()),
                    &member.value,
                    depth - 1,
                );
            }
        }
        value => {
            let mut text = String::new();
            write(value, &mut text);
            parts.insert(name, Digest::of(["part 1", &text]));
        }
    }
}

/// Writes a value so that equal values are equal texts.
fn write(value: &Value<'_>, text: &mut String) {
    match value {
        Value::StringLit(string) => text.push_str(&quoted(&string.value)),
        Value::NumberLit(number) => text.push_str(number.value),
        Value::BooleanLit(boolean) => text.push_str(if boolean.value { "true" } else { "false" }),
        Value::NullKeyword(_) => text.push_str("null"),
        Value::Array(array) => {
            text.push('[');
            for element in &array.elements {
                write(element, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(object) => {
            let mut members: Vec<_> = object.properties.iter().collect();
            members.sort_by_key(|member| member.name.as_str());
            text.push('{');
            for member in members {
                text.push_str(&quoted(member.name.as_str()));
                text.push(':');
                write(&member.value, text);
                text.push(',');
            }
            text.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"mcpServers": {"a": {"command": "x", "args": ["b c"], "env": {"K": "1", "L": "2"}}}, "approvals": {"ttlSeconds": 5}}"#;

    fn changed(from: &str, to: &str) -> Vec<String> {
        assert!(FILE.contains(from));
        DeclaredParts::of(&FILE.replace(from, to)).changed_since(&DeclaredParts::of(FILE))
    }

    #[test]
    fn comments_order_and_spelling_are_no_change() {
        let other = r#"{ // words
            "approvals": {"ttlSeconds": 5,},
            "mcpServers": {"a": {"env": {"L": "2", "K": "\u0031"}, "args": ["b c"], "command": "x"}}, "$schema": "s" }"#;
        let (one, other) = (DeclaredParts::of(FILE), DeclaredParts::of(other));
        assert_eq!(other.changed_since(&one), Vec::<String>::new());
        assert_eq!(one, other);
    }

    #[test]
    fn every_value_is_a_part_by_its_name() {
        assert_eq!(changed("\"1\"", "\"2\""), ["mcpServers/a/env/K"]);
        assert_eq!(changed("\"b c\"", "\"b\", \"c\""), ["mcpServers/a/args"]);
        assert_eq!(
            changed("\"command\": \"x\"", "\"command\": \"x\", \"idleSeconds\": 3"),
            ["mcpServers/a/idleSeconds"]
        );
        assert_eq!(changed(", \"L\": \"2\"", ""), ["mcpServers/a/env/L"]);
        assert_eq!(changed(": 5", ": 50"), ["approvals"]);
    }

    #[test]
    fn a_file_of_too_many_parts_has_coarser_ones_and_none_changes_unseen() {
        let many: Vec<String> = (0..2 * PARTS)
            .map(|number| format!("\"V{number}\": \"\""))
            .collect();
        let file = |last: &str| {
            format!(
                r#"{{"mcpServers": {{"a": {{"command": "x", "env": {{{}, "LAST": "{last}"}}}}}}}}"#,
                many.join(",")
            )
        };
        let (one, two) = (DeclaredParts::of(&file("1")), DeclaredParts::of(&file("2")));
        assert_eq!(two.changed_since(&one), ["mcpServers/a/env"]);
        assert!(one.0.len() < 5);
    }
}
