//! The JSON shapes of asking and continuing that are pml's own: seed words, spelled once.

use serde::{Deserialize, Serialize};

use super::ToolName;

/// What a person is shown of a dependency before it is installed or started; exactly this is granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownDependency {
    /// The dependency's name in `.pml.json`.
    pub name: String,
    /// The exact version where it is known; the declared range or `null` where it is not yet.
    pub version: Option<String>,
    /// The line that says what would be installed and run, never cut.
    pub install: String,
    /// The package's integrity (`sha512-…`), `null` while it is not yet known or for a plain command.
    pub integrity: Option<String>,
    /// Whether install scripts of the package and its dependencies would run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scripts: bool,
}

/// Why a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalType {
    /// A dependency would be installed, or started for the first time at this version.
    DependencyInstall,
    /// A narrower ask rule wants a person to see this very call.
    ToolPermission,
}

/// The `approval_context` of an `approval_required` result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalContext {
    /// Why a person is asked.
    #[serde(rename = "type")]
    pub kind: ApprovalType,
    /// The policy name of the suspended tool.
    pub tool: ToolName,
    /// What would be installed and run.
    pub dependency: ShownDependency,
    /// The id that continues the suspended call.
    pub workflow_id: uuid::Uuid,
}
