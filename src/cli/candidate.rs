//! Another version of a declared server: found at the registry, planned, and written into its declaration.

use super::failure::{Refused, hinted};
use super::{CommandContext, output, server_pins};
use crate::config::{Launch, Server};
use crate::loader::{Ecosystem, InstallError, NewerVersion, Packages, Plan, Resolved, pin, plan};
use crate::permissions::writer;
use crate::permissions::{ConfigChange, LaunchWord};
use crate::protocol::{DependencyName, shell};
use crate::proxy::now;
use crate::report::Hint;

/// Another version of a declared server.
pub(super) struct Candidate {
    /// The declaration with the other version.
    pub(super) server: Server,
    /// What it would run.
    pub(super) plan: Plan,
    /// What the registry says of it.
    pub(super) resolved: Resolved,
    change: ConfigChange,
}

/// The newest version of a server that may be fetched.
#[derive(Default)]
pub(super) struct Newest {
    /// That version; `None` where the server has it.
    pub(super) candidate: Option<Candidate>,
    /// Says which newer one is too young.
    pub(super) left_out: Option<String>,
}

/// Says that a version was published too short a time ago to be taken.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` stays as it is")]
struct TooYoung {
    name: DependencyName,
    /// The version that was asked for by its number.
    version: Option<String>,
    #[source]
    source: InstallError,
}

impl Hint for TooYoung {
    fn hint(&self) -> Option<String> {
        let version = self.version.as_deref();
        let version = version.map_or_else(String::new, |version| format!(" --to {}", shell::word(version)));
        Some(format!(
            "to take it all the same: pml upgrade --now {}{version}",
            self.name
        ))
    }
}

/// Makes an error of another version that could not be resolved; where it is too young, the hint says how to take it.
pub(super) fn unresolved(
    name: &DependencyName,
    version: Option<&String>,
    source: InstallError,
) -> anyhow::Error {
    if !source.is_about_age() {
        return source.into();
    }
    hinted(TooYoung {
        name: name.clone(),
        version: version.cloned(),
        source,
    })
}

impl Candidate {
    /// Finds the newest version of a server that is old enough.
    pub(super) async fn newest(
        context: &CommandContext,
        packages: &Packages,
        name: &DependencyName,
        server: &Server,
    ) -> anyhow::Result<Newest> {
        let declared = plan(name, server, &context.environment)?;
        let Some(package) = declared.package() else {
            return Ok(Newest::default());
        };
        let newest = match package.ecosystem() {
            Ecosystem::Npm => format!("npm:{}@latest", package.name()),
            Ecosystem::Pypi => format!("pypi:{}", package.name_with_extras()),
        };
        let newest = Server {
            launch: Launch::Package {
                package: newest,
                args: Vec::new(),
            },
            ..server.clone()
        };
        let present = packages.resolved(package).map(|resolved| resolved.version);
        let present = present.unwrap_or_else(|| package.version().as_str().to_owned());
        let resolved = packages
            .look_up(&plan(name, &newest, &context.environment)?)
            .await;
        let resolved = match resolved {
            // All of them are too young: the server keeps what it has.
            Err(InstallError::TooYoung { package: young, .. }) if young == package.at(&present) => {
                return Ok(Newest::default());
            }
            Err(error @ InstallError::TooYoung { .. }) => {
                return Ok(Newest {
                    candidate: None,
                    left_out: Some(error.to_string()),
                });
            }
            resolved => resolved?,
        };
        let left_out = resolved.left_out.as_ref();
        let left_out = left_out.filter(|newer| is_newer(&newer.version, &present));
        let left_out =
            left_out.map(|newer: &NewerVersion| format!("{name}: {}", newer.notice(now().millis())));
        let candidate = if is_newer(&resolved.version, &present) {
            Some(Self::at(context, name, server, resolved)?)
        } else {
            None
        };
        Ok(Newest { candidate, left_out })
    }

    /// Finds a version of a server by its number.
    pub(super) async fn named(
        context: &CommandContext,
        packages: &Packages,
        name: &DependencyName,
        server: &Server,
        version: &str,
    ) -> anyhow::Result<Self> {
        let exact = Self::at(context, name, server, Resolved::version(version))?;
        let resolved = packages.resolve(&exact.plan).await;
        let resolved = resolved.map_err(|source| unresolved(name, Some(&version.to_owned()), source))?;
        Ok(Self { resolved, ..exact })
    }

    fn at(
        context: &CommandContext,
        name: &DependencyName,
        server: &Server,
        resolved: Resolved,
    ) -> anyhow::Result<Self> {
        let launch = pin(&server.launch, &resolved.version).ok_or_else(|| no_package(name))?;
        let (word, text) = changed_word(&server.launch, &launch)
            .ok_or_else(|| Refused(format!("`{name}` is at {} already", resolved.version)))?;
        let server = Server {
            launch,
            ..server.clone()
        };
        Ok(Self {
            plan: plan(name, &server, &context.environment)?,
            server,
            resolved,
            change: ConfigChange::PinServer {
                name: name.to_string(),
                word,
                text,
            },
        })
    }

    /// Refuses where the version could not be written into the configuration, before anything else is done.
    pub(super) fn check(&self, context: &CommandContext) -> anyhow::Result<()> {
        let files = context.files();
        let file = &self.server.source.file;
        let kind = server_pins::kind_of(&files, file);
        writer::preview(file, kind, std::slice::from_ref(&self.change))?;
        Ok(())
    }

    /// Writes the version into the configuration that declares the server.
    pub(super) fn declare(&self, context: &CommandContext) -> anyhow::Result<()> {
        let files = context.files();
        let file = &self.server.source.file;
        let kind = server_pins::kind_of(&files, file);
        let edited = context.edit(file, kind, std::slice::from_ref(&self.change))?;
        output::warn(&edited.durability);
        Ok(())
    }
}

fn no_package(name: &DependencyName) -> anyhow::Error {
    Refused(format!(
        "`{name}` has no version to change: it is a command, an address, or its package stands behind a variable"
    ))
    .into()
}

/// Finds the one word in which two declarations differ.
fn changed_word(before: &Launch, after: &Launch) -> Option<(LaunchWord, String)> {
    match (before, after) {
        (Launch::Command { args: before, .. }, Launch::Command { args: after, .. }) => {
            let index = before
                .iter()
                .zip(after)
                .position(|(before, after)| before != after)?;
            Some((LaunchWord::Argument(index), after.get(index)?.clone()))
        }
        (Launch::Package { package: before, .. }, Launch::Package { package: after, .. }) => {
            (before != after).then(|| (LaunchWord::Package, after.clone()))
        }
        _ => None,
    }
}

/// Tells whether a version is newer than another by its numbers; one that cannot be compared is.
fn is_newer(version: &str, than: &str) -> bool {
    if version == than {
        return false;
    }
    let numbers = |version: &str| {
        let release = version.split(['-', '+']).next().unwrap_or_default().to_owned();
        let numbers = release.split('.').map(|part| part.parse::<u64>().ok());
        numbers.collect::<Option<Vec<u64>>>()
    };
    match (numbers(version), numbers(than)) {
        (Some(version), Some(than)) => version >= than,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_decide_what_is_newer() {
        for (version, than, newer) in [
            ("1.10.0", "1.9.0", true),
            ("1.9.0", "1.10.0", false),
            ("2026.8.31", "2025.12.18", true),
            ("1.0.0", "1.0.0", false),
            ("1.0.0", "1.0.0-beta.1", true),
            ("1.0", "latest", true),
        ] {
            assert_eq!(is_newer(version, than), newer, "{version} {than}");
        }
    }
}
