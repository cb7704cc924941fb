//! What a project brings for the agent itself: settings, hooks and commands in a folder of its own. It blocks.
//!
//! All of it may run programs, and a headless agent does not ask whether a directory is trusted. So it counts only once the
//! user has accepted it exactly as it is; a change, such as one that came with a `git pull`, must be accepted anew.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::config::{Environment, TrustMark, TrustMarks};
use crate::protocol::{Digest, Shown};

/// The folder of the agent in a project.
pub const AGENT_FOLDER: &str = ".claude";

/// Copies of the project that the agent works in: they hold nothing that it obeys here.
const COPIES: &str = "worktrees";

/// More files, deeper folders or more bytes than a person can accept by looking at them.
const FILES: usize = 2_000;
/// See [`FILES`].
const DEPTH: usize = 12;
/// See [`FILES`].
const BYTES: u64 = 16 * 1024 * 1024;

/// How many lines a person is shown of what is wanted.
const SHOWN: usize = 60;

/// What a project brings for the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectSettings {
    /// Nothing.
    Absent,
    /// This, which may be accepted.
    Found(FoundSettings),
    /// Something that cannot be told exactly, and so cannot be accepted.
    Unclear {
        /// The folder.
        folder: PathBuf,
        /// Why not, in words that follow "it".
        reason: &'static str,
    },
}

/// What a project brings for the agent, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSettings {
    /// The folder.
    pub folder: PathBuf,
    /// Its path and every file in it; acceptance is bound to it.
    pub content: Digest,
    /// What it holds, in words, escaped.
    pub wants: Vec<String>,
}

impl ProjectSettings {
    /// Looks at what the project in `directory` brings.
    #[must_use]
    pub fn read(directory: &Path, environment: &Environment) -> Self {
        let folder = directory.join(AGENT_FOLDER);
        // Also what is no folder counts: it may be a link to one a moment later.
        if folder.symlink_metadata().is_err() || is_users_own(&folder, environment) {
            return Self::Absent;
        }
        let mut reading = Reading {
            folder: &folder,
            parts: vec![folder.as_os_str().as_encoded_bytes().to_vec()],
            wants: Vec::new(),
            files: 0,
            left: BYTES,
        };
        match reading.directory(&folder, 0) {
            Ok(()) if reading.files == 0 => Self::Absent,
            Ok(()) => {
                let more = reading.wants.len().saturating_sub(SHOWN);
                reading.wants.truncate(SHOWN);
                if more > 0 {
                    reading.wants.push(format!("and {more} more"));
                }
                Self::Found(FoundSettings {
                    content: Digest::of(reading.parts),
                    wants: reading.wants,
                    folder,
                })
            }
            Err(reason) => Self::Unclear { folder, reason },
        }
    }

    /// Tells whether the agent may obey it.
    #[must_use]
    pub fn counts(&self, marks: &TrustMarks) -> bool {
        match self {
            Self::Absent => true,
            Self::Found(found) => marks.accepts(&found.content),
            Self::Unclear { .. } => false,
        }
    }
}

impl FoundSettings {
    /// Makes the mark that the user accepts it.
    #[must_use]
    pub fn mark(&self, by: &str) -> TrustMark {
        TrustMark {
            file: self.folder.clone(),
            content: self.content.clone(),
            wants: self.wants.clone(),
            parts: crate::config::DeclaredParts::default(),
            by: by.to_owned(),
        }
    }
}

/// Tells whether the folder is the one of the user, which the agent obeys everywhere.
fn is_users_own(folder: &Path, environment: &Environment) -> bool {
    let home = environment
        .variable("HOME")
        .map(|home| Path::new(home).join(AGENT_FOLDER));
    let named = environment.variable("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let Ok(folder) = folder.canonicalize() else {
        return false;
    };
    [home, named]
        .into_iter()
        .flatten()
        .any(|own| own.canonicalize().is_ok_and(|own| own == folder))
}

struct Reading<'a> {
    folder: &'a Path,
    parts: Vec<Vec<u8>>,
    wants: Vec<String>,
    files: usize,
    left: u64,
}

impl Reading<'_> {
    fn directory(&mut self, directory: &Path, depth: usize) -> Result<(), &'static str> {
        const UNREADABLE: &str = "cannot be read";
        if directory
            .symlink_metadata()
            .map_err(|_gone| UNREADABLE)?
            .is_symlink()
        {
            return Err("holds a link to a folder");
        }
        if depth > DEPTH {
            return Err("holds folders deeper than a person looks");
        }
        let entries = std::fs::read_dir(directory).map_err(|_closed| UNREADABLE)?;
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(|_gone| UNREADABLE)?.path());
            if paths.len() > FILES {
                return Err("holds more files than a person looks at");
            }
        }
        paths.sort();
        for path in paths {
            if depth == 0 && path.ends_with(COPIES) {
                continue;
            }
            // A link to a file counts as what it leads to: the agent reads it like that.
            let found = std::fs::metadata(&path).map_err(|_broken| UNREADABLE)?;
            if found.is_dir() {
                self.directory(&path, depth + 1)?;
            } else if found.is_file() {
                self.file(&path).ok_or(UNREADABLE)?;
                if self.files > FILES || self.left == 0 {
                    return Err("holds more than a person looks at");
                }
            } else {
                return Err("holds what is neither a file nor a folder");
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Option<()> {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).ok()?;
        let read = file.take(self.left).read_to_end(&mut bytes).ok()?;
        self.left -= u64::try_from(read).ok()?;
        self.files += 1;
        let name = path.strip_prefix(self.folder).ok()?;
        self.parts.push(name.as_os_str().as_encoded_bytes().to_vec());
        let shown = Shown::path(name);
        if shown.starts_with("settings") {
            self.wants.extend(wishes(&shown, &bytes));
        } else {
            self.wants.push(format!("brings `{shown}`"));
        }
        self.parts.push(bytes);
        Some(())
    }
}

/// Says what a file of settings wants: every command that it has run, and what else it sets.
fn wishes(name: &str, bytes: &[u8]) -> Vec<String> {
    let settings = serde_json::from_slice::<Value>(bytes).unwrap_or_default();
    let Some(settings) = settings.as_object() else {
        return vec![format!("brings `{name}`, which cannot be read")];
    };
    let mut wishes = Vec::new();
    let events = settings.get("hooks").and_then(Value::as_object);
    for (event, hooks) in events.into_iter().flatten() {
        let hooks = hooks.as_array().into_iter().flatten();
        let commands = hooks.filter_map(|hook| hook["hooks"].as_array()).flatten();
        for hook in commands {
            let runs = match hook["command"].as_str() {
                Some(command) => Shown::line(command).to_string(),
                None => Shown::line(&hook.to_string()).to_string(),
            };
            wishes.push(format!("`{name}` runs on {}: {runs}", Shown::line(event)));
        }
    }
    let others = settings.keys().filter(|key| *key != "hooks");
    wishes.extend(others.map(|key| format!("`{name}` sets `{}`", Shown::line(key))));
    if wishes.is_empty() {
        wishes.push(format!("brings `{name}`, which sets nothing"));
    }
    wishes
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
mod tests {
    use super::*;

    fn project() -> (tempfile::TempDir, Environment) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join(".claude/commands")).unwrap();
        let home = directory.path().join("home");
        (directory, Environment::new([("HOME", home)], "/"))
    }

    fn found(directory: &Path, environment: &Environment) -> FoundSettings {
        match ProjectSettings::read(directory, environment) {
            ProjectSettings::Found(found) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_project_brings_is_said_and_every_change_of_it_is_another() {
        let (directory, environment) = project();
        let read = || ProjectSettings::read(directory.path(), &environment);
        assert_eq!(read(), ProjectSettings::Absent, "empty folders");
        let folder = directory.path().join(".claude");
        let settings = r#"{ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "rm -rf \u001b[0m" }] }] },
            "permissions": { "allow": ["Bash"] } }"#;
        std::fs::write(folder.join("settings.json"), settings).unwrap();
        std::fs::write(folder.join("commands/go.md"), "go").unwrap();
        let first = found(directory.path(), &environment);
        assert_eq!(first.wants.len(), 3, "{:?}", first.wants);
        assert_eq!(first.wants[0], "brings `commands/go.md`");
        assert!(
            first.wants[1].starts_with("`settings.json` runs on Stop: rm -rf ")
                && !first.wants[1].contains('\u{1b}'),
            "{:?}",
            first.wants
        );
        assert_eq!(first.wants[2], "`settings.json` sets `permissions`");
        std::fs::create_dir(folder.join("worktrees")).unwrap();
        std::fs::write(folder.join("worktrees/x"), "x").unwrap();
        assert_eq!(found(directory.path(), &environment), first);
        std::fs::write(folder.join("commands/go.md"), "gone").unwrap();
        assert_ne!(found(directory.path(), &environment).content, first.content);
    }

    #[test]
    fn a_link_to_a_folder_cannot_be_accepted_and_the_folder_of_the_user_need_not_be() {
        let (directory, environment) = project();
        let folder = directory.path().join(".claude");
        std::fs::write(folder.join("settings.json"), "{}").unwrap();
        let linked = directory.path().join("linked");
        std::fs::create_dir(&linked).unwrap();
        std::os::unix::fs::symlink(&folder, linked.join(".claude")).unwrap();
        let unclear = ProjectSettings::read(&linked, &environment);
        assert!(matches!(unclear, ProjectSettings::Unclear { .. }), "{unclear:?}");
        assert!(!unclear.counts(&TrustMarks::at(directory.path().join("trust"))));
        let own = Environment::new([("HOME", directory.path())], "/");
        assert_eq!(
            ProjectSettings::read(directory.path(), &own),
            ProjectSettings::Absent
        );
    }
}
