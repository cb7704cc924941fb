//! The PyPI recipe: an environment of its own, filled from wheels whose hashes are known.
//!
//! No build runs, neither to resolve nor to install. Bytecode is compiled by the interpreter that the environment was
//! made from, never by the environment's own Python: once packages are unpacked, that one may run their code.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::bounded::{self, RECORD};
use super::order::{InstallOrder, InstalledFiles, stays_below};
use super::process::{InstallerOutput, Program};
use super::tools::Tools;
use super::uv::{COMPILE, TELL_SKIPPED, WANTED, run, run_with, write};
use super::venv::{self, FreshVenv, VenvProblem};
use super::{pypi_versions, records, withdrawal};
use crate::loader::install::background::{off_thread, read_of_installer};
use crate::loader::install::error::InstallError;
use crate::loader::install::lock::{CheckedLock, check_requirements};
use crate::loader::install::step::InstallStep;
use crate::loader::plan::normalize;
use crate::loader::process::is_in_project;
use crate::loader::store::{self, Executable, PYTHON, StartMethod};
use crate::protocol::Shown;

const ENVIRONMENT: &str = "env";
pub(super) const LOCK: &str = "requirements.txt";

/// A moment after every upload.
const EVERY_AGE: &str = "2099-12-31T00:00:00Z";

/// An environment without packages, and the lock of what belongs into it.
struct LockedEnvironment {
    fresh: FreshVenv,
    lock: CheckedLock,
    /// How the registry withdrew the version, in words that follow "this version".
    withdrawn: Option<String>,
}

/// Writes the lock of a package into the order's directory; nothing of it is fetched.
pub(super) async fn lock(tools: &Tools, order: &InstallOrder<'_>) -> Result<(), InstallError> {
    let uv = tools.program("uv", order.package)?;
    locked(tools, &uv, order).await.map(drop)
}

/// Makes the environment and its lock; both are checked before anything is fetched.
async fn locked(
    tools: &Tools,
    uv: &Program,
    order: &InstallOrder<'_>,
) -> Result<LockedEnvironment, InstallError> {
    let spec = order.spec();
    let refused = |source| InstallError::Refused {
        package: spec.clone(),
        source,
    };
    (order.progress)(InstallStep::Resolving);
    let mut arguments = vec!["venv", "--quiet", "--relocatable", "--no-project"];
    if let Some(version) = order.package.python() {
        arguments.extend(["--python", version]);
    }
    arguments.push(ENVIRONMENT);
    run(tools, uv, &spec, order.directory, arguments)
        .await
        .map_err(|error| about_python(error, order.package.python()))?;
    let environment = order.directory.join(ENVIRONMENT);
    let fresh = FreshVenv::read(&environment).map_err(InstallError::file("read", &environment))?;
    if is_in_project(&fresh.python, tools.environment()) {
        return Err(InstallError::Missing {
            package: spec.clone(),
            program: "python",
        });
    }
    let mut withdrawn = None;
    if let Some(text) = order.frozen {
        write(order.directory, LOCK, text.trim_end()).await?;
    } else {
        let wanted: Vec<&str> = std::iter::once(spec.as_str())
            .chain(order.package.beside().iter().map(String::as_str))
            .collect();
        write(order.directory, WANTED, &wanted.join("\n")).await?;
        let finished = resolve_dependencies(tools, uv, order).await?;
        withdrawn = withdrawal::yanked(&finished.stderr, order.package.name(), order.version);
    }

    // Checked before anything is fetched: uv holds every archive to these hashes.
    let path = order.directory.join(LOCK);
    let text = read_of_installer(&path).await?;
    let checked = check_requirements(&text, order.package.name(), Some(order.version)).map_err(refused)?;
    order.check(&checked)?;
    Ok(LockedEnvironment {
        fresh,
        lock: checked,
        withdrawn,
    })
}

/// Words the failure to make an environment: nothing is fetched for one but a Python that was asked for.
fn about_python(error: InstallError, version: Option<&str>) -> InstallError {
    match (error, version) {
        (
            InstallError::Installer { package, source, .. } | InstallError::Unreachable { package, source },
            Some(version),
        ) => InstallError::Python {
            package,
            version: version.to_owned(),
            source,
        },
        (error, _) => error,
    }
}

pub(super) async fn install(tools: &Tools, order: &InstallOrder<'_>) -> Result<InstalledFiles, InstallError> {
    let uv = tools.program("uv", order.package)?;
    let spec = order.spec();
    let LockedEnvironment {
        fresh,
        lock,
        withdrawn,
    } = locked(tools, &uv, order).await?;
    let environment = order.directory.join(ENVIRONMENT);

    (order.progress)(InstallStep::Downloading);
    let arguments = [
        "pip",
        "install",
        "--quiet",
        "--no-build",
        "--no-deps",
        "--require-hashes",
        "--link-mode=copy",
        "--python",
        PYTHON,
        "--requirements",
        LOCK,
    ];
    let said = match run_with(tools, &uv, &spec, order.directory, arguments, Some(TELL_SKIPPED)).await {
        Err(error @ InstallError::TooLarge { .. }) => {
            // One archive may have been unpacked to its end in the moment in which it was found to be too large.
            forget_archives(tools, &uv, order, &lock).await;
            return Err(error);
        }
        said => said?,
    };
    if let Some(file) = skipped(&said.stderr) {
        forget_archives(tools, &uv, order, &lock).await;
        return Err(InstallError::Misplaced {
            package: spec,
            file,
            reason: "would lie outside of the environment",
        });
    }

    (order.progress)(InstallStep::Verifying);
    let packages = Path::new(ENVIRONMENT).join(fresh.packages());
    let python = fresh.python.clone();
    let at_start = inspected(fresh, &spec, environment).await?;
    compile(tools, python, order.directory, &packages).await;
    let (directory, name) = (order.directory.to_owned(), order.package.name().to_owned());
    let executables = off_thread(move || executables(&directory, &packages, &name));
    let gone = || InstallError::file("read", order.directory)(std::io::Error::other("pml is going away"));
    let executables = executables.await.ok_or_else(gone)??;
    Ok(InstalledFiles {
        integrity: lock.integrity,
        executables,
        at_start,
        withdrawn,
    })
}

/// Finds the entry of a wheel that uv left out, escaped: it does so where the entry would lie outside.
fn skipped(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let entry = text
        .lines()
        .find_map(|line| Some(line.split_once("Skipping unsafe file name: ")?.1));
    entry.map(|entry| Shown::line(&entry.chars().take(200).collect::<String>()).to_string())
}

/// Takes what was refused out of uv's cache: from there it would be installed without a word the next time.
async fn forget_archives(tools: &Tools, uv: &Program, order: &InstallOrder<'_>, lock: &CheckedLock) {
    let names = lock
        .packages
        .keys()
        .filter_map(|title| Some(title.split_once('@')?.0));
    let arguments = ["cache", "clean", "--quiet"].into_iter().chain(names);
    if let Err(error) = run(tools, uv, &order.spec(), order.directory, arguments).await {
        tracing::debug!(%error, "the cache keeps what was refused");
    }
}

/// Writes the lock of everything that is old enough.
///
/// uv takes a file without an upload time for one that is not there. So where it finds nothing, everything is resolved
/// whatever its age, and what is known to be too young is refused.
async fn resolve_dependencies(
    tools: &Tools,
    uv: &Program,
    order: &InstallOrder<'_>,
) -> Result<InstallerOutput, InstallError> {
    let spec = order.spec();
    let compile = |more: Vec<String>| {
        let mut arguments: Vec<String> = COMPILE.map(str::to_owned).to_vec();
        arguments.extend(more);
        arguments.extend(["--python", PYTHON, "--output-file", LOCK, "--", WANTED].map(str::to_owned));
        let spec = &spec;
        async move {
            run(
                tools,
                uv,
                spec,
                order.directory,
                arguments.iter().map(String::as_str),
            )
            .await
        }
    };
    let Some((limit, cutoff)) = order.limit.and_then(|limit| Some((limit, limit.cutoff()?))) else {
        return compile(Vec::new()).await;
    };
    let limited = [
        "--exclude-newer".to_owned(),
        cutoff.to_string(),
        // Its own age was judged, and its hashes are those of all its archives.
        "--exclude-newer-package".to_owned(),
        format!("{}={EVERY_AGE}", order.package.name()),
    ];
    if let Ok(finished) = compile(limited.to_vec()).await {
        return Ok(finished);
    }
    let finished = compile(Vec::new()).await?;
    let uploads =
        pypi_versions::uploads(tools, uv, &spec, order.directory, &["--python", PYTHON], LOCK).await;
    let young = uploads.iter().find(|(_, published)| !limit.admits(**published));
    match young {
        None => Ok(finished),
        Some((young, published)) => Err(order.young(&limit, young, *published)),
    }
}

/// Refuses what packages put where they do not belong, and returns what of them runs at every start.
async fn inspected(fresh: FreshVenv, spec: &str, environment: PathBuf) -> Result<Vec<String>, InstallError> {
    let root = environment.clone();
    let inspected = off_thread(move || {
        fresh.check()?;
        records::check(&root, fresh.packages())?;
        venv::at_start(&root.join(fresh.packages()))
    });
    inspected
        .await
        .unwrap_or_else(|| Err(std::io::Error::other("pml is going away").into()))
        .map_err(|problem| match problem {
            VenvProblem::Misplaced(misplaced) => InstallError::Misplaced {
                package: spec.to_owned(),
                file: misplaced.file,
                reason: misplaced.reason,
            },
            VenvProblem::Unreadable(error) => InstallError::file("read", &environment)(error),
        })
}

/// Compiles bytecode with `python`; without it the first start takes three times as long. A file that does not
/// compile is not a failure: packages carry files for other versions of Python.
async fn compile(tools: &Tools, python: PathBuf, directory: &Path, packages: &Path) {
    let program = Program {
        name: "python",
        path: python,
    };
    // Isolated and without `site`, which would run code of the user's own packages.
    let arguments: [OsString; 9] = [
        "-I".into(),
        "-S".into(),
        "-m".into(),
        "compileall".into(),
        "-q".into(),
        "-q".into(),
        "-j".into(),
        "0".into(),
        packages.into(),
    ];
    let _ = tools.run(&program, "bytecode", directory, arguments, []).await;
}

/// Reads which scripts a package has put into `env/bin`, from the record of its installation.
fn executables(
    directory: &Path,
    packages: &Path,
    name: &str,
) -> Result<BTreeMap<String, Executable>, InstallError> {
    let path = directory.join(packages);
    let entries = std::fs::read_dir(&path).map_err(InstallError::file("read", &path))?;
    let described = entries.flatten().find(|entry| {
        let folder = entry.file_name();
        let stem = folder
            .to_str()
            .and_then(|folder| folder.strip_suffix(".dist-info"));
        stem.and_then(|stem| stem.split_once('-'))
            .is_some_and(|(found, _)| normalize(found) == normalize(name))
    });
    let Some(described) = described else {
        return Ok(BTreeMap::new());
    };
    let record = described.path().join("RECORD");
    let text = bounded::read_text(&record, RECORD).map_err(InstallError::file("read", &record))?;
    let scripts = text.lines().filter_map(|line| {
        // `../../../bin/name,sha256=…,123`, relative to `site-packages`.
        let script = line
            .split(',')
            .next()?
            .trim_matches('"')
            .strip_prefix("../../../bin/")?;
        let path = Path::new("env/bin").join(script);
        let real = directory.join(&path);
        let valid = stays_below(Path::new(script)) && !script.contains('/') && real.is_file();
        valid.then(|| {
            (
                script.to_owned(),
                Executable {
                    start: start_of(&real),
                    path,
                },
            )
        })
    });
    Ok(scripts.collect())
}

/// Tells how a script is started. The first line of a relocatable script is `#!/bin/sh`, which hands over to the
/// Python beside it: that step is skipped.
fn start_of(real: &Path) -> StartMethod {
    let start = store::first_bytes(real);
    if start.starts_with("#!") && start.contains("python") {
        StartMethod::Python
    } else {
        StartMethod::Direct
    }
}
