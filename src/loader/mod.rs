//! From a declared server to a running one: plan, install, spawn or connect, session.
//!
//! Uses `config`, `protocol` and `report`; does not see `permissions` nor `workflow`: whether something *may* be
//! installed or started was decided before it gets here. [`plan()`] is pure; [`Packages`] resolves and installs
//! into the user's own store, reading nothing of the project that declares a server.

mod asking;
mod capabilities;
mod catalog;
mod client;
mod collection;
mod content;
mod declared;
mod definition;
mod dismissal;
mod error;
mod executables;
mod handshake;
mod hearing;
mod install;
mod launch;
mod learning;
mod loading;
mod package;
mod packages;
mod pin;
mod plan;
pub mod process;
mod programs;
mod reach;
mod remote;
pub mod restart;
mod runner;
mod secrets;
mod session;
mod slot;
mod started;
pub mod stderr;
mod store;
pub mod supervise;
pub mod variables;

pub use capabilities::Capabilities;
pub use catalog::{Catalog, Known, LeftOut};
pub use client::{Caller, Client, Failure, Inquiry, Taken};
pub use content::Content;
pub use declared::Declared;
pub use definition::{
    ByName, ByTemplate, ByUri, Definition, Identity, KnownPrompt, KnownResource, KnownTemplate, KnownTool,
    Nameless,
};
pub use dismissal::Occupied;
pub use error::{InstallError, InstallStep};
pub use install::{LockError, Progress, Tail};
pub use launch::LoadError;
pub use loading::{Gate, Loader, Steps};
pub use package::{Ecosystem, Package, PackageError, VersionSpec};
pub use packages::{Installed, Packages, Resolved, Uninstalled, Use, Used};
pub use pin::pin;
pub use plan::{Plan, PlanError, PlanSource, Scripts, plan};
pub use process::Urgency;
pub use programs::{find_program, search_path};
pub use remote::{Address, AddressError};
pub use session::{Ended, Reply, Session, Unasked};
pub use slot::Lease;
pub use started::Started;
pub use store::Written;
