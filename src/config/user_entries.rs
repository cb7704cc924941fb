//! The entries of the user's own file that no project's file may have, as they are written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// Whether the definitions of tools are compared with those that were accepted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum PinToolsEntry {
    /// Of every server, or of none.
    All(bool),
    /// Of each server that is named, or not; of every other one.
    Servers(BTreeMap<String, bool>),
}

/// Where known vulnerabilities are asked for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an object with the keys of `advisories`"
)]
pub(super) struct AdvisoriesEntry {
    /// The address that speaks as OSV does; `https://api.osv.dev` by default. It begins with `https://`, or leads to this machine.
    pub(super) url: Option<String>,
    /// Which packages are asked about: `public` (default) those of the public registries, `all` those of other registries, such as a mirror, as well.
    pub(super) send: Option<SendEntry>,
    /// The names of packages that are never sent: whole ones, or their beginning before a `*`.
    #[schemars(length(max = 256), extend("examples" = [["@acme/*"]]))]
    pub(super) private: Option<Vec<String>>,
}

/// Which packages are asked about.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum SendEntry {
    /// Those of the public registries.
    Public,
    /// Those of other registries as well.
    All,
}

/// Whether what cannot be recorded may happen.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AuditEntry {
    /// It may not.
    Required,
    /// It may, with a warning.
    BestEffort,
}

/// Which projects' files count without being accepted.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TrustEntry {
    /// Those that the user wrote or changed.
    OwnWork,
    /// None.
    Strict,
}
