//! Finds programs on the *user's* `PATH`.
//!
//! A project can put directories on the path of whoever runs its scripts: `node_modules/.bin` and relative entries
//! are skipped, so that `node` is never the project's own file. Results are absolute.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::config::Environment;

/// Finds `name` on the user's `PATH`; a name with a `/` is not looked up.
#[must_use]
pub fn find_program(name: &str, environment: &Environment) -> Option<PathBuf> {
    if name.is_empty() || name.contains('/') {
        return None;
    }
    // Every entry is absolute, so the directory that `which` would start from plays no part.
    which::which_in(name, Some(search_path(environment)), Path::new("/")).ok()
}

/// Returns the user's `PATH` without relative entries and without directories of a project's packages.
#[must_use]
pub fn search_path(environment: &Environment) -> OsString {
    let path = environment.variable("PATH").unwrap_or_default();
    let trusted =
        std::env::split_paths(path).filter(|entry| entry.is_absolute() && !belongs_to_packages(entry));
    std::env::join_paths(trusted).unwrap_or_default()
}

fn belongs_to_packages(entry: &Path) -> bool {
    entry
        .components()
        .any(|component| component.as_os_str() == "node_modules")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_cannot_put_its_own_node_before_the_users() {
        let home = tempfile::tempdir().unwrap();
        let mut entries = Vec::new();
        for entry in ["project/node_modules/.bin", "bin"] {
            let entry = home.path().join(entry);
            std::fs::create_dir_all(&entry).unwrap();
            std::os::unix::fs::symlink("/bin/sh", entry.join("node")).unwrap();
            entries.push(entry);
        }
        let path = std::env::join_paths([Path::new("."), Path::new(""), &entries[0], &entries[1]]).unwrap();
        let environment = Environment::new([("PATH", path)], home.path().join("bin"));
        assert_eq!(find_program("node", &environment), Some(entries[1].join("node")));
        assert_eq!(search_path(&environment), entries[1].as_os_str());
        assert_eq!(find_program("./node", &environment), None);
        assert_eq!(find_program("absent", &environment), None);
    }
}
