//! The errors of a configuration, each with its file and position.

use std::path::PathBuf;

use super::{Distrust, Unowned};
use crate::protocol::{Shown, shell};
use crate::report::Hint;

/// Says why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there but cannot be read.
    #[error("cannot read `{}`", Shown::path(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The path leads to a directory, a pipe or a device.
    #[error("`{}` is not a regular file", Shown::path(path))]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The path is a link to what is not there: what the file forbids would be forgotten if it counted as none.
    #[error("`{}` is a link that leads nowhere", Shown::path(path))]
    Dangling {
        /// The link.
        path: PathBuf,
    },
    /// The file is not the user's alone: another user could decide what runs.
    #[error("`{}` is not obeyed: {}", Shown::path(path), distrust(unowned))]
    NotObeyed {
        /// The file.
        path: PathBuf,
        /// Whom it lets decide.
        unowned: Unowned,
    },
    /// The file is larger than any configuration.
    #[error("`{}` is larger than {limit} bytes", Shown::path(path))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        limit: u64,
    },
    /// The file is wrong at one place.
    #[error("{}:{line}:{column}: {problem}", Shown::path(path))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What is wrong there.
        problem: Problem,
    },
}

impl Hint for ConfigError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Invalid { problem, .. } => match problem {
                Problem::UnknownKey {
                    expected,
                    nearest: None,
                    ..
                } => Some(format!("the keys here are {}", list(expected))),
                Problem::NotUtf8 => Some("save the file as UTF-8".to_owned()),
                Problem::UserOnly { key, .. } => Some(format!(
                    "take `{key}` out of it; your own file is $XDG_CONFIG_HOME/pml/pml.json (~/.config/pml/pml.json)"
                )),
                _ => None,
            },
            Self::NotAFile { path } => Some(format!("to see what it is: ls -ld {}", shell::path(path))),
            Self::Dangling { path } => Some(format!(
                "put back what it leads to (ls -l {0}), or take the link away: rm {0}",
                shell::path(path)
            )),
            Self::NotObeyed { path, unowned } => Some(mend(&shell::path(path), unowned)),
            Self::Read { .. } | Self::TooLarge { .. } => None,
        }
    }
}

/// Says whom a file lets decide.
pub(super) fn distrust(unowned: &Unowned) -> String {
    let Unowned {
        distrust,
        owner,
        group,
        mode,
        user,
    } = unowned;
    match distrust {
        Distrust::Owner => format!("it belongs to user {owner} (mode {mode:o}), and pml runs as user {user}"),
        Distrust::Link => format!("it is a link of user {owner}, and pml runs as user {user}"),
        Distrust::Everyone => format!("every user may write it (mode {mode:o}, owner {owner})"),
        Distrust::Group => {
            format!("the members of group {group} may write it (mode {mode:o}, owner {owner})")
        }
    }
}

/// Names the commands that make a file the user's alone.
fn mend(path: &str, unowned: &Unowned) -> String {
    let user = unowned.user;
    let own = match unowned.distrust {
        Distrust::Owner => format!("sudo chown {user} {path}"),
        Distrust::Link => format!("sudo chown -h {user} {path}"),
        Distrust::Everyone => format!("chmod o-w {path}"),
        Distrust::Group => format!("chmod g-w {path}"),
    };
    format!(
        "read it first; if it says what you want, make it yours alone: {own}\n\
         or name it, which counts as your word (for a client, set PML_CONFIG): pml --config {path} rules"
    )
}

/// What is wrong at one place of a file; never repeats a value that could be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not JSON, comments and trailing commas apart.
    #[error("{0}")]
    Syntax(String),
    /// The file holds no value at all.
    #[error("the file is empty; write at least `{{}}`")]
    Empty,
    /// The bytes are not text.
    #[error("not UTF-8 from here on")]
    NotUtf8,
    /// The key means nothing here.
    #[error("unknown key `{key}`{}", suggestion(nearest.as_deref()))]
    UnknownKey {
        /// The key, escaped.
        key: String,
        /// The valid key that looks most like it.
        nearest: Option<String>,
        /// Every valid key.
        expected: &'static [&'static str],
    },
    /// The key stands twice in one object.
    #[error("the key `{key}` stands here a second time")]
    DuplicateKey {
        /// The key, escaped.
        key: String,
    },
    /// The value is none of the possible words.
    #[error("`{value}` is not known here; possible are {}", list(expected))]
    UnknownValue {
        /// The value, escaped.
        value: String,
        /// The possible words.
        expected: &'static [&'static str],
    },
    /// The value is of another type.
    #[error("expected {expected}, found {found}")]
    Type {
        /// The type that stands there.
        found: &'static str,
        /// The type that should.
        expected: String,
    },
    /// The key counts in the user's own file alone, and this is a project's.
    #[error("{reason}; `{key}` belongs into the user's file")]
    UserOnly {
        /// The key.
        key: &'static str,
        /// Why not in a project's.
        reason: &'static str,
    },
    /// The value is of the right type and still not possible.
    #[error("{0}")]
    Refused(String),
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}

fn list(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}
