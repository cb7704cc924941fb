//! What a package was resolved to: the exact version and the content that belongs to it.

use crate::pins::{Provenance, PublishedAt};
use crate::protocol::Digest;

/// The exact version of a package, and what its content must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The exact version.
    pub version: String,
    /// `sha512-…` of an npm package, `sha256-…` of a PyPI package; `None` if the registry did not say.
    pub integrity: Option<String>,
    /// The digest of everything that is installed with it; `None` before its first installation.
    pub lock: Option<Digest>,
    /// How the registry had withdrawn the version when it was asked, in words that follow "this version".
    pub withdrawn: Option<String>,
    /// When the registry says that the version was published.
    pub published: Option<PublishedAt>,
    /// Where the version was built, as an attestation proved.
    pub provenance: Option<Provenance>,
}

impl Resolved {
    /// Names a version of which nothing else is known.
    #[must_use]
    pub fn version(version: &str) -> Self {
        Self {
            version: version.to_owned(),
            integrity: None,
            lock: None,
            withdrawn: None,
            published: None,
            provenance: None,
        }
    }
}
