//! From a declared server to a running one: plan, install, spawn or connect, session.
//!
//! Uses `config`, `protocol` and `report`; does not see `permissions` nor `workflow`: whether something *may* be
//! installed or started was decided before it gets here. [`plan()`] is pure; [`Packages`] resolves and installs
//! into the user's own store, reading nothing of the project that declares a server.
//!
//! ```text
//! lifecycle -+-> install -+-> store -+-> plan
//!            |            +-> advisories -> remote
//!            |            +-> provenance -> remote
//!            +-> remote  -> session -+-> process
//!            +-> session -> catalog -> store
//! ```

mod advisories;
mod catalog;
mod install;
mod lifecycle;
#[cfg(test)]
mod loopback;
mod plan;
pub mod process;
mod provenance;
mod remote;
mod session;
mod store;

pub use advisories::{AdvisoryCache, AdvisoryError, FoundId, KeptAnswers, Osv, Verdicts};
pub use catalog::{
    ByName, ByTemplate, ByUri, Capabilities, Catalog, Definition, Identity, Known, KnownPrompt,
    KnownResource, KnownTemplate, KnownTool, LeftOut, Nameless,
};
pub use install::{
    Content, InstallError, InstallProgress, InstallStep, Installed, InstalledVersions, LockError,
    MaliciousServer, Packages, Registries, ReleaseAge, StoredPackage, Tail, Uninstalled, Use, Used,
    VerifiedFiles, VerifiedInstallation,
};
pub use lifecycle::{
    Gate, GateAnswer, LastFailure, Lease, LoadError, Loader, Occupied, ServerVariables, Started, Steps,
    restart,
};
pub use plan::{
    Address, AddressError, Ecosystem, NewerVersion, Package, PackageError, Plan, PlanError, PlanSource,
    Resolved, Scripts, VersionSpec, launch_change, pin, plan, variables,
};
pub use process::{
    ErrandEnd, Exit, LaunchLine, Urgency, find_program, find_users_program, run_errand, search_path,
};
pub use provenance::{ProvenanceError, RootSource};
pub use session::{
    Caller, Client, Declared, EndReason, Ended, Failure, HandshakeRefusal, Inquiry, OfferResult, Reply,
    Session, Unasked, UnreachableCause, Violation,
};
pub use store::{StoreError, TreeDifference, WrittenFiles};
