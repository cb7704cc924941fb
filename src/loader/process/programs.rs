//! Finds programs on the *user's* `PATH`, and never inside the project.
//!
//! A project can bring `node_modules/.bin/node` or `.venv/bin/uv`, and a shell or an editor puts such directories on
//! the `PATH`. A program from there is code of the project that no person has agreed to. So entries inside the
//! project are skipped, and so is a program that a link leads into the project. Results are absolute.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::config::Environment;

/// The folders in which package managers put programs of a project.
const PACKAGE_FOLDERS: [&str; 3] = ["node_modules", ".venv", "venv"];

/// Finds `name` on the user's `PATH`; a name with a `/` is not looked up.
#[must_use]
pub fn find_program(name: &str, environment: &Environment) -> Option<PathBuf> {
    let inside = ProjectFolders::of(environment);
    candidates(name, inside.search_path(environment)).find(|program| !inside.contains(program))
}

/// Finds a program of the user that is named or given by its absolute path; one inside the project is none.
#[must_use]
pub fn find_users_program(program: &str, environment: &Environment) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.is_absolute() {
        return (!is_in_project(path, environment)).then(|| path.to_owned());
    }
    find_program(program, environment)
}

/// Returns the user's `PATH` without relative entries and without directories of the project.
#[must_use]
pub fn search_path(environment: &Environment) -> OsString {
    ProjectFolders::of(environment).search_path(environment)
}

/// Finds the program inside the project that a shell would take for `name`.
#[must_use]
pub(in crate::loader) fn find_in_project(name: &str, environment: &Environment) -> Option<PathBuf> {
    let inside = ProjectFolders::of(environment);
    let path = environment.variable("PATH").unwrap_or_default();
    std::env::split_paths(path)
        .filter(|entry| entry.is_absolute())
        .find_map(|entry| {
            let skipped = inside.skips(&entry);
            let found = candidates(name, entry.into_os_string()).next()?;
            (skipped || inside.contains(&found)).then_some(found)
        })
}

/// Tells whether `path`, with its links followed, lies inside the project.
#[must_use]
pub(in crate::loader) fn is_in_project(path: &Path, environment: &Environment) -> bool {
    ProjectFolders::of(environment).contains(path)
}

fn candidates(name: &str, path: OsString) -> impl Iterator<Item = PathBuf> {
    let plain = !name.is_empty() && !name.contains('/');
    // Every entry is absolute, so the directory that `which` would start from plays no part.
    let found = plain
        .then(|| which::which_in_all(name, Some(path), Path::new("/")).ok())
        .flatten();
    found.into_iter().flatten()
}

/// The directories that belong to the project.
struct ProjectFolders {
    /// Everything below these belongs to the project.
    whole: Vec<PathBuf>,
    /// Only package folders below these belong to the project: the user's home, and directories above it.
    packages: Vec<PathBuf>,
}

impl ProjectFolders {
    fn of(environment: &Environment) -> Self {
        let here = environment.working_directory();
        let named = environment
            .variable("CLAUDE_PROJECT_DIR")
            .map(|directory| here.join(directory));
        let starts = [
            Some(here.to_owned()),
            named,
            environment.project().map(Path::to_owned),
        ];
        let mut roots = Vec::new();
        for start in starts.into_iter().flatten() {
            for start in both(&start) {
                let repository = start.ancestors().find(|folder| folder.join(".git").exists());
                roots.extend(repository.map(Path::to_owned));
                roots.push(start);
            }
        }
        roots.sort();
        roots.dedup();
        let homes: Vec<PathBuf> = environment
            .variable("HOME")
            .map(Path::new)
            .map(both)
            .unwrap_or_default();
        // The user's own programs often lie below the home, so a project that is the home does not hide them.
        let (packages, whole) = roots
            .into_iter()
            .partition(|root| homes.iter().any(|home| home.starts_with(root)));
        Self { whole, packages }
    }

    /// Tells whether a program or a directory lies inside the project.
    fn contains(&self, path: &Path) -> bool {
        both(path)
            .iter()
            .any(|path| self.whole.iter().any(|root| path.starts_with(root)))
    }

    /// Tells whether an entry of the `PATH` does not count. Only entries are judged by the names of folders: the
    /// user's own `npm` is a link into a `node_modules`, too.
    fn skips(&self, entry: &Path) -> bool {
        let names = |path: &Path, folders: &[&str]| {
            path.components()
                .any(|part| folders.iter().any(|folder| part.as_os_str() == *folder))
        };
        let of_packages = |entry: &PathBuf| {
            let below = self
                .packages
                .iter()
                .filter_map(|root| entry.strip_prefix(root).ok());
            // The packages of another project are no programs of the user either.
            names(entry, &PACKAGE_FOLDERS[..1]) || { below }.any(|below| names(below, &PACKAGE_FOLDERS))
        };
        !entry.is_absolute() || self.contains(entry) || both(entry).iter().any(of_packages)
    }

    fn search_path(&self, environment: &Environment) -> OsString {
        let path = environment.variable("PATH").unwrap_or_default();
        let trusted = std::env::split_paths(path).filter(|entry| !self.skips(entry));
        std::env::join_paths(trusted).unwrap_or_default()
    }
}

/// Returns a path as it is written, without `.` and `..`, and as it is once links are followed.
fn both(path: &Path) -> Vec<PathBuf> {
    let mut written = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(written.pop()),
            std::path::Component::CurDir => {}
            part => written.push(part),
        }
    }
    let mut both = vec![written];
    both.extend(path.canonicalize());
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home with a project, in which each of `folders` has a program `node`.
    fn laid_out(folders: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let home = tempfile::tempdir().unwrap();
        let entries = folders.iter().map(|folder| {
            let entry = home.path().join(folder);
            std::fs::create_dir_all(&entry).unwrap();
            std::os::unix::fs::symlink("/bin/sh", entry.join("node")).unwrap();
            entry
        });
        let entries = entries.collect();
        (home, entries)
    }

    fn environment(home: &Path, entries: &[PathBuf], here: &str) -> Environment {
        let path = std::env::join_paths([PathBuf::from("."), PathBuf::new()].iter().chain(entries)).unwrap();
        Environment::new([("PATH", path), ("HOME", home.into())], home.join(here))
    }

    #[test]
    fn a_project_cannot_put_its_own_node_before_the_users() {
        let folders = [
            "project/node_modules/.bin",
            "project/.venv/bin",
            "project/tools",
            "elsewhere/node_modules/.bin",
            "bin",
        ];
        let (home, entries) = laid_out(&folders);
        std::fs::create_dir_all(home.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(home.path().join("project/deep/below")).unwrap();
        for here in ["project", "project/deep/below"] {
            let environment = environment(home.path(), &entries, here);
            assert_eq!(
                find_program("node", &environment),
                Some(entries[4].join("node")),
                "{here}"
            );
            assert_eq!(search_path(&environment), entries[4].as_os_str());
            assert_eq!(
                find_in_project("node", &environment),
                Some(entries[0].join("node"))
            );
            assert_eq!(find_program("./node", &environment), None);
            assert_eq!(find_program("absent", &environment), None);
            for (program, found) in [
                ("node", Some(entries[4].join("node"))),
                ("./node", None),
                (entries[0].join("node").to_str().unwrap(), None),
                (
                    entries[4].join("node").to_str().unwrap(),
                    Some(entries[4].join("node")),
                ),
            ] {
                assert_eq!(find_users_program(program, &environment), found, "{program}");
            }
        }
    }

    #[test]
    fn a_link_into_or_out_of_the_project_does_not_hide_where_a_program_lies() {
        let (home, entries) = laid_out(&["project/tools", "bin"]);
        std::fs::remove_file(entries[1].join("node")).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
        std::fs::write(home.path().join("project/own"), "").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(home.path().join("project/own"), mode).unwrap();
        std::os::unix::fs::symlink("../project/own", entries[1].join("node")).unwrap();
        std::os::unix::fs::symlink("project", home.path().join("linked")).unwrap();
        let linked = home.path().join("linked/tools");
        let around = home.path().join("bin/../project/tools");
        let environment = environment(home.path(), &[linked, around, entries[1].clone()], "project");
        assert_eq!(find_program("node", &environment), None);
    }

    #[test]
    fn a_project_that_is_the_home_hides_only_its_package_folders() {
        let (home, entries) = laid_out(&["node_modules/.bin", ".venv/bin", "venv/bin", ".local/bin"]);
        std::fs::create_dir(home.path().join(".git")).unwrap();
        let environment = environment(home.path(), &entries, "");
        assert_eq!(find_program("node", &environment), Some(entries[3].join("node")));
        assert_eq!(search_path(&environment), entries[3].as_os_str());
    }
}
