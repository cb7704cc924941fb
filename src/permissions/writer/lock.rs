//! Writes `.pml.lock` as a configuration is written: under the lock of its directory, in one step, never a broken one.

use std::path::Path;

use super::{FileEdit, FileKind, WriteDurability, WriteError, replace, resolve};
use crate::config;
use crate::disk::{Audience, LockedDirectory};
use crate::pins::LockFile;

/// Changes the lock at `path`; a missing one is created, one that cannot be read is left as it is.
pub fn edit_lock(
    path: &Path,
    kind: FileKind<'_>,
    change: impl Fn(LockFile) -> LockFile,
) -> Result<FileEdit, WriteError> {
    let failed = |source| WriteError::Write {
        path: path.to_owned(),
        source,
    };
    let target = resolve(path, kind)?;
    let edited = edited(&target, &change)?;
    if !edited.changed() {
        return Ok(edited);
    }
    let directory = target.parent().unwrap_or(Path::new("/"));
    let locked = LockedDirectory::lock(directory, Audience::Usual).map_err(failed)?;
    // The file is read again under the lock, where no other process writes it.
    let mut edited = self::edited(&target, &change)?;
    if edited.changed() {
        let name = target.file_name().unwrap_or_default();
        let bytes = edited.after.as_bytes();
        edited.durability = replace(&locked, Path::new(name), bytes, Audience::Usual).map_err(failed)?;
    }
    Ok(edited)
}

fn edited(path: &Path, change: impl Fn(LockFile) -> LockFile) -> Result<FileEdit, WriteError> {
    let before = config::load_lock_text(path).map_err(|source| WriteError::Broken {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    let broken = |source| WriteError::BrokenLock {
        path: path.to_owned(),
        source,
    };
    let lock = before
        .as_deref()
        .map(LockFile::read)
        .transpose()
        .map_err(broken)?;
    let after = change(lock.unwrap_or_default())
        .written_into(before.as_deref())
        .map_err(broken)?;
    Ok(FileEdit {
        file: path.to_owned(),
        before,
        after,
        durability: WriteDurability::Confirmed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::Pin;

    fn with(name: &str) -> impl Fn(LockFile) -> LockFile {
        let name = name.parse().unwrap();
        move |mut lock| {
            lock.servers.insert(
                std::clone::Clone::clone(&name),
                Pin {
                    launch: vec!["x".to_owned()],
                    ..Pin::default()
                },
            );
            lock
        }
    }

    #[test]
    fn writers_at_once_lose_nothing_and_a_broken_lock_is_left() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".pml.lock");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || edit_lock(path, FileKind::User, with(&format!("s{number}"))).unwrap());
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(LockFile::read(&text).unwrap().servers.len(), 8);
        let again = edit_lock(&path, FileKind::User, with("s1")).unwrap();
        assert!(!again.changed());

        let broken = text.replace("\"servers\"", "<<<<<<< ours");
        std::fs::File::options()
            .write(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        crate::disk::replace(&path, broken.as_bytes()).unwrap();
        let error = edit_lock(&path, FileKind::User, with("s9")).unwrap_err();
        assert!(matches!(error, WriteError::BrokenLock { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), broken);
    }
}
