//! Verifies one attestation: who signed it, when, and that it is about this very package.
//!
//! Pure. What is told of a build comes from the certificate, which a build service and an authority vouch for; the
//! statement itself is written by the build and could say anything.

use serde::Deserialize;
use sigstore_verify::crypto::{CertificateInfo, SubjectAltName, parse_certificate_info};
use sigstore_verify::error::{CertificateError, Error, TransparencyLogError};
use sigstore_verify::types::{Artifact, ArtifactDigest, Bundle, HashAlgorithm, SignatureContent};
use sigstore_verify::{VerificationPolicy, VerificationResult};

use super::error::{ProvenanceError, reason};
use super::root::TrustRoot;
use crate::pins::Provenance;
use crate::protocol::Shown;

/// The build services that are known: who vouches for their builds, and where their repositories are.
const BUILD_SERVICES: [(&str, &str); 2] = [
    (
        "https://token.actions.githubusercontent.com",
        "https://github.com/",
    ),
    ("https://gitlab.com", "https://gitlab.com/"),
];

/// Longer than any name of a repository or a workflow.
const NAME: usize = 512;

/// What an attestation must be about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) name: SubjectName,
    pub(super) hash: ArtifactHash,
}

/// How the subject is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SubjectName {
    /// By the address of a package, such as `pkg:npm/name@1.0.0`.
    Package(String),
    /// By the name of a file, of which some tools spell the separators and the case of letters otherwise.
    File(String),
}

/// The hash of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ArtifactHash {
    Sha256(Vec<u8>),
    Sha512(Vec<u8>),
}

impl SubjectName {
    fn as_str(&self) -> &str {
        match self {
            Self::Package(name) | Self::File(name) => name,
        }
    }

    fn is(&self, found: &str) -> bool {
        match self {
            Self::Package(name) => name == found,
            Self::File(name) => normalized(name) == normalized(found),
        }
    }
}

/// Lower case, each run of separators one of them.
fn normalized(file: &str) -> String {
    let mut text = String::with_capacity(file.len());
    for letter in file.chars() {
        match letter {
            '-' | '_' | '.' if text.ends_with('-') => {}
            '-' | '_' | '.' => text.push('-'),
            letter => text.push(letter.to_ascii_lowercase()),
        }
    }
    text
}

impl ArtifactHash {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Sha256(bytes) | Self::Sha512(bytes) => bytes,
        }
    }

    fn hexadecimal(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        for byte in self.bytes() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    fn describe(&self) -> String {
        let algorithm = match self {
            Self::Sha256(_) => "sha256",
            Self::Sha512(_) => "sha512",
        };
        format!("{algorithm}:{}", self.hexadecimal())
    }
}

/// The part of a statement that says what it is about.
#[derive(Deserialize)]
struct Statement {
    subject: Vec<StatementSubject>,
}

#[derive(Deserialize)]
struct StatementSubject {
    #[serde(default)]
    name: String,
    digest: StatementDigest,
}

#[derive(Deserialize)]
struct StatementDigest {
    sha256: Option<String>,
    sha512: Option<String>,
}

impl StatementSubject {
    fn has(&self, hash: &ArtifactHash) -> bool {
        let found = match hash {
            ArtifactHash::Sha256(_) => &self.digest.sha256,
            ArtifactHash::Sha512(_) => &self.digest.sha512,
        };
        let expected = hash.hexadecimal();
        found
            .as_ref()
            .is_some_and(|found| found.eq_ignore_ascii_case(&expected))
    }
}

/// Verifies a bundle in the format of sigstore and returns where its subject was built.
pub(super) fn verify(text: &str, subject: &Subject, root: &TrustRoot) -> Result<Provenance, ProvenanceError> {
    let bundle = Bundle::from_json(text).map_err(|error| ProvenanceError::unreadable(&error))?;
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
        return Err(unreadable("it holds no statement"));
    };
    let algorithm = match subject.hash {
        ArtifactHash::Sha256(_) => HashAlgorithm::Sha2256,
        ArtifactHash::Sha512(_) => HashAlgorithm::Sha2512,
    };
    let digest = ArtifactDigest::new(algorithm, subject.hash.bytes().to_vec())
        .map_err(|error| ProvenanceError::unreadable(&error))?;
    // Whose signature it is, is looked at below: every repository has an identity of its own.
    let policy = VerificationPolicy::any_identity();
    let verified = root
        .verifier
        .verify(Artifact::from_digest(digest), &bundle, &policy)
        .map_err(|error| refusal(&error, &bundle, subject, root))?;
    if !(verified.certificate_verified() && verified.sct_verified() && verified.tlog_verified()) {
        return Err(unreadable("not all of it was verified"));
    }
    let statement: Statement = serde_json::from_slice(envelope.payload.as_bytes())
        .map_err(|error| ProvenanceError::unreadable(&error))?;
    check_subject(&statement, subject)?;
    provenance(&verified)
}

/// Refuses a statement about another package, or about other content of this one.
fn check_subject(statement: &Statement, subject: &Subject) -> Result<(), ProvenanceError> {
    let mut named = statement
        .subject
        .iter()
        .filter(|found| subject.name.is(&found.name));
    if named.clone().any(|found| found.has(&subject.hash)) {
        return Ok(());
    }
    if named.next().is_some() {
        return Err(ProvenanceError::OtherContent {
            expected: subject.hash.describe(),
        });
    }
    let found = statement.subject.first().map_or("nothing", |found| &found.name);
    Err(ProvenanceError::OtherSubject {
        expected: subject.name.as_str().to_owned(),
        found: Shown::line(found).to_string(),
    })
}

/// Reads where a build ran from its certificate.
fn provenance(verified: &VerificationResult) -> Result<Provenance, ProvenanceError> {
    let identity = verified.identity().map_or("", SubjectAltName::as_str);
    let issuer = verified.issuer().unwrap_or_default();
    let known = BUILD_SERVICES.iter().find(|(known, _)| *known == issuer);
    let (Some((_, host)), Some(SubjectAltName::Uri(signer))) = (known, verified.identity()) else {
        return Err(ProvenanceError::Issuer {
            identity: Shown::line(identity).to_string(),
            issuer: Shown::line(issuer).to_string(),
        });
    };
    let claims = verified.certificate().map(|certificate| &certificate.ci_claims);
    let repository = claims
        .and_then(|claims| {
            // Certificates of the first year name it in the older way alone.
            let older = claims.deprecated_github.workflow_repository.as_ref();
            let older = older.map(|repository| format!("{host}{repository}"));
            claims.source_repository_uri.clone().or(older)
        })
        .filter(|repository| repository.starts_with(host) && repository.len() > host.len())
        .ok_or(ProvenanceError::NoRepository)?;
    let workflow = claims
        .and_then(|claims| claims.build_config_uri.as_ref())
        .unwrap_or(signer);
    // GitLab has two slashes there.
    let workflow = workflow
        .strip_prefix(&repository)
        .map_or(workflow.as_str(), |path| path.trim_start_matches('/'));
    let commit = claims.and_then(|claims| claims.source_repository_digest.clone());
    let repository_id = claims.and_then(|claims| claims.source_repository_identifier.clone());
    let optional = [&commit, &repository_id].map(|name| name.as_deref().unwrap_or_default());
    if [&repository[..], workflow]
        .iter()
        .chain(&optional)
        .any(|name| name.len() > NAME)
    {
        return Err(unreadable(
            "it names a repository or a workflow of unusual length",
        ));
    }
    let bare = |uri: &str| uri.strip_prefix("https://").unwrap_or(uri).to_owned();
    Ok(Provenance {
        repository: bare(&repository),
        repository_id,
        workflow: bare(workflow),
        commit,
    })
}

fn unreadable(reason: &str) -> ProvenanceError {
    ProvenanceError::Unreadable {
        reason: reason.to_owned(),
    }
}

/// Tells why a bundle was refused. Every reason refuses; which one it is only decides the words.
fn refusal(error: &Error, bundle: &Bundle, subject: &Subject, root: &TrustRoot) -> ProvenanceError {
    let expired = |what: &'static str, reason: String| ProvenanceError::Expired {
        what,
        reason: Shown::line(&reason).to_string(),
        root: root.source.clone(),
    };
    let unknown = |what: &'static str| ProvenanceError::UnknownKey {
        what,
        root: root.source.clone(),
    };
    let certificate = bundle
        .signing_certificate()
        .and_then(|certificate| parse_certificate_info(certificate).ok());
    match error {
        // Which of the two is wrong, the name or the content, is seen in the statement.
        Error::ArtifactMismatch(_) => {
            let statement = match &bundle.content {
                SignatureContent::DsseEnvelope(envelope) => {
                    serde_json::from_slice::<Statement>(envelope.payload.as_bytes()).ok()
                }
                _ => None,
            };
            let seen = statement.and_then(|statement| check_subject(&statement, subject).err());
            seen.unwrap_or_else(|| ProvenanceError::OtherContent {
                expected: subject.hash.describe(),
            })
        }
        Error::SignatureInvalid(_) => ProvenanceError::Forged {
            reason: "the signature is not that of its certificate".to_owned(),
        },
        Error::Certificate(CertificateError::NoValidAuthority { time }) => expired(
            "the authority in the trust root",
            format!("it was signed at {time}"),
        ),
        Error::Certificate(CertificateError::Expired { .. } | CertificateError::NotYetValid { .. }) => {
            expired("its certificate", reason(error))
        }
        Error::Certificate(CertificateError::ChainInvalid(_)) => {
            match certificate.and_then(|certificate| outside_validity(bundle, &certificate)) {
                Some(times) => expired("its certificate", times),
                None => unknown("the authority that issued its certificate"),
            }
        }
        Error::Certificate(CertificateError::Sct(_)) => unknown("the log that its certificate names"),
        Error::TransparencyLog(problem) => match log_key(bundle, root) {
            LogKey::Unknown => unknown("its transparency log"),
            LogKey::OutOfDate(times) => expired("the log's key in the trust root", times),
            LogKey::Known => match problem {
                TransparencyLogError::MalformedEntry(_) => ProvenanceError::unreadable(error),
                _ => ProvenanceError::Forged {
                    reason: reason(error),
                },
            },
        },
        Error::Timestamp(_) => ProvenanceError::Forged {
            reason: reason(error),
        },
        Error::InvalidTrustRoot(_) | Error::TrustRoot(_) | Error::TrustedCertificate(_) => {
            ProvenanceError::Root {
                root: root.source.clone(),
                reason: reason(error),
            }
        }
        _ => ProvenanceError::unreadable(error),
    }
}

/// Returns the times of a bundle that was logged outside the validity of its certificate.
fn outside_validity(bundle: &Bundle, certificate: &CertificateInfo) -> Option<String> {
    let entries = bundle.verification_material.tlog_entries.iter();
    let mut times = entries.filter_map(|entry| entry.integrated_time);
    times
        .find(|time| *time < certificate.not_before || *time > certificate.not_after)
        .map(|time| {
            format!(
                "it was signed at {time}, and the certificate is valid from {} to {}",
                certificate.not_before, certificate.not_after
            )
        })
}

/// Whether the trust root has the key of a log.
enum LogKey {
    Known,
    Unknown,
    OutOfDate(String),
}

fn log_key(bundle: &Bundle, root: &TrustRoot) -> LogKey {
    for entry in &bundle.verification_material.tlog_entries {
        let mut logs = root.keys.tlogs.iter();
        let Some(log) = logs.find(|log| log.log_id.key_id == entry.log_id.key_id) else {
            return LogKey::Unknown;
        };
        let validity = log.public_key.valid_for;
        if let Some(time) = entry.integrated_time
            && validity.is_some_and(|validity| !validity.contains(time))
        {
            return LogKey::OutOfDate(format!("it was logged at {time}"));
        }
    }
    LogKey::Known
}
