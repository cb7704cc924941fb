//! Why a package is not installed.
//!
//! What an installer printed is untrusted text and may quote the user's settings: it is kept as a [`Tail`], which
//! is cut, escaped and has its secrets taken out.

mod hint;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lock::LockError;
use super::tail::Tail;
use crate::config::{ConfigError, MinReleaseAge};
use crate::history::HistoryError;
use crate::loader::advisories::AdvisoryError;
use crate::loader::provenance::ProvenanceError;
use crate::loader::store::StoreError;
use crate::pins::{InstallScripts, PackageVersion};
use crate::protocol::{DependencyName, Shown};

/// Says why a package could not be resolved, installed or removed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum InstallError {
    /// It could not be recorded, so that nothing was installed.
    #[error("nothing was installed")]
    History(#[from] HistoryError),
    /// A runtime or an installer is not on the user's `PATH`.
    #[error("`{package}` needs `{program}`, which is not on the PATH outside the project")]
    Missing {
        /// The package.
        package: String,
        /// The program that was looked for.
        program: &'static str,
    },
    /// The registry does not have the package or the version.
    #[error("the registry has no `{package}`")]
    NotFound {
        /// The package.
        package: String,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// The registry does not have something that it depends on.
    #[error("`{package}` cannot be installed: the registry has no `{missing}`, which it needs")]
    MissingDependency {
        /// The package.
        package: String,
        /// What is missing, as the installer names it; escaped.
        missing: String,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// The Python that its environment is made from is not there and could not be fetched.
    #[error("`{package}` needs Python {version}, which is not on this machine and could not be fetched")]
    Python {
        /// The package.
        package: String,
        /// The version that was asked for.
        version: String,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// The registry did not answer.
    #[error("cannot reach the registry for `{package}`")]
    Unreachable {
        /// The package.
        package: String,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// The installer failed.
    #[error("`{program}` could not install `{package}` ({ending})")]
    Installer {
        /// The package.
        package: String,
        /// The installer.
        program: &'static str,
        /// How it ended.
        ending: String,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// The installer answered something that cannot be read.
    #[error("cannot read what `{program}` says about `{package}`")]
    Answer {
        /// The package.
        package: String,
        /// The installer.
        program: &'static str,
        /// What it said instead.
        #[source]
        source: Tail,
    },
    /// The version was published too short a time ago.
    #[error(
        "`{package}` was published {ago} and is not fetched before it is {minimum} old (\"{}\": {})",
        MinReleaseAge::KEY,
        .minimum.days()
    )]
    TooYoung {
        /// The server that it is wanted for.
        dependency: DependencyName,
        /// The package at its version.
        package: String,
        /// How long ago it was published, in words.
        ago: String,
        /// The age that the user demands.
        minimum: MinReleaseAge,
    },
    /// The package needs versions of others that were published too short a time ago.
    #[error(
        "`{package}` needs a package that was published too short a time ago: nothing is fetched before it is {minimum} \
         old (\"{}\": {})",
        MinReleaseAge::KEY,
        .minimum.days()
    )]
    YoungDependency {
        /// The server that it is wanted for.
        dependency: DependencyName,
        /// The package that needs it.
        package: String,
        /// The age that the user demands.
        minimum: MinReleaseAge,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// The resolved dependencies are not pinned to registry content.
    #[error("`{package}` is refused")]
    Refused {
        /// The package.
        package: String,
        /// What is wrong with its lock.
        #[source]
        source: LockError,
    },
    /// The registry has an attestation of where it was built that does not verify.
    #[error("`{package}` is refused")]
    Provenance {
        /// The package.
        package: String,
        /// What is wrong with its attestation.
        #[source]
        source: ProvenanceError,
    },
    /// The user demands a provenance that it does not have.
    #[error(
        "`{package}` is refused: {lack}, and `{pattern}` in \"requireProvenance\" of `{}` demands it",
        Shown::path(file)
    )]
    Unproven {
        /// The package.
        package: String,
        /// What it lacks, escaped.
        lack: String,
        /// The pattern that demands it.
        pattern: String,
        /// The user's own file.
        file: PathBuf,
    },
    /// The user's own file, which may demand a provenance, cannot be read.
    #[error("what you demand of packages cannot be read")]
    Settings(#[source] Arc<ConfigError>),
    /// An archive brings a file that does not belong where it would lie.
    #[error("`{package}` is refused: one of its archives brings `{file}`, which {reason}")]
    Misplaced {
        /// The package.
        package: String,
        /// The file below the environment, escaped.
        file: String,
        /// Why it does not belong there.
        reason: &'static str,
    },
    /// An archive holds an entry that no honest one has.
    #[error("`{package}` is refused: the archive of `{archive}` brings `{entry}`, which {reason}")]
    Archive {
        /// The package.
        package: String,
        /// The package whose archive it is, at its version, escaped.
        archive: String,
        /// The entry, escaped.
        entry: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The registry answered with another package than it was asked for, or the archive is another one.
    #[error("`{package}` is refused: {place} says that it is `{found}`")]
    OtherPackage {
        /// The package.
        package: String,
        /// Who says so.
        place: &'static str,
        /// What it is called there, escaped.
        found: String,
    },
    /// What was fetched is not what the registry promised.
    #[error("`{package}` is refused: the archive of `{archive}` is not what its registry promised")]
    Corrupted {
        /// The package.
        package: String,
        /// The package whose archive it is, escaped.
        archive: String,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// Something that it depends on does not come from a registry.
    #[error("`{package}` is refused: something that it depends on does not come from a registry: {origin}")]
    Elsewhere {
        /// The package.
        package: String,
        /// Where it would come from, escaped.
        origin: String,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// It would have to be built, which runs its code.
    #[error(
        "`{package}` is refused: it, or something that it depends on, has no wheel and would have to be built, which runs its code"
    )]
    Unbuilt {
        /// The package.
        package: String,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// An archive is not as the format of its kind demands.
    #[error("`{package}` is refused: `{program}` takes one of its archives for malformed")]
    Malformed {
        /// The package.
        package: String,
        /// The installer.
        program: &'static str,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// The answer of the registry cannot be used.
    #[error("`{package}` is not installed: its registry answers with what `{program}` cannot read")]
    Garbled {
        /// The package.
        package: String,
        /// The installer.
        program: &'static str,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// The installer ran out of the memory that it may take.
    #[error(
        "`{program}` was stopped: what the registry answers about `{package}` takes more than {mib} MiB of memory"
    )]
    Memory {
        /// The package.
        package: String,
        /// The installer.
        program: &'static str,
        /// The bound.
        mib: u64,
        /// What the installer said.
        #[source]
        source: Tail,
    },
    /// The installer wrote more than any package needs.
    #[error("`{program}` was stopped: installing `{package}` takes more than {mib} MiB of the disk")]
    TooLarge {
        /// The package.
        package: String,
        /// The installer.
        program: &'static str,
        /// The bound.
        mib: u64,
    },
    /// The registry serves other content than what was shown or recorded.
    #[error("`{package}` has changed: expected {expected}, found {found}")]
    Changed {
        /// The package.
        package: String,
        /// The integrity that was shown or recorded.
        expected: String,
        /// The integrity that was found.
        found: String,
    },
    /// The package itself is what was approved, what it depends on is not.
    #[error("the dependencies of `{package}` are not those that were approved")]
    Dependencies {
        /// The package.
        package: String,
    },
    /// Where it was built is known since it was accepted, and is not where the version before was.
    #[error("`{package}` is not what was accepted: {change}")]
    BuiltElsewhere {
        /// The package.
        package: String,
        /// How that differs, escaped.
        change: String,
    },
    /// Files of an installation are not those that were installed.
    #[error("`{dependency}` was changed after it was installed: {files}")]
    ChangedFiles {
        /// The server.
        dependency: DependencyName,
        /// Some of the files that were changed or removed, escaped.
        files: String,
    },
    /// An installation was made from another lock than the one that is kept for it.
    #[error("`{dependency}` was not installed from the lock that is kept for it")]
    OtherLock {
        /// The server.
        dependency: DependencyName,
    },
    /// It brings install scripts that a person has not accepted as they are; none of them ran.
    #[error("the install scripts of `{package}` are not what was accepted")]
    Scripts {
        /// The server that it is wanted for.
        dependency: DependencyName,
        /// The package.
        package: String,
        /// Every script that would run.
        scripts: Arc<InstallScripts>,
    },
    /// Something of it is known to be malicious.
    #[error("`{dependency}` is refused: `{found}` is known to be malicious ({advisory})")]
    Malicious {
        /// The server.
        dependency: DependencyName,
        /// The package that is malicious: the server's own, or one that is installed with it; escaped.
        found: String,
        /// The id of the advisory that says so.
        advisory: String,
    },
    /// It cannot be told whether something of it is known to be malicious.
    #[error(transparent)]
    Advisories(#[from] AdvisoryError),
    /// It cannot be told which executable of the package is the server.
    #[error("{}", executable_text(.package, .wanted.as_deref(), .choices))]
    Executable {
        /// The package.
        package: String,
        /// The executable that was asked for.
        wanted: Option<String>,
        /// The executables that the package has.
        choices: Vec<String>,
    },
    /// The server is a plain command, or elsewhere.
    #[error("`{dependency}` has no package; there is nothing to install")]
    NoPackage {
        /// The server.
        dependency: DependencyName,
    },
    /// A file of the store, or of the installation under way, cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl InstallError {
    /// Makes an error of a package that is known to be malicious.
    pub(super) fn malicious(dependency: &DependencyName, found: &PackageVersion, advisory: &str) -> Self {
        Self::Malicious {
            dependency: dependency.clone(),
            found: Shown::line(&format!("{}@{}", found.name, found.version)).to_string(),
            advisory: advisory.to_owned(),
        }
    }

    /// Tells whether a person can have it all the same by `--now`.
    #[must_use]
    pub fn is_about_age(&self) -> bool {
        matches!(self, Self::TooYoung { .. } | Self::YoungDependency { .. })
    }

    /// Makes an error of a failed file operation.
    pub(in crate::loader) fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let failed = StoreError::file(action, path);
        move |source| failed(source).into()
    }
}

fn executable_text(package: &str, wanted: Option<&str>, choices: &[String]) -> String {
    let choices = choices.iter().map(|choice| format!("`{}`", Shown::line(choice)));
    let list = choices.collect::<Vec<_>>().join(", ");
    match (wanted, list.is_empty()) {
        (_, true) => format!("`{package}` has no executable"),
        (Some(wanted), false) => {
            format!(
                "`{package}` has no executable `{}`; it has {list}",
                Shown::line(wanted)
            )
        }
        (None, false) => format!("`{package}` has several executables: {list}"),
    }
}
