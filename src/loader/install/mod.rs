//! Packages on this machine: resolved, installed, checked against what was approved, and removed.
//!
//! No code of a package runs before its lock has been checked. Where an installation is kept is the business of
//! [`super::store`].

mod background;
mod content;
mod error;
mod executables;
mod installer;
mod lock;
mod packages;
mod release_age;
mod size_limit;
mod step;
mod tail;

pub(in crate::loader) use background::off_thread;
pub use content::Content;
pub use error::InstallError;
pub use installer::Registries;
pub use lock::LockError;
pub use packages::{
    Installed, InstalledVersions, MaliciousServer, Packages, StoredPackage, Uninstalled, Use, Used,
    VerifiedFiles, VerifiedInstallation,
};
pub use release_age::ReleaseAge;
pub use step::{InstallProgress, InstallStep};
pub use tail::Tail;
