//! The packages pml has installed: what they were resolved to, whether they are there, and getting them there.
//!
//! Conducts `install` (how a package gets into a directory) and `store` (where it is kept). One installation per
//! package and version at a time: calls of this process share one flight, processes share a lock.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OnceCell;

use super::error::{InstallError, InstallStep};
use super::executables::{choose, is_whole};
use super::install::{self, Order, PYTHON, Progress, Start, Tools};
use super::package::{Package, VersionSpec};
use super::plan::{Plan, Scripts};
use super::store::{self, Identity, Manifest, Store};
use crate::config::{Environment, Locations};
use crate::protocol::Digest;

/// The exact version of a package, and what its content must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The exact version.
    pub version: String,
    /// `sha512-…` of an npm package, `sha256-…` of a PyPI package; `None` if the registry did not say.
    pub integrity: Option<String>,
}

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
}

/// What `uninstall` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uninstalled {
    /// The package was not known.
    Nothing,
    /// The version is no longer pinned for this spec; another spec still needs its files.
    StillNeeded {
        /// The version that was pinned.
        version: String,
    },
    /// The version is no longer pinned and its files are gone.
    Removed {
        /// The version that was pinned.
        version: String,
        /// The directories that were removed.
        directories: Vec<PathBuf>,
    },
}

/// One running installation that calls wait for together.
type Flight = OnceCell<Result<Resolved, InstallError>>;

/// The installed packages of the user.
#[derive(Debug)]
pub struct Packages {
    store: Store,
    tools: Tools,
    flights: Mutex<HashMap<String, Weak<Flight>>>,
}

impl Packages {
    /// Opens the packages below the user's data directory; creates nothing.
    #[must_use]
    pub fn new(locations: &Locations, environment: &Environment) -> Self {
        Self {
            store: Store::new(locations.data()),
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

    /// Returns what a package was resolved to, from its record on disk.
    #[must_use]
    pub fn resolved(&self, package: &Package) -> Option<Resolved> {
        self.store.record(package)
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
        let identity = Identity::new(package, &resolved.version, plan.scripts());
        let Some(manifest) = self.store.manifest(&identity, &integrity) else {
            return Ok(None);
        };
        let root = self.store.directory(&identity, &integrity);
        self.open(package, &manifest, root, resolved)
    }

    /// Asks the registry for the exact version and integrity and records them; no code of the package runs.
    ///
    /// A spec that has a record is not asked for again: a floating version is pinned by its first resolution.
    pub async fn resolve(&self, package: &Package) -> Result<Resolved, InstallError> {
        let recorded = || {
            self.store
                .record(package)
                .filter(|resolved| resolved.integrity.is_some())
        };
        if let Some(resolved) = recorded() {
            return Ok(resolved);
        }
        let key = resolving(package);
        let _held = self.store.lock(&key, || {}).await?;
        // Whoever held the lock has probably asked the same.
        if let Some(resolved) = recorded() {
            return Ok(resolved);
        }
        let resolved = self.ask_registry(package, &key).await?;
        self.store.keep(package, resolved)
    }

    /// Asks the registry what a spec means today and records nothing, for a version that is about to be declared.
    pub async fn look_up(&self, package: &Package) -> Result<Resolved, InstallError> {
        let key = resolving(package);
        let _held = self.store.lock(&key, || {}).await?;
        self.ask_registry(package, &key).await
    }

    async fn ask_registry(&self, package: &Package, key: &str) -> Result<Resolved, InstallError> {
        let workspace = self.store.workspace(key)?;
        let resolved = install::resolve(&self.tools, package, &workspace).await;
        store::remove(&workspace);
        resolved
    }

    /// Installs a plan's package, or waits for whoever is already installing it.
    ///
    /// `expected` is the integrity that a person was shown; other content is refused. Dropping the future kills the
    /// installer with everything it started.
    pub async fn install(
        &self,
        plan: &Plan,
        expected: Option<&str>,
        progress: Progress<'_>,
    ) -> Result<Installed, InstallError> {
        let package = package_of(plan)?;
        if self.installed(plan)?.is_none() {
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
            flight
                .get_or_init(|| self.install_alone(package, plan.scripts(), expected, &rising))
                .await
                .clone()?;
        }
        let installed = self.installed(plan)?.ok_or_else(|| no_executable(package))?;
        match (expected, installed.resolved.integrity.as_deref()) {
            (Some(expected), Some(found)) if expected != found => Err(changed(package, expected, found)),
            _ => Ok(installed),
        }
    }

    /// Unpins a package and removes its files, unless another spec needs them.
    pub fn uninstall(&self, package: &Package) -> Result<Uninstalled, InstallError> {
        let Some(Resolved { version, .. }) = self.store.record(package) else {
            return Ok(Uninstalled::Nothing);
        };
        self.store.forget(package)?;
        if self.store.is_needed(package, &version) {
            return Ok(Uninstalled::StillNeeded { version });
        }
        let directories = self.store.remove_installations(package, &version)?;
        Ok(Uninstalled::Removed { version, directories })
    }

    /// Joins the running installation of the same order, or starts one.
    fn flight(&self, package: &Package, scripts: Scripts, expected: Option<&str>) -> (Arc<Flight>, bool) {
        let key = format!(
            "{package} {scripts:?} {:?} {}",
            package.python(),
            expected.unwrap_or_default()
        );
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.retain(|_, flight| flight.strong_count() > 0);
        if let Some(flight) = flights.get(&key).and_then(Weak::upgrade) {
            return (flight, true);
        }
        let flight = Arc::new(Flight::new());
        flights.insert(key, Arc::downgrade(&flight));
        (flight, false)
    }

    async fn install_alone(
        &self,
        package: &Package,
        scripts: Scripts,
        expected: Option<&str>,
        progress: Progress<'_>,
    ) -> Result<Resolved, InstallError> {
        let known = match (self.store.record(package), package.version()) {
            (Some(resolved), _) => resolved,
            (None, VersionSpec::Exact(version)) => Resolved {
                version: version.clone(),
                integrity: None,
            },
            (None, VersionSpec::Floating(_)) => {
                progress(InstallStep::Resolving);
                self.resolve(package).await?
            }
        };
        let identity = Identity::new(package, &known.version, scripts);
        let key = identity.key();
        let held = self.store.lock(&key, || progress(InstallStep::Waiting)).await?;
        // Whoever held the lock may have recorded more than was known before.
        let known = self.store.record(package).unwrap_or(known);
        let expected = match (expected, known.integrity.as_deref()) {
            (Some(shown), Some(recorded)) if shown != recorded => {
                return Err(changed(package, shown, recorded));
            }
            (shown, recorded) => shown.or(recorded),
        };
        if let Some(integrity) = expected
            && let Some(manifest) = self.store.manifest(&identity, integrity)
            && is_whole(&self.store.directory(&identity, integrity), &manifest)
        {
            return self.record(package, &known.version, manifest.integrity);
        }
        let (store, own) = (self.store.clone(), key.clone());
        off_thread(move || store.sweep(&own)).await;
        let workspace = self.store.workspace(&key)?;
        let built = install::install(
            &self.tools,
            &Order {
                package,
                version: &known.version,
                expected,
                scripts,
                directory: &workspace,
                progress,
            },
        )
        .await;
        let built = match built {
            Ok(built) => built,
            Err(error) => {
                off_thread(move || store::remove(&workspace)).await;
                return Err(error);
            }
        };
        if built.executables.is_empty() {
            off_thread(move || store::remove(&workspace)).await;
            return Err(no_executable(package));
        }
        progress(InstallStep::Activating);
        let lock_path = workspace.join(built.lock);
        let lock = std::fs::read(&lock_path).map_err(InstallError::file("read", &lock_path))?;
        let manifest = Manifest::new(
            identity,
            built.integrity.clone(),
            Digest::of([lock]),
            built.executables,
        );
        let store = self.store.clone();
        off_thread(move || store.activate(&workspace, &manifest))
            .await
            .unwrap_or(Ok(()))?;
        let resolved = self.record(package, &known.version, built.integrity);
        drop(held);
        resolved
    }

    fn record(&self, package: &Package, version: &str, integrity: String) -> Result<Resolved, InstallError> {
        let resolved = Resolved {
            version: version.to_owned(),
            integrity: Some(integrity),
        };
        self.store.keep(package, resolved)
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
            Start::Node { options } => {
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
            Start::Python => (root.join(PYTHON), vec![script.clone().into()]),
            Start::Direct => (script.clone(), Vec::new()),
        };
        let whole = script.is_file() && program.is_file();
        Ok(whole.then_some(Installed {
            resolved,
            program,
            leading,
            root,
        }))
    }
}

/// The lock under which a spec is resolved.
fn resolving(package: &Package) -> String {
    format!("resolve-{}", Digest::of([package.to_string()]))
}

fn package_of(plan: &Plan) -> Result<&Package, InstallError> {
    plan.package().ok_or_else(|| InstallError::NoPackage {
        dependency: plan.dependency().clone(),
    })
}

fn changed(package: &Package, expected: &str, found: &str) -> InstallError {
    InstallError::Changed {
        package: package.spec(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}

fn no_executable(package: &Package) -> InstallError {
    InstallError::Executable {
        package: package.spec(),
        wanted: None,
        choices: Vec::new(),
    }
}

/// Runs slow file work beside the runtime's thread; `None` if the runtime is going away.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
