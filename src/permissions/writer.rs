//! The one writer of a configuration file: lock, read again, edit, check, replace.
//!
//! A broken file is never touched: an edit is refused unless the file is a valid configuration before *and* after it. A link of a project is followed only within its directory: a cloned repository may bring one that leads
//! to any file of the user. The user's own file may be a link to anywhere. Hard links are cut, as with every editor
//! that replaces files. In a directory where nothing can be created the edit fails and says so: writing in place
//! could lose the file.

mod joint;
mod lock;
mod put_back;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::edit::{self, ConfigChange, EditError};
use super::trust;
use crate::config::{self, ConfigError, Files, ProjectTrust, UnacceptedFile};
use crate::disk::{self, Audience, DiskError, LockedDirectory};
use crate::pins::LockFileError;
use crate::protocol::{Shown, shell};
use crate::report::Hint;

pub use joint::{JointError, edit_jointly};
pub use lock::edit_lock;
pub use put_back::put_back;

/// Whose file is edited, and thus what counts as broken, where a link may lead and who must have accepted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind<'a> {
    /// A project's `.pml.json`: must be a valid configuration that counts as the user's word, and then still does.
    Pml(&'a Files),
    /// The user's own file: must be a valid configuration, and may be a link to anywhere.
    User,
}

/// The text of a file before and after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The file itself, links followed.
    pub file: PathBuf,
    /// What stood there; `None` if there was no file.
    pub before: Option<String>,
    /// What stands there now.
    pub after: String,
    /// Whether the disk confirmed it.
    pub durability: WriteDurability,
}

/// Whether the disk confirmed what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteDurability {
    /// It did, or nothing was written.
    Confirmed,
    /// It did not: the new text stands, but a power cut may bring the old one back.
    Unconfirmed {
        /// What the operating system said.
        reason: String,
    },
}

impl FileEdit {
    /// Tells whether the file is another than before.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.before.as_ref() != Some(&self.after)
    }
}

impl WriteDurability {
    /// Says that a power cut may undo what was written, where that is so.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Confirmed => None,
            Self::Unconfirmed { reason } => Some(format!(
                "the change stands, but a power cut may undo it: the disk did not confirm it ({reason})"
            )),
        }
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
    /// The lock does not read as one, or cannot hold what it should.
    #[error("`{}` was left as it is", Shown::path(path))]
    BrokenLock {
        /// The lock.
        path: PathBuf,
        /// Why.
        #[source]
        source: LockFileError,
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
    /// The file is a link of a project to a file elsewhere.
    #[error(
        "`{}` is a link that leads out of its directory, to `{}`; neither was touched",
        Shown::path(path),
        Shown::path(target)
    )]
    LeadsOut {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
        /// What the person can do instead.
        instead: String,
    },
    /// The file came from elsewhere, and the user has not accepted it.
    #[error(
        "`{}` was left as it is: it {}, and you have not accepted it",
        Shown::path(&.file.file),
        .file.origin.in_words()
    )]
    Unaccepted {
        /// The file.
        file: Arc<UnacceptedFile>,
    },
    /// The file was saved by somebody else after it was edited, so the edit is not taken back.
    #[error("`{}` was changed meanwhile and is left as it is", Shown::path(path))]
    Overtaken {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("cannot write `{}`", Shown::path(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// Which step failed.
        #[source]
        source: DiskError,
    },
}

impl Hint for WriteError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Broken { source, .. } => source
                .hint()
                .or_else(|| Some("fix the file, then try again".to_owned())),
            Self::BrokenLock { path, .. } => Some(format!(
                "mend it, or take it away and make a new one: rm {} && pml lock",
                shell::path(path)
            )),
            Self::Write { path, .. } => {
                let directory = path.parent().unwrap_or(path);
                Some(format!(
                    "to see who may write there: ls -ld {}",
                    shell::path(directory)
                ))
            }
            Self::LeadsOut { path, instead, .. } => Some(format!(
                "{instead}\nto have a file of its own here, first remove the link: rm {}",
                shell::path(path)
            )),
            Self::Unaccepted { .. } => Some("to see what it wants and to accept it: pml trust".to_owned()),
            Self::Edit { .. } | Self::Breaking { .. } | Self::Overtaken { .. } => None,
        }
    }
}

/// Makes `changes` in the file at `path`, all or none; a missing file is created with defaults.
pub fn edit(path: &Path, kind: FileKind<'_>, changes: &[ConfigChange]) -> Result<FileEdit, WriteError> {
    let failed = |source| WriteError::Write {
        path: path.to_owned(),
        source,
    };
    let target = resolve(path, kind)?;
    // Nothing to change needs no right to write; a broken file is told from a locked one.
    let edited = previewed(&target, kind, changes)?;
    if !edited.changed() {
        return Ok(edited);
    }
    let directory = target.parent().unwrap_or(Path::new("/"));
    let locked = LockedDirectory::lock(directory, Audience::Usual).map_err(failed)?;
    // The file is read again under the lock, where no other process writes it.
    let mut edited = previewed(&target, kind, changes)?;
    if edited.changed() {
        let name = target.file_name().unwrap_or_default();
        let bytes = edited.after.as_bytes();
        keep_accepted(kind, &edited.after);
        edited.durability = replace(&locked, Path::new(name), bytes, Audience::Usual).map_err(failed)?;
    }
    Ok(edited)
}

/// Follows the links of a file that is to be edited; refuses those that lead where its kind may not lead.
pub fn resolve(path: &Path, kind: FileKind<'_>) -> Result<PathBuf, WriteError> {
    let target = disk::follow(path).map_err(|source| WriteError::Write {
        path: path.to_owned(),
        source,
    })?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let may_lead_anywhere = target == path || kind == FileKind::User;
    if may_lead_anywhere || !disk::leads_out(directory, &target) {
        return Ok(target);
    }
    let instead = format!(
        "to edit that file itself, name it: pml --config {} …",
        shell::path(&target)
    );
    Err(WriteError::LeadsOut {
        path: path.to_owned(),
        target,
        instead,
    })
}

/// Replaces a file whose new text counts as soon as it stands there.
fn replace(
    locked: &LockedDirectory,
    name: &Path,
    bytes: &[u8],
    audience: Audience,
) -> Result<WriteDurability, DiskError> {
    match locked.replace(name, bytes, audience) {
        Ok(()) => Ok(WriteDurability::Confirmed),
        Err(DiskError::Unconfirmed { source, .. }) => Ok(WriteDurability::Unconfirmed {
            reason: source.to_string(),
        }),
        Err(error) => Err(error),
    }
}

/// The result of creating a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileCreation {
    /// There was none and now there is.
    New(WriteDurability),
    /// There was one; it is as it was.
    Existed,
}

/// Puts a new file with `text` at `path`; one that is there already is not touched.
pub fn create(path: &Path, kind: FileKind<'_>, text: &str) -> Result<FileCreation, WriteError> {
    let failed = |source| WriteError::Write {
        path: path.to_owned(),
        source,
    };
    check(path, text).map_err(|source| WriteError::Breaking {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let locked = LockedDirectory::lock(directory, Audience::Usual).map_err(failed)?;
    // A link that leads nowhere counts as a file: the person who made the link meant this place.
    if path.symlink_metadata().is_ok() {
        return Ok(FileCreation::Existed);
    }
    let name = path.file_name().unwrap_or_default();
    keep_accepted(kind, text);
    let durability = replace(&locked, Path::new(name), text.as_bytes(), Audience::Usual).map_err(failed)?;
    Ok(FileCreation::New(durability))
}

/// Returns what [`edit`] would do, without doing it.
pub fn preview(path: &Path, kind: FileKind<'_>, changes: &[ConfigChange]) -> Result<FileEdit, WriteError> {
    previewed(&resolve(path, kind)?, kind, changes)
}

fn previewed(path: &Path, kind: FileKind<'_>, changes: &[ConfigChange]) -> Result<FileEdit, WriteError> {
    let broken = |source| WriteError::Broken {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let before = config::load_text(path).map_err(broken)?;
    if let Some(before) = &before {
        check(path, before).map_err(broken)?;
        obeyed(kind, before).map_err(broken)??;
    }
    let text = before.as_deref().unwrap_or(DEFAULTS);
    let after = edit::apply(text, changes).map_err(|source| WriteError::Edit {
        path: path.to_owned(),
        source,
    })?;
    check(path, &after).map_err(|source| WriteError::Breaking {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    Ok(FileEdit {
        file: path.to_owned(),
        before,
        after,
        durability: WriteDurability::Confirmed,
    })
}

/// Refuses to add to a project's file that the user has not accepted: the whole of it would look like their word.
fn obeyed(kind: FileKind<'_>, before: &str) -> Result<Result<(), WriteError>, ConfigError> {
    let FileKind::Pml(files) = kind else {
        return Ok(Ok(()));
    };
    Ok(match config::trust_of(files, before)? {
        ProjectTrust::Obeyed => Ok(()),
        ProjectTrust::Unaccepted(file) => Err(WriteError::Unaccepted { file }),
    })
}

/// Keeps a project's file accepted that pml itself is about to write.
fn keep_accepted(kind: FileKind<'_>, after: &str) {
    let FileKind::Pml(files) = kind else { return };
    let kept = config::mark_for(files, after).map(|mark| {
        trust::accept(&files.accepted, &mark).map_err(|error| crate::report::render(&error, None))
    });
    if let Ok(Err(error)) = kept {
        // The text is the user's all the same; they are asked about it once it is committed.
        tracing::warn!(%error, "it is not recorded that the configuration is accepted");
    }
}

fn check(path: &Path, text: &str) -> Result<(), ConfigError> {
    config::check(path, text).map(drop)
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
