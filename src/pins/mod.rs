//! What a server was when it was accepted: its package, everything that is installed with it, and its tools.
//!
//! A pin grants nothing: it is what the next start is compared with. Pure data and comparisons; files are read and
//! written elsewhere.

mod pin;
mod provenance;
mod published;
mod tool;

pub use pin::{PackagePin, Pin};
pub use provenance::{Provenance, ProvenanceChange, ProvenanceFinding};
pub use published::PublishedAt;
pub use tool::{ToolPin, ToolPinError};
