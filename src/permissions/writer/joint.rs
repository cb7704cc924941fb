//! The joint edit: a change of a file that is put back if a second action fails, such as recording an answer.

use std::path::Path;

use super::{FileEdit, FileKind, WriteError, keep_accepted, previewed, replace, resolve};
use crate::disk::{Audience, LockedDirectory};
use crate::permissions::edit::ConfigChange;

/// Says why an edit that stands or falls with something else was not made.
#[derive(Debug)]
pub enum JointError<E> {
    /// The file could not be edited; the other was not tried.
    Write(WriteError),
    /// The other failed, and the file is as it was.
    Other(E),
    /// The other failed, and the file could not be put back: the edit stands.
    Stands {
        /// Why the other failed.
        error: E,
        /// Why the file could not be put back.
        source: WriteError,
    },
}

/// Edits a file together with something else: while no other writer can, `check` is asked first, then the file is
/// edited, then `other` is done; where that fails, the file is put back, unless somebody has saved it meanwhile.
///
/// What happens while the lock is waited for is thus seen before anything is written.
pub fn edit_jointly<T, E>(
    path: &Path,
    kind: FileKind<'_>,
    changes: &[ConfigChange],
    check: impl FnOnce() -> Result<(), E>,
    other: impl FnOnce() -> Result<T, E>,
) -> Result<(FileEdit, T), JointError<E>> {
    let failed = |source| WriteError::Write {
        path: path.to_owned(),
        source,
    };
    let target = resolve(path, kind).map_err(JointError::Write)?;
    // Nothing to change needs no right to write.
    let edited = previewed(&target, kind, changes).map_err(JointError::Write)?;
    if !edited.changed() {
        let done = other().map_err(JointError::Other)?;
        return Ok((edited, done));
    }
    let directory = target.parent().unwrap_or(Path::new("/"));
    let locked = LockedDirectory::lock(directory, Audience::Usual)
        .map_err(|source| JointError::Write(failed(source)))?;
    check().map_err(JointError::Other)?;
    let mut edited = previewed(&target, kind, changes).map_err(JointError::Write)?;
    let name = Path::new(target.file_name().unwrap_or_default());
    if edited.changed() {
        let bytes = edited.after.as_bytes();
        keep_accepted(kind, &edited.after);
        edited.durability = replace(&locked, name, bytes, Audience::Usual)
            .map_err(|source| JointError::Write(failed(source)))?;
    }
    match other() {
        Ok(done) => Ok((edited, done)),
        Err(error) if !edited.changed() => Err(JointError::Other(error)),
        Err(error) => {
            let put_back = match previewed(&target, kind, changes) {
                Ok(now) if now.before.as_ref() == Some(&edited.after) => match &edited.before {
                    Some(before) => replace(&locked, name, before.as_bytes(), Audience::Usual).map(drop),
                    None => locked.remove(&[name.to_owned()]),
                }
                .map_err(failed),
                // An editor takes no lock: what a person saved meanwhile is theirs, and does not say it.
                Ok(now) if now.changed() => Ok(()),
                Ok(_) | Err(_) => Err(WriteError::Overtaken { path: target }),
            };
            Err(match put_back {
                Ok(()) => JointError::Other(error),
                Err(source) => JointError::Stands { error, source },
            })
        }
    }
}
