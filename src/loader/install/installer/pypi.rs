//! The PyPI recipe: an environment of its own, filled from wheels whose hashes are known.
//!
//! No build runs, neither to resolve nor to install. Bytecode is compiled by the interpreter that the environment was
//! made from, never by the environment's own Python: once packages are unpacked, that one may run their code.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::attestations::AttestationLead;
use super::order::{InstallOrder, InstalledFiles, stays_below};
use super::process::{InstallerOutput, Program};
use super::tools::Tools;
use super::venv::{self, FreshVenv, VenvProblem};
use super::{indexes, withdrawal};
use crate::loader::install::background::{off_thread, write_for_installer};
use crate::loader::install::error::InstallError;
use crate::loader::install::lock::{CheckedLock, check_requirements};
use crate::loader::install::step::InstallStep;
use crate::loader::install::tail::Tail;
use crate::loader::plan::{Package, Resolved, VersionSpec, normalize};
use crate::loader::process::is_in_project;
use crate::loader::store::{self, Executable, PYTHON, StartMethod};

const ENVIRONMENT: &str = "env";
const WANTED: &str = "requirements.in";
pub(super) const LOCK: &str = "requirements.txt";

/// Wheels only, every archive with its hashes, nothing but requirements in the output.
///
/// Not quiet: what is yanked is told on stderr.
const COMPILE: [&str; 7] = [
    "pip",
    "compile",
    "--no-build",
    "--generate-hashes",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
];

pub(super) async fn resolve(
    tools: &Tools,
    package: &Package,
    directory: &Path,
) -> Result<(Resolved, AttestationLead), InstallError> {
    let uv = tools.program("uv", package)?;
    let wanted = match package.version() {
        VersionSpec::Exact(version) => package.at(version),
        VersionSpec::Floating(range) if range == "latest" => package.name_with_extras(),
        VersionSpec::Floating(range) => format!("{}{range}", package.name_with_extras()),
    };
    write(directory, WANTED, &wanted).await?;
    let mut arguments = COMPILE.to_vec();
    arguments.extend(["--no-deps", "--emit-index-annotation"]);
    if let Some(version) = package.python() {
        arguments.extend(["--python-version", version]);
    }
    arguments.extend(["--", WANTED]);
    let finished = run(tools, &uv, &package.spec(), directory, arguments).await?;
    let text = String::from_utf8_lossy(&finished.stdout);
    let checked = check_requirements(&text, package.name(), None).map_err(|_| InstallError::Answer {
        package: package.spec(),
        program: "uv",
        source: Tail::of(&finished.stdout, &finished.secrets),
    })?;
    let withdrawn = withdrawal::yanked(&finished.stderr, package.name(), &checked.version);
    let resolved = Resolved {
        integrity: Some(checked.integrity),
        withdrawn,
        ..Resolved::version(&checked.version)
    };
    Ok((resolved, AttestationLead::pypi(&finished)))
}

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
    run(tools, uv, &spec, order.directory, arguments).await?;
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
        write(order.directory, WANTED, &spec).await?;
        let mut arguments = COMPILE.to_vec();
        arguments.extend(["--python", PYTHON, "--output-file", LOCK, "--", WANTED]);
        let finished = run(tools, uv, &spec, order.directory, arguments).await?;
        withdrawn = withdrawal::yanked(&finished.stderr, order.package.name(), order.version);
    }

    // Checked before anything is fetched: uv holds every archive to these hashes.
    let path = order.directory.join(LOCK);
    let text = std::fs::read_to_string(&path).map_err(InstallError::file("read", &path))?;
    let checked = check_requirements(&text, order.package.name(), Some(order.version)).map_err(refused)?;
    order.check(&checked)?;
    Ok(LockedEnvironment {
        fresh,
        lock: checked,
        withdrawn,
    })
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
    run(tools, &uv, &spec, order.directory, arguments).await?;

    (order.progress)(InstallStep::Verifying);
    let packages = Path::new(ENVIRONMENT).join(fresh.packages());
    let python = fresh.python.clone();
    let at_start = inspected(fresh, &spec, environment).await?;
    compile(tools, python, order.directory, &packages).await;
    let executables = executables(order.directory, &packages, order.package.name())?;
    Ok(InstalledFiles {
        integrity: lock.integrity,
        executables,
        at_start,
        withdrawn,
    })
}

async fn run(
    tools: &Tools,
    uv: &Program,
    spec: &str,
    directory: &Path,
    arguments: impl IntoIterator<Item = &str>,
) -> Result<InstallerOutput, InstallError> {
    let mut all: Vec<OsString> = vec!["--no-progress".into()];
    // One of the two always: without them uv reads the project's files.
    match indexes::uv_configuration(tools.environment()) {
        Some(path) => all.extend(["--config-file".into(), path.into_os_string()]),
        None => all.push("--no-config".into()),
    }
    all.extend(arguments.into_iter().map(OsString::from));
    let mut extra = indexes::of_pip(tools.environment());
    extra.push(("UV_CACHE_DIR", tools.cache("uv").into_os_string()));
    tools.run(uv, spec, directory, all, extra).await
}

/// Refuses what packages put where they do not belong, and returns what of them runs at every start.
async fn inspected(fresh: FreshVenv, spec: &str, environment: PathBuf) -> Result<Vec<String>, InstallError> {
    let packages = environment.join(fresh.packages());
    let inspected = off_thread(move || {
        fresh.check()?;
        Ok(venv::at_start(&packages)?)
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

async fn write(directory: &Path, name: &str, text: &str) -> Result<(), InstallError> {
    write_for_installer(directory.join(name), format!("{text}\n")).await
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
    let text = std::fs::read_to_string(&record).map_err(InstallError::file("read", &record))?;
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
