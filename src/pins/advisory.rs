//! Known vulnerabilities of pinned packages, in the shapes of OSV, and the packages that are malicious themselves.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{PackagePin, PackageVersion, Pin, Registry};
use crate::protocol::{DependencyName, Shown};

/// How the ids of reports about packages begin that are malicious, rather than merely faulty.
const MALICIOUS: &str = "MAL-";

/// The longest id: real ones have up to 30 characters.
const ID_LIMIT: usize = 64;

/// The longest summary that is kept, in characters: what fits into a few lines of a terminal.
const SUMMARY_LIMIT: usize = 240;

/// The versions that are told to have the fix, and the packages of one advisory that are remembered.
const FIXED_LIMIT: usize = 8;
const AFFECTED_LIMIT: usize = 64;

/// Tells whether a text can be the id of an advisory: it becomes a part of an address and is shown.
#[must_use]
pub fn is_advisory_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=ID_LIMIT).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(plain)
}

/// Tells whether an advisory says that a package is malicious.
#[must_use]
pub fn is_malicious(id: &str) -> bool {
    id.starts_with(MALICIOUS)
}

/// What is told of an advisory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Advisory {
    /// When it last changed, as its database writes it: the same text means the same advisory.
    pub modified: String,
    /// What it is about, on one line, escaped.
    pub summary: String,
    /// How bad it is, in a word of its database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// Whether it was taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
    /// The versions that have the fix, by `npm:name`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fixed: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct OsvRecord {
    id: String,
    #[serde(default)]
    modified: String,
    #[serde(default)]
    withdrawn: Option<String>,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    details: String,
    #[serde(default)]
    affected: Vec<OsvAffected>,
    #[serde(default)]
    database_specific: serde_json::Value,
}

#[derive(Deserialize)]
struct OsvAffected {
    package: Option<OsvPackage>,
    #[serde(default)]
    ranges: Vec<OsvRange>,
}

#[derive(Deserialize)]
struct OsvPackage {
    ecosystem: String,
    name: String,
}

#[derive(Deserialize)]
struct OsvRange {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    events: Vec<OsvEvent>,
}

#[derive(Deserialize)]
struct OsvEvent {
    fixed: Option<String>,
}

impl Advisory {
    /// Reads the record of `id` as OSV writes it; `None` if it is none of it.
    #[must_use]
    pub fn read(id: &str, text: &[u8]) -> Option<Self> {
        let record: OsvRecord = serde_json::from_slice(text).ok()?;
        if record.id != id {
            return None;
        }
        let mut fixed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for affected in &record.affected {
            let Some(package) = affected.package.as_ref() else {
                continue;
            };
            let Some(registry) = registry_of(&package.ecosystem) else {
                continue;
            };
            if fixed.len() >= AFFECTED_LIMIT {
                break;
            }
            let versions = fixed.entry(key(registry, &package.name)).or_default();
            // The commits of a repository are no versions.
            let ranges = affected.ranges.iter().filter(|range| range.r#type != "GIT");
            let found =
                ranges.flat_map(|range| range.events.iter().filter_map(|event| event.fixed.as_deref()));
            versions.extend(found.take(FIXED_LIMIT).map(|version| short(version, ID_LIMIT)));
        }
        let severity = record.database_specific.get("severity");
        let severity = severity.and_then(serde_json::Value::as_str);
        let told = if record.summary.trim().is_empty() {
            record.details.trim().lines().next().unwrap_or_default()
        } else {
            record.summary.trim()
        };
        Some(Self {
            modified: short(&record.modified, ID_LIMIT),
            summary: short(told, SUMMARY_LIMIT),
            severity: severity.map(|word| short(&word.to_lowercase(), 16)),
            withdrawn: record.withdrawn.is_some(),
            fixed: fixed
                .into_iter()
                .map(|(package, versions)| (package, versions.into_iter().take(FIXED_LIMIT).collect()))
                .collect(),
        })
    }

    fn fixed_in(&self, package: &PackageVersion) -> Vec<String> {
        let fixed = self.fixed.get(&key(package.registry, &package.name));
        fixed.cloned().unwrap_or_default()
    }
}

fn key(registry: Registry, name: &str) -> String {
    // Names of PyPI are the same in every spelling; ours are normalized.
    match registry {
        Registry::Npm => format!("npm:{name}"),
        Registry::Pypi => format!("pypi:{}", name.to_ascii_lowercase().replace(['_', '.'], "-")),
    }
}

/// Returns the name of a registry as OSV spells it.
#[must_use]
pub fn osv_ecosystem(registry: Registry) -> &'static str {
    match registry {
        Registry::Npm => "npm",
        Registry::Pypi => "PyPI",
    }
}

fn registry_of(ecosystem: &str) -> Option<Registry> {
    let known = [Registry::Npm, Registry::Pypi];
    known.into_iter().find(|known| osv_ecosystem(*known) == ecosystem)
}

/// Escapes a text and cuts it, marked by `…`.
fn short(text: &str, limit: usize) -> String {
    let start: String = text.chars().take(limit).collect();
    let cut = if start.len() < text.len() { "…" } else { "" };
    format!("{}{cut}", Shown::line(&start))
}

/// One advisory about one package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The package.
    pub package: PackageVersion,
    /// The id of the advisory.
    pub id: String,
    /// How bad it is, in a word; `None` where its database does not say.
    pub severity: Option<String>,
    /// The versions that have the fix.
    pub fixed_in: Vec<String>,
    /// What it is about; empty where its details could not be had.
    pub summary: String,
}

impl Finding {
    /// Tells whether the package is malicious itself.
    #[must_use]
    pub fn is_malicious(&self) -> bool {
        is_malicious(&self.id)
    }
}

/// Returns what is known against the packages of each server: what is malicious first, then by package.
///
/// `answers` are the ids of each package. An advisory without details counts; one that was taken back does not.
#[must_use]
pub fn findings(
    pins: &BTreeMap<DependencyName, Pin>,
    answers: &BTreeMap<PackageVersion, Vec<String>>,
    advisories: &BTreeMap<String, Advisory>,
) -> BTreeMap<DependencyName, Vec<Finding>> {
    let of_package = |package: PackageVersion| {
        let ids = answers.get(&package).into_iter().flatten();
        let ids = ids.filter(|id| !advisories.get(*id).is_some_and(|advisory| advisory.withdrawn));
        let found = ids.map(|id| {
            let advisory = advisories.get(id);
            Finding {
                package: package.clone(),
                id: id.clone(),
                severity: advisory.and_then(|advisory| advisory.severity.clone()),
                fixed_in: advisory.map_or_else(Vec::new, |advisory| advisory.fixed_in(&package)),
                summary: advisory.map_or_else(String::new, |advisory| advisory.summary.clone()),
            }
        });
        found.collect::<Vec<_>>()
    };
    let servers = pins.iter().map(|(name, pin)| {
        let contents = pin.package.iter().flat_map(PackagePin::contents);
        let mut found: Vec<Finding> = contents.flat_map(|(package, _)| of_package(package)).collect();
        found.sort_by(|one, other| {
            let rank = |finding: &Finding| {
                (
                    !finding.is_malicious(),
                    finding.package.clone(),
                    finding.id.clone(),
                )
            };
            rank(one).cmp(&rank(other))
        });
        (name.clone(), found)
    });
    servers.collect()
}

/// The packages that are known to be malicious, each with the advisory that says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaliciousPackages(pub BTreeMap<PackageVersion, String>);

impl MaliciousPackages {
    /// Tells whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the advisory about a package.
    #[must_use]
    pub fn advisory(&self, package: &PackageVersion) -> Option<&str> {
        self.0.get(package).map(String::as_str)
    }

    /// Finds a malicious package among what is installed with another, itself included.
    #[must_use]
    pub fn among(&self, pin: &PackagePin) -> Option<(PackageVersion, &str)> {
        if self.is_empty() {
            return None;
        }
        let named = PackageVersion::read(&format!("{}@{}", pin.name, pin.version));
        let all = named
            .into_iter()
            .chain(pin.contents().map(|(package, _)| package));
        { all }.find_map(|package| self.advisory(&package).map(|id| (package.clone(), id)))
    }

    /// Takes over what was found about the packages that were asked about: one that nothing is known against any more
    /// is no longer listed, and what was not asked about stays.
    pub fn update(&mut self, asked: &BTreeSet<PackageVersion>, findings: impl IntoIterator<Item = Finding>) {
        self.0.retain(|package, _| !asked.contains(package));
        let malicious = findings.into_iter().filter(Finding::is_malicious);
        for finding in malicious {
            self.0.entry(finding.package).or_insert(finding.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(text: &str) -> PackageVersion {
        PackageVersion::read(text).unwrap()
    }

    fn pin(name: &str, packages: &[&str]) -> Pin {
        let packages = packages
            .iter()
            .map(|title| ((*title).to_owned(), "bundled".to_owned()));
        let pinned =
            json!({ "name": name, "version": "1", "packages": packages.collect::<BTreeMap<_, _>>() });
        Pin {
            package: Some(serde_json::from_value(pinned).unwrap()),
            ..Pin::default()
        }
    }

    #[test]
    fn an_id_is_a_word_that_can_stand_in_an_address() {
        for id in [
            "GHSA-vvjj-xcjg-gr5g",
            "MAL-2025-46974",
            "PYSEC-2021-1",
            "CVE-2020-1",
        ] {
            assert!(is_advisory_id(id), "{id}");
        }
        for id in [
            "",
            "../x",
            "a/b",
            "a b",
            "a%2f",
            "-x",
            ".x",
            "a?b",
            "ä",
            &"a".repeat(65),
        ] {
            assert!(!is_advisory_id(id), "{id}");
        }
        assert!(is_malicious("MAL-1") && !is_malicious("GHSA-MAL-1"));
    }

    #[test]
    fn a_record_is_read_as_far_as_it_is_told_and_everything_is_bounded() {
        let record = json!({
            "id": "GHSA-1", "modified": "2026-01-01T00:00:00Z", "summary": "a\u{202e}b\nc",
            "database_specific": { "severity": "HIGH" },
            "affected": [
                { "package": { "ecosystem": "npm", "name": "x" }, "ranges": [
                    { "type": "SEMVER", "events": [{ "introduced": "0" }, { "fixed": "1.2.3" }] },
                    { "type": "GIT", "events": [{ "fixed": "0123456789abcdef" }] },
                ] },
                { "package": { "ecosystem": "PyPI", "name": "Some_Thing" }, "ranges": [
                    { "type": "ECOSYSTEM", "events": [{ "fixed": "2" }] },
                ] },
                { "package": { "ecosystem": "Go", "name": "x" } },
                { "versions": [] },
            ],
        });
        let read = Advisory::read("GHSA-1", record.to_string().as_bytes()).unwrap();
        assert_eq!(read.summary, "a\\u{202e}b\\nc");
        assert_eq!(read.severity.as_deref(), Some("high"));
        assert_eq!(read.fixed_in(&package("npm:x@1.0.0")), ["1.2.3"]);
        assert_eq!(read.fixed_in(&package("pypi:some-thing@1")), ["2"]);
        assert!(!read.withdrawn);
        assert_eq!(Advisory::read("GHSA-2", record.to_string().as_bytes()), None);
        assert_eq!(Advisory::read("GHSA-1", b"[]"), None);

        let many = |count: usize| {
            let one = |at: usize| {
                json!({ "package": { "ecosystem": "npm", "name": format!("p{at}") }, "ranges": [
                    { "events": (0..count).map(|at| json!({ "fixed": format!("1.{at}") })).collect::<Vec<_>>() },
                ] })
            };
            json!({ "id": "A", "summary": "s".repeat(count * 10), "affected": (0..count).map(one).collect::<Vec<_>>() })
        };
        let read = Advisory::read("A", many(500).to_string().as_bytes()).unwrap();
        assert_eq!(read.summary.chars().count(), SUMMARY_LIMIT + 1);
        assert_eq!(read.fixed.len(), AFFECTED_LIMIT);
        assert!(read.fixed.values().all(|versions| versions.len() == FIXED_LIMIT));
    }

    #[test]
    fn what_is_malicious_comes_first_and_what_was_taken_back_does_not_count() {
        let pins = BTreeMap::from([
            ("a".parse().unwrap(), pin("npm:a", &["a@1", "evil@2"])),
            ("b".parse().unwrap(), pin("npm:b", &["b@1"])),
        ]);
        let answers = BTreeMap::from([
            (package("npm:a@1"), vec!["GHSA-1".to_owned(), "GHSA-2".to_owned()]),
            (package("npm:evil@2"), vec!["MAL-1".to_owned()]),
        ]);
        let withdrawn = Advisory {
            modified: String::new(),
            summary: String::new(),
            severity: None,
            withdrawn: true,
            fixed: BTreeMap::new(),
        };
        let advisories = BTreeMap::from([("GHSA-2".to_owned(), withdrawn.clone())]);
        let found = findings(&pins, &answers, &advisories);
        let ids = |name: &str| -> Vec<String> {
            let found = &found[&name.parse::<DependencyName>().unwrap()];
            found.iter().map(|finding| finding.id.clone()).collect()
        };
        assert_eq!(ids("a"), ["MAL-1", "GHSA-1"]);
        assert_eq!(ids("b"), Vec::<String>::new());
        let none = findings(
            &pins,
            &answers,
            &BTreeMap::from([("MAL-1".to_owned(), withdrawn)]),
        );
        assert!(none.values().flatten().all(|finding| !finding.is_malicious()));
    }

    #[test]
    fn a_verdict_stays_until_the_package_is_asked_about_again() {
        let finding = |text: &str, id: &str| Finding {
            package: package(text),
            id: id.to_owned(),
            severity: None,
            fixed_in: Vec::new(),
            summary: String::new(),
        };
        let mut known = MaliciousPackages::default();
        let asked = BTreeSet::from([package("npm:evil@2"), package("npm:a@1")]);
        known.update(
            &asked,
            [finding("npm:evil@2", "MAL-1"), finding("npm:a@1", "GHSA-1")],
        );
        let Some(pinned) = pin("npm:a", &["a@1", "evil@2"]).package else {
            unreachable!()
        };
        assert_eq!(known.among(&pinned), Some((package("npm:evil@2"), "MAL-1")));
        known.update(&BTreeSet::from([package("npm:a@1")]), []);
        assert!(!known.is_empty(), "it was not asked about");
        known.update(&asked, []);
        assert!(known.is_empty());
        // The package itself counts also where its contents are not known.
        let known = MaliciousPackages(BTreeMap::from([(package("npm:a@1"), "MAL-2".to_owned())]));
        let Some(bare) = pin("npm:a", &[]).package else {
            unreachable!()
        };
        assert_eq!(known.among(&bare), Some((package("npm:a@1"), "MAL-2")));
    }
}
