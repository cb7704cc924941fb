//! How a server is started or reached, as it is declared: what a person accepts beside its package and its tools.
//!
//! Pure. Of a variable and of a header its name counts and the variables it is made of, but not its value, which may be a
//! secret and is neither kept nor shown. The value counts where it decides which code runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::{Launch, Server, steers, variables};
use crate::protocol::{Shown, shell};

/// How a server is declared, beside the words of its line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LaunchSurroundings {
    /// Whether it is a command, a package or an address.
    pub kind: LaunchKind,
    /// The working directory, if it is another than that of the declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    variables: BTreeMap<String, DeclaredValue>,
    /// The file of further variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variables_file: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, DeclaredValue>,
}

/// What the words of a declaration are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaunchKind {
    /// `"command"` and `"args"`.
    Command,
    /// `"package"` and `"args"`.
    Package,
    /// `"url"`.
    Remote,
}

/// What is kept of the value of a variable or a header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum DeclaredValue {
    /// It decides which code runs: the value as it is declared.
    Steers(String),
    /// The variables that it is made of; none of a plain text.
    MadeOf(BTreeSet<String>),
}

/// A launch as two of them are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedLaunch {
    /// What tells its line from another one: neither the version of a package nor the spelling of its runner plays a part.
    pub line: Vec<String>,
    /// What its words are.
    pub kind: LaunchKind,
    /// The words of its declaration.
    pub words: Vec<String>,
    /// How it is declared beside; `None` where that was not kept.
    pub surroundings: Option<LaunchSurroundings>,
}

/// What differs between two launches, each fact in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchChange {
    /// What was and is not.
    removed: Vec<String>,
    /// What is and was not.
    added: Vec<String>,
    /// What cannot be shown.
    hidden: Option<&'static str>,
}

/// Stands for a difference in what may be a secret.
const OTHER_QUERY: &str =
    "what follows the `?` of its address is not what was accepted; it may hold a key and is not shown";

impl LaunchKind {
    /// Returns what a declaration is.
    #[must_use]
    pub fn of(launch: &Launch) -> Self {
        match launch {
            Launch::Command { .. } => Self::Command,
            Launch::Package { .. } => Self::Package,
            Launch::Remote { .. } => Self::Remote,
        }
    }

    /// Tells what words of a declaration are of which only the words were kept; `None` where they do not say.
    #[must_use]
    pub fn of_words(words: &[String]) -> Option<Self> {
        let first = words.first()?;
        let starts = |prefixes: [&str; 2]| prefixes.iter().any(|prefix| first.starts_with(prefix));
        if starts(["https://", "http://"]) && words.len() == 1 {
            Some(Self::Remote)
        } else if starts(["npm:", "pypi:"]) {
            Some(Self::Package)
        } else if first.contains("${") {
            None
        } else {
            Some(Self::Command)
        }
    }

    /// Names it before its words.
    fn in_words(self) -> &'static str {
        match self {
            Self::Command => "the command",
            Self::Package => "the package",
            Self::Remote => "the address",
        }
    }

    /// Returns the declaration that has these words.
    #[must_use]
    pub fn launch(self, words: &[String]) -> Launch {
        let mut words = words.iter().cloned();
        let first = words.next().unwrap_or_default();
        match self {
            Self::Command => Launch::Command {
                command: first,
                args: words.collect(),
            },
            Self::Package => Launch::Package {
                package: first,
                args: words.collect(),
            },
            Self::Remote => Launch::Remote {
                url: first,
                headers: BTreeMap::new(),
            },
        }
    }
}

impl LaunchSurroundings {
    /// Returns how a server is declared.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        let value = |(name, value): (&String, &String)| {
            let kept = if steers(name) {
                DeclaredValue::Steers(value.clone())
            } else {
                DeclaredValue::MadeOf(variables(value))
            };
            (name.clone(), kept)
        };
        let headers = match &server.launch {
            Launch::Remote { headers, .. } => headers
                .iter()
                .map(|(name, value)| (name.clone(), DeclaredValue::MadeOf(variables(value))))
                .collect(),
            Launch::Command { .. } | Launch::Package { .. } => BTreeMap::new(),
        };
        Self {
            kind: LaunchKind::of(&server.launch),
            cwd: (server.cwd != server.directory).then(|| Shown::path(&server.cwd)),
            variables: server.env.iter().map(value).collect(),
            variables_file: server
                .variables_file
                .as_ref()
                .map(|file| Shown::path(file.path())),
            headers,
        }
    }

    /// Returns how a server is declared as a team shares it: what lies in its project by its name there.
    #[must_use]
    pub fn shared_of(server: &Server) -> Self {
        let project = format!("{}/", Shown::path(&server.directory));
        Self::of(server).with_paths(|path| path.strip_prefix(&project).unwrap_or(path).to_owned())
    }

    /// Returns what a team shares as it is on this machine.
    #[must_use]
    pub fn in_project(&self, directory: &Path) -> Self {
        self.clone().with_paths(|path| {
            if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("{}/{path}", Shown::path(directory))
            }
        })
    }

    fn with_paths(self, spelled: impl Fn(&str) -> String) -> Self {
        Self {
            cwd: self.cwd.as_deref().map(&spelled),
            variables_file: self.variables_file.as_deref().map(&spelled),
            ..self
        }
    }

    fn facts(&self) -> Vec<String> {
        let cwd = self.cwd.iter().map(|cwd| format!("runs in {cwd}"));
        let variables = self.variables.iter();
        let variables =
            variables.map(|(name, value)| format!("gets the variable {name}{}", value.in_words()));
        let file = self.variables_file.iter();
        let file = file.map(|file| format!("gets all variables of the file {file}"));
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| format!("sends the header {name}{}", value.in_words()));
        cwd.chain(variables).chain(file).chain(headers).collect()
    }
}

impl DeclaredValue {
    /// Says it in words that follow a name.
    fn in_words(&self) -> String {
        match self {
            Self::Steers(value) => format!(", which decides what code runs: {}", shell::word(value)),
            Self::MadeOf(names) if names.is_empty() => String::new(),
            Self::MadeOf(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("${{{name}}}")).collect();
                format!(", made of your {}", names.join(", "))
            }
        }
    }
}

impl ComparedLaunch {
    /// Returns its line for a person; a query may hold a key.
    fn shown(&self) -> String {
        let words = self.words.iter();
        match self.kind {
            LaunchKind::Command | LaunchKind::Package => {
                words.map(|word| shell::word(word)).collect::<Vec<_>>().join(" ")
            }
            LaunchKind::Remote => {
                let address = words.map(|word| word.split(['?', '#']).next().unwrap_or_default());
                address.collect()
            }
        }
    }
}

impl LaunchChange {
    /// Compares two launches; what either of them does not know does not differ.
    #[must_use]
    pub fn between(before: &ComparedLaunch, now: &ComparedLaunch) -> Option<Self> {
        let mut change = Self {
            removed: Vec::new(),
            added: Vec::new(),
            hidden: None,
        };
        if before.line != now.line {
            let (was, is) = (before.shown(), now.shown());
            if before.kind != now.kind {
                change.removed.push(format!("{} {was}", before.kind.in_words()));
                change.added.push(format!("{} {is}", now.kind.in_words()));
            } else if was == is {
                change.hidden = Some(OTHER_QUERY);
            } else {
                change.removed.push(was);
                change.added.push(is);
            }
        }
        if let (Some(before), Some(now)) = (&before.surroundings, &now.surroundings) {
            let (was, is) = (before.facts(), now.facts());
            let missing_in = |facts: &[String], of: &[String]| {
                let missing = of.iter().filter(|fact| !facts.contains(fact));
                missing.cloned().collect::<Vec<_>>()
            };
            change.removed.extend(missing_in(&is, &was));
            change.added.extend(missing_in(&was, &is));
        }
        (change.hidden.is_some() || !change.removed.is_empty() || !change.added.is_empty()).then_some(change)
    }

    /// Says it in lines, each with its sign and escaped.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let signed = |sign: char, texts: &[String]| {
            let lines = texts.iter().map(|text| format!("{sign} {}", Shown::line(text)));
            lines.collect::<Vec<_>>()
        };
        let hidden = self.hidden.iter().map(|text| format!("! {text}"));
        let (removed, added) = (signed('-', &self.removed), signed('+', &self.added));
        hidden.chain(removed).chain(added).collect()
    }
}

#[cfg(test)]
mod tests;
