//! Reads the install scripts of every package that npm has put into a directory, before any of them runs.
//!
//! What counts is what lies there, not what a lock says of it: packages that another one bundles are built as well. npm
//! also builds a package with a `binding.gyp` and no script of its own; that is named as the command that it runs.
//! Whatever cannot be read or shown is refused: a script that a person does not see does not run.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::order::InstallOrder;
use crate::loader::install::background::off_thread;
use crate::loader::install::error::InstallError;
use crate::pins::{InstallHook, InstallScript, InstallScripts};
use crate::protocol::Shown;

/// The folder in which npm puts packages.
const FOLDER: &str = "node_modules";

/// The command by which npm builds a package that has a `binding.gyp` and no script for it.
const BUILD: &str = "node-gyp rebuild";

/// More packages than any server is installed with.
const PACKAGES: usize = 50_000;

/// More scripts than a person reads; the largest trees of servers have some ten.
const SCRIPTS: usize = 500;

/// The longest script in bytes: several times the longest of honest packages.
const SCRIPT: usize = 16 << 10;

/// All scripts together in bytes: escaped they still fit into one question.
const TOGETHER: usize = 256 << 10;

/// The longest `package.json` in bytes.
const MANIFEST: u64 = 4 << 20;

/// Whether scripts run after an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptsToRun {
    /// The packages have none.
    None,
    /// They have those that were accepted.
    Some,
}

/// A package whose scripts cannot be shown.
struct Fault {
    /// The package, escaped.
    package: String,
    entry: String,
    reason: &'static str,
}

/// Refuses scripts that a person has not accepted exactly as they lie there.
pub(super) async fn accepted(order: &InstallOrder<'_>) -> Result<ScriptsToRun, InstallError> {
    let root = order.directory.to_owned();
    let found = off_thread(move || read(&root)).await;
    let gone = || InstallError::file("read", order.directory)(std::io::Error::other("pml is going away"));
    let scripts = found.ok_or_else(gone)?.map_err(|fault| InstallError::Archive {
        package: order.spec(),
        archive: fault.package,
        entry: fault.entry,
        reason: fault.reason,
    })?;
    if scripts.is_empty() {
        return Ok(ScriptsToRun::None);
    }
    if order.expected.scripts.as_ref() == Some(&scripts.digest()) {
        return Ok(ScriptsToRun::Some);
    }
    Err(InstallError::Scripts {
        dependency: order.dependency.clone(),
        package: order.spec(),
        scripts: Arc::new(scripts),
    })
}

/// Reads every script below a directory, in the order of the places of their packages; blocks.
fn read(root: &Path) -> Result<InstallScripts, Fault> {
    let mut places = Vec::new();
    collect(root, Path::new(FOLDER), &mut places)?;
    places.sort();
    let mut scripts = Vec::new();
    let mut bytes = 0;
    for place in places {
        for script in of_package(root, &place)? {
            let fault = |reason| Fault {
                package: Shown::line(&script.package).to_string(),
                entry: format!("\"{}\"", script.hook.name()),
                reason,
            };
            bytes += script.package.len() + script.command.len();
            if script.command.len() > SCRIPT {
                return Err(fault("is a longer script than a person can be shown"));
            }
            if scripts.len() == SCRIPTS || bytes > TOGETHER {
                return Err(fault("is one script more than a person can be shown"));
            }
            scripts.push(script);
        }
    }
    Ok(InstallScripts::new(scripts))
}

/// Collects the places of the packages in a `node_modules`, and of those in theirs.
fn collect(root: &Path, folder: &Path, places: &mut Vec<PathBuf>) -> Result<(), Fault> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let unreadable = |reason| Fault {
            package: Shown::path(&folder),
            entry: Shown::path(&folder),
            reason,
        };
        let entries = match std::fs::read_dir(root.join(&folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => return Err(unreadable("cannot be read")),
        };
        for entry in entries {
            let Ok(entry) = entry else {
                return Err(unreadable("cannot be read"));
            };
            let name = entry.file_name();
            let place = folder.join(&name);
            // npm's own: executables and its record of what lies there.
            if name.as_encoded_bytes().starts_with(b".") || !root.join(&place).is_dir() {
                continue;
            }
            if name.as_encoded_bytes().starts_with(b"@") {
                folders.push(place);
                continue;
            }
            if places.len() + folders.len() >= PACKAGES {
                return Err(unreadable("holds more packages than a server needs"));
            }
            folders.push(place.join(FOLDER));
            places.push(place);
        }
    }
    Ok(())
}

/// Reads the scripts of one package.
fn of_package(root: &Path, place: &Path) -> Result<Vec<InstallScript>, Fault> {
    let fault = |reason| Fault {
        package: Shown::path(place),
        entry: "package.json".to_owned(),
        reason,
    };
    let directory = root.join(place);
    let text = match read_manifest(&directory.join("package.json")) {
        Ok(text) => text,
        // npm finds no script in it either, and builds it all the same.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "{}".to_owned(),
        Err(_) => return Err(fault("cannot be read")),
    };
    let manifest: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|_| fault("is not what npm can read"))?;
    let command = |hook: InstallHook| {
        let command = manifest["scripts"][hook.name()].as_str();
        command.filter(|command| !command.is_empty()).map(str::to_owned)
    };
    let title = title(place, &manifest);
    let script = |hook, command| InstallScript {
        package: title.clone(),
        hook,
        command,
    };
    let own = InstallHook::ALL.into_iter();
    let mut scripts: Vec<InstallScript> = own
        .filter_map(|hook| Some(script(hook, command(hook)?)))
        .collect();
    let builds = !scripts
        .iter()
        .any(|script| script.hook < InstallHook::Postinstall);
    // Also with `"gypfile": false`, which npm forgets where it knows the package from its own record.
    if builds && directory.join("binding.gyp").exists() {
        scripts.insert(0, script(InstallHook::Install, BUILD.to_owned()));
    }
    Ok(scripts)
}

fn read_manifest(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MANIFEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MANIFEST {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Names a package as it calls itself; its place follows where that is not the usual one of that name.
fn title(place: &Path, manifest: &Value) -> String {
    let text = |key: &str| manifest[key].as_str().unwrap_or("?");
    let (name, version) = (text("name"), text("version"));
    if place == Path::new(FOLDER).join(name) {
        format!("{name}@{version}")
    } else {
        format!("{name}@{version} in {}", place.display())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
mod tests {
    use super::*;
    use serde_json::json;

    fn put(root: &Path, place: &str, manifest: &Value, files: &[&str]) {
        let directory = root.join(place);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("package.json"), manifest.to_string()).unwrap();
        for file in files {
            std::fs::write(directory.join(file), "").unwrap();
        }
    }

    fn lines(root: &Path) -> Vec<String> {
        match read(root) {
            Ok(scripts) => scripts.lines(None),
            Err(fault) => vec![format!("{} {} {}", fault.package, fault.entry, fault.reason)],
        }
    }

    #[test]
    fn scripts_are_read_from_every_package_that_npm_would_build() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        assert_eq!(lines(root), Vec::<String>::new());
        let scripts =
            json!({ "postinstall": "c", "preinstall": "a", "install": "b", "test": "t", "prepare": "p" });
        put(
            root,
            "node_modules/a",
            &json!({ "name": "a", "version": "1.0.0", "scripts": scripts }),
            &["binding.gyp"],
        );
        put(
            root,
            "node_modules/@s/b",
            &json!({ "name": "@s/b", "version": "2.0.0", "scripts": { "install": "" }, "gypfile": false }),
            &["binding.gyp"],
        );
        put(
            root,
            "node_modules/a/node_modules/c",
            &json!({ "name": "a", "version": "1.0.0", "scripts": { "install": "evil" } }),
            &[],
        );
        put(
            root,
            "node_modules/.bin/d",
            &json!({ "name": "d", "version": "1.0.0", "scripts": { "install": "x" } }),
            &[],
        );
        assert_eq!(
            lines(root),
            [
                "! @s/b@2.0.0  install: node-gyp rebuild",
                "! a@1.0.0  preinstall: a",
                "! a@1.0.0  install: b",
                "! a@1.0.0  postinstall: c",
                "! a@1.0.0 in node_modules/a/node_modules/c  install: evil",
            ]
        );
    }

    #[test]
    fn what_cannot_be_shown_whole_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path();
        let package =
            |command: &str| json!({ "name": "a", "version": "1.0.0", "scripts": { "install": command } });
        put(root, "node_modules/a", &package(&"x".repeat(SCRIPT)), &[]);
        assert_eq!(lines(root).len(), 1);
        put(root, "node_modules/a", &package(&"x".repeat(SCRIPT + 1)), &[]);
        assert_eq!(
            lines(root),
            ["a@1.0.0 \"install\" is a longer script than a person can be shown"]
        );
        std::fs::write(root.join("node_modules/a/package.json"), "{").unwrap();
        assert_eq!(
            lines(root),
            ["node_modules/a package.json is not what npm can read"]
        );
        for number in 0..=SCRIPTS {
            put(root, &format!("node_modules/a{number}"), &package("x"), &[]);
        }
        put(root, "node_modules/a", &package("x"), &[]);
        assert!(
            lines(root)[0].ends_with("is one script more than a person can be shown"),
            "{:?}",
            lines(root)
        );
    }
}
