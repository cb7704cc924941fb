//! Where a package was built: fetches the attestations of its registry and verifies them offline.
//!
//! Fetching (`fetch.rs`) is kept apart from reading (`npm.rs`, `pypi.rs`) and verifying (`verification.rs`), which are
//! pure. Three outcomes are told apart: a registry without an attestation, one that could not be asked, and one whose
//! attestation does not verify. The last one is an error, and nothing is installed.

mod crypto;
mod error;
mod fetch;
mod npm;
mod pypi;
mod root;
mod root_source;
#[cfg(test)]
mod tests;
mod verification;

pub use error::ProvenanceError;
pub use root_source::RootSource;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use self::fetch::{FetchError, Fetcher};
use self::pypi::{Listing, Wheel};
use self::root::TrustRoot;
use self::verification::{Subject, verify};
use crate::config::Environment;
use crate::pins::{Provenance, ProvenanceFinding};
use crate::protocol::{Secrets, Shown};

/// Attestations take some ten kilobytes.
const DOCUMENT: usize = 1024 * 1024;

/// The page of a package with many versions takes some megabytes.
const PAGE: usize = 16 * 1024 * 1024;

/// Each costs a request. A package has one wheel, or one for each Python and each kind of processor.
const WHEELS: usize = 64;

/// One request after the other for all wheels of a version: whoever resolves a package waits for this.
const ALL_WHEELS: Duration = Duration::from_mins(1);

const JSON: &str = "application/json";
const INTEGRITY: &str = "application/vnd.pypi.integrity.v1+json";
const SIMPLE: &str = "application/vnd.pypi.simple.v1+json, text/html;q=0.1";

/// Asks registries for attestations.
#[derive(Debug, Clone)]
pub(in crate::loader) struct AttestationInquiry<'a> {
    /// The proxies of the user.
    pub(in crate::loader) environment: &'a Environment,
    /// What must not be shown.
    pub(in crate::loader) secrets: &'a Secrets,
    /// The user's own trust root.
    pub(in crate::loader) root: Option<PathBuf>,
}

impl AttestationInquiry<'_> {
    /// Finds out where a version of an npm package was built, of which its registry says that it has an attestation.
    pub(in crate::loader) async fn npm(
        &self,
        registry: &Url,
        name: &str,
        version: &str,
        integrity: &str,
    ) -> Result<ProvenanceFinding, ProvenanceError> {
        let (Some(address), Some(subject)) = (
            npm::address(registry, name, version),
            npm::subject(name, version, integrity),
        ) else {
            return Ok(unknown("the registry does not say what it serves"));
        };
        let document = match self.fetcher().fetch(&address, JSON, DOCUMENT).await {
            Ok(Some(document)) => document,
            // Mirrors repeat what a registry says of its attestations and do not have them.
            Ok(None) => return Ok(unknown("the registry says that it has one and answered 404")),
            Err(error) => return failed(error),
        };
        let bundles = npm::bundles(&document)?;
        let root = self.root().await?;
        verified(bundles, subject, root).await
    }

    /// Finds out where the wheels of a version of a Python package were built, `hashes` being those of its archives.
    ///
    /// Which of them is installed is up to the installer: what is not proven of all of them is not proven.
    pub(in crate::loader) async fn pypi(
        &self,
        index: &Url,
        name: &str,
        version: &str,
        hashes: &[String],
    ) -> Result<ProvenanceFinding, ProvenanceError> {
        let asking = self.ask_for_wheels(index, name, version, hashes);
        let asked = tokio::time::timeout(ALL_WHEELS, asking).await;
        asked.unwrap_or_else(|_elapsed| Ok(unknown("the index took too long for all wheels of it")))
    }

    async fn ask_for_wheels(
        &self,
        index: &Url,
        name: &str,
        version: &str,
        hashes: &[String],
    ) -> Result<ProvenanceFinding, ProvenanceError> {
        let wheels = match self.wheels(index, name, hashes).await {
            Ok(wheels) => wheels,
            Err(reason) => return Ok(unknown(&reason)),
        };
        if wheels.iter().any(|wheel| wheel.listing == Listing::Absent) {
            return Ok(ProvenanceFinding::Absent);
        }
        let mut root = None;
        let mut first: Option<Provenance> = None;
        for wheel in wheels {
            let (Some(address), Some(subject)) = (
                pypi::address(index, name, version, &wheel.file),
                pypi::subject(&wheel),
            ) else {
                return Ok(unknown("the index does not say what it serves"));
            };
            let document = match self.fetcher().fetch(&address, INTEGRITY, DOCUMENT).await {
                Ok(Some(document)) => document,
                Ok(None) => return Ok(ProvenanceFinding::Absent),
                Err(error) => return failed(error),
            };
            let bundles = pypi::bundles(&document)?;
            let known = match root {
                Some(root) => root,
                None => self.root().await?,
            };
            root = Some(Arc::clone(&known));
            let provenance = match verified(bundles, subject, known).await? {
                ProvenanceFinding::Proven(provenance) => provenance,
                other => return Ok(other),
            };
            match &first {
                Some(first) => agree(first, &provenance)?,
                None => first = Some(provenance),
            }
        }
        Ok(first.map_or_else(
            || unknown("the index lists no wheel of it"),
            ProvenanceFinding::Proven,
        ))
    }

    async fn wheels(&self, index: &Url, name: &str, hashes: &[String]) -> Result<Vec<Wheel>, String> {
        let page = pypi::page(index, name).ok_or("the index has no address")?;
        let page = self.fetcher().fetch(&page, SIMPLE, PAGE).await;
        let page = page
            .map_err(|error| error.to_string())?
            .ok_or("the index answered 404")?;
        let wheels = pypi::wheels(&page, hashes).ok_or("the page of the index cannot be read")?;
        if wheels.len() > WHEELS {
            return Err(format!("it has {} wheels", wheels.len()));
        }
        Ok(wheels)
    }

    fn fetcher(&self) -> Fetcher<'_> {
        Fetcher {
            environment: self.environment,
            secrets: self.secrets,
        }
    }

    async fn root(&self) -> Result<Arc<TrustRoot>, ProvenanceError> {
        let file = self.root.clone();
        let read = tokio::task::spawn_blocking(move || TrustRoot::load(file.as_deref()).map(Arc::new));
        read.await.unwrap_or_else(|_broken_off| Err(broken_off()))
    }
}

/// Verifies every bundle, beside the runtime's thread; without one there is no provenance.
async fn verified(
    bundles: Vec<String>,
    subject: Subject,
    root: Arc<TrustRoot>,
) -> Result<ProvenanceFinding, ProvenanceError> {
    let verifying = tokio::task::spawn_blocking(move || {
        let mut first: Option<Provenance> = None;
        for bundle in bundles {
            let provenance = verify(&bundle, &subject, &root)?;
            match &first {
                Some(first) => agree(first, &provenance)?,
                None => first = Some(provenance),
            }
        }
        Ok(first.map_or(ProvenanceFinding::Absent, ProvenanceFinding::Proven))
    });
    verifying.await.unwrap_or_else(|_broken_off| Err(broken_off()))
}

/// Refuses two provenances of one version that differ.
fn agree(first: &Provenance, second: &Provenance) -> Result<(), ProvenanceError> {
    if first == second {
        return Ok(());
    }
    Err(ProvenanceError::Disagreement {
        first: Shown::line(&first.to_string()).to_string(),
        second: Shown::line(&second.to_string()).to_string(),
    })
}

/// Tells what an attestation that was not fetched means.
fn failed(error: FetchError) -> Result<ProvenanceFinding, ProvenanceError> {
    match error {
        // It is there, and it is none.
        FetchError::TooLong { limit } => Err(ProvenanceError::TooLong { limit }),
        error => Ok(unknown(&error.to_string())),
    }
}

fn unknown(reason: &str) -> ProvenanceFinding {
    ProvenanceFinding::Unknown {
        reason: reason.to_owned(),
    }
}

/// A verification that broke off proved nothing.
fn broken_off() -> ProvenanceError {
    ProvenanceError::Unreadable {
        reason: "its verification broke off".to_owned(),
    }
}
