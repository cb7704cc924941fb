//! The one writer of a configuration file: lock, read again, edit, check, replace.
//!
//! A broken file is never touched: whatever does not read as a valid configuration before *and* after the edit is
//! refused. A link is followed to its target; hard links are cut, as with every editor that replaces files. In a
//! directory where nothing can be created the edit fails and says so: writing in place could lose the file.

use std::path::{Path, PathBuf};

use super::durable::{self, Audience, DurableError, Locked};
use super::edit::{self, Change, EditError};
use crate::config::{self, ConfigError};
use crate::protocol::{Shown, shell};
use crate::report::Hint;

/// Whose file is edited, and thus what counts as broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A `.pml.json`: must be a valid configuration.
    Pml,
    /// A client's file such as `.mcp.json`: must be JSON, comments allowed, whatever keys it has.
    Client,
}

/// The text of a file before and after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// What stood there; `None` if there was no file.
    pub before: Option<String>,
    /// What stands there now.
    pub after: String,
}

impl Edited {
    /// Tells whether the file is another than before.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }
}

/// Says why a file was not edited; it is as it was.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file does not read as what it should be.
    #[error("`{}` is broken and was left as it is", Shown::path(path))]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: Box<ConfigError>,
    },
    /// The change does not fit into the file.
    #[error("cannot edit `{}`", Shown::path(path))]
    Edit {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: EditError,
    },
    /// The changed file would not be a valid configuration.
    #[error("the change would break `{}`", Shown::path(path))]
    Breaking {
        /// The file.
        path: PathBuf,
        /// Where and why, in the text that was not written.
        #[source]
        source: Box<ConfigError>,
    },
    /// The file cannot be written.
    #[error("cannot write `{}`", Shown::path(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// Which step failed.
        #[source]
        source: DurableError,
    },
}

impl Hint for WriteError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Broken { source, .. } => source
                .hint()
                .or_else(|| Some("fix the file, then try again".to_owned())),
            Self::Write { path, .. } => {
                let directory = path.parent().unwrap_or(path);
                Some(format!(
                    "to see who may write there: ls -ld {}",
                    shell::path(directory)
                ))
            }
            Self::Edit { .. } | Self::Breaking { .. } => None,
        }
    }
}

/// Makes `changes` in the file at `path`, all or none; a missing file is created with defaults.
pub fn edit(path: &Path, kind: Kind, changes: &[Change]) -> Result<Edited, WriteError> {
    let failed = |source| WriteError::Write {
        path: path.to_owned(),
        source,
    };
    let target = durable::follow(path).map_err(failed)?;
    // Nothing to change needs no right to write; a broken file is told from a locked one.
    let edited = preview(&target, kind, changes)?;
    if !edited.changed() {
        return Ok(edited);
    }
    let directory = target.parent().unwrap_or(Path::new("/"));
    let locked = Locked::lock(directory, Audience::Usual).map_err(failed)?;
    // What counts is what stands there now that nobody else writes.
    let edited = preview(&target, kind, changes)?;
    if edited.changed() {
        let name = target.file_name().unwrap_or_default();
        locked
            .replace(Path::new(name), edited.after.as_bytes(), Audience::Usual)
            .map_err(failed)?;
    }
    Ok(edited)
}

/// What came of the wish for a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// There was none and now there is.
    New,
    /// There was one; it is as it was.
    Existed,
}

/// Puts a new file with `text` at `path`; one that is there already is not touched.
pub fn create(path: &Path, kind: Kind, text: &str) -> Result<Created, WriteError> {
    let failed = |source| WriteError::Write {
        path: path.to_owned(),
        source,
    };
    check(path, kind, text).map_err(|source| WriteError::Breaking {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let locked = Locked::lock(directory, Audience::Usual).map_err(failed)?;
    // A link that leads nowhere counts as a file: whoever made it meant this place.
    if path.symlink_metadata().is_ok() {
        return Ok(Created::Existed);
    }
    let name = path.file_name().unwrap_or_default();
    locked
        .replace(Path::new(name), text.as_bytes(), Audience::Usual)
        .map_err(failed)?;
    Ok(Created::New)
}

/// Keeps a copy of a file beside it, as `NAME.bak` or the next free `NAME.bak.N`; `None` if there is no file.
///
/// The copy is for the user alone: what it copies may hold secrets.
pub fn back_up(path: &Path) -> Result<Option<PathBuf>, WriteError> {
    let text = config::load_text(path).map_err(|source| WriteError::Broken {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    let Some(text) = text else { return Ok(None) };
    let failed = |source| WriteError::Write {
        path: path.to_owned(),
        source,
    };
    let directory = path.parent().unwrap_or(Path::new("/"));
    let locked = Locked::lock(directory, Audience::Usual).map_err(failed)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let first = std::iter::once(format!("{name}.bak"));
    let further = (1_u32..).map(|number| format!("{name}.bak.{number}"));
    for candidate in first.chain(further) {
        let place = directory.join(&candidate);
        if place.symlink_metadata().is_err() {
            locked
                .replace(Path::new(&candidate), text.as_bytes(), Audience::Owner)
                .map_err(failed)?;
            return Ok(Some(place));
        }
    }
    Ok(None)
}

/// Returns what [`edit`] would do, without doing it.
pub fn preview(path: &Path, kind: Kind, changes: &[Change]) -> Result<Edited, WriteError> {
    let broken = |source| WriteError::Broken {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let before = config::load_text(path).map_err(broken)?;
    if let Some(before) = &before {
        check(path, kind, before).map_err(broken)?;
    }
    let text = before.as_deref().unwrap_or(defaults(kind));
    let after = edit::apply(text, changes).map_err(|source| WriteError::Edit {
        path: path.to_owned(),
        source,
    })?;
    check(path, kind, &after).map_err(|source| WriteError::Breaking {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    Ok(Edited { before, after })
}

fn check(path: &Path, kind: Kind, text: &str) -> Result<(), ConfigError> {
    match kind {
        Kind::Pml => config::check(path, text).map(drop),
        Kind::Client => config::check_json(path, text),
    }
}

fn defaults(kind: Kind) -> &'static str {
    match kind {
        Kind::Pml => DEFAULTS,
        Kind::Client => "{\n  \"mcpServers\": {}\n}\n",
    }
}

/// What a new file says: everything asks.
pub const DEFAULTS: &str = r#"{
  "version": "0.1.0",
  "permissions": {
    "allow": [],
    "deny": [],
    "ask": ["*"]
  }
}
"#;

#[cfg(test)]
mod tests;
