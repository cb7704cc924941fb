//! What a server was when it was accepted: its package, everything that is installed with it, and its tools.
//!
//! A pin grants nothing: it is what the next start is compared with. Pure data and comparisons; files are read and
//! written elsewhere.

mod advisory;
mod package_version;
mod pin;
mod provenance;
mod published;
mod sbom;
mod tool;

pub use advisory::{
    Advisory, Finding, MaliciousPackages, findings, is_advisory_id, is_malicious, osv_ecosystem,
};
pub use package_version::{ArchiveHash, PackageVersion, Registry};
pub use pin::{PackagePin, Pin};
pub use provenance::Provenance;
pub use published::PublishedAt;
pub use sbom::cyclonedx;
pub use tool::{ToolPin, ToolPinError};
