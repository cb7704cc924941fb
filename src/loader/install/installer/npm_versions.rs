//! Which version an npm spec means, as `npm view` tells: its integrity, its age, whether it was withdrawn, and whether
//! it has attestations.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::attestations::AttestationLead;
use super::npm::write_manifest;
use super::npm_command::run;
use super::process::{InstallerOutput, Program};
use super::tools::Tools;
use super::withdrawal;
use crate::loader::install::error::InstallError;
use crate::loader::install::lock::strong;
use crate::loader::install::release_age::AgeLimit;
use crate::loader::install::tail::Tail;
use crate::loader::plan::{NewerVersion, Package, Resolved, VersionSpec, is_semantic_version};
use crate::pins::PublishedAt;
use crate::protocol::Shown;

/// What is asked of every version that a spec may mean.
const FIELDS: [&str; 5] = [
    "name",
    "version",
    "dist.integrity",
    "dist.attestations",
    "deprecated",
];

/// One version as `npm view` describes it; npm leaves out what the registry does not say.
#[derive(Deserialize)]
#[serde(untagged)]
enum RegistryVersion {
    Described {
        #[serde(default)]
        name: Option<String>,
        version: String,
        #[serde(rename = "dist.integrity")]
        integrity: Option<String>,
        #[serde(rename = "dist.attestations", default)]
        attestations: Value,
        #[serde(default)]
        deprecated: Box<Value>,
        #[serde(default)]
        time: Times,
    },
    /// Where nothing but the version is known, npm writes it alone.
    Bare(String),
}

impl RegistryVersion {
    fn version(&self) -> &str {
        match self {
            Self::Described { version, .. } | Self::Bare(version) => version,
        }
    }

    /// Returns what it is, escaped, where it is not what was asked for.
    fn other_than(&self, package: &Package) -> Option<String> {
        let name = match self {
            Self::Described { name: Some(name), .. } => name,
            _ => package.name(),
        };
        let same = name == package.name()
            && match package.version() {
                VersionSpec::Exact(asked) => asked == self.version(),
                VersionSpec::Floating(_) => true,
            };
        (!same).then(|| Shown::line(&format!("{name}@{}", self.version())).to_string())
    }
}

/// One version or, for a range, all that match.
#[derive(Deserialize)]
#[serde(untagged)]
enum Views {
    Many(Vec<RegistryVersion>),
    One(RegistryVersion),
}

/// When each version was published; what stands under another name, or is no date, does not count.
#[derive(Deserialize, Default)]
#[serde(transparent)]
struct Times(BTreeMap<String, Value>);

impl Times {
    fn of(&self, version: &str) -> Option<PublishedAt> {
        self.0.get(version)?.as_str()?.parse().ok()
    }
}

/// Asks the registry which version a spec means; of a floating one, the newest that is old enough, where there is one.
pub(super) async fn resolve(
    tools: &Tools,
    package: &Package,
    directory: &Path,
    limit: Option<&AgeLimit>,
) -> Result<(Resolved, AttestationLead), InstallError> {
    let registry = Registry {
        tools,
        npm: tools.program("npm", package)?,
        package,
        directory,
    };
    write_manifest(directory, "{\"private\":true}".to_owned()).await?;
    let spec = package.spec();
    // For a range npm repeats the times of all versions for each of them.
    let range = matches!(package.version(), VersionSpec::Floating(range) if !is_tag(range));
    let mut fields = FIELDS.to_vec();
    if !range {
        fields.push("time");
    }
    let (mut views, said) = registry.view(&spec, &fields).await?;
    let unreadable = || InstallError::Answer {
        package: spec.clone(),
        program: "npm",
        source: Tail::of(&said.stdout, &said.secrets),
    };
    let newest = newest(&views, |_| true).ok_or_else(unreadable)?;
    let newest = newest.version().to_owned();
    let other = views.iter().find_map(|view| view.other_than(package));
    if let Some(found) = other {
        return Err(InstallError::OtherPackage {
            package: spec,
            place: "the registry",
            found,
        });
    }
    let times = if range {
        registry.times().await?
    } else {
        views.iter_mut().find_map(take_times).unwrap_or_default()
    };
    let published = times.of(&newest);
    let mut left_out = None;
    let mut chosen = newest.clone();
    if let (Some(limit), Some(published), VersionSpec::Floating(_)) = (limit, published, package.version())
        && !limit.admits(published)
    {
        if !range {
            // What a tag named before is nowhere to be read: as npm itself does, the newest version up to it counts.
            let older = format!("{}@<={newest}", package.name());
            views = registry.view(&older, &FIELDS).await?.0;
        }
        let old_enough = |version: &str| times.of(version).is_some_and(|published| limit.admits(published));
        if let Some(older) = self::newest(&views, old_enough) {
            older.version().clone_into(&mut chosen);
            left_out = Some(NewerVersion {
                version: newest,
                published,
            });
        }
    }
    let chosen = views.into_iter().find(|view| view.version() == chosen);
    let chosen = chosen.ok_or_else(unreadable)?;
    let described = Resolved {
        published: times.of(chosen.version()),
        left_out,
        ..Resolved::version(chosen.version())
    };
    Ok(match chosen {
        RegistryVersion::Bare(_) => (described, AttestationLead::Absent),
        RegistryVersion::Described {
            integrity,
            attestations,
            deprecated,
            ..
        } => {
            let described = Resolved {
                integrity: integrity.as_deref().and_then(strong),
                withdrawn: withdrawal::deprecated(&deprecated),
                ..described
            };
            (described, AttestationLead::npm(&attestations))
        }
    })
}

/// Asks the registry of the user about one package.
struct Registry<'a> {
    tools: &'a Tools,
    npm: Program,
    package: &'a Package,
    directory: &'a Path,
}

impl Registry<'_> {
    /// Returns every version that a spec means, and what npm said.
    async fn view(
        &self,
        spec: &str,
        fields: &[&str],
    ) -> Result<(Vec<RegistryVersion>, InstallerOutput), InstallError> {
        let said = self.ask(spec, fields).await?;
        // Versions of npm that say nothing about a range without a match.
        if said.stdout.trim_ascii().is_empty() {
            let source = Tail::of(&said.stderr, &said.secrets);
            return Err(InstallError::NotFound {
                package: spec.to_owned(),
                source,
            });
        }
        let views = serde_json::from_slice(&said.stdout).map_err(|_| InstallError::Answer {
            package: spec.to_owned(),
            program: "npm",
            source: Tail::of(&said.stdout, &said.secrets),
        })?;
        let views = match views {
            Views::One(view) => vec![view],
            Views::Many(views) => views,
        };
        Ok((views, said))
    }

    /// Returns when each version was published; nothing where the registry does not say.
    async fn times(&self) -> Result<Times, InstallError> {
        let said = self.ask(self.package.name(), &["time"]).await?;
        Ok(serde_json::from_slice(&said.stdout).unwrap_or_default())
    }

    async fn ask(&self, spec: &str, fields: &[&str]) -> Result<InstallerOutput, InstallError> {
        let words = [
            "view",
            "--json",
            "--no-update-notifier",
            "--no-workspaces",
            "--",
            spec,
        ];
        let words = words.iter().chain(fields).map(OsString::from);
        run(self.tools, &self.npm, spec, self.directory, words).await
    }
}

fn take_times(view: &mut RegistryVersion) -> Option<Times> {
    match view {
        RegistryVersion::Described { time, .. } => Some(std::mem::take(time)),
        RegistryVersion::Bare(_) => None,
    }
}

/// Tells whether a floating spec is a tag; everything else is a range.
fn is_tag(spec: &str) -> bool {
    let mut letters = spec.chars();
    match letters.next() {
        None => true,
        // `x` and `v1` are ranges.
        Some(first) => {
            first.is_ascii_alphabetic()
                && letters.next().is_some_and(|second| !second.is_ascii_digit())
                && spec
                    .chars()
                    .all(|found| found.is_ascii_alphanumeric() || "-_.".contains(found))
        }
    }
}

/// Returns the newest of the versions that fit.
fn newest(views: &[RegistryVersion], fits: impl Fn(&str) -> bool) -> Option<&RegistryVersion> {
    views
        .iter()
        .filter(|view| is_semantic_version(view.version()) && fits(view.version()))
        .max_by_key(|view| precedence(view.version()))
}

/// Orders versions as semver does: numbers, then a pre-release before its release.
fn precedence(version: &str) -> impl Ord + use<> {
    let version = version.split_once('+').map_or(version, |(version, _)| version);
    let (numbers, early) = version
        .split_once('-')
        .map_or((version, None), |(numbers, early)| (numbers, Some(early)));
    let numbers: Vec<u64> = numbers
        .split('.')
        .map(|number| number.parse().unwrap_or(u64::MAX))
        .collect();
    let early = early.map(|early| {
        // Numeric identifiers come before words and are compared as numbers.
        early
            .split('.')
            .map(|part| {
                (
                    part.parse::<u64>().is_err(),
                    part.parse::<u64>().unwrap_or(0),
                    part.to_owned(),
                )
            })
            .collect::<Vec<_>>()
    });
    (numbers, early.is_none(), early)
}
