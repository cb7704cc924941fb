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

/// How `pml run` hosts an agent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    default,
    expecting = "an object with the keys of `run`"
)]
pub(super) struct RunEntry {
    /// The program of Claude Code: an absolute path, or a name on the `PATH`; `claude` by default.
    #[schemars(length(min = 1))]
    pub(super) claude: Option<String>,
    /// How many minutes a run waits for an answer before its agent is put aside until one comes; 10 by default, 0 for ever.
    #[schemars(range(max = 1440))]
    pub(super) patience_minutes: Option<u64>,
    /// How many runs may be under way at once; 4 by default.
    #[schemars(range(min = 1, max = 64))]
    pub(super) most: Option<usize>,
    /// What becomes of your answer to a question of a Claude Code that you began yourself, without `pml run`, and that has
    /// ended since; `keep` by default.
    pub(super) late_answers: Option<LateAnswersEntry>,
}

/// What becomes of an answer whose session has ended.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum LateAnswersEntry {
    /// It is kept for the next question of its project.
    Keep,
    /// `pml serve` resumes the session with it, as a run.
    Resume,
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
