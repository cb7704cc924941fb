//! From a declared server to a running one: plan, install, spawn, session.
mod catalog;
mod session;

pub use catalog::{Catalog, Known, KnownTool, Nameless, Remembered};
pub use session::{Ended, Reply, Session, Step, Ticket, Unasked};
