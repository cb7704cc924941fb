//! The installers and what they may see: the user's settings, never the project's, and no secret of the client.
//!
//! The environment is made from nothing. Lower-case `npm_config_*` is what `npm run` injects from a *project* and is
//! dropped; the upper-case variables a person exports are kept.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::credentials;
use super::failure::failure;
use super::growth::{self, Growth};
use super::patience::{self, Silence, WaitNotices};
use super::process::{InstallerEnd, InstallerOutput, InstallerRun, Program};
use crate::config::{Environment, Locations, ProvenanceSettings};
use crate::loader::install::background::off_thread;
use crate::loader::install::error::InstallError;
use crate::loader::plan::Package;
use crate::loader::process::{find_program, search_path};

/// A download that takes longer than this has stalled or never ends.
const LIMIT: Duration = Duration::from_mins(10);

/// What company networks need: the user's proxy, certificates, registries and patience.
const KEPT: [&str; 33] = [
    "HOME",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "NPM_CONFIG_CAFILE",
    "NPM_CONFIG_FETCH_RETRIES",
    "NPM_CONFIG_FETCH_RETRY_MAXTIMEOUT",
    "NPM_CONFIG_FETCH_RETRY_MINTIMEOUT",
    "NPM_CONFIG_FETCH_TIMEOUT",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_HTTP_RETRIES",
    "UV_HTTP_TIMEOUT",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
];

/// Finds and runs installers for the user.
#[derive(Debug, Clone)]
pub(in crate::loader) struct Tools {
    environment: Environment,
    cache: PathBuf,
    /// The user's own file, which says what provenance is verified with.
    user_config: PathBuf,
    supervisor: Option<PathBuf>,
    /// Where a person hears what an installer waits for.
    notices: WaitNotices,
}

impl Tools {
    pub(in crate::loader) fn new(locations: &Locations, environment: &Environment) -> Self {
        Self {
            environment: environment.clone(),
            cache: locations.cache().to_owned(),
            user_config: locations.user_config(),
            supervisor: None,
            notices: WaitNotices::default(),
        }
    }

    /// Runs installers below the supervisor, so that they end also when pml is killed.
    pub(in crate::loader) fn supervised(self, supervisor: PathBuf) -> Self {
        Self {
            supervisor: Some(supervisor),
            ..self
        }
    }

    /// Returns where a person hears what an installer waits for.
    pub(in crate::loader::install) fn notices(&self) -> &WaitNotices {
        &self.notices
    }

    /// Finds a program on the user's `PATH`, or says for which package it is missing.
    pub(in crate::loader) fn find(
        &self,
        name: &'static str,
        package: &Package,
    ) -> Result<PathBuf, InstallError> {
        find_program(name, &self.environment).ok_or_else(|| InstallError::Missing {
            package: package.spec(),
            program: name,
        })
    }

    /// Returns where a program of the user is.
    pub(super) fn path_of(&self, name: &str) -> Option<PathBuf> {
        find_program(name, &self.environment)
    }

    pub(super) fn program(&self, name: &'static str, package: &Package) -> Result<Program, InstallError> {
        self.find(name, package).map(|path| Program { name, path })
    }

    /// Returns a private cache: a shared one could be poisoned by other programs that write to it.
    pub(super) fn cache(&self, name: &str) -> PathBuf {
        self.cache.join(name)
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Reads what the user demands of where packages were built, as their file says now.
    pub(in crate::loader) async fn provenance_settings(&self) -> Result<ProvenanceSettings, InstallError> {
        let file = self.user_config.clone();
        let read = off_thread(move || ProvenanceSettings::read(&file)).await;
        let Some(read) = read else {
            let gone = std::io::Error::other("pml is going away");
            return Err(InstallError::file("read", &self.user_config)(gone));
        };
        read.map_err(|source| InstallError::Settings(Arc::new(source)))
    }

    /// Returns the user's own file.
    pub(in crate::loader) fn user_config(&self) -> &Path {
        &self.user_config
    }

    /// Returns the environment of an installer.
    pub(super) fn variables(&self) -> BTreeMap<OsString, OsString> {
        let kept = KEPT
            .iter()
            .filter_map(|name| Some((OsString::from(name), self.environment.variable(name)?.to_owned())));
        let own = [
            ("PATH", search_path(&self.environment)),
            ("LC_ALL", "C.UTF-8".into()),
            ("NO_COLOR", "1".into()),
        ];
        kept.chain(own.map(|(name, value)| (name.into(), value)))
            .collect()
    }

    /// Runs an installer to a successful end and returns its stdout.
    pub(super) async fn run(
        &self,
        program: &Program,
        package: &str,
        directory: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        extra: impl IntoIterator<Item = (&'static str, OsString)>,
    ) -> Result<InstallerOutput, InstallError> {
        let mut variables = self.variables();
        variables.extend(extra.into_iter().map(|(name, value)| (name.into(), value)));
        let arguments: Vec<OsString> = arguments
            .into_iter()
            .map(|argument| argument.as_ref().to_owned())
            .collect();
        let (environment, seen) = (self.environment.clone(), variables.clone());
        let (name, spec, words) = (program.name, package.to_owned(), arguments.clone());
        let settings = off_thread(move || {
            let host = patience::host(name, &spec, &words, &seen, &environment);
            (credentials::of(&environment, &seen), host)
        });
        let (secrets, host) = settings.await.unwrap_or_default();
        let growth = Growth::of(directory, &self.cache, &self.environment);
        let run = InstallerRun {
            program: &program.path,
            arguments,
            directory,
            variables,
            limit: LIMIT,
            growth: growth.clone(),
            supervisor: self.supervisor.as_deref(),
            secrets,
            silence: Silence::of(&program.path, host, self.notices.clone()),
        };
        let finished = run
            .finish()
            .await
            .map_err(InstallError::file("run", &program.path))?;
        match &finished.ending {
            InstallerEnd::Success => Ok(finished),
            InstallerEnd::Failed(ending) => Err(failure(program.name, package, ending.clone(), &finished)),
            InstallerEnd::TooLarge => {
                let cache = self.cache.clone();
                off_thread(move || growth::remove_unfinished(&cache)).await;
                Err(InstallError::TooLarge {
                    package: package.to_owned(),
                    program: program.name,
                    mib: growth.mib(),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installers_see_the_users_network_and_no_secret_nor_the_projects_settings() {
        let kept = [
            "HTTPS_PROXY",
            "NODE_EXTRA_CA_CERTS",
            "UV_DEFAULT_INDEX",
            "NPM_CONFIG_REGISTRY",
        ];
        let dropped = [
            "NODE_OPTIONS",
            "PYTHONPATH",
            "PYTHONHOME",
            "VIRTUAL_ENV",
            "npm_config_registry",
            "NPM_TOKEN",
            "GITHUB_TOKEN",
            "ANTHROPIC_API_KEY",
            "UV_CONFIG_FILE",
            "LD_PRELOAD",
        ];
        let given = kept.iter().chain(&dropped).map(|name| (*name, "value"));
        let environment = Environment::new(given.chain([("HOME", "/home"), ("PATH", "relative:/bin")]), "/");
        let locations = Locations::of(&environment).unwrap();
        let variables = Tools::new(&locations, &environment).variables();
        let mut names: Vec<_> = variables.keys().map(|name| name.to_str().unwrap()).collect();
        names.sort_unstable();
        let mut expected: Vec<_> = kept
            .into_iter()
            .chain(["HOME", "PATH", "LC_ALL", "NO_COLOR"])
            .collect();
        expected.sort_unstable();
        assert_eq!(names, expected);
        assert_eq!(variables[OsStr::new("PATH")], "/bin");
    }
}
