//! The packages pml has installed: what they were resolved to, whether they are there, and getting them there.
//!
//! Conducts `install` (how a package gets into a directory) and `store` (where it is kept). One installation per
//! package and version at a time: calls of this process share one flight, processes share a lock.

mod contents;
mod installation;
mod malicious;
mod provenance;
mod resolution;
mod uninstallation;
mod verification;

pub use malicious::MaliciousServer;
pub use uninstallation::{InstalledVersions, StoredPackage, Uninstalled, Use, Used};
pub use verification::{VerifiedFiles, VerifiedInstallation};

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OnceCell;

use super::background::off_thread;
use super::content::Content;
use super::error::InstallError;
use super::executables::choose;
use super::installer::{Registries, Tools, check_lock, read_lock};
use super::lock::CheckedLock;
use super::release_age::ReleaseAge;
use super::step::{InstallProgress, InstallStep};
use crate::config::{Environment, Locations};
use crate::history::{History, MaliciousOutcome};
use crate::loader::advisories::Verdicts;
use crate::loader::plan::{Package, Plan, Resolved, Scripts};
use crate::loader::store::{Manifest, PYTHON, PackageIdentity, PackageStore, StartMethod};
use crate::pins::PackagePin;
use crate::protocol::{Digest, Shown};

/// A package in the store, ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Which version it is.
    pub resolved: Resolved,
    /// The absolute path of the program to start: `node`, the environment's `python`, or the executable itself.
    pub program: PathBuf,
    /// What comes before the server's own arguments.
    pub leading: Vec<OsString>,
    /// The directory of the installation.
    pub root: PathBuf,
    /// The digest of the lock that it was made from, as its own description says.
    pub(in crate::loader) made_from: Digest,
    /// Files of the package that run at every start before the server itself, escaped.
    pub at_start: Vec<String>,
    /// What a person should know of an installation that was just made.
    pub notes: Vec<String>,
}

/// One running installation that calls wait for together; ends with what a person should know of it.
type SharedInstallation = OnceCell<Result<Vec<String>, InstallError>>;

/// The installed packages of the user.
#[derive(Debug)]
pub struct Packages {
    store: PackageStore,
    tools: Tools,
    /// Without a record nothing is installed.
    history: History,
    /// What is known to be malicious is neither installed nor started.
    verdicts: Verdicts,
    /// How old a version must be before it is fetched.
    release_age: ReleaseAge,
    flights: Mutex<HashMap<String, Weak<SharedInstallation>>>,
}

impl Packages {
    /// Opens the packages below the user's data directory; creates nothing.
    #[must_use]
    pub fn new(
        locations: &Locations,
        environment: &Environment,
        history: History,
        release_age: ReleaseAge,
    ) -> Self {
        Self {
            history,
            verdicts: Verdicts::of(locations),
            release_age,
            store: PackageStore::new(locations.data()),
            tools: Tools::new(locations, environment),
            flights: Mutex::default(),
        }
    }

    /// Runs installers below `supervisor`, which is pml itself, so that they end also when pml is killed.
    #[must_use]
    pub fn supervised_by(self, supervisor: PathBuf) -> Self {
        Self {
            tools: self.tools.supervised(supervisor),
            ..self
        }
    }

    /// Tells a person from now on what an installer waits for, instead of the log.
    pub fn tell_waiting(&self, tell: impl Fn(&str) + Send + Sync + 'static) {
        self.tools.notices().take(Box::new(tell));
    }

    /// Tells which packages come from public registries, by the user's settings; blocks.
    #[must_use]
    pub fn registries(&self) -> Registries {
        Registries::of(&self.tools)
    }

    /// Returns what a package was resolved to, from its record on disk.
    #[must_use]
    pub fn resolved(&self, package: &Package) -> Option<Resolved> {
        self.store.record(package)
    }

    /// Tells whether [`Packages::resolved`] would read nothing.
    #[must_use]
    pub fn is_read(&self, package: &Package) -> bool {
        self.store.is_read(package)
    }

    /// Returns the installation of a plan's package, if there is a whole one; reads two small files.
    pub fn installed(&self, plan: &Plan) -> Result<Option<Installed>, InstallError> {
        let package = package_of(plan)?;
        let Some(resolved) = self.store.record(package) else {
            return Ok(None);
        };
        let Some(integrity) = resolved.integrity.clone() else {
            return Ok(None);
        };
        let identity = PackageIdentity::new(package, &resolved.version, plan.scripts());
        let Some(manifest) = self.store.manifest(&identity, &integrity) else {
            return Ok(None);
        };
        let root = self.store.directory(&identity, &integrity);
        let lock = resolved.lock.clone();
        // An older pml kept no lock apart from the installation.
        let lock = lock.or_else(|| Some(read_lock(package, &resolved.version, &root)?.0.digest));
        // Without any, what it was made from is what it is.
        let lock = lock.or_else(|| Some(manifest.lock.clone()));
        self.open(package, &manifest, root, Resolved { lock, ..resolved })
    }

    /// Returns what a plan's package was resolved to and everything that is installed with it, as far as it is known;
    /// reads two files.
    #[must_use]
    pub fn pin(&self, plan: &Plan) -> Option<PackagePin> {
        pin_in(&self.store, plan.package()?, plan.scripts())
    }

    /// Returns the moment it is now, in milliseconds since 1970.
    pub(in crate::loader) fn now(&self) -> i64 {
        self.release_age.now()
    }

    /// Installs a plan's package, or waits for the installation of it that is under way.
    ///
    /// `expected` is what a person was shown or approved; other content is refused, and so is what is known to be
    /// malicious, also where it is installed already. Dropping the future kills the installer with everything it started.
    pub async fn install(
        &self,
        plan: &Plan,
        expected: &Content,
        progress: InstallProgress<'_>,
    ) -> Result<Installed, InstallError> {
        let outcome = self.install_checked(plan, expected, progress).await;
        if let Err(InstallError::Malicious {
            dependency,
            found,
            advisory,
        }) = &outcome
        {
            self.record_malicious(dependency, found, advisory, MaliciousOutcome::Refused)
                .await;
        }
        outcome
    }

    async fn install_checked(
        &self,
        plan: &Plan,
        expected: &Content,
        progress: InstallProgress<'_>,
    ) -> Result<Installed, InstallError> {
        let package = package_of(plan)?;
        self.refuse_malicious(plan).await?;
        if let Some(installed) = self.installed(plan)? {
            expected.check(&package.spec(), &installed.resolved)?;
            installed.refuse_other_lock(plan)?;
            self.demand_of_installed(package, &installed.resolved).await?;
            self.refuse_changed_files(plan, &installed).await?;
            self.freeze_installed(plan, &installed).await?;
            return Ok(installed);
        }
        // A step that lies behind is not told: progress must only rise.
        let told = AtomicU32::new(0);
        let rising = |step: InstallStep| {
            if told.fetch_max(step.index(), Ordering::Relaxed) < step.index() {
                progress(step);
            }
        };
        let (flight, joined) = self.flight(package, plan.scripts(), expected);
        if joined {
            rising(InstallStep::Waiting);
        }
        let notes = flight
            .get_or_init(|| self.install_alone(plan, package, expected, &rising))
            .await
            .clone()?;
        let installed = self.installed(plan)?.ok_or_else(|| no_executable(package))?;
        expected.check(&package.spec(), &installed.resolved)?;
        installed.refuse_other_lock(plan)?;
        // Minutes may have passed, and another process may have installed it.
        self.refuse_malicious(plan).await?;
        self.demand_of_installed(package, &installed.resolved).await?;
        self.refuse_changed_files(plan, &installed).await?;
        Ok(Installed { notes, ..installed })
    }

    /// Returns the lock of the first installation, beside the runtime's thread; a damaged one counts as none.
    async fn frozen(
        &self,
        package: &Package,
        identity: &PackageIdentity,
        known: &Resolved,
    ) -> Option<(CheckedLock, String)> {
        let (store, package, identity) = (self.store.clone(), package.clone(), identity.clone());
        let known = known.clone();
        off_thread(move || frozen_in(&store, &package, &identity, &known))
            .await
            .flatten()
    }

    /// Joins the running installation of the same order, or starts one.
    fn flight(
        &self,
        package: &Package,
        scripts: Scripts,
        expected: &Content,
    ) -> (Arc<SharedInstallation>, bool) {
        let around = (package.python(), package.beside());
        let key = format!("{package} {scripts:?} {around:?} {expected:?}");
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.retain(|_, flight| flight.strong_count() > 0);
        if let Some(flight) = flights.get(&key).and_then(Weak::upgrade) {
            return (flight, true);
        }
        let flight = Arc::new(SharedInstallation::new());
        flights.insert(key, Arc::downgrade(&flight));
        (flight, false)
    }

    /// Turns an installation into what is started; `None` if its runtime is gone.
    fn open(
        &self,
        package: &Package,
        manifest: &Manifest,
        root: PathBuf,
        resolved: Resolved,
    ) -> Result<Option<Installed>, InstallError> {
        let (_, executable) = choose(package, manifest)?;
        let script = root.join(&executable.path);
        let (program, leading) = match &executable.start {
            StartMethod::Node { options } => {
                let node = self.tools.find("node", package)?;
                (
                    node,
                    options
                        .iter()
                        .map(OsString::from)
                        .chain([script.clone().into()])
                        .collect(),
                )
            }
            StartMethod::Python => (root.join(PYTHON), vec![script.clone().into()]),
            StartMethod::Direct => (script.clone(), Vec::new()),
        };
        let whole = script.is_file() && program.is_file();
        Ok(whole.then_some(Installed {
            resolved,
            program,
            leading,
            root,
            made_from: manifest.lock.clone(),
            at_start: manifest
                .at_start
                .iter()
                .map(|file| Shown::line(file).to_string())
                .collect(),
            notes: Vec::new(),
        }))
    }
}

/// Returns what a package was resolved to and everything that is installed with it; blocks.
fn pin_in(store: &PackageStore, package: &Package, scripts: Scripts) -> Option<PackagePin> {
    let resolved = store.record(package)?;
    let identity = PackageIdentity::new(package, &resolved.version, scripts);
    let contents = frozen_in(store, package, &identity, &resolved).map(|(lock, _)| lock);
    Some(package_pin(package, resolved, contents))
}

/// Returns the lock of the first installation; a damaged one counts as none.
fn frozen_in(
    store: &PackageStore,
    package: &Package,
    identity: &PackageIdentity,
    known: &Resolved,
) -> Option<(CheckedLock, String)> {
    if let Some(kept) = store.frozen(identity) {
        let checked = check_lock(package, &known.version, &kept.text)?;
        return (checked.digest == kept.digest).then_some((checked, kept.text));
    }
    // An older pml kept it in the installation alone, which may be broken otherwise.
    let integrity = known.integrity.as_deref()?;
    store.manifest(identity, integrity)?;
    read_lock(package, &known.version, &store.directory(identity, integrity))
}

/// Reads and checks the lock that a recipe left in a directory, beside the runtime's thread.
async fn made_lock(package: &Package, version: &str, directory: &Path) -> Option<(CheckedLock, String)> {
    let (package, version) = (package.clone(), version.to_owned());
    let directory = directory.to_owned();
    off_thread(move || read_lock(&package, &version, &directory))
        .await
        .flatten()
}

fn package_pin(package: &Package, resolved: Resolved, contents: Option<CheckedLock>) -> PackagePin {
    let (packages, install_scripts, package_lock) = match contents {
        Some(lock) => (lock.packages, lock.install_scripts, Some(lock.digest)),
        None => (BTreeMap::new(), Vec::new(), None),
    };
    PackagePin {
        name: package.registry_title(),
        version: resolved.version,
        integrity: resolved.integrity,
        package_lock,
        published: resolved.published,
        provenance: resolved.provenance,
        built_before: None,
        install_scripts,
        packages,
    }
}

fn package_of(plan: &Plan) -> Result<&Package, InstallError> {
    plan.package().ok_or_else(|| InstallError::NoPackage {
        dependency: plan.dependency().clone(),
    })
}

fn no_executable(package: &Package) -> InstallError {
    InstallError::Executable {
        package: package.spec(),
        wanted: None,
        choices: Vec::new(),
    }
}
