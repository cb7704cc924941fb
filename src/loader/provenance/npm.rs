//! The attestations of an npm registry: one document for each version, with bundles in the format of sigstore.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use url::Url;

use super::error::ProvenanceError;
use super::verification::{ArtifactHash, Subject, SubjectName};

/// What the provenance of a build is called, whichever its version. The registry's own attestation, that it published
/// the package, is signed by a key of its own and says nothing of a build.
const PREDICATE: &str = "https://slsa.dev/provenance/";

/// A version has one provenance; each costs a verification.
const ATTESTATIONS: usize = 8;

#[derive(Deserialize)]
struct Document {
    attestations: Vec<Attestation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attestation {
    predicate_type: String,
    bundle: Box<RawValue>,
}

/// Returns where the registry has the attestations of a version: below its own address, whatever its metadata says.
pub(super) fn address(registry: &Url, name: &str, version: &str) -> Option<Url> {
    let mut address = registry.clone();
    address.set_query(None);
    address.set_fragment(None);
    address
        .path_segments_mut()
        .ok()?
        .pop_if_empty()
        .extend(["-", "npm", "v1", "attestations"])
        // One segment, so that the slash of a scope is escaped as clients of npm do.
        .push(&format!("{name}@{version}"));
    Some(address)
}

/// Returns the bundles of a document that tell of a build.
pub(super) fn bundles(document: &[u8]) -> Result<Vec<String>, ProvenanceError> {
    let document: Document =
        serde_json::from_slice(document).map_err(|error| ProvenanceError::unreadable(&error))?;
    let provenances = document
        .attestations
        .into_iter()
        .filter(|attestation| attestation.predicate_type.starts_with(PREDICATE));
    let bundles: Vec<String> = provenances
        .map(|attestation| attestation.bundle.get().to_owned())
        .collect();
    if bundles.len() > ATTESTATIONS {
        return Err(ProvenanceError::Unreadable {
            reason: format!("it holds more than {ATTESTATIONS} provenances"),
        });
    }
    Ok(bundles)
}

/// Returns what the attestation of a version must be about; `None` without a SHA-512.
pub(super) fn subject(name: &str, version: &str, integrity: &str) -> Option<Subject> {
    let hash = STANDARD.decode(integrity.strip_prefix("sha512-")?).ok()?;
    Some(Subject {
        name: SubjectName::Package(format!("pkg:npm/{}@{version}", name.replace('@', "%40"))),
        hash: ArtifactHash::Sha512(hash),
    })
}
