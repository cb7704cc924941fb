//! What dependencies offer as it was last seen, so that a list is complete and instant without starting one.
//!
//! One file per key below the user's cache; each remembers the version and integrity it was learned from, and the
//! loader compares them. A dependency may list more to a client that can do more: where its lists differ between
//! clients, those that another kind of client saw are kept in a file of their own beside it. A definition is kept as
//! the raw text its dependency sent. A file that cannot be read is a dependency not seen before: nothing is granted by
//! a catalog, it only shows.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::known::Known;
use crate::config::Locations;
use crate::disk::{Stamp, temporary_beside};
use crate::protocol::{Digest, ListKind};

/// How many kinds of clients are remembered of one dependency beside the last: more than a person uses.
const KINDS_OF_CLIENTS: usize = 8;
/// Larger than what is learned within the bounds of a list; a larger file would only be read to be cut.
const LONGEST_FILE: u64 = 64 << 20;

/// The catalogs of a user.
#[derive(Debug)]
pub struct Catalog {
    directory: PathBuf,
    read: Mutex<HashMap<PathBuf, ReadFile>>,
}

/// A file as it was read.
#[derive(Debug)]
struct ReadFile {
    stamp: Stamp,
    /// Nothing of a file that cannot be read.
    known: Option<Arc<Known>>,
}

/// What is in memory of a file.
enum InMemory {
    /// What it says as it is now, which may be nothing.
    Current(Option<Arc<Known>>),
    /// It is to be read.
    Stale,
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

    /// Returns what is known under `key`: what a client with this `offer` saw, else what was learned last.
    #[must_use]
    pub fn find(&self, key: &Digest, offer: Option<&Digest>) -> Option<Arc<Known>> {
        let last = self.read(&self.path(key))?;
        let Some(offer) = offer.filter(|offer| last.offer.as_ref() != Some(offer)) else {
            return Some(last);
        };
        let own = self.read(&self.aside(key, offer));
        Some(own.filter(|own| own.is_of_version(&last)).unwrap_or(last))
    }

    /// Tells whether [`Catalog::find`] would read nothing; costs a look at two files.
    #[must_use]
    pub fn is_read(&self, key: &Digest, offer: Option<&Digest>) -> bool {
        let path = self.path(key);
        let InMemory::Current(last) = self.read_before(&path, Stamp::of(&path)) else {
            return false;
        };
        let other = offer.filter(|offer| last.is_some_and(|last| last.offer.as_ref() != Some(offer)));
        other.is_none_or(|offer| {
            let own = self.aside(key, offer);
            let stamp = Stamp::of(&own);
            matches!(self.read_before(&own, stamp), InMemory::Current(_))
        })
    }

    /// Returns what was read of a file before, if the file is still the same.
    fn read_before(&self, path: &Path, stamp: Stamp) -> InMemory {
        let Stamp::Present { .. } = stamp else {
            return InMemory::Current(None);
        };
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match read.get(path) {
            Some(read) if read.stamp == stamp => InMemory::Current(read.known.clone()),
            Some(_) | None => InMemory::Stale,
        }
    }

    fn read(&self, path: &Path) -> Option<Arc<Known>> {
        let stamp = Stamp::of(path);
        if let InMemory::Current(known) = self.read_before(path, stamp) {
            return known;
        }
        let known = read_file(path, stamp);
        // What cannot be read is not tried again before it changes.
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let file = ReadFile {
            stamp,
            known: known.clone(),
        };
        read.insert(path.to_owned(), file);
        known
    }

    /// Remembers what a dependency has shown; returns the kinds whose lists are not those that its client was shown.
    pub fn remember(&self, key: &Digest, known: &Known) -> std::io::Result<Vec<ListKind>> {
        let before = self.find(key, known.offer.as_ref());
        let path = self.path(key);
        let last = self.read(&path);
        if last.as_deref() == Some(known) {
            return Ok(Vec::new());
        }
        let own = known.offer.as_ref().map(|offer| self.aside(key, offer));
        if last.as_ref().is_none_or(|last| !last.says_the_same(known)) {
            std::fs::create_dir_all(&self.directory)?;
            // Clients that offer something else may go on seeing what they saw.
            if let Some(last) = last.filter(|last| last.is_of_version(known))
                && let Some(other) = last.offer.as_ref().filter(|_| last.offer != known.offer)
            {
                self.make_room_aside(key);
                // Linked, not moved: a crash between here and the new file loses neither.
                let aside = self.aside(key, other);
                let _ = std::fs::remove_file(&aside);
                std::fs::hard_link(&path, aside)?;
            }
            let mut file = temporary_beside(&path)?;
            file.write_all(&serde_json::to_vec(known)?)?;
            file.persist(path)?;
        }
        if let Some(own) = own {
            let _ = std::fs::remove_file(own);
        }
        Ok(known.changed_since(before.as_deref()))
    }

    /// Forgets what was known under `key`.
    pub fn forget(&self, key: &Digest) {
        let _ = std::fs::remove_file(self.path(key));
        for (_, path) in self.all_aside(key) {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Removes the oldest of the files beside the one of `key` while there are too many.
    fn make_room_aside(&self, key: &Digest) {
        let mut aside = self.all_aside(key);
        aside.sort_unstable();
        let surplus = (aside.len() + 1).saturating_sub(KINDS_OF_CLIENTS);
        for (_, path) in aside.into_iter().take(surplus) {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Returns the files beside the one of `key`, each with the time of its last change.
    fn all_aside(&self, key: &Digest) -> Vec<((i64, i64), PathBuf)> {
        let begin = format!("{key}-");
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let aside = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&begin));
        aside
            .filter_map(|entry| match Stamp::of(&entry.path()) {
                Stamp::Present { changed, .. } => Some((changed, entry.path())),
                Stamp::Missing | Stamp::Unknown => None,
            })
            .collect()
    }

    fn path(&self, key: &Digest) -> PathBuf {
        self.directory.join(format!("{key}.json"))
    }

    /// Names the file of what another kind of client saw than the last.
    fn aside(&self, key: &Digest, offer: &Digest) -> PathBuf {
        self.directory.join(format!("{key}-{offer}.json"))
    }
}

/// Reads a file; nothing where it cannot be read.
fn read_file(path: &Path, stamp: Stamp) -> Option<Arc<Known>> {
    if let Stamp::Present { size, .. } = stamp
        && size > LONGEST_FILE
    {
        tracing::warn!(path = %path.display(), length = size, "a catalog is too large; its tools are learned anew");
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    match serde_json::from_slice::<Known>(&bytes) {
        Ok(known) => Some(Arc::new(known)),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a catalog cannot be read; its tools are learned anew");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;
    use crate::loader::Capabilities;
    use crate::loader::catalog::{Definition, Identity};
    use crate::protocol::{Era, Json};
    use serde_json::value::RawValue;

    fn defined<I: Identity>(definitions: &[&str]) -> Vec<Definition<I>> {
        let raw = |text: &&str| RawValue::from_string((*text).to_owned()).unwrap();
        let definition = |text| Definition::try_from(raw(text)).unwrap();
        definitions.iter().map(definition).collect()
    }

    fn known(definitions: &[&str]) -> Known {
        Known {
            version: Some("1.0.0".to_owned()),
            tools: defined(definitions),
            ..Known::default()
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
        assert_eq!(catalog(home.path()).find(&key, None), None);
        assert_eq!(
            catalog(home.path())
                .remember(&key, &known(&[definition]))
                .unwrap(),
            [ListKind::Tools]
        );
        let catalog = catalog(home.path());
        assert_eq!(
            catalog.find(&key, None).unwrap().tools[0].definition().get(),
            definition
        );
        assert_eq!(catalog.remember(&key, &known(&[definition])).unwrap(), []);
    }

    #[test]
    fn everything_that_was_learned_comes_back() {
        let home = tempfile::tempdir().unwrap();
        let key = Digest::of(["a"]);
        let known = Known {
            era: Era::Modern,
            capabilities: Capabilities::new(Json::parse(r#"{ "prompts":{}, "x":1.0 }"#).unwrap()),
            instructions: Some("Be kind.".to_owned()),
            prompts: defined(&[r#"{ "name":"p", "x":1.0 }"#]),
            resources: defined(&[r#"{ "uri":"a:b", "name":"r" }"#]),
            templates: defined(&[r#"{ "uriTemplate":"a:{b}", "name":"t" }"#]),
            ..known(&[r#"{"name":"a"}"#])
        };
        assert_eq!(
            catalog(home.path()).remember(&key, &known).unwrap(),
            [ListKind::Tools, ListKind::Prompts, ListKind::Resources]
        );
        assert_eq!(*catalog(home.path()).find(&key, None).unwrap(), known);
        let mut later = known.clone();
        later.templates.clear();
        later.instructions = None;
        assert_eq!(
            catalog(home.path()).remember(&key, &later).unwrap(),
            [ListKind::Resources]
        );
        later.version = Some("2.0.0".to_owned());
        assert_eq!(
            later.changed_since(Some(&known)),
            ListKind::ALL,
            "nothing was listed of this version"
        );
    }

    #[test]
    fn a_catalog_of_an_earlier_pml_still_counts() {
        let old = r#"{"version":"1.0.0","integrity":null,"tools":[{"name":"a"}]}"#;
        let known: Known = serde_json::from_str(old).unwrap();
        assert_eq!(known, super::tests::known(&[r#"{"name":"a"}"#]));
        assert_eq!((known.era, known.capabilities), (Era::Legacy, None));
    }

    #[test]
    fn what_another_process_learned_is_seen() {
        let home = tempfile::tempdir().unwrap();
        let key = Digest::of(["a"]);
        let (one, two) = (catalog(home.path()), catalog(home.path()));
        one.remember(&key, &known(&[r#"{"name":"a"}"#])).unwrap();
        assert_eq!(two.find(&key, None).unwrap().tools.len(), 1);
        one.remember(&key, &known(&[r#"{"name":"a"}"#, r#"{"name":"b"}"#]))
            .unwrap();
        assert_eq!(two.find(&key, None).unwrap().tools.len(), 2);
        one.forget(&key);
        assert_eq!(two.find(&key, None), None);
    }

    #[test]
    fn each_kind_of_client_finds_what_it_saw_whichever_came_last() {
        let home = tempfile::tempdir().unwrap();
        let key = Digest::of(["a"]);
        let catalog = catalog(home.path());
        let (few, many) = (Digest::of(["few"]), Digest::of(["many"]));
        let seen_by = |offer: &Digest, definitions: &[&str]| Known {
            offer: Some(offer.clone()),
            ..known(definitions)
        };
        let (less, more) = ([r#"{"name":"a"}"#], [r#"{"name":"a"}"#, r#"{"name":"b"}"#]);
        let tools = |offer: Option<&Digest>| catalog.find(&key, offer).unwrap().tools.len();
        let remembered = |known: &Known| catalog.remember(&key, known).unwrap();
        assert_eq!(remembered(&seen_by(&few, &less)), [ListKind::Tools]);
        assert_eq!(tools(Some(&many)), 1, "nothing better is known");
        assert_eq!(remembered(&seen_by(&many, &more)), [ListKind::Tools]);
        assert_eq!((tools(Some(&few)), tools(Some(&many)), tools(None)), (1, 2, 2));
        assert_eq!(remembered(&seen_by(&few, &less)), []);
        assert_eq!((tools(Some(&few)), tools(Some(&many)), tools(None)), (1, 2, 1));

        // A list that no longer depends on the client is the same for all of them again.
        assert_eq!(remembered(&seen_by(&many, &less)), [ListKind::Tools]);
        assert_eq!((tools(Some(&few)), tools(Some(&many))), (1, 1));
        assert_eq!(catalog.all_aside(&key), []);

        // What was seen of another version is not what would be seen of this one.
        remembered(&seen_by(&many, &more));
        let newer = Known {
            version: Some("2.0.0".to_owned()),
            ..seen_by(&few, &[])
        };
        assert_eq!(remembered(&newer), [ListKind::Tools]);
        assert_eq!((tools(Some(&few)), tools(Some(&many))), (0, 0));
        catalog.forget(&key);
        assert_eq!(catalog.find(&key, Some(&many)), None);
    }

    #[test]
    fn the_kinds_of_clients_that_are_remembered_have_a_limit() {
        let home = tempfile::tempdir().unwrap();
        let key = Digest::of(["a"]);
        let catalog = catalog(home.path());
        for number in 0..3 * KINDS_OF_CLIENTS {
            let known = Known {
                offer: Some(Digest::of([number.to_string()])),
                ..known(&[&format!(r#"{{"name":"n{number}"}}"#)])
            };
            catalog.remember(&key, &known).unwrap();
        }
        assert_eq!(catalog.all_aside(&key).len(), KINDS_OF_CLIENTS);
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
        assert_eq!(catalog.find(&key, None), None);
    }
}
