//! Plan, install, spawn, session: from a declared server to a running one.
//!
//! [`plan()`] is pure and says what would be installed and run; [`Packages`] resolves and installs it into the
//! user's own store. Nothing of the project a server is declared in is read while a package is installed.

mod error;
mod install;
mod package;
mod packages;
mod plan;
mod programs;
mod runner;
mod store;

pub use error::{InstallError, InstallStep};
pub use install::{LockError, Progress, Tail};
pub use package::{Ecosystem, Package, PackageError, VersionSpec};
pub use packages::{Installed, Packages, Resolved, Uninstalled};
pub use plan::{Plan, PlanError, PlanSource, Scripts, plan};
pub use programs::{find_program, search_path};
