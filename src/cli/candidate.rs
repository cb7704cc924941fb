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
    /// The command that takes it all the same, as it is typed after `pml`.
    command: String,
    #[source]
    source: InstallError,
}

impl Hint for TooYoung {
    fn hint(&self) -> Option<String> {
        Some(format!("to take it all the same: pml {}", self.command))
    }
}

/// Makes an error of another version that could not be resolved; where it is too young, the hint says how to take it.
pub(super) fn unresolved(
    name: &DependencyName,
    version: Option<&String>,
    source: InstallError,
) -> anyhow::Error {
    let version = version.map_or_else(String::new, |version| format!(" --to {}", shell::word(version)));
    too_young_for(name, format!("upgrade --now {name}{version}"), source)
}

/// Makes an error of a version that could not be resolved; where it is too young, `command` takes it all the same.
pub(super) fn too_young_for(name: &DependencyName, command: String, source: InstallError) -> anyhow::Error {
    if !source.is_about_age() {
        return source.into();
    }
    hinted(TooYoung {
        name: name.clone(),
        command,
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

/// Tells whether a version is newer than another; one that cannot be compared is.
fn is_newer(version: &str, than: &str) -> bool {
    if version == than {
        return false;
    }
    match (VersionOrder::of(version), VersionOrder::of(than)) {
        (Some(version), Some(than)) => version >= than,
        _ => true,
    }
}

/// The order of the versions of npm and PyPI, as far as one grammar reads both.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct VersionOrder {
    numbers: Vec<u64>,
    suffix: VersionSuffix,
}

/// What follows the numbers of a version: `-rc.1`, `rc1`, `.post1`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum VersionSuffix {
    /// It comes before the version without it.
    Before(Vec<SuffixPart>),
    /// There is none.
    None,
    /// It comes after.
    After(Vec<SuffixPart>),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SuffixPart {
    Number(u64),
    Word(String),
}

impl VersionOrder {
    /// Reads a version; `None` where it does not begin with a number.
    fn of(version: &str) -> Option<Self> {
        // What names a build orders nothing.
        let version = version.split('+').next().unwrap_or_default();
        let mut numbers = Vec::new();
        let mut rest = version;
        loop {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, after) = rest.split_at(digits);
            numbers.push(number.parse().ok()?);
            rest = after;
            match after.strip_prefix('.') {
                Some(next) if next.starts_with(|first: char| first.is_ascii_digit()) => rest = next,
                _ => break,
            }
        }
        let parts = suffix_parts(rest);
        let suffix = match parts.first() {
            None => VersionSuffix::None,
            Some(SuffixPart::Word(word)) if word.eq_ignore_ascii_case("post") => VersionSuffix::After(parts),
            Some(_) => VersionSuffix::Before(parts),
        };
        Some(Self { numbers, suffix })
    }
}

/// Cuts what follows the numbers into numbers and words; `rc.10`, `rc10` and `-rc-10` are the same two.
fn suffix_parts(text: &str) -> Vec<SuffixPart> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let is_number = first.is_ascii_digit();
        let is_word = |byte: u8| byte.is_ascii_alphabetic();
        let alike = |byte: &u8| byte.is_ascii_digit() == is_number && is_word(*byte) == is_word(first);
        let length = rest.bytes().take_while(alike).count();
        let part = &rest[..length];
        rest = &rest[length..];
        match part.parse() {
            Ok(number) => parts.push(SuffixPart::Number(number)),
            Err(_) if is_word(first) || is_number => parts.push(SuffixPart::Word(part.to_ascii_lowercase())),
            // What stands between two parts.
            Err(_) => {}
        }
    }
    parts
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
            ("1.0.0-rc.1", "1.0.0", false),
            ("1.0.0rc1", "1.0.0", false),
            ("1.0.0", "1.0.0rc1", true),
            ("1.0.0", "2.0.0rc1", false),
            ("1.1.0-rc.1", "1.0.0", true),
            ("1.0.0-rc.2", "1.0.0-rc.1", true),
            ("1.0.0-rc.1", "1.0.0-rc.2", false),
            ("1.0.0-rc.10", "1.0.0-rc.9", true),
            ("1.0.0rc10", "1.0.0rc9", true),
            ("1.0.0-rc.1", "1.0.0-beta.9", true),
            ("1.0.0-alpha", "1.0.0-alpha.1", false),
            ("1.0.0.post1", "1.0.0", true),
            ("1.0.0", "1.0.0.post1", false),
            ("1.0.0+build.2", "1.0.0+build.1", true),
            ("1.0.0-ü", "1.0.0", true),
            ("1.0", "latest", true),
        ] {
            assert_eq!(is_newer(version, than), newer, "{version} {than}");
        }
    }
}
