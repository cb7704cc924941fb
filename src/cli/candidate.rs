//! Another version of a declared server: found at the registry, planned, and written into its declaration.

use super::failure::Refused;
use super::{CommandContext, output, server_pins};
use crate::config::{Launch, Server};
use crate::loader::{Ecosystem, Package, Packages, Plan, Resolved, pin, plan};
use crate::permissions::writer;
use crate::permissions::{ConfigChange, LaunchWord};
use crate::protocol::DependencyName;

/// Another version of a declared server.
pub(super) struct Candidate {
    pub(super) name: DependencyName,
    /// The declaration with the other version.
    pub(super) server: Server,
    /// What it would run.
    pub(super) plan: Plan,
    /// What the registry says of it.
    pub(super) resolved: Resolved,
    change: ConfigChange,
}

impl Candidate {
    /// Finds the newest version of a server; `None` where it has that.
    pub(super) async fn newest(
        context: &CommandContext,
        packages: &Packages,
        name: &DependencyName,
        server: &Server,
    ) -> anyhow::Result<Option<Self>> {
        let declared = plan(name, server, &context.environment)?;
        let Some(package) = declared.package() else {
            return Ok(None);
        };
        let newest = match package.ecosystem() {
            Ecosystem::Npm => Package::explicit(&format!("npm:{}@latest", package.name()))?,
            Ecosystem::Pypi => Package::explicit(&format!("pypi:{}", package.name_with_extras()))?,
        };
        let resolved = packages.look_up(&newest).await?;
        let present = packages.resolved(package).map(|resolved| resolved.version);
        let present = present.unwrap_or_else(|| package.version().as_str().to_owned());
        if !is_newer(&resolved.version, &present) {
            return Ok(None);
        }
        Self::at(context, name, server, resolved).map(Some)
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
        let package = exact.plan.package().cloned();
        let package = package.ok_or_else(|| no_package(name))?;
        let resolved = packages.resolve(&package).await?;
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
            name: name.clone(),
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
