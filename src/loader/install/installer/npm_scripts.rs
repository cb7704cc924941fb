//! Reads the install scripts of every package that npm has put into a directory, before any of them runs.
//!
//! What counts is what lies there, not what a lock says of it: packages that another one bundles are built as well. npm
//! also builds a package with a `binding.gyp` and no script of its own; that is named as the command that it runs.
//! Whatever cannot be read or shown is refused: a script that a person does not see does not run.
//!
//! npm looks for packages in its own way when it builds them, so nothing may lie where it could find one but what the
//! checked lock names: an archive may bring folders that only npm, or only a reader of folders, takes for a package.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::bounded::{self, MANIFEST};
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

/// Refuses scripts that a person has not accepted exactly as they lie there; `lock` was checked.
pub(super) async fn accepted(order: &InstallOrder<'_>, lock: &str) -> Result<ScriptsToRun, InstallError> {
    let root = order.directory.to_owned();
    let places = places(lock);
    let found = off_thread(move || read(&root, &places)).await;
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

/// Returns where the packages of a lock lie.
fn places(lock: &str) -> BTreeSet<PathBuf> {
    let lock: Value = serde_json::from_str(lock).unwrap_or_default();
    let packages = lock["packages"].as_object().into_iter().flatten();
    packages.map(|(place, _)| PathBuf::from(place)).collect()
}

/// Reads every script below a directory, in the order of the places of their packages; blocks.
fn read(root: &Path, locked: &BTreeSet<PathBuf>) -> Result<InstallScripts, Fault> {
    let mut places = collect(root, locked)?;
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

/// Collects the places of the packages in a `node_modules`, and of those in theirs; refuses what the lock does not name.
fn collect(root: &Path, locked: &BTreeSet<PathBuf>) -> Result<Vec<PathBuf>, Fault> {
    let mut places = Vec::new();
    let mut folders = vec![PathBuf::from(FOLDER)];
    while let Some(folder) = folders.pop() {
        let unfit = |place: &Path, reason| Fault {
            package: Shown::path(&folder),
            entry: Shown::path(place),
            reason,
        };
        match root.join(&folder).symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(unfit(&folder, "is no folder")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => return Err(unfit(&folder, "cannot be read")),
        }
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else {
            return Err(unfit(&folder, "cannot be read"));
        };
        for entry in entries {
            let Ok(entry) = entry else {
                return Err(unfit(&folder, "cannot be read"));
            };
            let name = entry.file_name();
            let place = folder.join(&name);
            // npm's own: executables and its record of what lies there. It takes no such name for a package.
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                return Err(unfit(&place, "is no folder"));
            }
            // A scope is one level deep: what lies in it and begins like a scope is a package to npm.
            if name.as_encoded_bytes().starts_with(b"@") && folder.ends_with(FOLDER) {
                folders.push(place);
                continue;
            }
            if !locked.contains(&place) {
                return Err(unfit(&place, "is a package that its lock does not name"));
            }
            if places.len() + folders.len() >= PACKAGES {
                return Err(unfit(&folder, "holds more packages than a server needs"));
            }
            folders.push(place.join(FOLDER));
            places.push(place);
        }
    }
    Ok(places)
}

/// Reads the scripts of one package.
fn of_package(root: &Path, place: &Path) -> Result<Vec<InstallScript>, Fault> {
    let fault = |reason| Fault {
        package: Shown::path(place),
        entry: "package.json".to_owned(),
        reason,
    };
    let directory = root.join(place);
    let text = match bounded::read(&directory.join("package.json"), MANIFEST) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
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

    /// Reads as if the lock named what lies in the usual places.
    fn lines(root: &Path) -> Vec<String> {
        lines_of(root, &["a", "@s/b", "a/node_modules/c"])
    }

    fn lines_of(root: &Path, names: &[&str]) -> Vec<String> {
        let numbered = (0..=SCRIPTS).map(|number| format!("{FOLDER}/a{number}").into());
        let locked = names.iter().map(|name| Path::new(FOLDER).join(name));
        match read(root, &locked.chain(numbered).collect()) {
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

    #[test]
    fn a_package_that_the_lock_does_not_name_is_refused_in_every_spelling_that_npm_may_read() {
        let hidden = [
            (
                "@a/@b",
                "node_modules/@a/@b is a package that its lock does not name",
            ),
            (
                "z\\lib",
                "node_modules/z\\lib is a package that its lock does not name",
            ),
            (
                "@a\\b/c",
                "node_modules/@a\\b/c is a package that its lock does not name",
            ),
            ("z", "node_modules/z is a package that its lock does not name"),
            (
                "@a/node_modules/z",
                "node_modules/@a/node_modules is a package that its lock does not name",
            ),
            (
                "a/node_modules/z",
                "node_modules/a/node_modules/z is a package that its lock does not name",
            ),
        ];
        for (place, expected) in hidden {
            let home = tempfile::tempdir().unwrap();
            let root = home.path();
            let package = json!({ "name": "a", "version": "1.0.0" });
            put(root, "node_modules/a", &package, &[]);
            put(root, &format!("node_modules/{place}"), &package, &[]);
            let found = lines_of(root, &["a", "@a/b"]);
            assert_eq!(found.len(), 1, "{place}: {found:?}");
            assert!(found[0].ends_with(expected), "{place}: {found:?}");
        }
        for (link, target) in [
            ("node_modules/z", "a"),
            ("node_modules/a/node_modules", "../../elsewhere"),
        ] {
            let home = tempfile::tempdir().unwrap();
            let root = home.path();
            put(root, "node_modules/a", &json!({}), &[]);
            put(root, "elsewhere/z", &json!({}), &[]);
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
            let found = lines_of(root, &["a", "z", "a/node_modules/z"]);
            assert!(found[0].ends_with(&format!("{link} is no folder")), "{found:?}");
        }
    }
}
