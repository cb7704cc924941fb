//! The names of things: a dependency, a tool as policy knows it, a tool as the client sees it.
//!
//! The wire name must be injective: two tools never share one. A dependency name holds no `__` and does not end
//! in `_`, so the first `__` of a wire name always ends the dependency. A name that has to be changed to fit
//! the wire (other characters, too long) always carries a digest of the policy name, whether or not it
//! collides with anything today: what it is called does not depend on its neighbours.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Digest;

/// Clients show `mcp__pml__<wire name>` and some stop at 64 characters.
pub const WIRE_NAME_LIMIT: usize = 54;

/// Leaves room for `__` and a tool in [`WIRE_NAME_LIMIT`].
const DEPENDENCY_NAME_LIMIT: usize = 32;

/// Hexadecimal characters of the digest in a changed wire name: 24 bits keep a thousand tools apart.
const WIRE_DIGEST_LENGTH: usize = 6;

/// Says why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name has no characters.
    #[error("a server name is empty")]
    Empty,
    /// The name is longer than a wire name could carry.
    #[error("server name `{name}` has {length} characters; at most {DEPENDENCY_NAME_LIMIT} are allowed")]
    TooLong {
        /// The refused name, escaped.
        name: String,
        /// Its length in characters.
        length: usize,
    },
    /// The name has a character outside the grammar.
    #[error("server name `{name}` contains `{found}`; letters, digits, `-`, `_` and `.` are allowed")]
    Character {
        /// The refused name, escaped.
        name: String,
        /// The first character outside the grammar, escaped.
        found: String,
    },
    /// The name would make wire names ambiguous.
    #[error("server name `{name}` contains `__`, which separates server and tool in wire names")]
    Separator {
        /// The refused name.
        name: String,
    },
    /// The name starts or ends with a character that only joins.
    #[error("server name `{name}` must start and end with a letter or a digit")]
    Edge {
        /// The refused name.
        name: String,
    },
    /// The name means something else already.
    #[error("server name `{name}` is reserved for pml")]
    Reserved {
        /// The refused name.
        name: String,
    },
    /// A tool name without `dependency:`.
    #[error("`{name}` is not a tool name; write `server:tool`")]
    NoTool {
        /// The refused name, escaped.
        name: String,
    },
}

/// A declared downstream server, as rules and people name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DependencyName(String);

impl DependencyName {
    const PML: &str = "pml";
    const CLIENT: &str = "client";

    /// Returns the name under which rules know the tools of the client itself.
    #[must_use]
    pub fn client() -> Self {
        Self(Self::CLIENT.to_owned())
    }

    /// Returns the name under which rules and workflows know pml's own tools.
    #[must_use]
    pub fn own() -> Self {
        Self(Self::PML.to_owned())
    }

    /// Reads the name of a server, which must not mean pml or the client.
    pub fn of_server(name: &str) -> Result<Self, NameError> {
        let parsed: Self = name.parse()?;
        if [Self::PML, Self::CLIENT].contains(&name) {
            return Err(NameError::Reserved {
                name: name.to_owned(),
            });
        }
        Ok(parsed)
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DependencyName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let shown = || super::Shown::line(name).to_string();
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if let Some(found) = name
            .chars()
            .find(|found| !found.is_ascii_alphanumeric() && !matches!(found, '-' | '_' | '.'))
        {
            let found = super::Shown::line(&found.to_string()).to_string();
            return Err(NameError::Character { name: shown(), found });
        }
        if name.len() > DEPENDENCY_NAME_LIMIT {
            return Err(NameError::TooLong {
                name: shown(),
                length: name.len(),
            });
        }
        if name.contains("__") {
            return Err(NameError::Separator {
                name: name.to_owned(),
            });
        }
        let edge = |found: Option<char>| found.is_none_or(|found| !found.is_ascii_alphanumeric());
        if edge(name.chars().next()) || edge(name.chars().next_back()) {
            return Err(NameError::Edge {
                name: name.to_owned(),
            });
        }
        Ok(Self(name.to_owned()))
    }
}

impl TryFrom<String> for DependencyName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        name.parse()
    }
}

impl From<DependencyName> for String {
    fn from(name: DependencyName) -> Self {
        name.0
    }
}

impl fmt::Display for DependencyName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// `dependency:tool`: the policy name that rules, logs and messages use.
///
/// The tool part is the dependency's own text, kept as it is; show it through [`super::Shown`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName {
    dependency: DependencyName,
    tool: String,
}

impl ToolName {
    /// Joins a dependency and the name it gives one of its tools.
    #[must_use]
    pub fn new(dependency: DependencyName, tool: impl Into<String>) -> Self {
        Self {
            dependency,
            tool: tool.into(),
        }
    }

    /// Returns the dependency that owns the tool.
    #[must_use]
    pub fn dependency(&self) -> &DependencyName {
        &self.dependency
    }

    /// Returns the name the dependency gave the tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.dependency, self.tool)
    }
}

impl FromStr for ToolName {
    type Err = NameError;

    /// Reads the policy spelling `dependency:tool`; everything after the first `:` is the tool.
    fn from_str(name: &str) -> Result<Self, NameError> {
        match name.split_once(':') {
            Some((dependency, tool)) if !tool.is_empty() => Ok(Self::new(dependency.parse()?, tool)),
            _ => Err(NameError::NoTool {
                name: super::Shown::line(name).to_string(),
            }),
        }
    }
}

impl TryFrom<String> for ToolName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        name.parse()
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.to_string()
    }
}

/// Returns the name by which the client knows `tool`: `[A-Za-z0-9_-]`, at most [`WIRE_NAME_LIMIT`] characters.
#[must_use]
pub fn wire_name(tool: &ToolName) -> String {
    let plain = format!("{}__{}", tool.dependency, tool.tool);
    let fits = |found: char| found.is_ascii_alphanumeric() || matches!(found, '_' | '-');
    if plain.len() <= WIRE_NAME_LIMIT && plain.chars().all(fits) {
        return plain;
    }
    let digest = Digest::of([tool.to_string()]);
    let kept: String = plain
        .chars()
        .map(|found| if fits(found) { found } else { '_' })
        .take(WIRE_NAME_LIMIT - WIRE_DIGEST_LENGTH - 1)
        .collect();
    format!("{kept}_{}", &digest.as_str()[..WIRE_DIGEST_LENGTH])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tool(name: &str) -> ToolName {
        name.parse().unwrap()
    }

    #[test]
    fn a_plain_name_joins_with_two_underscores() {
        assert_eq!(wire_name(&tool("serena:analyze")), "serena__analyze");
        assert_eq!(wire_name(&tool("serena:_private")), "serena___private");
    }

    #[test]
    fn a_name_that_must_change_carries_a_digest() {
        let dotted = wire_name(&tool("my.server:read"));
        let underscored = wire_name(&tool("my_server:read"));
        assert_eq!(underscored, "my_server__read");
        assert!(dotted.starts_with("my_server__read_"), "{dotted}");
        assert_ne!(dotted, underscored);
    }

    #[test]
    fn a_long_name_is_cut_to_the_limit_and_stays_distinct() {
        let long = "x".repeat(100);
        let one = wire_name(&tool(&format!("serena:{long}1")));
        let two = wire_name(&tool(&format!("serena:{long}2")));
        assert_eq!(one.len(), WIRE_NAME_LIMIT);
        assert_ne!(one, two);
    }

    #[test]
    fn refused_names_say_why() {
        for (name, reason) in [
            ("", "a server name is empty"),
            (
                "a__b",
                "server name `a__b` contains `__`, which separates server and tool in wire names",
            ),
            (
                "a:b",
                "server name `a:b` contains `:`; letters, digits, `-`, `_` and `.` are allowed",
            ),
            (
                "a_",
                "server name `a_` must start and end with a letter or a digit",
            ),
            (
                "-rf",
                "server name `-rf` must start and end with a letter or a digit",
            ),
            ("pml", "server name `pml` is reserved for pml"),
            (
                "a\u{202e}b",
                "server name `a\\u{202e}b` contains `\\u{202e}`; letters, digits, `-`, `_` and `.` are allowed",
            ),
        ] {
            assert_eq!(DependencyName::of_server(name).unwrap_err().to_string(), reason);
        }
    }

    #[test]
    fn only_the_first_colon_separates() {
        let name = tool("a:b:c");
        assert_eq!((name.dependency().as_str(), name.tool()), ("a", "b:c"));
    }

    proptest! {
        #[test]
        fn wire_names_fit_every_client(dependency in "[a-z][a-z0-9.-]{0,20}[a-z0-9]", name in "\\PC{1,80}") {
            let name = ToolName::new(dependency.parse().unwrap(), name);
            let wire = wire_name(&name);
            prop_assert!(wire.len() <= WIRE_NAME_LIMIT);
            prop_assert!(wire.chars().all(|found| found.is_ascii_alphanumeric() || found == '_' || found == '-'));
        }

        #[test]
        fn unchanged_wire_names_are_injective(
            one in "[a-z]{1,3}(_[a-z]{1,2})?", two in "[a-z]{1,3}(_[a-z]{1,2})?",
            first in "[a-z_]{1,6}", second in "[a-z_]{1,6}",
        ) {
            let first = ToolName::new(one.parse().unwrap(), first);
            let second = ToolName::new(two.parse().unwrap(), second);
            prop_assert_eq!(first == second, wire_name(&first) == wire_name(&second));
        }
    }
}
