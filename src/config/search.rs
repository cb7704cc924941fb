//! The search for the configuration: the project's file and the user's file below it.
//!
//! The search goes upwards to the root of the repository at most, and not into directories that every user of the
//! machine may write: another user may have left a file there.

use std::fmt;
use std::path::{Path, PathBuf};

use super::repository::{self, REPOSITORY};
use super::{Environment, Locations, TrustMarks, WatchedPath, ownership};
use crate::protocol::Shown;

/// The name of a project's file.
pub const PROJECT_FILE: &str = ".pml.json";

/// The two files a configuration is read from, either of which may be missing, and what the user accepted of projects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The project's file: where it is, or where it would be created.
    pub project: PathBuf,
    /// The user's file, layered below the project's.
    pub user: PathBuf,
    /// Which texts of projects' files the user accepted.
    pub accepted: TrustMarks,
    /// How the project's file was chosen.
    pub chosen: FileChoice,
    /// The nearest file above the place where the search ended.
    pub unreached: Option<Unreached>,
}

/// How the project's file was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChoice {
    /// By the search: obeyed if the user wrote it or accepted it.
    Found,
    /// By `--config` or `PML_CONFIG`, which is the user's own word: obeyed without a look at its owner.
    Named,
}

/// A file that would count if the search had gone on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// The file.
    pub file: PathBuf,
    /// Why the search ended before it.
    pub border: Border,
}

/// Where the search upwards ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Border {
    /// Before a directory that every user may write.
    Shared(PathBuf),
    /// After the root of a repository.
    Repository(PathBuf),
    /// After the home of the user.
    Home(PathBuf),
    /// Nowhere: the client works in several folders whose files differ.
    Folders,
}

impl Files {
    /// Names the two files as the search would.
    #[must_use]
    pub fn new(project: PathBuf, locations: &Locations) -> Self {
        Self {
            project,
            user: locations.user_config(),
            accepted: TrustMarks::at(locations.trust()),
            chosen: FileChoice::Found,
            unreached: None,
        }
    }

    /// Names the project's file in the root of the repository, where the search found none: clients keep theirs there.
    #[must_use]
    pub fn at_root(self, environment: &Environment) -> Self {
        if self.chosen == FileChoice::Named || self.project.symlink_metadata().is_ok() {
            return self;
        }
        let home = environment.variable("HOME").map(Path::new);
        match repository_root(&start(environment), home) {
            Some(root) => Self {
                project: root.join(PROJECT_FILE),
                ..self
            },
            None => self,
        }
    }

    /// Returns the places whose changes may change what the files say, or whether they count.
    #[must_use]
    pub fn places(&self) -> Vec<WatchedPath> {
        let mut places = vec![
            WatchedPath::File(self.user.clone()),
            WatchedPath::File(self.project.clone()),
        ];
        if self.chosen == FileChoice::Found {
            places.push(WatchedPath::Folder(self.accepted.directory().to_owned()));
            places.extend(repository::index_of(&self.project).map(WatchedPath::File));
        }
        places
    }
}

impl fmt::Display for Unreached {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = Shown::path(&self.file);
        match &self.border {
            Border::Shared(directory) => write!(
                formatter,
                "`{file}` does not count here: every user may write in `{}`",
                Shown::path(directory)
            ),
            Border::Home(home) => write!(
                formatter,
                "`{file}` does not count here: it lies above your home `{}`",
                Shown::path(home)
            ),
            Border::Repository(root) => write!(
                formatter,
                "`{file}` does not count here: it lies outside the repository `{}`",
                Shown::path(root)
            ),
            Border::Folders => write!(
                formatter,
                "`{file}` does not count here: the client works in several folders with a file each"
            ),
        }
    }
}

/// Finds the files: `explicit`, else the nearest `.pml.json` from `CLAUDE_PROJECT_DIR` or the working directory upwards.
#[must_use]
pub fn find(explicit: Option<&Path>, environment: &Environment, locations: &Locations) -> Files {
    if let Some(path) = explicit.filter(|path| !path.as_os_str().is_empty()) {
        return Files {
            chosen: FileChoice::Named,
            ..Files::new(environment.working_directory().join(path), locations)
        };
    }
    let start = start(environment);
    let home = environment.variable("HOME").map(Path::new);
    match search(&start, home) {
        SearchResult::At(project) => Files::new(project, locations),
        SearchResult::Nothing(unreached) => Files {
            unreached,
            ..Files::new(start.join(PROJECT_FILE), locations)
        },
    }
}

fn start(environment: &Environment) -> PathBuf {
    let here = environment.working_directory();
    environment
        .variable("CLAUDE_PROJECT_DIR")
        .map_or_else(|| here.to_owned(), |directory| here.join(directory))
}

/// What the search upwards came to.
pub(super) enum SearchResult {
    At(PathBuf),
    Nothing(Option<Unreached>),
}

/// Looks upwards from `start`; beyond the border only to tell which file does not count.
pub(super) fn search(start: &Path, home: Option<&Path>) -> SearchResult {
    let mut border = None;
    // The working directory has no links in it where the variable may: both are looked at as they are and as they resolve.
    let real_home = home.and_then(|home| home.canonicalize().ok());
    let is_home = |directory: &Path| {
        home == Some(directory) || real_home.is_some() && directory.canonicalize().ok() == real_home
    };
    for directory in start.ancestors() {
        // The start itself was chosen by the user; its file is still checked when it is read.
        if border.is_none() && directory != start && is_shared(directory) {
            border = Some(Border::Shared(directory.to_owned()));
        }
        let file = directory.join(PROJECT_FILE);
        // A link that leads nowhere is still the project's file: the person who made the link meant this place.
        if file.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            return match border {
                None => SearchResult::At(file),
                Some(border) => SearchResult::Nothing(Some(Unreached { file, border })),
            };
        }
        if border.is_none() && directory.join(REPOSITORY).symlink_metadata().is_ok() {
            border = Some(Border::Repository(directory.to_owned()));
        }
        if border.is_none() && is_home(directory) {
            border = Some(Border::Home(directory.to_owned()));
        }
    }
    SearchResult::Nothing(None)
}

/// Finds the root of the repository around a directory, as far as the search goes; a home that is one is no project.
fn repository_root(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let real_home = home.and_then(|home| home.canonicalize().ok());
    let is_home = |directory: &Path| {
        home == Some(directory) || real_home.is_some() && directory.canonicalize().ok() == real_home
    };
    let reached = start
        .ancestors()
        .take_while(|directory| !is_home(directory) && (*directory == start || !is_shared(directory)));
    let mut roots = reached.filter(|directory| directory.join(REPOSITORY).symlink_metadata().is_ok());
    roots.next().map(Path::to_owned)
}

/// A directory that cannot be looked at is as good as shared.
fn is_shared(directory: &Path) -> bool {
    directory
        .metadata()
        .map_or(true, |found| ownership::is_shared(&found))
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

        let (environment, locations) = surroundings(root.path(), None, &deep);
        assert_eq!(
            find(None, &environment, &locations),
            Files::new(file.clone(), &locations)
        );
        let elsewhere = tempfile::tempdir().unwrap();
        let (environment, locations) = surroundings(root.path(), Some(&deep), elsewhere.path());
        assert_eq!(find(None, &environment, &locations), Files::new(file, &locations));
        assert_eq!(
            find(Some(Path::new("x/y.json")), &environment, &locations),
            Files {
                chosen: FileChoice::Named,
                ..Files::new(elsewhere.path().join("x/y.json"), &locations)
            }
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn without_a_file_the_project_is_the_repository_and_never_the_home() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let repository = home.path().join("above/repository");
        let start = repository.join("deep/inside");
        std::fs::create_dir_all(start.join("x")).unwrap();
        let (environment, locations) = surroundings(home.path(), None, &start);
        let project = || {
            let files = find(None, &environment, &locations).at_root(&environment);
            files.project
        };
        std::fs::create_dir(home.path().join(REPOSITORY)).unwrap();
        assert_eq!(project(), start.join(PROJECT_FILE), "a home is no project");
        std::fs::create_dir(repository.join(REPOSITORY)).unwrap();
        assert_eq!(project(), repository.join(PROJECT_FILE));
        std::fs::set_permissions(repository.join("deep"), std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(
            project(),
            start.join(PROJECT_FILE),
            "every user may write above it"
        );
        std::fs::set_permissions(repository.join("deep"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let file = repository.join("deep").join(PROJECT_FILE);
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(project(), file, "the file that is there counts");
        let named = find(Some(Path::new("x/y.json")), &environment, &locations);
        assert_eq!(named.clone().at_root(&environment), named);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn the_search_ends_at_the_repository_and_before_a_shared_directory() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let start = root.path().join("above/repository/inside");
        std::fs::create_dir_all(&start).unwrap();
        let above = root.path().join("above");
        let file = above.join(PROJECT_FILE);
        std::fs::write(&file, "{}").unwrap();
        let (environment, locations) = surroundings(root.path(), None, &start);
        let files = || find(None, &environment, &locations);
        assert_eq!(files().project, file);

        std::fs::set_permissions(&above, std::fs::Permissions::from_mode(0o1777)).unwrap();
        let shared = Unreached {
            file: file.clone(),
            border: Border::Shared(above.clone()),
        };
        assert_eq!(
            (files().project, files().unreached),
            (start.join(PROJECT_FILE), Some(shared))
        );

        std::fs::set_permissions(&above, std::fs::Permissions::from_mode(0o755)).unwrap();
        let repository = above.join("repository");
        std::fs::write(repository.join(REPOSITORY), "gitdir: elsewhere").unwrap();
        let outside = Unreached {
            file,
            border: Border::Repository(repository.clone()),
        };
        assert_eq!(
            (files().project, files().unreached),
            (start.join(PROJECT_FILE), Some(outside))
        );
        let inside = repository.join(PROJECT_FILE);
        std::fs::write(&inside, "{}").unwrap();
        assert_eq!((files().project, files().unreached), (inside, None));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn the_search_ends_at_home() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        let start = home.join("project");
        std::fs::create_dir_all(&start).unwrap();
        std::fs::write(root.path().join(PROJECT_FILE), "{}").unwrap();
        let (environment, locations) = surroundings(&home, None, &start);
        let files = || find(None, &environment, &locations);
        let above = Unreached {
            file: root.path().join(PROJECT_FILE),
            border: Border::Home(home.clone()),
        };
        assert_eq!(files().unreached, Some(above));
        let own = home.join(PROJECT_FILE);
        std::fs::write(&own, "{}").unwrap();
        assert_eq!((files().project, files().unreached), (own, None));
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

    #[test]
    fn what_decides_whether_a_found_file_counts_is_watched_as_well() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(REPOSITORY)).unwrap();
        let (_, locations) = surroundings(root.path(), None, root.path());
        let found = Files::new(root.path().join(PROJECT_FILE), &locations);
        let both = [
            WatchedPath::File(locations.user_config()),
            WatchedPath::File(found.project.clone()),
        ];
        let named = Files {
            chosen: FileChoice::Named,
            ..found.clone()
        };
        assert_eq!(named.places(), both);
        let trust = [
            WatchedPath::Folder(locations.trust()),
            WatchedPath::File(root.path().join(".git/index")),
        ];
        assert_eq!(found.places(), [both, trust].concat());
    }

    #[test]
    fn a_file_beyond_the_border_is_told_with_the_border() {
        let told = |border| {
            let file = PathBuf::from("/a/.pml.json");
            Unreached { file, border }.to_string()
        };
        assert_eq!(
            [
                told(Border::Shared("/a".into())),
                told(Border::Home("/a/b".into())),
                told(Border::Repository("/a/c".into())),
                told(Border::Folders),
            ],
            [
                "`/a/.pml.json` does not count here: every user may write in `/a`",
                "`/a/.pml.json` does not count here: it lies above your home `/a/b`",
                "`/a/.pml.json` does not count here: it lies outside the repository `/a/c`",
                "`/a/.pml.json` does not count here: the client works in several folders with a file each",
            ]
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn the_search_ends_at_a_home_that_is_named_through_a_link() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("above/home");
        let deep = real.join("project");
        std::fs::create_dir_all(&deep).unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let file = root.path().join("above/.pml.json");
        std::fs::write(&file, "{}").unwrap();
        for (home, start) in [(&link, &deep), (&real, &link.join("project"))] {
            let (environment, locations) = surroundings(home, None, start);
            let files = find(None, &environment, &locations);
            assert_eq!(files.project, start.join(PROJECT_FILE));
        }
        let (environment, locations) = surroundings(&link, None, &deep);
        let unreached = find(None, &environment, &locations).unreached.unwrap();
        assert_eq!(unreached.border, Border::Home(real));
    }
}
