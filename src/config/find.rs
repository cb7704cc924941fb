//! Where the configuration is: the project's file and, below it, the user's.

use std::path::{Path, PathBuf};

use super::{Environment, Locations};

/// The name of a project's file.
pub const PROJECT_FILE: &str = ".pml.json";

/// The two files a configuration is read from; either may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The project's file: where it is, or where it would be created.
    pub project: PathBuf,
    /// The user's file, layered below the project's.
    pub user: PathBuf,
}

/// Finds the files: `explicit`, else the nearest `.pml.json` from `CLAUDE_PROJECT_DIR` or the working directory upwards.
#[must_use]
pub fn find(explicit: Option<&Path>, environment: &Environment, locations: &Locations) -> Files {
    let explicit = explicit.filter(|path| !path.as_os_str().is_empty());
    let project = match explicit {
        Some(path) => environment.working_directory().join(path),
        None => nearest(&start(environment)),
    };
    Files {
        project,
        user: locations.user_config(),
    }
}

fn start(environment: &Environment) -> PathBuf {
    let here = environment.working_directory();
    environment
        .variable("CLAUDE_PROJECT_DIR")
        .map_or_else(|| here.to_owned(), |directory| here.join(directory))
}

fn nearest(start: &Path) -> PathBuf {
    start
        .ancestors()
        .map(|directory| directory.join(PROJECT_FILE))
        // A link that leads nowhere is still the project's file: whoever made it meant this place.
        .find(|path| path.symlink_metadata().is_ok_and(|found| !found.is_dir()))
        .unwrap_or_else(|| start.join(PROJECT_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(home: &Path, project: Option<&Path>, here: &Path) -> (Environment, Locations) {
        let mut variables = vec![("HOME", home)];
        variables.extend(project.map(|path| ("CLAUDE_PROJECT_DIR", path)));
        let environment = Environment::new(variables, here);
        let locations = Locations::of(&environment).unwrap();
        (environment, locations)
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn the_nearest_file_upwards_is_the_projects() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        std::fs::create_dir_all(&deep).unwrap();
        let file = root.path().join("a/.pml.json");
        std::fs::write(&file, "{}").unwrap();
        let user = root.path().join(".config/pml/pml.json");

        let (environment, locations) = surroundings(root.path(), None, &deep);
        assert_eq!(
            find(None, &environment, &locations),
            Files {
                project: file.clone(),
                user: user.clone()
            }
        );
        let elsewhere = tempfile::tempdir().unwrap();
        let (environment, locations) = surroundings(root.path(), Some(&deep), elsewhere.path());
        assert_eq!(
            find(None, &environment, &locations),
            Files {
                project: file,
                user: user.clone()
            }
        );
        assert_eq!(
            find(Some(Path::new("x/y.json")), &environment, &locations),
            Files {
                project: elsewhere.path().join("x/y.json"),
                user
            }
        );
    }

    #[test]
    fn without_a_file_it_would_stand_where_the_search_began() {
        let root = tempfile::tempdir().unwrap();
        let (environment, locations) = surroundings(root.path(), None, root.path());
        assert_eq!(
            find(None, &environment, &locations).project,
            root.path().join(PROJECT_FILE)
        );
    }
}
