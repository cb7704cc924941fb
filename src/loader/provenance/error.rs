//! Why an attestation does not count. A package that has one which does not verify is not installed: an attestation
//! that lies is worse than none.

use super::root_source::RootSource;
use crate::protocol::Shown;
use crate::report::Hint;

/// The most that is told of what a library says.
const REASON: usize = 300;

/// Says why an attestation, which a registry has, proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProvenanceError {
    /// It is not what registries serve.
    #[error("its attestation cannot be read: {reason}")]
    Unreadable {
        /// What is wrong, escaped.
        reason: String,
    },
    /// It is longer than any attestation.
    #[error("its attestation is longer than {limit} bytes")]
    TooLong {
        /// The most that is read.
        limit: usize,
    },
    /// It is about another package or another version.
    #[error("its attestation is about `{found}`, not about `{expected}`")]
    OtherSubject {
        /// What was asked for.
        expected: String,
        /// What it is about, escaped.
        found: String,
    },
    /// It is about other content under the same name.
    #[error("its attestation is about other content than the registry serves: {expected}")]
    OtherContent {
        /// The hash of what the registry serves.
        expected: String,
    },
    /// The signature is not that of the certificate.
    #[error("its attestation is forged: {reason}")]
    Forged {
        /// What does not fit, escaped.
        reason: String,
    },
    /// No build service vouches for who signed it.
    #[error(
        "its attestation is signed by `{identity}`, for whom `{issuer}` vouches, which is no build service that pml knows"
    )]
    Issuer {
        /// Who signed it, escaped.
        identity: String,
        /// Who vouches for that, escaped.
        issuer: String,
    },
    /// The certificate does not name a repository of its build service.
    #[error("its attestation does not name the repository it was built in")]
    NoRepository,
    /// The certificate, or the trust root's key, was not valid when it was signed.
    #[error("its attestation was signed outside the validity of {what}: {reason}")]
    Expired {
        /// What was not valid: the certificate, or a key of the trust root.
        what: &'static str,
        /// The times, escaped.
        reason: String,
        /// The trust root that was used.
        root: RootSource,
    },
    /// A key that signed it is not in the trust root.
    #[error("its attestation is signed by a key that is not known: {what} is not in {root}")]
    UnknownKey {
        /// Whose key it is.
        what: &'static str,
        /// The trust root that was used.
        root: RootSource,
    },
    /// The archives of one version were not built in one place.
    #[error("its archives were built in different places: {first} and {second}")]
    Disagreement {
        /// One of the places, escaped.
        first: String,
        /// Another one, escaped.
        second: String,
    },
    /// The trust root itself cannot be used.
    #[error("{root} cannot be used: {reason}")]
    Root {
        /// The trust root.
        root: RootSource,
        /// What is wrong with it, escaped.
        reason: String,
    },
}

impl Hint for ProvenanceError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::UnknownKey { root, .. } | Self::Expired { root, .. } | Self::Root { root, .. } => match root {
                RootSource::BuiltIn => "nothing was installed; keys change with the years: a newer pml knows the newer ones, or name a newer trust root by \"sigstoreRoot\" in your own pml.json".to_owned(),
                RootSource::File(_) => "nothing was installed; \"sigstoreRoot\" in your own pml.json names the trust root".to_owned(),
            },
            _ => "nothing was installed; ask the authors of the package".to_owned(),
        })
    }
}

impl ProvenanceError {
    /// Makes an error of a document that cannot be read.
    pub(super) fn unreadable(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::Unreadable {
            reason: reason(error),
        }
    }
}

/// Returns what a library says of a failure on one line, escaped and cut.
pub(super) fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut said: Vec<String> = Vec::new();
    for cause in causes.map(ToString::to_string) {
        // Some errors repeat their cause.
        if !said.last().is_some_and(|above| above.ends_with(&cause)) {
            said.push(cause);
        }
    }
    let said: String = said.join(": ").chars().take(REASON).collect();
    Shown::line(&said).to_string()
}
