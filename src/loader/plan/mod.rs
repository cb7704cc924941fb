//! From a declared server to what would be installed and run, or connected to; nothing happens here.
//!
//! Pure: text and an environment in, a [`Plan`] or an error out. An approval is bound to [`Plan::digest`], which
//! is made of what was *declared*: a secret that changes its value does not ask again, a changed line does.

mod address;
mod compared_launch;
mod digest;
mod error;
mod fetched_code;
mod package;
mod pin;
mod resolved;
mod runner;
mod secrets;
mod source;
mod surroundings;
#[cfg(test)]
mod tests;
pub mod variables;

pub use address::{Address, AddressError};
pub use compared_launch::launch_change;
pub use error::PlanError;
pub use package::{Ecosystem, Package, PackageError, VersionSpec};
pub(in crate::loader) use package::{
    is_npm_name, is_pypi_name, is_python_version, is_semantic_version, normalize,
};
pub use pin::pin;
pub use resolved::{NewerVersion, Resolved};
pub(in crate::loader) use secrets::SecretCollector;
pub use source::{PlanSource, Scripts};

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use self::digest::{catalog_key, digest};
use self::error::{package_error, runner_error};
use self::runner::{PackageRunner, RunnerLine};
use crate::config::{Environment, Launch, Server, VariablesFile, expand};
use crate::protocol::approval::{ApprovalType, ShownDependency, ShownInstallation, Surroundings};
use crate::protocol::{DependencyName, Digest, Secrets, Shown, shell};

/// What would be installed and run for one declared server.
#[derive(Clone, PartialEq, Eq)]
pub struct Plan {
    dependency: DependencyName,
    source: PlanSource,
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
    variables_file: Option<VariablesFile>,
    directory: PathBuf,
    scripts: Scripts,
    digest: Digest,
    catalog_key: Digest,
    line: DeclaredLine,
    secrets: Secrets,
}

/// The line as a person would write it, unexpanded.
#[derive(Clone, PartialEq, Eq)]
struct DeclaredLine {
    steering: Vec<String>,
    runner: Option<PackageRunner>,
    words: Vec<String>,
    surroundings: Surroundings,
}

/// Plans the server that is declared as `name`.
pub fn plan(name: &DependencyName, server: &Server, environment: &Environment) -> Result<Plan, PlanError> {
    let secrets_found = RefCell::new(SecretCollector::default());
    let expanded = |text: &String| {
        let expanded = expand(text, environment).map_err(|source| PlanError::Expand {
            dependency: name.clone(),
            source,
        })?;
        for (name, value) in &expanded.taken {
            secrets_found.borrow_mut().variable(name, value);
        }
        Ok(expanded.text)
    };
    let variables: BTreeMap<String, String> = server
        .env
        .iter()
        .map(|(name, value)| Ok((name.clone(), expanded(value)?)))
        .collect::<Result<_, _>>()?;
    let (source, runner, arguments, words) = match &server.launch {
        Launch::Command { command, args } => {
            if let Some(error) = whole_line(name, command, args) {
                return Err(error);
            }
            let program = expanded(command)?;
            let given = args.iter().map(expanded).collect::<Result<Vec<_>, _>>()?;
            let file_name = Path::new(&program)
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if let Some((runner, own)) = PackageRunner::of(file_name, &given) {
                let run = runner
                    .read(&given, own)
                    .map_err(|error| runner_error(name, runner, &error, args, &given))?;
                let RunnerLine {
                    package,
                    arguments: own,
                    ..
                } = run;
                let pick =
                    |words: &[String]| own.iter().map(|index| words[*index].clone()).collect::<Vec<_>>();
                (
                    PlanSource::Package(package),
                    Some(runner),
                    pick(&given),
                    pick(args),
                )
            } else {
                let words = std::iter::once(command).chain(args).cloned().collect();
                let program = program_path(&program, &server.directory).ok_or_else(|| PlanError::Empty {
                    dependency: name.clone(),
                })?;
                (PlanSource::Command { program }, None, given, words)
            }
        }
        Launch::Package { package: text, args } => {
            let package =
                Package::explicit(&expanded(text)?).map_err(|source| package_error(name, source, text))?;
            let given = args.iter().map(expanded).collect::<Result<Vec<_>, _>>()?;
            let runner = PackageRunner::for_ecosystem(package.ecosystem());
            (PlanSource::Package(package), Some(runner), given, args.clone())
        }
        Launch::Remote { url, headers } => {
            let headers = headers
                .iter()
                .map(|(name, value)| Ok((name.clone(), expanded(value)?)))
                .collect::<Result<_, _>>()?;
            let address = Address::new(&expanded(url)?, &headers).map_err(|source| PlanError::Address {
                dependency: name.clone(),
                source,
            })?;
            (PlanSource::Remote(address), None, Vec::new(), vec![url.clone()])
        }
    };
    let scripts = if server.allow_scripts {
        Scripts::Allowed
    } else {
        Scripts::Off
    };
    let digest = digest(name, server, &source, scripts);
    let catalog_key = match &source {
        PlanSource::Package(package) => catalog_key(package, &words, server),
        PlanSource::Command { .. } | PlanSource::Remote(_) => digest.clone(),
    };
    Ok(Plan {
        dependency: name.clone(),
        secrets: secrets(secrets_found.into_inner(), &variables, &source, environment),
        source,
        arguments,
        variables,
        variables_file: server.variables_file.clone(),
        directory: server.cwd.clone(),
        scripts,
        digest,
        catalog_key,
        line: DeclaredLine {
            steering: surroundings::steering(server),
            runner,
            words,
            surroundings: surroundings::of(server),
        },
    })
}

/// Returns what was expanded, together with what is secret because of where it stands.
fn secrets(
    mut secrets_found: SecretCollector,
    variables: &BTreeMap<String, String>,
    source: &PlanSource,
    environment: &Environment,
) -> Secrets {
    secrets_found.proxies(environment);
    for (name, value) in variables {
        secrets_found.variable(name, value);
    }
    if let PlanSource::Remote(address) = source {
        address.collect_secrets(&mut secrets_found);
    }
    secrets_found.secrets()
}

impl Plan {
    /// Returns the server this is the plan of.
    #[must_use]
    pub fn dependency(&self) -> &DependencyName {
        &self.dependency
    }

    /// Returns what would be run.
    #[must_use]
    pub fn source(&self) -> &PlanSource {
        &self.source
    }

    /// Returns the package, if the plan has one.
    #[must_use]
    pub fn package(&self) -> Option<&Package> {
        match &self.source {
            PlanSource::Package(package) => Some(package),
            PlanSource::Command { .. } | PlanSource::Remote(_) => None,
        }
    }

    /// Returns what a person is asked for before its first use.
    #[must_use]
    pub fn first_use(&self) -> ApprovalType {
        match &self.source {
            PlanSource::Package(_) | PlanSource::Command { .. } => ApprovalType::DependencyInstall,
            PlanSource::Remote(_) => ApprovalType::RemoteConnect,
        }
    }

    /// Returns what happens when it is opened, in words.
    #[must_use]
    pub fn opening(&self) -> String {
        match &self.source {
            PlanSource::Package(_) | PlanSource::Command { .. } => format!("starting {}", self.dependency),
            PlanSource::Remote(_) => format!("connecting to {}", self.dependency),
        }
    }

    /// Returns the server's own arguments, expanded; they may hold secrets.
    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Returns the declared variables, expanded; they may hold secrets.
    #[must_use]
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// Returns the file of further variables, as it is declared.
    #[must_use]
    pub fn variables_file(&self) -> Option<&VariablesFile> {
        self.variables_file.as_ref()
    }

    /// Returns what the server is given in confidence by its declaration: no text about it, or of it, is shown before this was hidden.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Returns the working directory of the server.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns whether install scripts may run.
    #[must_use]
    pub fn scripts(&self) -> Scripts {
        self.scripts
    }

    /// Returns what an approval is bound to: the declaration, without values of the environment.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns what remembered tools are bound to, beside the resolved version.
    #[must_use]
    pub fn catalog_key(&self) -> &Digest {
        &self.catalog_key
    }

    /// Returns what a person is shown before it is installed or started; the line is never cut.
    #[must_use]
    pub fn shown(&self, resolved: Option<&Resolved>, now_unix_ms: i64) -> ShownDependency {
        if let PlanSource::Remote(address) = &self.source {
            return self.shown_remote(address);
        }
        let (version, words) = match (&self.source, self.line.runner) {
            (PlanSource::Package(package), Some(runner)) => {
                let version = match (resolved, package.version()) {
                    (Some(resolved), _) => Some(resolved.version.clone()),
                    (None, VersionSpec::Exact(version)) => Some(version.clone()),
                    (None, VersionSpec::Floating(range)) => {
                        Some(range.clone()).filter(|range| !range.is_empty())
                    }
                };
                let spec = resolved.map_or_else(|| package.spec(), |resolved| package.at(&resolved.version));
                (version, runner.line(package, spec))
            }
            _ => (None, Vec::new()),
        };
        let words = words.iter().chain(&self.line.words).map(|word| shell::word(word));
        let install = self
            .line
            .steering
            .iter()
            .cloned()
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ");
        let published = resolved.and_then(|resolved| resolved.published);
        let left_out = resolved.and_then(|resolved| resolved.left_out.as_ref());
        ShownDependency {
            name: self.dependency.to_string(),
            version: version.map(|version| Shown::line(&version).to_string()),
            install: Shown::line(&install).to_string(),
            integrity: resolved.and_then(|resolved| resolved.integrity.clone()),
            scripts: self.scripts == Scripts::Allowed
                && self
                    .package()
                    .is_some_and(|package| package.ecosystem() == Ecosystem::Npm),
            surroundings: Box::new(self.line.surroundings.clone()),
            installation: Box::new(ShownInstallation {
                lock: resolved.and_then(|resolved| resolved.lock.clone()),
                withdrawn: resolved.and_then(|resolved| resolved.withdrawn.clone()),
                published: published.map(|published| published.to_string()),
                age: published.map(|published| published.ago(now_unix_ms)),
                left_out: left_out.map(|newer| newer.notice(now_unix_ms)),
                provenance: resolved.and_then(Resolved::shown_provenance),
                unpinned: match &self.source {
                    PlanSource::Command { .. } => fetched_code::notice(&self.line.words),
                    PlanSource::Package(_) | PlanSource::Remote(_) => None,
                },
                ..ShownInstallation::default()
            }),
            remote: None,
        }
    }

    fn shown_remote(&self, address: &Address) -> ShownDependency {
        let remote = address.shown(&self.line.words.concat());
        ShownDependency {
            name: self.dependency.to_string(),
            version: None,
            install: remote.to_string(),
            integrity: None,
            scripts: false,
            // Nothing of it runs here.
            surroundings: Box::default(),
            installation: Box::default(),
            remote: Some(Box::new(remote)),
        }
    }
}

impl fmt::Debug for Plan {
    /// Leaves out arguments and variables: they may hold secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Plan")
            .field("dependency", &self.dependency)
            .field("source", &self.source)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// Finds a command that is a whole line: a program that is looked for by its name has no blanks in it.
fn whole_line(name: &DependencyName, command: &str, args: &[String]) -> Option<PlanError> {
    let mut words = command.split_whitespace();
    let (program, more) = (words.next()?, words.collect::<Vec<_>>());
    if more.is_empty() || program.contains('/') || command.contains("${") {
        return None;
    }
    let args: Vec<&str> = more.into_iter().chain(args.iter().map(String::as_str)).collect();
    let written = serde_json::json!({ "command": program, "args": args }).to_string();
    let written = written.trim_start_matches('{').trim_end_matches('}').to_owned();
    Some(PlanError::Line {
        dependency: name.clone(),
        command: Shown::line(command).to_string(),
        written: Shown::line(&written).to_string(),
    })
}

fn program_path(program: &str, directory: &Path) -> Option<PathBuf> {
    if program.is_empty() {
        None
    } else if program.contains('/') {
        Some(directory.join(program))
    } else {
        Some(PathBuf::from(program))
    }
}
