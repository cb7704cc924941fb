//! Whether a project's file counts as the user's word, and what it wants beyond what it may.
//!
//! A file that came with a repository, or that others may write, speaks for its author. Until the user has accepted it,
//! exactly as it is, it may declare servers and narrow the rules; whatever would widen them has no effect.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::declared_parts::DeclaredParts;
use super::error::distrust;
use super::ownership::Unowned;
use crate::protocol::{Digest, Shown};

/// How many parts are named in one line.
const PARTS_NAMED: usize = 10;

/// Whether a project's file counts as the user's word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProjectTrust {
    /// There is none, the user wrote, named or accepted it.
    #[default]
    Obeyed,
    /// Somebody else wrote it, and the user has not accepted it as it is.
    Unaccepted(Arc<UnacceptedFile>),
}

impl ProjectTrust {
    /// Returns the file that is not accepted.
    #[must_use]
    pub fn unaccepted(&self) -> Option<&Arc<UnacceptedFile>> {
        match self {
            Self::Obeyed => None,
            Self::Unaccepted(file) => Some(file),
        }
    }
}

/// A project's file that the user has not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnacceptedFile {
    /// The file.
    pub file: PathBuf,
    /// Its path and its text; acceptance is bound to it.
    pub content: Digest,
    /// Why it is not taken for the user's word.
    pub origin: FileOrigin,
    /// What it declares and wants, in words, escaped.
    pub wants: Vec<String>,
    /// What the user accepted of it last, in the same words; empty where they never did.
    pub accepted_before: Vec<String>,
    /// Its parts, also those that no word tells.
    pub parts: DeclaredParts,
    /// The parts of what the user accepted last; empty where they are not known.
    pub parts_before: DeclaredParts,
}

impl UnacceptedFile {
    /// Returns what is new and what is gone since the user accepted the file, each with its sign; everything that it
    /// wants where they never did.
    #[must_use]
    pub fn difference(&self) -> Vec<String> {
        if self.accepted_before.is_empty() {
            return self.wants.clone();
        }
        let new = self
            .wants
            .iter()
            .filter(|want| !self.accepted_before.contains(want));
        let gone = self
            .accepted_before
            .iter()
            .filter(|want| !self.wants.contains(want));
        let new = new.map(|want| format!("+ {want}"));
        let mut changes: Vec<String> = new.chain(gone.map(|want| format!("- {want}"))).collect();
        if self.parts_before.is_empty() && !self.parts.is_empty() {
            changes
                .push("! values that are not told here may have changed as well: read the file".to_owned());
        }
        let parts = if self.parts_before.is_empty() {
            Vec::new()
        } else {
            self.parts.changed_since(&self.parts_before)
        };
        // The words tell every rule.
        let parts = parts.iter().filter(|part| *part != "permissions");
        let parts: Vec<String> = parts.map(|part| format!("`{}`", Shown::line(part))).collect();
        // Values may be secrets, so that they are not shown: the file shows them.
        changes.extend(
            parts
                .chunks(PARTS_NAMED)
                .map(|row| format!("! the value changed of {}", row.join(", "))),
        );
        if changes.is_empty() {
            return vec!["only comments, order or spelling changed".to_owned()];
        }
        changes
    }
}

/// Why a project's file is not taken for the user's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOrigin {
    /// It is as the repository brought it.
    Repository,
    /// The repository around it cannot be understood.
    UnclearRepository,
    /// Others own it or may write it.
    Unowned(Unowned),
    /// The user wants to be asked about every project's file.
    Strict,
}

impl FileOrigin {
    /// Says it in words that follow "it".
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Repository => "came with the repository".to_owned(),
            Self::UnclearRepository => {
                "lies in a repository that does not tell whether it came with it (an index that cannot be read, or \
                 `.gitattributes`)"
                    .to_owned()
            }
            Self::Unowned(unowned) => format!("is not yours alone: {}", distrust(unowned)),
            Self::Strict => {
                "is a project's, and your configuration says `\"projectTrust\": \"strict\"`".to_owned()
            }
        }
    }
}

/// Which files of projects are taken for the user's word without being accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TrustMode {
    /// Those that the user wrote: untracked, or changed since git wrote them.
    #[default]
    OwnWork,
    /// None.
    Strict,
}

/// The record that the user accepted a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustMark {
    /// The file.
    pub file: PathBuf,
    /// Its path and its text.
    pub content: Digest,
    /// What it declared and wanted, in words.
    pub wants: Vec<String>,
    /// Its parts, also those that no word tells; empty where they were not known.
    #[serde(default, skip_serializing_if = "DeclaredParts::is_empty")]
    pub parts: DeclaredParts,
    /// On which road, and by whom.
    pub by: String,
}

/// A file that the user accepted, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedFile {
    /// The record.
    #[serde(flatten)]
    pub mark: TrustMark,
    /// When it was written, in milliseconds since 1970.
    pub at_unix_ms: u64,
}

/// The directory of what the user accepted: one file for each text of each path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustMarks(PathBuf);

/// Who accepted a text that pml wrote itself, after one that counted.
pub(super) const WRITTEN_BY_PML: &str = "pml";

/// A mark is some lines of JSON, that of the largest file some megabytes; more was not written by pml.
const MARK_LIMIT: u64 = 16 * 1024 * 1024;

impl TrustMarks {
    /// Names the directory.
    #[must_use]
    pub fn at(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// Returns the directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// Names the text of a file: acceptance is bound to this.
    #[must_use]
    pub fn content_of(file: &Path, text: &str) -> Digest {
        use std::os::unix::ffi::OsStrExt as _;
        let place = file.canonicalize().unwrap_or_else(|_gone| file.to_owned());
        Digest::of([b"project file", place.as_os_str().as_bytes(), text.as_bytes()])
    }

    /// Returns where the mark of a text stands.
    #[must_use]
    pub fn path_of(&self, content: &Digest) -> PathBuf {
        self.0.join(format!("{content}.json"))
    }

    /// Tells whether the user accepted this text; a mark that cannot be read is none.
    #[must_use]
    pub fn accepts(&self, content: &Digest) -> bool {
        read_mark(&self.path_of(content)).is_some_and(|mark| mark.content == *content)
    }

    /// Tells whether a person accepted this text, and not only pml wrote it: they were shown every declaration in it.
    #[must_use]
    pub fn accepts_by_a_person(&self, content: &Digest) -> bool {
        let mark = read_mark(&self.path_of(content));
        mark.is_some_and(|mark| mark.content == *content && mark.by != WRITTEN_BY_PML)
    }

    /// Lists every mark, the newest first.
    #[must_use]
    pub fn list(&self) -> Vec<AcceptedFile> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let accepted = entries.filter_map(|entry| {
            let written = entry.metadata().ok()?.modified().ok()?;
            let since = written.duration_since(std::time::UNIX_EPOCH).ok()?;
            let accepted = AcceptedFile {
                mark: read_mark(&entry.path())?,
                at_unix_ms: u64::try_from(since.as_millis()).ok()?,
            };
            Some((written, accepted))
        });
        let mut accepted: Vec<_> = accepted.collect();
        accepted.sort_by_key(|(written, accepted)| (Reverse(*written), accepted.mark.file.clone()));
        accepted.into_iter().map(|(_, accepted)| accepted).collect()
    }

    /// Returns what the user accepted of a file last.
    #[must_use]
    pub fn latest_of(&self, file: &Path) -> Option<TrustMark> {
        let mut marks = self.list().into_iter().map(|accepted| accepted.mark);
        marks.find(|mark| mark.file == file)
    }
}

fn read_mark(path: &Path) -> Option<TrustMark> {
    use std::io::Read as _;
    let file = std::fs::File::open(path).ok()?;
    let mut text = String::new();
    file.take(MARK_LIMIT).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unaccepted(wants: &[&str], before: &[&str]) -> UnacceptedFile {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        UnacceptedFile {
            file: PathBuf::from("/project/.pml.json"),
            content: Digest::of(["x"]),
            origin: FileOrigin::Repository,
            wants: words(wants),
            accepted_before: words(before),
            parts: DeclaredParts::of(r#"{"permissions": {"allow": ["x"]}, "limits": {"lineBytes": 1}}"#),
            parts_before: DeclaredParts::of(r#"{"permissions": {}, "limits": {"lineBytes": 1}}"#),
        }
    }

    #[test]
    fn what_changed_since_it_was_accepted_is_told_with_its_sign() {
        assert_eq!(unaccepted(&["a", "b"], &[]).difference(), ["a", "b"]);
        assert_eq!(unaccepted(&["a", "c"], &["a", "b"]).difference(), ["+ c", "- b"]);
        let only = unaccepted(&["a"], &["a"]).difference();
        assert_eq!(only, ["only comments, order or spelling changed"]);
        let other = |before: &str| {
            let parts_before = DeclaredParts::of(before);
            UnacceptedFile {
                parts_before,
                ..unaccepted(&["a"], &["a"])
            }
            .difference()
        };
        assert_eq!(
            other(r#"{"limits": {"lineBytes": 2}}"#),
            ["! the value changed of `limits`"]
        );
        assert_eq!(
            other(""),
            ["! values that are not told here may have changed as well: read the file"]
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn a_mark_counts_for_its_own_text_only_and_a_broken_one_for_none() {
        let directory = tempfile::tempdir().unwrap();
        let marks = TrustMarks::at(directory.path().to_owned());
        let file = directory.path().join(".pml.json");
        let content = TrustMarks::content_of(&file, "{}");
        let mark = TrustMark {
            file,
            content: content.clone(),
            wants: Vec::new(),
            parts: DeclaredParts::default(),
            by: "cli".to_owned(),
        };
        let text = serde_json::to_string(&mark).unwrap();
        assert!(!marks.accepts(&content));
        std::fs::write(marks.path_of(&content), &text).unwrap();
        assert!(marks.accepts(&content));
        // A mark that was copied to the name of another text accepts nothing.
        let other = Digest::of(["other"]);
        std::fs::write(marks.path_of(&other), &text).unwrap();
        assert!(!marks.accepts(&other));
        std::fs::write(marks.path_of(&content), &text[..text.len() / 2]).unwrap();
        assert!(!marks.accepts(&content));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn the_mark_of_a_file_that_wants_much_counts_and_one_beyond_the_limit_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let marks = TrustMarks::at(directory.path().to_owned());
        let mark = TrustMark {
            file: PathBuf::from("/project/.pml.json"),
            content: Digest::of(["text"]),
            wants: vec!["declares a server".to_owned(); 200_000],
            parts: DeclaredParts::default(),
            by: "cli".to_owned(),
        };
        let mut text = serde_json::to_string(&mark).unwrap();
        std::fs::write(marks.path_of(&mark.content), &text).unwrap();
        assert_eq!(marks.latest_of(&mark.file).as_ref(), Some(&mark));
        assert_eq!(marks.latest_of(Path::new("/other/.pml.json")), None);
        text.insert_str(1, &" ".repeat(16 * 1024 * 1024));
        std::fs::write(marks.path_of(&mark.content), &text).unwrap();
        assert!(!marks.accepts(&mark.content));
    }

    #[test]
    fn why_a_file_is_not_the_users_word_is_said_after_it() {
        let unowned = Unowned {
            distrust: super::super::Distrust::Everyone,
            owner: 1000,
            group: 1000,
            mode: 0o666,
            user: 1000,
        };
        let words = [
            FileOrigin::Repository,
            FileOrigin::UnclearRepository,
            FileOrigin::Unowned(unowned),
            FileOrigin::Strict,
        ]
        .map(|origin| origin.in_words());
        assert_eq!(
            words,
            [
                "came with the repository",
                "lies in a repository that does not tell whether it came with it (an index that cannot be read, or \
                 `.gitattributes`)",
                "is not yours alone: every user may write it (mode 666, owner 1000)",
                "is a project's, and your configuration says `\"projectTrust\": \"strict\"`",
            ]
        );
    }
}
