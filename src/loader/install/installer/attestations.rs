//! Which registry a package comes from, so that it can be asked where the package was built.
//!
//! npm says it by its settings, uv by an annotation of what it resolved: so the settings of the user count here as they
//! do for the installers, and no other host is ever asked.

use std::ffi::OsString;
use std::path::Path;

use url::Url;

use super::npm_command;
use super::process::InstallerOutput;
use super::tools::Tools;
use crate::loader::install::error::InstallError;
use crate::loader::plan::{Package, Resolved, normalize};
use crate::loader::provenance::{AttestationInquiry, ProvenanceError};
use crate::pins::ProvenanceFinding;
use crate::protocol::Secrets;

/// What an installer said of the attestations of a version that it resolved.
#[derive(Debug)]
pub(in crate::loader::install) enum AttestationLead {
    /// The registry has none.
    Absent,
    /// The npm registry says that it has some.
    Npm,
    /// A Python index may have some.
    Pypi {
        /// The index that has the package, where uv says so.
        index: Option<Url>,
        /// The hashes of all archives of the version.
        hashes: Vec<String>,
        /// What of the index must not be shown.
        secrets: Secrets,
    },
}

impl AttestationLead {
    /// Reads what `npm view` says of them.
    pub(super) fn npm(attestations: &serde_json::Value) -> Self {
        if attestations.is_null() {
            Self::Absent
        } else {
            Self::Npm
        }
    }

    /// Reads the requirement that uv resolved.
    pub(super) fn pypi(said: &InstallerOutput) -> Self {
        let text = String::from_utf8_lossy(&said.stdout);
        let hashes = text
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("--hash=sha256:"));
        Self::Pypi {
            index: index(&text),
            hashes: hashes.map(str::to_owned).collect(),
            secrets: said.secrets.clone(),
        }
    }
}

/// Finds out where a version was built; runs no code of the package.
pub(in crate::loader::install) async fn attest(
    tools: &Tools,
    package: &Package,
    directory: &Path,
    resolved: Resolved,
    lead: AttestationLead,
) -> Result<Resolved, InstallError> {
    let settings = tools.provenance_settings().await?;
    let inquiry = |secrets| AttestationInquiry {
        environment: tools.environment(),
        secrets,
        root: settings.trust_root.clone(),
    };
    let version = &resolved.version;
    let found = match lead {
        AttestationLead::Absent => Ok(ProvenanceFinding::Absent),
        AttestationLead::Npm => match (&resolved.integrity, npm_registry(tools, package, directory).await) {
            (Some(integrity), Some((registry, secrets))) => {
                let inquiry = inquiry(&secrets);
                inquiry.npm(&registry, package.name(), version, integrity).await
            }
            (None, _) => Ok(unknown("the registry names no SHA-512 of it")),
            (_, None) => Ok(unknown("npm does not say which registry it asks")),
        },
        AttestationLead::Pypi { index: None, .. } => Ok(unknown("uv does not say which index has it")),
        AttestationLead::Pypi {
            index: Some(index),
            hashes,
            secrets,
        } => {
            let name = normalize(package.name());
            inquiry(&secrets).pypi(&index, &name, version, &hashes).await
        }
    };
    finish(package, resolved, found)
}

/// Asks npm which registry it has a package from, and returns what of it must not be shown.
async fn npm_registry(tools: &Tools, package: &Package, directory: &Path) -> Option<(Url, Secrets)> {
    let program = tools.program("npm", package).ok()?;
    let scope = package.name().split_once('/');
    let scope = scope.map(|(scope, _)| format!("{scope}:registry"));
    let arguments = ["config", "get", "registry"].map(str::to_owned);
    let arguments = arguments.into_iter().chain(scope).map(OsString::from);
    let said = npm_command::run(tools, &program, &package.spec(), directory, arguments).await;
    let said = said.ok()?;
    let registry = registry(&String::from_utf8_lossy(&said.stdout))?;
    Some((registry, said.secrets))
}

fn finish(
    package: &Package,
    resolved: Resolved,
    found: Result<ProvenanceFinding, ProvenanceError>,
) -> Result<Resolved, InstallError> {
    let spec = package.at(&resolved.version);
    match found {
        Ok(finding) => {
            if let ProvenanceFinding::Unknown { reason } = &finding {
                tracing::info!(package = %spec, %reason, "it is not known where the package was built");
            }
            Ok(Resolved {
                provenance: finding,
                ..resolved
            })
        }
        Err(source) => Err(InstallError::Provenance {
            package: spec,
            source,
        }),
    }
}

fn unknown(reason: &str) -> ProvenanceFinding {
    ProvenanceFinding::Unknown {
        reason: reason.to_owned(),
    }
}

/// Reads the registry from what `npm config get` says: one value alone, or several with their keys. That of a scope
/// comes before that of everything else.
fn registry(said: &str) -> Option<Url> {
    let values = said.lines().map(|line| {
        let named = line.split_once('=').filter(|(key, _)| key.ends_with("registry"));
        named.map_or(line, |(_, value)| value).trim()
    });
    values.filter_map(bare_address).next_back()
}

/// Reads the index from the annotation of a requirement.
fn index(text: &str) -> Option<Url> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("# from "))
        .find_map(bare_address)
}

/// Reads an address without the credentials that it may hold: they are for the installers alone.
fn bare_address(text: &str) -> Option<Url> {
    let mut url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())?;
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_that_of_the_scope_where_it_has_one() {
        for (said, expected) in [
            ("https://a.test/npm/\n", Some("https://a.test/npm/")),
            (
                "registry=https://a.test/\n@x:registry=https://b.test/npm/\n",
                Some("https://b.test/npm/"),
            ),
            (
                "registry=https://a.test/\n@x:registry=undefined\n",
                Some("https://a.test/"),
            ),
            ("registry=https://me:s3cret@a.test/\n", Some("https://a.test/")),
            ("undefined\n", None),
            ("registry=file:///tmp\n", None),
        ] {
            assert_eq!(registry(said).as_ref().map(Url::as_str), expected, "{said}");
        }
    }

    #[test]
    fn the_index_is_the_one_that_uv_names() {
        let text = "hello==1.0 \\\n    --hash=sha256:00\n    # from https://me@a.test/simple\n";
        assert_eq!(index(text).unwrap().as_str(), "https://a.test/simple");
        assert_eq!(index("hello==1.0\n"), None);
    }
}
