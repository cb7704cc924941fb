//! The one writer of what the user accepted of projects' files.

use std::path::{Path, PathBuf};

use crate::config::{TrustMark, TrustMarks, UnacceptedFile};
use crate::disk;
use crate::history::{Record, Text};
use crate::protocol::Shown;

/// How many texts of one file stay accepted: a person who changes branches meets the same few again.
const TEXTS: usize = 20;

/// Says why it could not be recorded that a file is accepted, or no longer is.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file could not be written or removed: what counted before counts still.
    #[error("cannot write `{}`", Shown::path(path))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A file is no longer accepted, but that may not last.
    #[error(
        "it is no longer accepted, but the disk did not confirm the change in `{}`: a power cut may undo it",
        Shown::path(path)
    )]
    Unconfirmed {
        /// The directory of what is accepted.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
}

/// Records that the user accepted a text; the oldest texts of the same file beyond a few are forgotten.
pub fn accept(marks: &TrustMarks, mark: &TrustMark) -> Result<(), TrustError> {
    let path = marks.path_of(&mark.content);
    let failed = |source| TrustError::Write {
        path: path.clone(),
        source,
    };
    disk::create_private_directory(marks.directory()).map_err(failed)?;
    let text = serde_json::to_string_pretty(mark).map_err(|error| failed(error.into()))?;
    disk::replace(&path, format!("{text}\n").as_bytes()).map_err(failed)?;
    if let Err(source) = disk::sync_directory(marks.directory()) {
        // What the disk does not confirm does not count: the person is told that it does not.
        disk::remove_file(&path).map_err(failed)?;
        return Err(failed(source));
    }
    let marked = marks.list().into_iter().map(|accepted| accepted.mark);
    let of_file = marked.filter(|other| other.file == mark.file);
    for old in of_file.skip(TEXTS) {
        // One that stays is found again the next time.
        let _ = disk::remove_file(&marks.path_of(&old.content));
    }
    Ok(())
}

/// Takes back every acceptance of a file; returns how many there were.
pub fn revoke(marks: &TrustMarks, file: &Path) -> Result<usize, TrustError> {
    let mut revoked = 0;
    let marked = marks.list().into_iter().map(|accepted| accepted.mark);
    for mark in marked.filter(|mark| mark.file == file) {
        let path = marks.path_of(&mark.content);
        disk::remove_file(&path).map_err(|source| TrustError::Write { path, source })?;
        revoked += 1;
    }
    if revoked > 0 {
        disk::sync_directory(marks.directory()).map_err(|source| TrustError::Unconfirmed {
            path: marks.directory().to_owned(),
            source,
        })?;
    }
    Ok(revoked)
}

/// Returns the record in the history that a file was accepted.
#[must_use]
pub fn record(mark: &TrustMark) -> Record {
    Record::Trust {
        file: Text::path(&mark.file),
        content: mark.content.clone(),
        by: Text::of(&mark.by),
    }
}

/// Returns the record in the history that a file is no longer accepted.
#[must_use]
pub fn record_revoked(file: &Path, by: &str) -> Record {
    Record::Untrust {
        file: Text::path(file),
        by: Text::of(by),
    }
}

/// Makes the mark of a file that the user accepts.
#[must_use]
pub fn mark_of(file: &UnacceptedFile, by: &str) -> TrustMark {
    TrustMark {
        file: file.file.clone(),
        content: file.content.clone(),
        wants: file.wants.clone(),
        parts: file.parts.clone(),
        by: by.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Digest;

    fn mark(file: &str, text: &str) -> TrustMark {
        TrustMark {
            file: PathBuf::from(file),
            content: Digest::of([file, text]),
            wants: vec![text.to_owned()],
            parts: crate::config::DeclaredParts::default(),
            by: "cli:pts/3".to_owned(),
        }
    }

    #[test]
    fn what_was_accepted_counts_until_it_is_taken_back_and_only_the_newest_texts_stay() {
        let directory = tempfile::tempdir().unwrap();
        let marks = TrustMarks::at(directory.path().join("trust"));
        assert_eq!(revoke(&marks, Path::new("/a")).unwrap(), 0);
        for at in 0..30 {
            accept(&marks, &mark("/a", &at.to_string())).unwrap();
        }
        assert_eq!(marks.list().len(), TEXTS);
        accept(&marks, &mark("/b", "other")).unwrap();
        assert_eq!(marks.list().len(), TEXTS + 1, "each file has texts of its own");
        assert_eq!(marks.latest_of(Path::new("/a")).unwrap().wants, ["29"]);
        assert!(!marks.accepts(&mark("/a", "9").content));
        assert!(marks.accepts(&mark("/a", "10").content));
        assert_eq!(revoke(&marks, Path::new("/a")).unwrap(), TEXTS);
        assert!(!marks.accepts(&mark("/a", "29").content));
        assert!(marks.accepts(&mark("/b", "other").content));
    }
}
