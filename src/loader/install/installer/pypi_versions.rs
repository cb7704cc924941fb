//! Which version a PyPI spec means and when it was uploaded, as `uv` tells.
//!
//! The upload time comes from the index's own JSON (PEP 700), by way of the `pylock.toml` that uv writes: so it is asked
//! for at the user's index, with the user's credentials and proxy. An index of plain pages does not say it, and a uv from
//! before 2025 does not write it: then it is not known.

use std::collections::BTreeMap;
use std::path::Path;

use super::attestations::AttestationLead;
use super::process::Program;
use super::tools::Tools;
use super::uv::{COMPILE, WANTED, run, write};
use super::withdrawal;
use crate::loader::install::error::InstallError;
use crate::loader::install::lock::{LockError, check_requirements};
use crate::loader::install::release_age::AgeLimit;
use crate::loader::install::tail::Tail;
use crate::loader::plan::{NewerVersion, Package, Resolved, VersionSpec};
use crate::pins::PublishedAt;

/// The file that names one exact version.
const EXACT: [&str; 2] = ["newest.in", "older.in"];

/// Asks the index which version a spec means; of a floating one, the newest that is old enough, where there is one.
pub(super) async fn resolve(
    tools: &Tools,
    package: &Package,
    directory: &Path,
    limit: Option<&AgeLimit>,
) -> Result<(Resolved, AttestationLead), InstallError> {
    let index = Index {
        tools,
        uv: tools.program("uv", package)?,
        package,
        directory,
    };
    let wanted = match package.version() {
        VersionSpec::Exact(version) => package.at(version),
        VersionSpec::Floating(range) if range == "latest" => package.name_with_extras(),
        VersionSpec::Floating(range) => format!("{}{range}", package.name_with_extras()),
    };
    write(directory, WANTED, &wanted).await?;
    let (newest, lead) = index.compile(None).await?;
    let newest = index.dated(newest, EXACT[0]).await?;
    if let (Some(limit), Some(published), VersionSpec::Floating(_)) =
        (limit, newest.published, package.version())
        && !limit.admits(published)
        && let Some(cutoff) = limit.cutoff()
        && let Ok((older, older_lead)) = index.compile(Some(cutoff)).await
    {
        let older = index.dated(older, EXACT[1]).await?;
        if older.published.is_none_or(|published| limit.admits(published)) {
            let older = Resolved {
                left_out: Some(NewerVersion {
                    version: newest.version,
                    published,
                }),
                ..older
            };
            return Ok((older, older_lead));
        }
    }
    Ok((newest, lead))
}

/// Asks the index of the user about one package.
struct Index<'a> {
    tools: &'a Tools,
    uv: Program,
    package: &'a Package,
    directory: &'a Path,
}

impl Index<'_> {
    /// Returns the version that the wanted spec means, among those that were uploaded before `cutoff`.
    async fn compile(
        &self,
        cutoff: Option<PublishedAt>,
    ) -> Result<(Resolved, AttestationLead), InstallError> {
        let package = self.package;
        let cutoff = cutoff.map(|cutoff| cutoff.to_string());
        let mut arguments = COMPILE.to_vec();
        arguments.extend(["--no-deps", "--emit-index-annotation"]);
        arguments.extend(self.python());
        if let Some(cutoff) = &cutoff {
            arguments.extend(["--exclude-newer", cutoff]);
        }
        arguments.extend(["--", WANTED]);
        let finished = run(self.tools, &self.uv, &package.spec(), self.directory, arguments).await?;
        let text = String::from_utf8_lossy(&finished.stdout);
        let checked = check_requirements(&text, package.name(), None).map_err(|error| match error {
            LockError::Integrity { .. } => InstallError::Refused {
                package: package.spec(),
                source: error,
            },
            _ => InstallError::Answer {
                package: package.spec(),
                program: "uv",
                source: Tail::of(&finished.stdout, &finished.secrets),
            },
        })?;
        let withdrawn = withdrawal::yanked(&finished.stderr, package.name(), &checked.version);
        let resolved = Resolved {
            integrity: Some(checked.integrity),
            withdrawn,
            ..Resolved::version(&checked.version)
        };
        Ok((resolved, AttestationLead::pypi(&finished)))
    }

    /// Adds when a version was uploaded; `file` is written for the question.
    async fn dated(&self, resolved: Resolved, file: &str) -> Result<Resolved, InstallError> {
        let exact = self.package.at(&resolved.version);
        write(self.directory, file, &exact).await?;
        let uploads = uploads(self.tools, &self.uv, &exact, self.directory, &self.python(), file).await;
        Ok(Resolved {
            published: uploads.into_values().next(),
            ..resolved
        })
    }

    fn python(&self) -> Vec<&str> {
        let version = self.package.python();
        version.map_or_else(Vec::new, |version| vec!["--python-version", version])
    }
}

/// Returns when the packages of a file of exact requirements were uploaded, by `name==version`, as far as that is known.
pub(super) async fn uploads(
    tools: &Tools,
    uv: &Program,
    spec: &str,
    directory: &Path,
    python: &[&str],
    file: &str,
) -> BTreeMap<String, PublishedAt> {
    let mut arguments = COMPILE.to_vec();
    arguments.extend(["--no-deps", "--format", "pylock.toml"]);
    arguments.extend(python);
    arguments.extend(["--", file]);
    match run(tools, uv, spec, directory, arguments).await {
        Ok(finished) => uploads_in(&String::from_utf8_lossy(&finished.stdout)),
        Err(error) => {
            tracing::debug!(%error, package = spec, "uv does not say when it was uploaded");
            BTreeMap::new()
        }
    }
}

/// Reads a `pylock.toml` as uv writes it. A package was uploaded when the last of its archives for this machine was: one
/// that is added to an old version is as young as it is. Where an archive has no time, that is not known.
fn uploads_in(lock: &str) -> BTreeMap<String, PublishedAt> {
    const TIME: &str = "upload-time = ";
    let packages = lock.split("[[packages]]").skip(1);
    let value = |package: &str, key: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(key));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    let dated = packages.filter_map(|package| {
        let name = format!(
            "{}=={}",
            value(package, "name = ")?,
            value(package, "version = ")?
        );
        let archives = package.matches("hashes = {").count();
        let times: Vec<PublishedAt> = package
            .split(TIME)
            .skip(1)
            .filter_map(|rest| rest.split([',', ' ', '}', '\n']).next()?.parse().ok())
            .collect();
        let published = times.iter().max().filter(|_| times.len() == archives);
        published.map(|published| (name, *published))
    });
    dated.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn a_package_is_as_young_as_the_last_of_its_archives() {
        let lock = r#"lock-version = "1.0"

[[packages]]
name = "one"
version = "1.0"
wheels = [{ url = "https://index.test/one.whl", upload-time = 2026-10-19T06:48:51Z, hashes = { sha256 = "a" } }]

[[packages]]
name = "two"
version = "2.0"
wheels = [
    { url = "https://index.test/a.whl", upload-time = 2024-10-09T07:38:33.123Z, size = 1, hashes = { sha256 = "a" } },
    { url = "https://index.test/b.whl", size = 1, upload-time = 2024-10-09T07:40:19Z, hashes = { sha256 = "b" } },
]

[[packages]]
name = "half"
version = "1"
wheels = [
    { url = "https://index.test/a.whl", upload-time = 2024-10-09T07:38:33Z, hashes = { sha256 = "a" } },
    { url = "https://index.test/b.whl", hashes = { sha256 = "b" } },
]

[[packages]]
name = "undated"
version = "1"
wheels = [{ url = "https://index.test/a.whl", hashes = { sha256 = "a" } }]
"#;
        let expected = [
            ("one==1.0", "2026-10-19T06:48:51Z"),
            ("two==2.0", "2024-10-09T07:40:19Z"),
        ];
        let expected = expected.map(|(name, published)| (name.to_owned(), published.parse().unwrap()));
        assert_eq!(uploads_in(lock), BTreeMap::from(expected));
        assert_eq!(uploads_in("Resolved 1 package"), BTreeMap::new());
    }
}
