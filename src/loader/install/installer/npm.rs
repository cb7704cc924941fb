//! The npm recipe: one directory with a `package.json` of pml's own, and an installation without scripts.
//!
//! npm reads the `.npmrc` beside the `package.json` it finds: this directory has none, so the user's file counts
//! and no project's does. Scripts run by a second command, only when the server allows them, only after the lock
//! was checked, and only those that a person accepted one by one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::bounded::{self, MANIFEST};
use super::npm_archives;
use super::npm_command::run;
use super::npm_scripts::{self, ScriptsToRun};
use super::order::{InstallOrder, InstalledFiles, stays_below};
use super::process::Program;
use super::tools::Tools;
use super::withdrawal;
use crate::loader::install::background::{off_thread, read_of_installer, write_for_installer};
use crate::loader::install::error::InstallError;
use crate::loader::install::lock::check_npm;
use crate::loader::install::release_age::AgeLimit;
use crate::loader::install::step::InstallStep;
use crate::loader::plan::Scripts;
use crate::loader::store::{self, Executable, StartMethod};
use crate::protocol::Shown;

pub(super) const LOCK: &str = "package-lock.json";

/// What npm says where nothing but versions that are too young would do.
const TOO_YOUNG: [&str; 2] = ["with a date before", "ENOVERSIONS"];

/// What `npm install` must do against any setting of the user; versions that do not know a flag ignore it, and
/// the lock is checked all the same.
const FLAGS: [&str; 17] = [
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--no-progress",
    "--no-global",
    "--no-dry-run",
    "--no-workspaces",
    "--package-lock",
    NO_LOCK_ONLY,
    "--lockfile-version=3",
    "--install-strategy=hoisted",
    "--omit=dev",
    "--allow-git=none",
    NO_REMOTE,
    "--allow-file=none",
    "--allow-directory=none",
];

/// A setting of the user must not keep a package from being installed.
const NO_LOCK_ONLY: &str = "--no-package-lock-only";

/// Nothing is fetched from an address that a package names.
const NO_REMOTE: &str = "--allow-remote=none";

/// Makes npm say what each package wants, so that what it refuses can be named.
const LOUD: &str = "--loglevel=silly";

/// Writes the lock of a package into the order's directory; nothing of it is fetched.
pub(super) async fn lock(tools: &Tools, order: &InstallOrder<'_>) -> Result<(), InstallError> {
    let npm = tools.program("npm", order.package)?;
    (order.progress)(InstallStep::Resolving);
    write_manifest(order.directory, manifest(order)).await?;
    write_lock(tools, &npm, order, None).await
}

/// Makes npm write the lock beside the manifest, and checks it.
async fn write_lock(
    tools: &Tools,
    npm: &Program,
    order: &InstallOrder<'_>,
    more: Option<&'static str>,
) -> Result<(), InstallError> {
    let spec = order.spec();
    let flags = FLAGS.into_iter().filter(|flag| *flag != NO_LOCK_ONLY);
    let arguments = ["install", "--package-lock-only"]
        .into_iter()
        .chain(flags)
        .chain(more);
    let arguments = arguments.map(OsString::from).chain(cutoff(order));
    let locked = run(tools, npm, &spec, order.directory, arguments).await;
    locked.map_err(|error| order.young_dependency(error, &TOO_YOUNG))?;
    let path = order.directory.join(LOCK);
    let text = read_of_installer(&path).await?;
    let checked = check_npm(&text, order.package.name(), order.version);
    let checked = checked.map_err(|source| InstallError::Refused {
        package: spec,
        source,
    })?;
    order.check(&checked)
}

/// Returns the word by which npm resolves nothing that is too young.
fn cutoff(order: &InstallOrder<'_>) -> Option<OsString> {
    // What a lock names was judged when the lock was made.
    let limit = order.limit.filter(|_| order.frozen.is_none());
    let cutoff = limit.as_ref().and_then(AgeLimit::cutoff);
    cutoff.map(|cutoff| format!("--before={cutoff}").into())
}

fn manifest(order: &InstallOrder<'_>) -> String {
    let manifest = serde_json::json!({
        "name": "pml-installation",
        "version": "0.0.0",
        "private": true,
        "dependencies": { order.package.name(): order.version },
    });
    manifest.to_string()
}

pub(super) async fn install(tools: &Tools, order: &InstallOrder<'_>) -> Result<InstalledFiles, InstallError> {
    let npm = tools.program("npm", order.package)?;
    // Found now rather than at the first start: an installation that cannot run is not one.
    tools.find("node", order.package)?;
    let spec = order.spec();
    (order.progress)(InstallStep::Downloading);
    write_manifest(order.directory, manifest(order)).await?;
    let path = order.directory.join(LOCK);
    let checked = |text: &str| {
        let checked = check_npm(text, order.package.name(), order.version);
        let checked = checked.map_err(|source| InstallError::Refused {
            package: spec.clone(),
            source,
        })?;
        order.check(&checked).map(|()| checked.integrity)
    };
    let command = match order.frozen {
        None => "install",
        Some(text) => {
            checked(text)?;
            write_for_installer(path.clone(), text.to_owned()).await?;
            // Installs what the lock says and never writes it.
            "ci"
        }
    };
    let arguments = std::iter::once(command).chain(FLAGS);
    let arguments = arguments.map(OsString::from).chain(cutoff(order));
    let installed = run(tools, &npm, &spec, order.directory, arguments).await;
    match installed.map_err(|error| order.young_dependency(error, &TOO_YOUNG)) {
        Ok(_) => {}
        Err(refused @ InstallError::Elsewhere { .. }) => from_elsewhere(tools, &npm, order, refused).await?,
        Err(error) => return Err(error),
    }

    (order.progress)(InstallStep::Verifying);
    let lock = read_of_installer(&path).await?;
    let integrity = checked(&lock)?;
    npm_archives::inspect(tools, order, &lock).await?;

    if order.scripts == Scripts::Allowed && npm_scripts::accepted(order, &lock).await? == ScriptsToRun::Some {
        (order.progress)(InstallStep::RunningScripts);
        // `dangerously-allow-all-scripts` is how npm 11 spells what older versions do by default.
        let arguments = [
            "rebuild",
            "--no-ignore-scripts",
            "--dangerously-allow-all-scripts",
            "--foreground-scripts",
            "--no-progress",
            "--no-update-notifier",
            "--no-global",
            "--no-workspaces",
        ];
        run(tools, &npm, &spec, order.directory, arguments.map(OsString::from)).await?;
    }
    let executables = executables(order).await?;
    Ok(InstalledFiles {
        integrity,
        executables,
        // Node loads nothing of a package that it is not told to load.
        at_start: Vec::new(),
        withdrawn: withdrawal::deprecated_in(&lock, order.package.name()),
    })
}

/// Installs from archives at another host than the registry's own, which many registries use; names what npm refused where
/// it is something else.
///
/// npm takes both for the same. What tells them apart is the lock, which is made without any archive: what is in it comes
/// from a registry's document, with an integrity that holds wherever the archive lies.
async fn from_elsewhere(
    tools: &Tools,
    npm: &Program,
    order: &InstallOrder<'_>,
    refused: InstallError,
) -> Result<(), InstallError> {
    let spec = order.spec();
    if order.frozen.is_none() {
        let locked = write_lock(tools, npm, order, Some(LOUD)).await;
        match (locked, refused) {
            (Ok(()), _) => {}
            (
                Err(InstallError::Elsewhere { origin, .. }),
                InstallError::Elsewhere { package, source, .. },
            ) => {
                return Err(InstallError::Elsewhere {
                    package,
                    origin,
                    source,
                });
            }
            (Err(error), _) => return Err(error),
        }
    }
    let flags = FLAGS.into_iter().filter(|flag| *flag != NO_REMOTE);
    let arguments = ["ci", "--allow-remote=all"]
        .into_iter()
        .chain(flags)
        .map(OsString::from);
    run(tools, npm, &spec, order.directory, arguments).await.map(drop)
}

pub(super) async fn write_manifest(directory: &Path, text: String) -> Result<(), InstallError> {
    write_for_installer(directory.join("package.json"), text).await
}

#[derive(Deserialize)]
struct PackageMetadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
    bin: Option<Bin>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Bin {
    One(PathBuf),
    Many(BTreeMap<String, PathBuf>),
}

/// Reads the executables a package declares; those that are absent do not count.
///
/// One that lies outside is refused, also where the server is another one: no honest package declares it.
async fn executables(order: &InstallOrder<'_>) -> Result<BTreeMap<String, Executable>, InstallError> {
    let (directory, name) = (order.directory, order.package.name());
    let folder = Path::new("node_modules").join(name);
    let path = directory.join(&folder).join("package.json");
    let described = off_thread(move || described(&path)).await;
    let described = described.unwrap_or(Err("cannot be read: pml is going away"));
    let described = described.map_err(|reason| InstallError::Archive {
        archive: order.spec(),
        package: order.spec(),
        entry: "package.json".to_owned(),
        reason,
    })?;
    let version = described.version.trim_start_matches(['v', '=', ' ']).trim_end();
    if described.name != name || version != order.version {
        return Err(InstallError::OtherPackage {
            package: order.spec(),
            place: "the `package.json` of its archive",
            found: Shown::line(&format!("{}@{}", described.name, described.version)).to_string(),
        });
    }
    let unscoped = name.rsplit_once('/').map_or(name, |(_, name)| name);
    let declared = match described.bin {
        None => BTreeMap::new(),
        Some(Bin::One(path)) => BTreeMap::from([(unscoped.to_owned(), path)]),
        Some(Bin::Many(paths)) => paths,
    };
    let root = directory
        .canonicalize()
        .map_err(InstallError::file("read", directory))?;
    if let Some(path) = declared.values().find(|path| !stays_below(path)) {
        return Err(InstallError::Archive {
            archive: order.spec(),
            package: order.spec(),
            entry: format!("\"bin\": \"{}\"", Shown::path(path)),
            reason: "leads out of the package",
        });
    }
    let executables = declared.into_iter().filter_map(|(name, path)| {
        let path: PathBuf = folder.join(path).components().collect();
        let real = directory
            .join(&path)
            .canonicalize()
            .ok()
            .filter(|real| real.starts_with(&root) && real.is_file())?;
        Some((
            name,
            Executable {
                start: start_of(&path, &real),
                path,
            },
        ))
    });
    Ok(executables.collect())
}

/// Reads the description of an unpacked package; blocks.
fn described(path: &Path) -> Result<PackageMetadata, &'static str> {
    let text = bounded::read_text(path, MANIFEST).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => "is longer than any package's",
        _ => "is not there or cannot be read",
    })?;
    serde_json::from_str(&text).map_err(|_| "is not what npm can read")
}

/// Tells how a file is started: JavaScript by `node`, with the options of its first line, anything else by itself.
fn start_of(path: &Path, real: &Path) -> StartMethod {
    let line = store::first_line(real);
    let words: Vec<&str> = line
        .strip_prefix("#!")
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let node = words
        .iter()
        .position(|word| *word == "node" || word.ends_with("/node"));
    let script = path
        .extension()
        .is_some_and(|extension| matches!(extension.to_str(), Some("js" | "mjs" | "cjs")));
    match node {
        Some(node) => StartMethod::Node {
            options: words[node + 1..].iter().map(|word| (*word).to_owned()).collect(),
        },
        None if script => StartMethod::Node { options: Vec::new() },
        None => StartMethod::Direct,
    }
}
