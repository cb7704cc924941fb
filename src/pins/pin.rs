//! The pin of one server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{LaunchSurroundings, Provenance, ProvenanceChange, ProvenanceFinding, PublishedAt, ToolPin};
use crate::protocol::Digest;

/// What one server was when it was accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pin {
    /// The words of its declaration, variables unexpanded; its address where it is elsewhere.
    pub launch: Vec<String>,
    /// How it is declared beside these words, as a team shares it; `None` where a lock of an older pml does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<LaunchSurroundings>,
    /// Its package; `None` for a plain command and for a server elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<PackagePin>,
    /// Its tools by their names; `None` where it was never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<String, ToolPin>>,
}

impl Pin {
    /// Names what a person accepts with it: an answer counts for exactly this.
    #[must_use]
    pub fn content(&self) -> Digest {
        let package = self.package.iter().flat_map(|package| {
            [
                package.name.clone(),
                package.version.clone(),
                package.integrity.clone().unwrap_or_default(),
                package
                    .package_lock
                    .as_ref()
                    .map(Digest::to_string)
                    .unwrap_or_default(),
            ]
        });
        let tools = self.tools.iter().flatten();
        let tools = tools.flat_map(|(name, tool)| [name.clone(), tool.digest().to_string()]);
        Digest::of(std::iter::once("change 1".to_owned()).chain(package).chain(tools))
    }

    /// Returns it as a team shares it: that something could not be found out is a fact of one machine.
    #[must_use]
    pub fn shared(mut self) -> Self {
        if let Some(package) = &mut self.package
            && package.provenance.is_unknown()
        {
            package.provenance = ProvenanceFinding::Absent;
            package.built_before = None;
        }
        self
    }
}

impl PackagePin {
    /// Names a version of which nothing else is known.
    #[must_use]
    pub fn version(name: &str, version: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            integrity: None,
            package_lock: None,
            published: None,
            provenance: ProvenanceFinding::default(),
            built_before: None,
            install_scripts: Vec::new(),
            packages: BTreeMap::new(),
        }
    }

    /// Tells whether a package that would run is this one, as far as both are known.
    #[must_use]
    pub fn is_same_as(&self, now: &Self) -> bool {
        let agree = |one: Option<&str>, two: Option<&str>| one.is_none() || two.is_none() || one == two;
        self.name == now.name
            && self.version == now.version
            && agree(self.integrity.as_deref(), now.integrity.as_deref())
            && agree(
                self.package_lock.as_ref().map(Digest::as_str),
                now.package_lock.as_ref().map(Digest::as_str),
            )
            && provenance_alarm(self, now).is_none()
    }

    /// Remembers what built the version before, where it is not known where this one was: what is found out later is
    /// compared with that.
    pub fn follow(&mut self, before: &Self) {
        self.built_before = match self.provenance {
            ProvenanceFinding::Unknown { .. } => before.last_proven(),
            ProvenanceFinding::Proven(_) | ProvenanceFinding::Absent => None,
        };
    }

    /// Returns what built it, or the version before where that is what was accepted.
    fn last_proven(&self) -> Option<Provenance> {
        let own = self.provenance.proven();
        own.or(self.built_before.as_ref()).cloned()
    }
}

/// Returns how the provenance of a package differs from that of an accepted one, where a person must agree to it.
///
/// That of one version is compared where it was not known as the version was accepted, and is now.
#[must_use]
pub fn provenance_alarm(before: &PackagePin, now: &PackagePin) -> Option<ProvenanceChange> {
    let built = before.last_proven().map(ProvenanceFinding::Proven);
    let change = ProvenanceChange::of(built.as_ref().unwrap_or(&before.provenance), &now.provenance);
    let is_due = before.built_before.is_some() && !now.provenance.is_unknown();
    (change.asks() && (before.version != now.version || is_due)).then_some(change)
}

/// A package at its exact version, with everything that is installed with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PackagePin {
    /// The registry and the name there, such as `npm:@scope/name`.
    pub name: String,
    /// The exact version.
    pub version: String,
    /// `sha512-…` of an npm package, `sha256-…` of a PyPI package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    /// The digest of its whole package lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_lock: Option<Digest>,
    /// When this version was published, as its registry says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedAt>,
    /// Where it was built, as its registry's attestation proves.
    #[serde(
        default = "ProvenanceFinding::absent",
        skip_serializing_if = "ProvenanceFinding::is_absent"
    )]
    pub provenance: ProvenanceFinding,
    /// What built the version before, where a person accepted that it is not known where this one was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_before: Option<Provenance>,
    /// The packages that bring install scripts, as `name@version`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub install_scripts: Vec<String>,
    /// Everything that is installed, the package itself included: the integrity of each by `name@version`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packages: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> [ProvenanceFinding; 3] {
        let proven = Provenance {
            repository: "github.com/a/b".to_owned(),
            repository_id: None,
            workflow: "release.yml".to_owned(),
            commit: None,
        };
        let reason = "it did not answer".to_owned();
        [
            ProvenanceFinding::Proven(proven),
            ProvenanceFinding::Absent,
            ProvenanceFinding::Unknown { reason },
        ]
    }

    fn pin(provenance: ProvenanceFinding) -> Pin {
        Pin {
            launch: vec!["npx".to_owned(), "x@1.0.0".to_owned()],
            surroundings: None,
            package: Some(PackagePin {
                provenance,
                ..PackagePin::version("npm:x", "1.0.0")
            }),
            tools: None,
        }
    }

    #[test]
    fn a_pin_comes_back_from_a_file_with_every_finding() {
        for finding in findings() {
            let pin = pin(finding);
            let text = serde_json::to_string(&pin).unwrap();
            assert_eq!(serde_json::from_str::<Pin>(&text).unwrap(), pin, "{text}");
        }
    }

    #[test]
    fn a_package_is_the_same_only_where_all_that_is_known_of_both_agrees() {
        let unknown = PackagePin::version("npm:x", "1.0.0");
        let accepted = PackagePin {
            integrity: Some("sha512-a".to_owned()),
            package_lock: Some(Digest::of(["a"])),
            ..unknown.clone()
        };
        assert!(accepted.is_same_as(&accepted));
        assert!(accepted.is_same_as(&unknown));
        assert!(unknown.is_same_as(&accepted));
        for other in [
            PackagePin {
                name: "npm:y".to_owned(),
                ..accepted.clone()
            },
            PackagePin {
                version: "1.0.1".to_owned(),
                ..accepted.clone()
            },
            PackagePin {
                integrity: Some("sha512-b".to_owned()),
                ..accepted.clone()
            },
            PackagePin {
                package_lock: Some(Digest::of(["b"])),
                ..accepted.clone()
            },
        ] {
            assert!(!accepted.is_same_as(&other), "{other:?}");
        }
        let built_before = Some(Provenance {
            repository: "github.com/a/b".to_owned(),
            repository_id: None,
            workflow: "release.yml".to_owned(),
            commit: None,
        });
        let due = PackagePin {
            provenance: ProvenanceFinding::Unknown {
                reason: "it did not answer".to_owned(),
            },
            built_before,
            ..accepted.clone()
        };
        let unproven = PackagePin {
            provenance: ProvenanceFinding::Absent,
            ..accepted.clone()
        };
        assert!(accepted.is_same_as(&unproven));
        assert!(!due.is_same_as(&unproven));
    }

    #[test]
    fn what_is_found_out_of_an_accepted_version_is_compared_with_the_one_before() {
        let [proven, absent, unknown] = findings();
        let built = |repository: &str| {
            ProvenanceFinding::Proven(Provenance {
                repository: repository.to_owned(),
                ..proven.proven().unwrap().clone()
            })
        };
        let at = |version: &str, provenance: &ProvenanceFinding| PackagePin {
            provenance: provenance.clone(),
            ..PackagePin::version("npm:x", version)
        };
        let alarms = |before: &PackagePin, now: &PackagePin| provenance_alarm(before, now).is_some();
        let first = at("1.0.0", &proven);
        let mut second = at("1.1.0", &unknown);
        assert!(alarms(&first, &second));
        second.follow(&first);
        for (now, alarm) in [
            (&unknown, false),
            (&proven, false),
            (&absent, true),
            (&built("github.com/c/d"), true),
        ] {
            assert_eq!(alarms(&second, &at("1.1.0", now)), alarm, "{now:?}");
        }
        // The next version is compared with what was proven last.
        let mut third = at("1.2.0", &unknown);
        assert!(alarms(&second, &third));
        third.follow(&second);
        assert_eq!(third.built_before.as_ref(), proven.proven());
        assert!(alarms(&third, &at("1.3.0", &built("github.com/c/d"))));
        assert!(!alarms(&third, &at("1.3.0", &proven)));
        third.provenance = absent.clone();
        third.follow(&second);
        assert_eq!(third.built_before, None, "that was agreed to");
        // Of a version of which it was known, nothing is due.
        assert!(!alarms(&first, &at("1.0.0", &absent)));
    }

    #[test]
    fn a_team_shares_what_was_found_and_not_what_one_machine_could_not_find_out() {
        let [proven, absent, unknown] = findings();
        assert_eq!(pin(proven.clone()).shared(), pin(proven.clone()));
        assert_eq!(pin(absent.clone()).shared(), pin(absent.clone()));
        let mut followed = pin(unknown.clone());
        followed.package.as_mut().unwrap().built_before = proven.proven().cloned();
        for own in [pin(unknown), followed] {
            assert_eq!(own.shared(), pin(absent.clone()));
        }
    }
}
