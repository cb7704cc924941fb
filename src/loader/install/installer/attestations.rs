//! Which registry a package comes from, so that it can be asked where the package was built.
//!
//! npm says it by its settings, uv by an annotation of what it resolved: so the settings of the user count here as they
//! do for the installers, and no other host is ever asked.

use std::ffi::OsString;
use std::path::Path;

use url::Url;

use super::npm_command;
use super::process::{InstallerOutput, Program};
use super::tools::Tools;
use crate::loader::install::error::InstallError;
use crate::loader::plan::{Package, Resolved, normalize};
use crate::loader::provenance::AttestationInquiry;
use crate::pins::ProvenanceFinding;

/// Finds out where a version of an npm package was built; `attestations` is what its registry says of them.
pub(super) async fn of_npm(
    tools: &Tools,
    program: &Program,
    package: &Package,
    directory: &Path,
    resolved: Resolved,
    attestations: &serde_json::Value,
) -> Result<Resolved, InstallError> {
    if attestations.is_null() {
        return Ok(with(resolved, ProvenanceFinding::Absent));
    }
    let Some(integrity) = resolved.integrity.clone() else {
        return Ok(with(resolved, unknown("the registry names no SHA-512 of it")));
    };
    let name = package.name();
    let scope = name.split_once('/').map(|(scope, _)| format!("{scope}:registry"));
    let arguments = ["config", "get", "registry"]
        .map(str::to_owned)
        .into_iter()
        .chain(scope);
    let spec = package.spec();
    let said = npm_command::run(tools, program, &spec, directory, arguments.map(OsString::from)).await;
    let said = said.ok().and_then(|said| {
        let registry = registry(&String::from_utf8_lossy(&said.stdout))?;
        Some((registry, said.secrets))
    });
    let Some((registry, secrets)) = said else {
        return Ok(with(resolved, unknown("npm does not say which registry it asks")));
    };
    let settings = tools.provenance_settings().await?;
    let inquiry = AttestationInquiry {
        environment: tools.environment(),
        secrets: &secrets,
        root: settings.trust_root,
    };
    let found = inquiry.npm(&registry, name, &resolved.version, &integrity).await;
    finish(package, resolved, found)
}

/// Finds out where a version of a Python package was built, from the requirement that uv resolved.
pub(super) async fn of_pypi(
    tools: &Tools,
    package: &Package,
    resolved: Resolved,
    said: &InstallerOutput,
) -> Result<Resolved, InstallError> {
    let text = String::from_utf8_lossy(&said.stdout);
    let Some(index) = index(&text) else {
        return Ok(with(resolved, unknown("uv does not say which index has it")));
    };
    let hashes: Vec<String> = text
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("--hash=sha256:"))
        .map(str::to_owned)
        .collect();
    let settings = tools.provenance_settings().await?;
    let inquiry = AttestationInquiry {
        environment: tools.environment(),
        secrets: &said.secrets,
        root: settings.trust_root,
    };
    let name = normalize(package.name());
    let found = inquiry.pypi(&index, &name, &resolved.version, &hashes).await;
    finish(package, resolved, found)
}

fn finish(
    package: &Package,
    resolved: Resolved,
    found: Result<ProvenanceFinding, crate::loader::ProvenanceError>,
) -> Result<Resolved, InstallError> {
    let spec = package.at(&resolved.version);
    match found {
        Ok(finding) => {
            if let ProvenanceFinding::Unknown { reason } = &finding {
                tracing::info!(package = %spec, %reason, "it is not known where the package was built");
            }
            Ok(with(resolved, finding))
        }
        Err(source) => Err(InstallError::Provenance {
            package: spec,
            source,
        }),
    }
}

fn with(resolved: Resolved, provenance: ProvenanceFinding) -> Resolved {
    Resolved {
        provenance,
        ..resolved
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
