//! The manifest of an installation: what it is, what it holds and how its executables are started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::identity::PackageIdentity;
use crate::protocol::Digest;

/// The name of the file that makes a directory an installation.
pub(super) const MANIFEST: &str = "pml-manifest.json";

/// Raised when an older pml must not read a manifest or a record.
pub(super) const FORMAT: u32 = 1;

/// What an installation says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::loader) struct Manifest {
    pub(in crate::loader) format: u32,
    pub(in crate::loader) identity: PackageIdentity,
    pub(in crate::loader) integrity: String,
    /// The digest of the lock: everything that was installed beside the package.
    pub(in crate::loader) lock: Digest,
    pub(in crate::loader) executables: BTreeMap<String, Executable>,
    /// Files that run at every start before the server itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::loader) at_start: Vec<String>,
}

/// One executable of an installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::loader) struct Executable {
    /// Its path below the installation.
    pub(in crate::loader) path: PathBuf,
    /// How it is started.
    pub(in crate::loader) start: StartMethod,
}

/// How an executable is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::loader) enum StartMethod {
    /// By the user's `node`, with the options of its first line.
    Node { options: Vec<String> },
    /// By the Python of its own environment.
    Python,
    /// By itself.
    Direct,
}

/// Where a PyPI installation keeps its Python, below the installation.
pub(in crate::loader) const PYTHON: &str = "env/bin/python";

impl Manifest {
    pub(in crate::loader) fn new(
        identity: PackageIdentity,
        integrity: String,
        lock: Digest,
        executables: BTreeMap<String, Executable>,
        at_start: Vec<String>,
    ) -> Self {
        Self {
            format: FORMAT,
            identity,
            integrity,
            lock,
            executables,
            at_start,
        }
    }
}

pub(in crate::loader) fn read_manifest(directory: &Path) -> Option<Manifest> {
    let text = std::fs::read(directory.join(MANIFEST)).ok()?;
    let manifest: Manifest = serde_json::from_slice(&text).ok()?;
    (manifest.format == FORMAT).then_some(manifest)
}

pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    // These types have text keys and no fallible parts; an empty file would be refused when it is read.
    serde_json::to_vec_pretty(value).unwrap_or_default()
}
