//! The attestations of a Python index, by PEP 740: one document for each archive of a version.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use url::Url;

use super::error::ProvenanceError;
use super::verification::{ArtifactHash, Subject, SubjectName};

/// The publishers that build in a repository; others sign as a person or a service account.
const PUBLISHERS: [&str; 2] = ["GitHub", "GitLab"];

/// An archive has one attestation of its publication, at most one more of its build.
const ATTESTATIONS: usize = 8;

/// A wheel of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wheel {
    pub(super) file: String,
    pub(super) sha256: String,
    pub(super) listing: Listing,
}

/// What the page of an index says of the attestation of an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Listing {
    /// That there is none.
    Absent,
    /// Nothing, or that there is one: the index is asked.
    #[default]
    Open,
}

#[derive(Deserialize)]
struct Page {
    files: Vec<PageFile>,
}

#[derive(Deserialize)]
struct PageFile {
    filename: String,
    #[serde(default)]
    hashes: PageHashes,
    /// Only indexes that know of attestations have this member.
    #[serde(default, deserialize_with = "listing")]
    provenance: Listing,
}

#[derive(Default, Deserialize)]
struct PageHashes {
    sha256: Option<String>,
}

/// Reads a member that is there: it is `null`, or the address of an attestation.
fn listing<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Listing, D::Error> {
    let address: Option<String> = Option::deserialize(reader)?;
    Ok(address.map_or(Listing::Absent, |_address| Listing::Open))
}

/// Returns the page of a package at its index.
pub(super) fn page(index: &Url, name: &str) -> Option<Url> {
    let mut address = index.clone();
    address
        .path_segments_mut()
        .ok()?
        .pop_if_empty()
        .push(name)
        .push("");
    Some(address)
}

/// Returns where the index has the attestation of an archive: at its own host.
pub(super) fn address(index: &Url, name: &str, version: &str, file: &str) -> Option<Url> {
    let mut address = index.clone();
    address.set_query(None);
    address.set_fragment(None);
    address
        .path_segments_mut()
        .ok()?
        .clear()
        .extend(["integrity", name, version, file, "provenance"]);
    Some(address)
}

/// Returns the wheels of a page whose hashes are among `hashes` and that this system could install.
pub(super) fn wheels(page: &[u8], hashes: &[String]) -> Option<Vec<Wheel>> {
    let text = std::str::from_utf8(page).ok()?;
    let files = if text.trim_start().starts_with('{') {
        let page: Page = serde_json::from_str(text).ok()?;
        let read = |file: PageFile| {
            Some(Wheel {
                sha256: file.hashes.sha256?,
                file: file.filename,
                listing: file.provenance,
            })
        };
        page.files.into_iter().filter_map(read).collect()
    } else {
        anchors(text)
    };
    let suits = |wheel: &Wheel| is_for_this_system(&wheel.file) && hashes.contains(&wheel.sha256);
    Some(files.into_iter().filter(suits).collect())
}

/// Reads the links of a page that is HTML.
fn anchors(text: &str) -> Vec<Wheel> {
    let links = text.split("<a").skip(1).filter_map(|rest| {
        let (_, rest) = rest.split_once("href=")?;
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (link, _) = rest[1..].split_once(quote)?;
        let (path, hash) = link.split_once("#sha256=")?;
        let file = path.rsplit('/').next()?;
        Some(Wheel {
            file: file.replace("%2B", "+").replace("%2b", "+"),
            sha256: hash.split('&').next()?.to_owned(),
            listing: Listing::Open,
        })
    });
    links.collect()
}

/// Tells whether a file is a wheel that does not name another system.
fn is_for_this_system(file: &str) -> bool {
    let Some(platform) = file.strip_suffix(".whl").and_then(|stem| stem.rsplit('-').next()) else {
        return false;
    };
    let foreign: &[&str] = match std::env::consts::OS {
        "linux" => &["win", "macosx", "ios", "android"],
        "macos" => &["win", "manylinux", "musllinux", "linux", "ios", "android"],
        _ => &[],
    };
    // A wheel may be for several systems at once.
    !platform
        .split('.')
        .all(|tag| foreign.iter().any(|foreign| tag.starts_with(foreign)))
}

#[derive(Deserialize)]
struct Document {
    version: u32,
    attestation_bundles: Vec<PublisherAttestations>,
}

#[derive(Deserialize)]
struct PublisherAttestations {
    publisher: Publisher,
    attestations: Vec<Attestation>,
}

#[derive(Deserialize)]
struct Publisher {
    kind: String,
}

#[derive(Deserialize)]
struct Attestation {
    version: u32,
    verification_material: Material,
    envelope: Envelope,
}

#[derive(Deserialize)]
struct Material {
    certificate: String,
    transparency_entries: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Envelope {
    statement: String,
    signature: String,
}

/// Returns the attestations of a document that tell of a build, as bundles in the format of sigstore.
pub(super) fn bundles(document: &[u8]) -> Result<Vec<String>, ProvenanceError> {
    let document: Document =
        serde_json::from_slice(document).map_err(|error| ProvenanceError::unreadable(&error))?;
    let other_version = |version: u32| ProvenanceError::Unreadable {
        reason: format!("version {version} of the format is not known"),
    };
    if document.version != 1 {
        return Err(other_version(document.version));
    }
    let built = document
        .attestation_bundles
        .into_iter()
        .filter(|attested| PUBLISHERS.contains(&attested.publisher.kind.as_str()));
    let mut bundles = Vec::new();
    for attestation in built.flat_map(|attested| attested.attestations) {
        if attestation.version != 1 {
            return Err(other_version(attestation.version));
        }
        let Material {
            certificate,
            transparency_entries,
        } = attestation.verification_material;
        let bundle = json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": { "rawBytes": certificate },
                "tlogEntries": transparency_entries,
            },
            "dsseEnvelope": {
                "payload": attestation.envelope.statement,
                "payloadType": "application/vnd.in-toto+json",
                "signatures": [{ "sig": attestation.envelope.signature, "keyid": "" }],
            },
        });
        bundles.push(bundle.to_string());
        if bundles.len() > ATTESTATIONS {
            return Err(ProvenanceError::Unreadable {
                reason: format!("it holds more than {ATTESTATIONS} attestations"),
            });
        }
    }
    Ok(bundles)
}

/// Returns what the attestation of a wheel must be about; `None` if its hash is none.
pub(super) fn subject(wheel: &Wheel) -> Option<Subject> {
    let digits = wheel.sha256.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let hash: Vec<u8> = digits.chunks(2).map(byte).collect::<Option<_>>()?;
    (hash.len() == 32).then(|| Subject {
        name: SubjectName::File(wheel.file.clone()),
        hash: ArtifactHash::Sha256(hash),
    })
}
