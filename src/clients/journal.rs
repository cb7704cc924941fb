//! What an import does to files, written down before the first of them is touched, so that it can be taken back.
//!
//! The journal is for the user alone: it holds the exact text of every file before and after, secrets included. Nothing in
//! it changes afterwards: what was done so far is seen by the files themselves, wherever the import was killed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::client::{Client, Scope};
use super::edit::{current, put};
use super::error::ClientError;
use super::format::Change;
use super::table::client;
use crate::config;
use crate::disk::{Audience, LockedDirectory};
use crate::protocol::Digest;

/// Everything that one import does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Journal {
    /// When it began, in milliseconds since 1970.
    pub at: i64,
    /// The files of clients.
    pub clients: Vec<FileChange>,
    /// What is asked of the program of Claude Code.
    pub claude: Vec<ClaudeChange>,
    /// The configuration files of pml.
    pub configurations: Vec<ConfigurationChange>,
    /// Which value each variable stands for that servers refer to since: no other value gets its name.
    #[serde(default)]
    pub handed: BTreeMap<String, Digest>,
}

/// A change of one file of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileChange {
    /// The client, as the command line names it.
    pub client: String,
    /// The file, links followed.
    pub path: PathBuf,
    /// The keys that lead to its servers.
    pub key: Vec<String>,
    /// What it said before; `None` if there was none.
    pub before: Option<String>,
    /// What it says after.
    pub after: String,
    /// The servers that were taken out.
    pub removed: Vec<String>,
    /// The name under which pml was put there, if it was.
    pub put: Option<String>,
}

/// What is asked of the program of Claude Code, which alone writes its own file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaudeChange {
    /// `user` or `local`.
    pub scope: String,
    /// The directory in which it is asked: a local scope is about it.
    pub directory: PathBuf,
    /// The servers that are taken out, as they were.
    pub removed: Map<String, Value>,
    /// The entry of pml that is put there, if it is.
    pub put: Option<Value>,
}

/// A change of a configuration file of pml.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigurationChange {
    /// The file, links followed.
    pub path: PathBuf,
    /// Whether it is the user's own.
    pub is_users: bool,
    /// What it said before; `None` if there was none.
    pub before: Option<String>,
    /// What it says after.
    pub after: String,
    /// The servers that were declared.
    pub added: Vec<String>,
    /// Whether there was a lock beside it.
    pub had_lock: bool,
}

/// What came of taking back the change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// It was never made, or is taken back already.
    Already,
    /// Every byte is as it was.
    Whole,
    /// The file was changed since: pml was taken out and the servers were put back, the rest is as it is.
    Entries,
    /// The file is gone, and stays so.
    Gone,
}

impl Journal {
    /// Writes the journal before anything that it describes is done; returns where it is.
    pub fn write(&self, state: &Path) -> Result<PathBuf, ClientError> {
        let directory = directory(state);
        let path = (0..).map(|more| directory.join(format!("{:015}.json", self.at + more)));
        let path = { path }.find(|path| !path.exists()).unwrap_or_default();
        let failed = |source| ClientError::Write {
            path: path.clone(),
            source,
        };
        let text =
            serde_json::to_vec_pretty(self).map_err(|_| ClientError::Journal { path: path.clone() })?;
        let locked = LockedDirectory::lock(&directory, Audience::Owner).map_err(failed)?;
        let name = Path::new(path.file_name().unwrap_or_default());
        locked.replace(name, &text, Audience::Owner).map_err(failed)?;
        Ok(path)
    }

    /// Returns the journal of the last import that was not taken back.
    pub fn latest(state: &Path) -> Result<Option<(PathBuf, Self)>, ClientError> {
        let Some(path) = journals(state).pop() else {
            return Ok(None);
        };
        let journal = Self::read(&path)?;
        Ok(Some((path, journal)))
    }

    /// Returns the journals of all imports that were not taken back, the oldest first.
    pub fn all(state: &Path) -> Result<Vec<Self>, ClientError> {
        journals(state).iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Self, ClientError> {
        let text = current(path)?.unwrap_or_default();
        serde_json::from_str(&text).map_err(|_| ClientError::Journal {
            path: path.to_owned(),
        })
    }

    /// Tells whether there is another import that can be taken back.
    #[must_use]
    pub fn is_there(state: &Path) -> bool {
        !journals(state).is_empty()
    }

    /// Forgets a journal: what it describes is taken back.
    pub fn remove(path: &Path) -> Result<(), ClientError> {
        let directory = path.parent().unwrap_or(Path::new("/"));
        let failed = |source| ClientError::Write {
            path: path.to_owned(),
            source,
        };
        let locked = LockedDirectory::lock(directory, Audience::Owner).map_err(failed)?;
        let name = PathBuf::from(path.file_name().unwrap_or_default());
        locked.remove(&[name]).map_err(failed)
    }
}

fn directory(state: &Path) -> PathBuf {
    state.join("imports")
}

/// Lists the journals, the oldest first.
fn journals(state: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory(state))
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    found.sort();
    found
}

impl FileChange {
    /// Takes the change back, as far as the file is what it left.
    pub fn restore(&self) -> Result<Restored, ClientError> {
        let now = current(&self.path)?;
        if now == self.before {
            return Ok(Restored::Already);
        }
        let Some(now) = now else { return Ok(Restored::Gone) };
        if now == self.after {
            put(&self.path, Some(&now), self.before.as_deref())?;
            return Ok(Restored::Whole);
        }
        let failed = |reason| ClientError::Edit {
            path: self.path.clone(),
            reason,
        };
        let client: &Client =
            client(&self.client).ok_or_else(|| failed("its client is not known".to_owned()))?;
        let restored = client
            .format
            .edited(&now, &self.key, &self.entries_back(client, &now).map_err(failed)?)
            .map_err(failed)?;
        if restored == now {
            return Ok(Restored::Already);
        }
        put(&self.path, Some(&now), Some(&restored))?;
        Ok(Restored::Entries)
    }

    /// Returns the changes by which the entries alone are what they were.
    fn entries_back(&self, client: &Client, now: &str) -> Result<Vec<Change>, String> {
        let entries = |text: &str| -> Result<Map<String, Value>, String> {
            let mut place = Value::Object(client.format.values(text)?);
            for step in &self.key {
                place = place.get_mut(step).map(Value::take).unwrap_or_default();
            }
            Ok(place.as_object().cloned().unwrap_or_default())
        };
        let (before, after) = (
            entries(self.before.as_deref().unwrap_or_default())?,
            entries(&self.after)?,
        );
        let now = entries(now)?;
        let mut changes = Vec::new();
        for name in &self.removed {
            // One of this name that was put there since is the person's.
            if let (Some(entry), None) = (before.get(name), now.get(name)) {
                changes.push(Change::Put(name.clone(), entry.clone()));
            }
        }
        if let Some(name) = &self.put
            && now.get(name).is_some_and(|found| Some(found) == after.get(name))
        {
            changes.push(match before.get(name) {
                Some(entry) => Change::Put(name.clone(), entry.clone()),
                None => Change::Remove(name.clone()),
            });
        }
        Ok(changes)
    }
}

impl ClaudeChange {
    /// Returns the scope.
    #[must_use]
    pub fn scope(&self) -> Scope {
        if self.scope == Scope::Local.as_str() {
            Scope::Local
        } else {
            Scope::User
        }
    }
}

impl ConfigurationChange {
    /// Returns what the file says now.
    pub fn now(&self) -> Result<Option<String>, ClientError> {
        config::load_text(&self.path).map_err(|source| ClientError::Read {
            path: self.path.clone(),
            source: Box::new(source),
        })
    }

    /// Removes the lock that came with the file, as it is now.
    pub fn remove_lock(&self, lock: &Path) -> Result<(), ClientError> {
        match current(lock)? {
            Some(now) => put(lock, Some(&now), None),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "{\n  // mine\n  \"mcpServers\": { \"a\": { \"command\": \"x\" }, \"b\": {} }\n}\n";
    const AFTER: &str =
        "{\n  // mine\n  \"mcpServers\": { \"b\": {}, \"pml\": { \"command\": \"/p\" } }\n}\n";

    #[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
    fn write(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
    }

    fn change(path: &Path) -> FileChange {
        FileChange {
            client: "cursor".to_owned(),
            path: path.to_owned(),
            key: vec!["mcpServers".to_owned()],
            before: Some(BEFORE.to_owned()),
            after: AFTER.to_owned(),
            removed: vec!["a".to_owned()],
            put: Some("pml".to_owned()),
        }
    }

    #[test]
    fn what_is_as_the_import_left_it_becomes_every_byte_what_it_was() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("mcp.json");
        write(&path, AFTER);
        assert_eq!(change(&path).restore().unwrap(), Restored::Whole);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), BEFORE);
        assert_eq!(change(&path).restore().unwrap(), Restored::Already);
    }

    #[test]
    fn of_what_was_changed_since_only_the_entries_are_taken_back() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("mcp.json");
        let changed = AFTER
            .replace("// mine", "// changed")
            .replace("\"b\": {}", "\"b\": {}, \"new\": {}");
        write(&path, &changed);
        assert_eq!(change(&path).restore().unwrap(), Restored::Entries);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("// changed"), "{text}");
        let servers = &config_values(&text)["mcpServers"];
        assert_eq!(
            *servers,
            serde_json::json!({ "b": {}, "new": {}, "a": { "command": "x" } })
        );
        // A person who wrote an entry of their own under one of the names keeps it.
        write(
            &path,
            &AFTER
                .replace("\"/p\"", "\"/other/pml\"")
                .replace("\"b\"", "\"a\""),
        );
        assert_eq!(change(&path).restore().unwrap(), Restored::Already);
    }

    #[test]
    fn a_file_that_is_gone_stays_gone_and_one_that_was_made_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("mcp.json");
        assert_eq!(change(&path).restore().unwrap(), Restored::Gone);
        let made = FileChange {
            before: None,
            ..change(&path)
        };
        write(&path, AFTER);
        assert_eq!(made.restore().unwrap(), Restored::Whole);
        assert!(!path.exists());
    }

    #[test]
    fn journals_are_for_the_user_alone_and_the_last_counts() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let journal = |at| Journal {
            at,
            clients: Vec::new(),
            claude: Vec::new(),
            configurations: Vec::new(),
            handed: BTreeMap::new(),
        };
        assert!(Journal::latest(root.path()).unwrap().is_none());
        let first = journal(5).write(root.path()).unwrap();
        let second = journal(5).write(root.path()).unwrap();
        assert_ne!(first, second, "two imports of one moment are kept apart");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&first), mode(first.parent().unwrap())), (0o600, 0o700));
        assert_eq!(Journal::latest(root.path()).unwrap().unwrap().0, second);
        Journal::remove(&second).unwrap();
        assert_eq!(Journal::latest(root.path()).unwrap().unwrap().0, first);
    }

    fn config_values(text: &str) -> Map<String, Value> {
        super::super::format::Format::Json.values(text).unwrap()
    }
}
