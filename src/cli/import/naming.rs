//! The names of imported servers: as in the client where that is possible, else the nearest that is.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::config::{self, Launch};
use crate::loader::pin;
use crate::protocol::DependencyName;

/// The longest name that a server may have; see `DependencyName`.
const LONGEST: usize = 32;

/// What makes two declarations the same server: how it is started but for its version, and what it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    launch: Launch,
    members: BTreeMap<String, Value>,
}

impl Identity {
    /// Reads a declaration whose references name the values that they stand for; `None` if it is none.
    pub(super) fn of(canonical: &Map<String, Value>) -> Option<Self> {
        let text = json!({ "mcpServers": { "probe": canonical } }).to_string();
        let mut declared = config::check(Path::new("/probe/.pml.json"), &text).ok()?;
        let launch = declared.servers.pop_first()?.1.launch;
        let counts = |key: &str| ["env", "envFile", "tools", "cwd", "headers"].contains(&key);
        let members = canonical.iter().filter(|(key, _)| counts(key));
        Some(Self {
            launch: pin(&launch, "0").unwrap_or(launch),
            members: members.map(|(key, value)| (key.clone(), value.clone())).collect(),
        })
    }
}

/// A name for a server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// It gets this name.
    New(DependencyName),
    /// The same server has this name already.
    Same(DependencyName),
}

/// What stands under a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// No server.
    Nothing,
    /// This very server.
    Same,
    /// Another one.
    Other,
}

/// Finds the name of a server that a client calls `wanted`.
pub(super) fn name(
    wanted: &str,
    client: &str,
    standing: impl Fn(&DependencyName) -> Standing,
) -> Option<Naming> {
    let fitting = fitting(wanted);
    let with = |suffix: &str| {
        let kept = LONGEST.saturating_sub(suffix.len());
        let start: String = fitting.chars().take(kept).collect();
        format!("{}{suffix}", start.trim_end_matches(['-', '_', '.']))
    };
    let numbered = (2..100).map(|number| with(&format!("-{client}-{number}")));
    let candidates = std::iter::once(with(""))
        .chain([with(&format!("-{client}"))])
        .chain(numbered);
    candidates
        .filter_map(|candidate| DependencyName::of_server(&candidate).ok())
        .find_map(|name| match standing(&name) {
            Standing::Nothing => Some(Naming::New(name)),
            Standing::Same => Some(Naming::Same(name)),
            Standing::Other => None,
        })
}

/// Replaces what a name may not have.
fn fitting(wanted: &str) -> String {
    let allowed = |found: char| found.is_ascii_alphanumeric() || matches!(found, '-' | '_' | '.');
    let mut name: String = wanted
        .chars()
        .map(|found| if allowed(found) { found } else { '-' })
        .collect();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    let name = name.trim_matches(['-', '_', '.']);
    if name.is_empty() {
        "server".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(line: &str) -> Identity {
        let words: Vec<&str> = line.split(' ').collect();
        let entry = json!({ "command": words[0], "args": words[1..] });
        Identity::of(entry.as_object().unwrap()).unwrap()
    }

    fn named(wanted: &str, taken: &[(&str, &str)]) -> Naming {
        let own = identity("npx -y a");
        name(wanted, "cursor", |name| {
            match taken.iter().find(|(known, _)| *known == name.as_str()) {
                None => Standing::Nothing,
                Some((_, line)) if identity(line) == own => Standing::Same,
                Some(_) => Standing::Other,
            }
        })
        .unwrap()
    }

    fn new(name: &str) -> Naming {
        Naming::New(name.parse().unwrap())
    }

    #[test]
    fn a_name_that_pml_cannot_have_becomes_the_nearest_that_it_can() {
        assert_eq!(named("my server__(x)", &[]), new("my-server_-x"));
        assert_eq!(named("client", &[]), new("client-cursor"));
        assert_eq!(named("ß", &[]), new("server"));
        let long = "a".repeat(40);
        assert_eq!(named(&long, &[]), new(&long[..32]));
    }

    #[test]
    fn the_same_server_is_one_at_whatever_version_and_another_gets_a_name_of_its_own() {
        assert_eq!(
            named("a", &[("a", "npx -y a@1.2.3")]),
            Naming::Same("a".parse().unwrap())
        );
        assert_eq!(named("a", &[("a", "npx -y b")]), new("a-cursor"));
        assert_eq!(
            named("a", &[("a", "npx -y b"), ("a-cursor", "npx -y c")]),
            new("a-cursor-2")
        );
    }
}
