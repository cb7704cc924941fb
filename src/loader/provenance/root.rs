//! The trust root: the keys of the authorities and logs that attestations are verified with.

use std::path::Path;

use sigstore_verify::Verifier;
use sigstore_verify::trust_root::{SIGSTORE_PRODUCTION_TRUSTED_ROOT, TrustedRoot};

use super::crypto;
use super::error::{ProvenanceError, reason};
use super::root_source::RootSource;
use crate::config;

/// The keys of the authorities and logs that are trusted.
pub(super) struct TrustRoot {
    pub(super) source: RootSource,
    pub(super) keys: TrustedRoot,
    pub(super) verifier: Verifier,
}

impl TrustRoot {
    /// Reads the user's trust root, or takes the one that is built in; blocks.
    pub(super) fn load(file: Option<&Path>) -> Result<Self, ProvenanceError> {
        let source = file.map_or(RootSource::BuiltIn, |file| RootSource::File(file.to_owned()));
        let unusable = |reason: String| ProvenanceError::Root {
            root: source.clone(),
            reason,
        };
        let text = match file {
            None => SIGSTORE_PRODUCTION_TRUSTED_ROOT.to_owned(),
            // Whoever writes this file decides what counts as proven: it is held to what the configuration is.
            Some(file) => config::load_owned_text(file)
                .map_err(|error| unusable(reason(&error)))?
                .ok_or_else(|| unusable("there is no such file".to_owned()))?,
        };
        crypto::install();
        let keys = TrustedRoot::from_json(&text).map_err(|error| unusable(reason(&error)))?;
        let verifier = Verifier::new(&keys).map_err(|error| unusable(reason(&error)))?;
        Ok(Self {
            source,
            keys,
            verifier,
        })
    }
}
