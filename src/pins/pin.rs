//! The pin of one server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ProvenanceFinding, PublishedAt, ToolPin};
use crate::protocol::Digest;

/// What one server was when it was accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pin {
    /// The words of its declaration, variables unexpanded; its address where it is elsewhere.
    pub launch: Vec<String>,
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
            install_scripts: Vec::new(),
            packages: BTreeMap::new(),
        }
    }
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
    use crate::pins::Provenance;

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
    fn a_team_shares_what_was_found_and_not_what_one_machine_could_not_find_out() {
        let [proven, absent, unknown] = findings();
        assert_eq!(pin(proven.clone()).shared(), pin(proven));
        assert_eq!(pin(absent.clone()).shared(), pin(absent.clone()));
        assert_eq!(pin(unknown).shared(), pin(absent));
    }
}
