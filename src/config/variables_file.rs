//! The file of variables that the declaration of a server names (`"envFile"`), and how such files are read.
//!
//! It is read whenever its server is started, and kept nowhere: its values are secrets. What decides which code runs must be
//! seen by the person who accepts a server, and a declaration shows no line of such a file: so it may set no such variable.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use super::regular_file::{self, OpenFault};
use super::steering::steers;
use crate::protocol::Shown;
use crate::report::Hint;

/// Files of variables have some lines; a longer one is something else.
const SIZE_LIMIT: u64 = 256 * 1024;

/// The file of variables of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariablesFile {
    /// The directory of the file that declares the server.
    directory: PathBuf,
    path: PathBuf,
}

/// Says why a file of variables cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VariablesFileError {
    /// There is no such file.
    #[error("there is no file `{}`", Shown::path(.path))]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Something else is there.
    #[error("`{}` is not a regular file", Shown::path(.path))]
    NotAFile {
        /// What is there.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read `{}`", Shown::path(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is too large.
    #[error("`{}` has more than {} KiB", Shown::path(.path), SIZE_LIMIT / 1024)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It holds bytes that are no text, or a character that no variable can have.
    #[error("`{}` is not a text of variables", Shown::path(.path))]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// A link leads from it elsewhere.
    #[error("`{}` is a link, or below one, and leads to `{}`", Shown::path(.path), Shown::path(.to))]
    Link {
        /// The file as it is declared.
        path: PathBuf,
        /// Where it is.
        to: PathBuf,
    },
    /// It sets a variable that decides what code runs, or whom it talks to.
    #[error("`{}` sets `{name}`, which decides what runs or what it reaches", Shown::path(.path))]
    Steers {
        /// The file.
        path: PathBuf,
        /// The variable.
        name: String,
    },
}

impl Hint for VariablesFileError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Link { .. } => Some(
                "declare the file that it leads to: what is accepted is the path that is declared".to_owned(),
            ),
            Self::Steers { name, .. } => Some(format!(
                "put `{name}` into the \"env\" of the server, where it is seen by who accepts it"
            )),
            Self::Missing { .. }
            | Self::NotAFile { .. }
            | Self::Read { .. }
            | Self::TooLarge { .. }
            | Self::NotText { .. } => None,
        }
    }
}

impl VariablesFile {
    /// Takes the path as it is declared in a file of this directory; an error says what is wrong with it.
    pub(super) fn new(directory: &Path, declared: &str) -> Result<Self, String> {
        if declared.trim().is_empty() {
            return Err("`envFile` is empty".to_owned());
        }
        if declared.contains("${") {
            return Err(
                "`envFile` is a path from the directory of this file on, in which no `${…}` is expanded: write `.env` for \
                 `${workspaceFolder}/.env`"
                    .to_owned(),
            );
        }
        Ok(Self {
            directory: directory.to_owned(),
            path: lexical(&directory.join(declared)),
        })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what it sets beside `declared`, whose names win.
    pub fn read(
        &self,
        declared: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, VariablesFileError> {
        let path = || self.path.clone();
        let text = self.text()?;
        let mut variables = BTreeMap::new();
        for (name, value) in variables_in(&text) {
            if declared.contains_key(&name) {
                continue;
            }
            if steers(&name) {
                return Err(VariablesFileError::Steers { path: path(), name });
            }
            if value.contains('\0') {
                return Err(VariablesFileError::NotText { path: path() });
            }
            variables.insert(name, value);
        }
        Ok(variables)
    }

    fn text(&self) -> Result<String, VariablesFileError> {
        let path = || self.path.clone();
        let (file, _) = regular_file::open(&self.path).map_err(|fault| match fault {
            OpenFault::NotAFile => VariablesFileError::NotAFile { path: path() },
            OpenFault::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
                VariablesFileError::Missing { path: path() }
            }
            OpenFault::Io(source) => VariablesFileError::Read { path: path(), source },
        })?;
        self.leads_nowhere_else()?;
        let mut bytes = Vec::new();
        let read = file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes);
        read.map_err(|source| VariablesFileError::Read { path: path(), source })?;
        if bytes.len() as u64 > SIZE_LIMIT {
            return Err(VariablesFileError::TooLarge { path: path() });
        }
        String::from_utf8(bytes).map_err(|_| VariablesFileError::NotText { path: path() })
    }

    /// Refuses a link below the directory of the declaration: a program that may write there could lead it to another file
    /// than the one that was accepted.
    fn leads_nowhere_else(&self) -> Result<(), VariablesFileError> {
        let Ok(below) = self.path.strip_prefix(lexical(&self.directory)) else {
            return Ok(());
        };
        let failed = |source| VariablesFileError::Read {
            path: self.path.clone(),
            source,
        };
        let expected = self.directory.canonicalize().map_err(failed)?.join(below);
        let to = self.path.canonicalize().map_err(failed)?;
        if to == expected {
            return Ok(());
        }
        Err(VariablesFileError::Link {
            path: self.path.clone(),
            to,
        })
    }
}

/// Returns a path without `.` and `..`.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the variables that a text sets, as editors read them: `NAME=value`, after `export` or not, a value in quotes over
/// several lines, and what follows a `#` as a comment.
pub(crate) fn variables_in(text: &str) -> impl Iterator<Item = (String, String)> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            let Some((name, value)) = line.split_once('=').filter(|(name, _)| is_name(named(name))) else {
                rest = after;
                continue;
            };
            let begin = line.len() - value.len();
            let (value, end) = value_in(&rest[begin..]);
            let behind = &rest[begin + end..];
            rest = behind.split_once('\n').map_or("", |(_comment, after)| after);
            return Some((named(name).to_owned(), value));
        }
        None
    })
}

/// Reads the value at the beginning of a text; returns where it ends.
fn value_in(text: &str) -> (String, usize) {
    let blanks = text.len() - text.trim_start_matches([' ', '\t']).len();
    let quoted = text[blanks..]
        .chars()
        .next()
        .filter(|quote| "\"'`".contains(*quote));
    let inside = quoted.and_then(|quote| Some((quote, closed(&text[blanks + 1..], quote)?)));
    if let Some((quote, inside)) = inside {
        let value = if quote == '"' {
            inside.replace("\\n", "\n").replace("\\r", "\r")
        } else {
            inside.to_owned()
        };
        return (value, blanks + inside.len() + 2);
    }
    let line = text.lines().next().unwrap_or_default();
    let value = line.split('#').next().unwrap_or_default();
    (value.trim().to_owned(), line.len())
}

/// Returns what stands before the quote that closes a value.
fn closed(text: &str, quote: char) -> Option<&str> {
    let mut is_escaped = false;
    let end = text.char_indices().find(|(_, found)| {
        let ends = *found == quote && !is_escaped;
        is_escaped = *found == '\\' && !is_escaped;
        ends
    });
    end.map(|(end, _)| &text[..end])
}

fn named(text: &str) -> &str {
    let name = text.trim();
    name.strip_prefix("export ").map_or(name, str::trim)
}

/// Tells whether a text can name a variable.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text
            .chars()
            .all(|found| found.is_ascii_alphanumeric() || found == '_')
}

#[cfg(test)]
mod tests;
