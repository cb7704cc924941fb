//! What was answered about packages, kept so that it can be told without a network.
//!
//! A file of the cache: it may be deleted at any time, and one that cannot be read counts as none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::Locations;
use crate::disk;
use crate::pins::{Advisory, PackageVersion};

/// Raised when an older pml must not read the file.
const FORMAT: u32 = 1;

/// More packages than a hundred servers have; those that were asked about longest ago go first.
const PACKAGES: usize = 20_000;

/// Some hundred bytes for each package, some more for each advisory.
const SIZE_LIMIT: u64 = 32 * 1024 * 1024;

/// The file of the answers.
#[derive(Debug, Clone)]
pub struct AdvisoryCache {
    file: PathBuf,
}

/// Answers of one address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeptAnswers {
    format: u32,
    /// The address that answered.
    url: String,
    /// What was answered about each package, by `npm:name@version`.
    packages: BTreeMap<String, KeptAnswer>,
    /// What is known of each advisory that was named.
    pub advisories: BTreeMap<String, Advisory>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KeptAnswer {
    /// When it was asked, in milliseconds since 1970.
    asked_at: i64,
    ids: Vec<String>,
}

impl KeptAnswers {
    /// Returns the ids that were answered about a package, and when it was asked.
    #[must_use]
    pub fn answer(&self, package: &PackageVersion) -> Option<(&[String], i64)> {
        let kept = self.packages.get(&package.to_string())?;
        Some((&kept.ids, kept.asked_at))
    }

    /// Takes over an answer.
    pub fn keep(&mut self, package: &PackageVersion, ids: Vec<String>, asked_at: i64) {
        self.packages
            .insert(package.to_string(), KeptAnswer { asked_at, ids });
    }

    /// Drops what was asked longest ago beyond the bound, and the advisories that no answer names.
    fn bound(&mut self) {
        if self.packages.len() > PACKAGES {
            let mut times: Vec<i64> = self.packages.values().map(|kept| kept.asked_at).collect();
            times.sort_unstable_by(|one, other| other.cmp(one));
            let oldest = times.get(PACKAGES - 1).copied().unwrap_or(i64::MIN);
            self.packages.retain(|_, kept| kept.asked_at >= oldest);
            // Those of one moment may still be too many.
            while self.packages.len() > PACKAGES {
                self.packages.pop_last();
            }
        }
        let ids = self.packages.values().flat_map(|kept| &kept.ids);
        let named: BTreeSet<String> = ids.cloned().collect();
        self.advisories.retain(|id, _| named.contains(id));
    }
}

impl AdvisoryCache {
    /// Names the file; creates nothing.
    #[must_use]
    pub fn of(locations: &Locations) -> Self {
        Self {
            file: locations.cache().join("advisories.json"),
        }
    }

    /// Reads what `url` answered; blocks.
    #[must_use]
    pub fn read(&self, url: &str) -> KeptAnswers {
        let read = || {
            let mut text = Vec::new();
            let file = File::open(&self.file).ok()?;
            file.take(SIZE_LIMIT + 1).read_to_end(&mut text).ok()?;
            if text.len() as u64 > SIZE_LIMIT {
                return None;
            }
            let kept: KeptAnswers = serde_json::from_slice(&text).ok()?;
            (kept.format == FORMAT && kept.url == url).then_some(kept)
        };
        read().unwrap_or_else(|| KeptAnswers {
            format: FORMAT,
            url: url.to_owned(),
            ..KeptAnswers::default()
        })
    }

    /// Writes answers in place of those before; blocks. Nothing depends on it: a failure is logged.
    pub fn write(&self, mut answers: KeptAnswers) {
        answers.bound();
        let written = || {
            if let Some(directory) = self.file.parent() {
                disk::create_private_directory(directory)?;
            }
            disk::replace(&self.file, &serde_json::to_vec(&answers)?)
        };
        if let Err(error) = written() {
            tracing::warn!(%error, "what was answered about packages is not kept");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    fn cache(home: &tempfile::TempDir) -> AdvisoryCache {
        let environment = Environment::new([("HOME", home.path().to_str().unwrap())], "/");
        AdvisoryCache::of(&Locations::of(&environment).unwrap())
    }

    fn package(number: usize) -> PackageVersion {
        PackageVersion::read(&format!("npm:p{number}@1.0.0")).unwrap()
    }

    #[test]
    fn answers_come_back_for_the_address_that_gave_them_alone() {
        let home = tempfile::tempdir().unwrap();
        let cache = cache(&home);
        let mut answers = cache.read("https://one.test");
        assert_eq!(answers.answer(&package(1)), None);
        answers.keep(&package(1), vec!["A-1".to_owned()], 7);
        answers.keep(&package(2), Vec::new(), 8);
        cache.write(answers);
        let read = cache.read("https://one.test");
        assert_eq!(read.answer(&package(1)), Some((&["A-1".to_owned()][..], 7)));
        assert_eq!(read.answer(&package(2)), Some((&[][..], 8)));
        assert_eq!(cache.read("https://two.test").answer(&package(1)), None);
        disk::replace(&cache.file, b"{").unwrap();
        assert_eq!(cache.read("https://one.test").answer(&package(1)), None);
    }

    #[test]
    fn it_is_bounded_and_what_was_asked_last_stays() {
        let mut answers = KeptAnswers::default();
        for number in 0..PACKAGES + 10 {
            answers.keep(
                &package(number),
                vec![format!("A-{number}")],
                i64::try_from(number).unwrap(),
            );
        }
        let advisory = Advisory::read("A-0", br#"{"id":"A-0"}"#).unwrap();
        answers.advisories.insert("A-0".to_owned(), advisory.clone());
        answers.advisories.insert(format!("A-{PACKAGES}"), advisory);
        answers.bound();
        assert_eq!(answers.packages.len(), PACKAGES);
        assert_eq!(answers.answer(&package(9)), None);
        assert!(answers.answer(&package(10)).is_some());
        assert_eq!(answers.advisories.len(), 1);
        let mut of_one_moment = KeptAnswers::default();
        for number in 0..PACKAGES + 10 {
            of_one_moment.keep(&package(number), Vec::new(), 1);
        }
        of_one_moment.bound();
        assert_eq!(of_one_moment.packages.len(), PACKAGES);
    }
}
