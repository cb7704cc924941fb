//! The tools of dependencies as they were last seen, so that a list is complete and instant without starting one.
//!
//! One file per key below the user's cache; each remembers the version and integrity it was learned from, and
//! whoever asks compares them. A definition is kept as the raw text its dependency sent. A file that cannot be
//! read is a dependency not seen before: nothing is granted by a catalog, it only shows.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Resolved;
use crate::config::Locations;
use crate::protocol::{Digest, Object};

/// What was learned from a dependency.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Known {
    /// The package's version; `None` for a plain command.
    pub version: Option<String>,
    /// The package's integrity; `None` for a plain command.
    pub integrity: Option<String>,
    /// Its tools in their order.
    pub tools: Vec<KnownTool>,
}

impl Known {
    /// Puts together what a dependency of an exact version has shown; a plain command has no version.
    #[must_use]
    pub fn new(resolved: Option<&Resolved>, tools: Vec<KnownTool>) -> Self {
        Self {
            version: resolved.map(|resolved| resolved.version.clone()),
            integrity: resolved.and_then(|resolved| resolved.integrity.clone()),
            tools,
        }
    }

    /// Tells whether a tool is among them.
    #[must_use]
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name() == name)
    }
}

/// One tool as its dependency defines it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Box<RawValue>", into = "Box<RawValue>")]
pub struct KnownTool {
    name: String,
    definition: Arc<RawValue>,
}

/// A tool definition without a name.
#[derive(Debug, thiserror::Error)]
#[error("a tool definition has no `name`")]
pub struct Nameless;

impl KnownTool {
    /// Returns the name the dependency gave it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its definition, byte for byte.
    #[must_use]
    pub fn definition(&self) -> &Arc<RawValue> {
        &self.definition
    }
}

impl TryFrom<Box<RawValue>> for KnownTool {
    type Error = Nameless;

    fn try_from(definition: Box<RawValue>) -> Result<Self, Nameless> {
        let name = Object::parse(definition.get())
            .and_then(|object| object.text("name").map(std::borrow::Cow::into_owned));
        let name = name.filter(|name| !name.is_empty()).ok_or(Nameless)?;
        Ok(Self {
            name,
            definition: Arc::from(definition),
        })
    }
}

impl From<KnownTool> for Box<RawValue> {
    fn from(tool: KnownTool) -> Self {
        (*tool.definition).to_owned()
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        let same = |one: &KnownTool, two: &KnownTool| one.definition.get() == two.definition.get();
        self.version == other.version
            && self.integrity == other.integrity
            && self.tools.len() == other.tools.len()
            && self
                .tools
                .iter()
                .zip(&other.tools)
                .all(|(one, two)| same(one, two))
    }
}

/// Whether remembering changed what was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembered {
    /// It was known already.
    Same,
    /// It is new.
    Changed,
}

/// Tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    changed: (i64, i64),
    length: u64,
}

/// The catalogs of a user.
#[derive(Debug)]
pub struct Catalog {
    directory: PathBuf,
    read: Mutex<HashMap<Digest, (Stamp, Arc<Known>)>>,
}

impl Catalog {
    /// Names the place; touches nothing.
    #[must_use]
    pub fn new(locations: &Locations) -> Self {
        Self {
            directory: locations.cache().join("catalog"),
            read: Mutex::default(),
        }
    }

    /// Returns what is known under `key`.
    #[must_use]
    pub fn find(&self, key: &Digest) -> Option<Arc<Known>> {
        let path = self.path(key);
        let stamp = stamp(&path)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((seen, known)) = read.get(key)
            && *seen == stamp
        {
            return Some(Arc::clone(known));
        }
        let bytes = std::fs::read(&path).ok()?;
        match serde_json::from_slice::<Known>(&bytes) {
            Ok(known) => {
                let known = Arc::new(known);
                read.insert(key.clone(), (stamp, Arc::clone(&known)));
                Some(known)
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a catalog cannot be read; its tools are learned anew");
                None
            }
        }
    }

    /// Remembers what a dependency has shown.
    pub fn remember(&self, key: &Digest, known: &Known) -> std::io::Result<Remembered> {
        if self.find(key).is_some_and(|before| *before == *known) {
            return Ok(Remembered::Same);
        }
        std::fs::create_dir_all(&self.directory)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(&serde_json::to_vec(known)?)?;
        file.persist(self.path(key))?;
        Ok(Remembered::Changed)
    }

    /// Forgets what was known under `key`.
    pub fn forget(&self, key: &Digest) {
        let _ = std::fs::remove_file(self.path(key));
    }

    fn path(&self, key: &Digest) -> PathBuf {
        self.directory.join(format!("{key}.json"))
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(Stamp {
        inode: metadata.ino(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        length: metadata.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    fn known(definitions: &[&str]) -> Known {
        let tools = definitions
            .iter()
            .map(|text| KnownTool::try_from(RawValue::from_string((*text).to_owned()).unwrap()).unwrap())
            .collect();
        Known {
            version: Some("1.0.0".to_owned()),
            integrity: None,
            tools,
        }
    }

    fn catalog(home: &Path) -> Catalog {
        Catalog::new(&Locations::of(&Environment::new([("HOME", home)], "/")).unwrap())
    }

    #[test]
    fn definitions_come_back_byte_for_byte() {
        let home = tempfile::tempdir().unwrap();
        let key = Digest::of(["a"]);
        let definition = r#"{ "name":"a", "x":12345678901234567890123, "y":1.0, "z":null }"#;
        assert_eq!(catalog(home.path()).find(&key), None);
        assert_eq!(
            catalog(home.path())
                .remember(&key, &known(&[definition]))
                .unwrap(),
            Remembered::Changed
        );
        let catalog = catalog(home.path());
        assert_eq!(
            catalog.find(&key).unwrap().tools[0].definition().get(),
            definition
        );
        assert_eq!(
            catalog.remember(&key, &known(&[definition])).unwrap(),
            Remembered::Same
        );
    }

    #[test]
    fn what_another_process_learned_is_seen() {
        let home = tempfile::tempdir().unwrap();
        let key = Digest::of(["a"]);
        let (one, two) = (catalog(home.path()), catalog(home.path()));
        one.remember(&key, &known(&[r#"{"name":"a"}"#])).unwrap();
        assert_eq!(two.find(&key).unwrap().tools.len(), 1);
        one.remember(&key, &known(&[r#"{"name":"a"}"#, r#"{"name":"b"}"#]))
            .unwrap();
        assert_eq!(two.find(&key).unwrap().tools.len(), 2);
        one.forget(&key);
        assert_eq!(two.find(&key), None);
    }

    #[test]
    fn a_damaged_catalog_is_one_not_seen_before() {
        let home = tempfile::tempdir().unwrap();
        let key = Digest::of(["a"]);
        let catalog = catalog(home.path());
        catalog.remember(&key, &known(&[r#"{"name":"a"}"#])).unwrap();
        std::fs::File::options()
            .write(true)
            .truncate(true)
            .open(catalog.path(&key))
            .unwrap();
        assert_eq!(catalog.find(&key), None);
    }
}
