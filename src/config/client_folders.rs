//! The project of a client that starts pml outside of any: in `/` or in the home, as desktop programs start what they run.
//!
//! Such a client may name the folders it works in. A folder takes the place of the working directory, and nothing else: its
//! file is searched upwards, and is obeyed only where any file that was found would be.

use std::path::{Path, PathBuf};

use super::search::{self, PROJECT_FILE, SearchResult};
use super::{Border, Environment, Files, Locations, Unreached};

/// More folders than a client opens at once; each one is searched upwards.
const FOLDERS: usize = 32;

/// Tells whether the place where pml was started says nothing of a project.
#[must_use]
pub fn is_outside_projects(environment: &Environment) -> bool {
    environment.variable("CLAUDE_PROJECT_DIR").is_none()
        && is_no_project(environment.working_directory(), environment)
}

/// The root of the file system and the home hold every project.
fn is_no_project(folder: &Path, environment: &Environment) -> bool {
    let home = environment.variable("HOME").map(Path::new);
    let real = |path: &Path| path.canonicalize().ok();
    folder.parent().is_none()
        || home == Some(folder)
        || home.is_some_and(|home| real(home).is_some_and(|home| real(folder) == Some(home)))
}

/// Finds the files for a client that works in these folders; it reads the disk.
///
/// One file counts. Where the folders lead to several, none does: what one project allows is no word about another.
#[must_use]
pub fn find_in(folders: &[PathBuf], environment: &Environment, locations: &Locations) -> Files {
    let home = environment.variable("HOME").map(Path::new);
    let mut folders: Vec<&PathBuf> = folders
        .iter()
        .filter(|folder| folder.is_absolute() && folder.is_dir() && !is_no_project(folder, environment))
        .take(FOLDERS)
        .collect();
    folders.dedup();
    let mut found: Vec<PathBuf> = Vec::new();
    let mut unreached = None;
    for folder in &folders {
        match search::search(folder, home) {
            SearchResult::At(file) if !found.contains(&file) => found.push(file),
            SearchResult::At(_) => {}
            SearchResult::Nothing(further) => unreached = unreached.or(further),
        }
    }
    match (&found[..], &folders[..]) {
        ([file], _) => Files::new(file.clone(), locations),
        ([], [folder]) => Files {
            unreached,
            ..Files::new(folder.join(PROJECT_FILE), locations)
        },
        ([], _) => search::find(None, environment, locations),
        ([_, other, ..], _) => Files {
            unreached: Some(Unreached {
                file: other.clone(),
                border: Border::Folders,
            }),
            ..search::find(None, environment, locations)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ground {
        root: tempfile::TempDir,
        environment: Environment,
        locations: Locations,
    }

    /// A home in which pml was started, with three projects; the first two have files.
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn ground() -> Ground {
        let root = tempfile::tempdir().unwrap();
        for project in ["a", "b", "c"] {
            std::fs::create_dir_all(root.path().join(project).join("inside")).unwrap();
        }
        for project in ["a", "b"] {
            std::fs::write(root.path().join(project).join(PROJECT_FILE), "{}").unwrap();
        }
        let environment = Environment::new([("HOME", root.path())], root.path());
        let locations = Locations::of(&environment).unwrap();
        Ground {
            root,
            environment,
            locations,
        }
    }

    impl Ground {
        fn found(&self, folders: &[&str]) -> Files {
            let folders: Vec<_> = folders
                .iter()
                .map(|folder| self.root.path().join(folder))
                .collect();
            find_in(&folders, &self.environment, &self.locations)
        }

        fn file(&self, project: &str) -> PathBuf {
            self.root.path().join(project).join(PROJECT_FILE)
        }
    }

    #[test]
    fn one_folder_takes_the_place_of_the_working_directory() {
        let ground = ground();
        for folders in [
            &["a"][..],
            &["a/inside"],
            &["a/inside", "a", "a"],
            &["c", "a"],
            &["a", "/", ""],
        ] {
            let expected = Files::new(ground.file("a"), &ground.locations);
            assert_eq!(ground.found(folders), expected, "{folders:?}");
        }
        // There the rules of the person's answers are written.
        assert_eq!(ground.found(&["c"]).project, ground.file("c"));
    }

    #[test]
    fn folders_with_files_of_their_own_are_no_project() {
        let ground = ground();
        let found = ground.found(&["a", "b"]);
        let other = Unreached {
            file: ground.file("b"),
            border: Border::Folders,
        };
        assert_eq!((found.project, found.unreached), (ground.file(""), Some(other)));
    }

    #[test]
    fn what_is_no_folder_of_a_project_changes_nothing() {
        let ground = ground();
        let nowhere = search::find(None, &ground.environment, &ground.locations);
        for folders in [&[][..], &[""], &["/"], &["missing"], &["a/.pml.json"]] {
            assert_eq!(ground.found(folders), nowhere, "{folders:?}");
        }
    }

    #[test]
    fn a_project_that_is_named_or_stood_in_is_no_question() {
        let ground = ground();
        assert!(is_outside_projects(&ground.environment));
        let at = |directory: &Path| Environment::new([("HOME", ground.root.path())], directory);
        assert!(is_outside_projects(&at(Path::new("/"))));
        assert!(!is_outside_projects(&at(&ground.root.path().join("a"))));
        assert!(!is_outside_projects(
            &at(Path::new("/")).with("CLAUDE_PROJECT_DIR", "/x")
        ));
        let link = ground.root.path().join("link");
        std::os::unix::fs::symlink(ground.root.path(), &link).unwrap();
        assert!(is_outside_projects(&at(&link)));
    }
}
