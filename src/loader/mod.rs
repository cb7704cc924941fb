//! From a declared server to a running one: plan, install, spawn, session.
//!
//! Uses `config`, `protocol` and `report`; does not see `permissions` nor `workflow`: whether something *may* be
//! installed or started was decided before it gets here.

mod catalog;
pub mod process;
pub mod restart;
mod session;
pub mod stderr;
pub mod supervise;
pub mod variables;

pub use catalog::{Catalog, Known, KnownTool, Nameless, Remembered};
pub use process::Urgency;
pub use session::{Ended, Reply, Session, Step, Ticket, Unasked};
