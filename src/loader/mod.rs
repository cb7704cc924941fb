//! From a declared server to a running one: plan, install, spawn, session.
//!
//! Uses `config`, `protocol` and `report`; does not see `permissions` nor `workflow`: whether something *may* be
//! installed or started was decided before it gets here. [`plan()`] is pure; [`Packages`] resolves and installs
//! into the user's own store, reading nothing of the project that declares a server.

mod catalog;
mod client;
mod error;
mod executables;
mod install;
mod launch;
mod loading;
mod package;
mod packages;
mod pin;
mod plan;
pub mod process;
mod programs;
pub mod restart;
mod runner;
pub mod secrets;
mod session;
mod slot;
pub mod stderr;
mod store;
pub mod supervise;
pub mod variables;

pub use catalog::{Catalog, Known, KnownTool, Nameless, Remembered};
pub use client::{Caller, Client, Failure, Inquiry, Taken};
pub use error::{InstallError, InstallStep};
pub use install::{LockError, Progress, Tail};
pub use launch::{LoadError, Started};
pub use loading::{Loader, Steps};
pub use package::{Ecosystem, Package, PackageError, VersionSpec};
pub use packages::{Installed, Packages, Resolved, Uninstalled};
pub use pin::pin;
pub use plan::{Plan, PlanError, PlanSource, Scripts, plan};
pub use process::Urgency;
pub use programs::{find_program, search_path};
pub use session::{Ended, Reply, Session, Unasked};
