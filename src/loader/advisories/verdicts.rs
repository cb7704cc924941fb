//! The packages that are known to be malicious, as a file of the state directory.
//!
//! Not of the cache: that may be deleted at any time, and what is malicious must not run for it. A file that cannot be
//! read refuses every package.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::AdvisoryError;
use crate::config::Locations;
use crate::disk::{Audience, LockedDirectory, Stamp};
use crate::pins::{MaliciousPackages, PackageVersion, is_advisory_id};

/// The name of the file in its directory.
const FILE: &str = "packages.json";

/// Raised when an older pml must not read the file.
const FORMAT: u32 = 1;

/// Room for some ten thousand packages; nobody has installed as many that are malicious.
const SIZE_LIMIT: u64 = 1024 * 1024;

/// The file of the verdicts.
#[derive(Debug, Clone)]
pub struct Verdicts {
    directory: PathBuf,
    file: PathBuf,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: u32,
    /// The advisory about each package, by `npm:name@version`.
    packages: BTreeMap<String, String>,
}

impl Verdicts {
    /// Names the file; creates nothing.
    #[must_use]
    pub fn of(locations: &Locations) -> Self {
        let directory = locations.state().join("malicious");
        Self {
            file: directory.join(FILE),
            directory,
        }
    }

    /// Returns the file, which need not exist.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Tells whether there is no file; does not wait for the disk.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        Stamp::of(&self.file) == Stamp::Missing
    }

    /// Reads the verdicts; blocks.
    pub fn read(&self) -> Result<MaliciousPackages, AdvisoryError> {
        let unreadable = |reason: &dyn std::fmt::Display| AdvisoryError::unreadable(&self.file, reason);
        let file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(MaliciousPackages::default()),
            Err(error) => return Err(unreadable(&error)),
        };
        let mut text = Vec::new();
        let read = file.take(SIZE_LIMIT + 1).read_to_end(&mut text);
        read.map_err(|error| unreadable(&error))?;
        if text.len() as u64 > SIZE_LIMIT {
            return Err(unreadable(&format!("it is larger than {SIZE_LIMIT} bytes")));
        }
        let written: Written = serde_json::from_slice(&text).map_err(|error| unreadable(&error))?;
        if written.format != FORMAT {
            return Err(unreadable(&"it is of another version of pml"));
        }
        let packages = written.packages.into_iter().map(|(package, id)| {
            let package = PackageVersion::read(&package).filter(|_| is_advisory_id(&id));
            package
                .map(|package| (package, id))
                .ok_or_else(|| unreadable(&"it names no package"))
        });
        packages.collect::<Result<_, _>>().map(MaliciousPackages)
    }

    /// Changes the verdicts under the lock of their directory; blocks. Writes nothing where nothing changes.
    pub fn change(&self, change: impl Fn(&mut MaliciousPackages)) -> Result<(), AdvisoryError> {
        let not_kept = |error| AdvisoryError::NotKept(Arc::new(error));
        let changed = || {
            let known = self.read()?;
            let mut changed = known.clone();
            change(&mut changed);
            Ok::<_, AdvisoryError>((changed != known).then_some(changed))
        };
        // Most audits change nothing, and leave no directory behind.
        if changed()?.is_none() {
            return Ok(());
        }
        let locked = LockedDirectory::lock(&self.directory, Audience::Owner).map_err(not_kept)?;
        // Another audit may have written meanwhile.
        let Some(changed) = changed()? else { return Ok(()) };
        let packages = changed.0.into_iter();
        let written = Written {
            format: FORMAT,
            packages: packages.map(|(package, id)| (package.to_string(), id)).collect(),
        };
        // Texts and a number: it always serialises, and an empty file would be refused when it is read.
        let text = serde_json::to_vec_pretty(&written).unwrap_or_default();
        locked
            .replace(Path::new(FILE), &text, Audience::Owner)
            .map_err(not_kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    fn verdicts(home: &tempfile::TempDir) -> Verdicts {
        let environment = Environment::new([("HOME", home.path().to_str().unwrap())], "/");
        Verdicts::of(&Locations::of(&environment).unwrap())
    }

    fn evil() -> PackageVersion {
        PackageVersion::read("npm:@scope/evil@1.0.0").unwrap()
    }

    #[test]
    fn a_verdict_is_kept_and_lifted_and_nothing_is_written_for_nothing() {
        let home = tempfile::tempdir().unwrap();
        let verdicts = verdicts(&home);
        assert!(verdicts.is_absent());
        verdicts.change(|_| {}).unwrap();
        assert!(verdicts.is_absent() && !verdicts.directory.exists());
        verdicts
            .change(|known| drop(known.0.insert(evil(), "MAL-1".to_owned())))
            .unwrap();
        assert!(!verdicts.is_absent());
        assert_eq!(verdicts.read().unwrap().advisory(&evil()), Some("MAL-1"));
        let before = Stamp::of(verdicts.path());
        verdicts.change(|_| {}).unwrap();
        assert_eq!(Stamp::of(verdicts.path()), before);
        verdicts.change(|known| known.0.clear()).unwrap();
        assert!(verdicts.read().unwrap().is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_and_stays() {
        let home = tempfile::tempdir().unwrap();
        let verdicts = verdicts(&home);
        crate::disk::create_private_directory(&verdicts.directory).unwrap();
        let huge = " ".repeat(usize::try_from(SIZE_LIMIT).unwrap() + 1);
        for text in [
            "",
            "{}",
            r#"{"format":2,"packages":{}}"#,
            r#"{"format":1,"packages":{"evil":"MAL-1"}}"#,
            r#"{"format":1,"packages":{"npm:evil@1":"../x"}}"#,
            &huge,
        ] {
            crate::disk::replace(&verdicts.file, text.as_bytes()).unwrap();
            let error = verdicts.read().unwrap_err();
            assert!(matches!(error, AdvisoryError::Unreadable { .. }), "{error}");
            let change = |known: &mut MaliciousPackages| drop(known.0.insert(evil(), "MAL-1".to_owned()));
            verdicts.change(change).unwrap_err();
            assert_eq!(std::fs::read_to_string(&verdicts.file).unwrap(), text);
        }
    }
}
