//! The names of imported servers: as in the client where that is possible, else the nearest that is.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::config::Launch;
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
    /// Reads a declaration in the words of pml.
    pub(super) fn of(launch: &Launch, entry: &Map<String, Value>) -> Self {
        let counts = |key: &str| ["env", "tools", "cwd", "headers"].contains(&key);
        Self {
            launch: pin(launch, "0").unwrap_or_else(|| launch.clone()),
            members: entry
                .iter()
                .filter(|(key, _)| counts(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        }
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

/// Finds the name of a server that a client calls `wanted`.
pub(super) fn name(
    wanted: &str,
    client: &str,
    identity: &Identity,
    taken: &BTreeMap<DependencyName, Identity>,
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
        .find_map(|name| match taken.get(&name) {
            None => Some(Naming::New(name)),
            Some(known) if known == identity => Some(Naming::Same(name)),
            Some(_) => None,
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
        let mut words = line.split(' ').map(str::to_owned);
        let launch = Launch::Command {
            command: words.next().unwrap(),
            args: words.collect(),
        };
        Identity::of(&launch, &Map::new())
    }

    fn named(wanted: &str, taken: &[(&str, &str)]) -> Naming {
        let taken = taken
            .iter()
            .map(|(name, line)| (name.parse().unwrap(), identity(line)))
            .collect();
        name(wanted, "cursor", &identity("npx -y a"), &taken).unwrap()
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
