//! From a declared server to a running one: plan, install, spawn, session.
//!
//! Uses `config`, `protocol` and `report`; does not see `permissions` nor `workflow`: whether something *may* be
//! installed or started was decided before it gets here.

pub mod process;
pub mod restart;
pub mod secrets;
pub mod stderr;
pub mod supervise;
pub mod variables;
