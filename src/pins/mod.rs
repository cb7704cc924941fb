//! What a server was when it was accepted: its package, everything that is installed with it, and its tools.
//!
//! A pin grants nothing: it is what the next start is compared with. `.pml.lock` holds the pins that a team shares
//! (`lock_file.rs`), the user's state directory those that the user accepted (`acceptance_record.rs`). Comparing is pure.

mod acceptance_record;
mod advisory;
mod definition_text;
mod difference;
mod install_scripts;
mod launch;
mod lock_file;
mod lock_reader;
mod namesakes;
mod package_version;
mod pin;
mod plain_json;
mod provenance;
mod published;
mod sbom;
mod tool;

pub use acceptance_record::{AcceptedError, AcceptedLaunch, AcceptedPins, AcceptedServer};
pub use advisory::{
    Advisory, Finding, MaliciousPackages, findings, is_advisory_id, is_malicious, osv_ecosystem,
};
pub use definition_text::describe;
pub use difference::{Change, ContentsChange, ToolChange, difference, package_changes, tool_changes};
pub use install_scripts::{AcceptedScripts, InstallHook, InstallScript, InstallScripts};
pub use launch::{ComparedLaunch, LaunchChange, LaunchKind, LaunchSurroundings};
pub use lock_file::{LockFile, LockFileError, lock_path};
pub use lock_reader::{PinError, read_lock};
pub use namesakes::{Namesakes, ToolNames, some_of};
pub use package_version::{ArchiveHash, PackageVersion, Registry};
pub use pin::{PackagePin, Pin, provenance_alarm};
pub use provenance::{Provenance, ProvenanceChange, ProvenanceFinding};
pub use published::PublishedAt;
pub use sbom::cyclonedx;
pub use tool::{ToolPin, ToolPinError};
