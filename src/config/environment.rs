//! The environment of the process: variables, directories and user, read once.
//!
//! Everything else takes an [`Environment`], so that tests own theirs and no module reads a variable behind the
//! reader's back.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The environment variables and the working directory pml was started with.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    working_directory: PathBuf,
    project: Option<PathBuf>,
}

impl std::fmt::Debug for Environment {
    /// Names the variables and leaves their values out: some are secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Environment")
            .field("variables", &self.variables.keys().collect::<Vec<_>>())
            .field("working_directory", &self.working_directory)
            .field("project", &self.project)
            .finish()
    }
}

impl Environment {
    /// Reads the environment of this process.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the environment"
    )]
    pub fn of_process() -> std::io::Result<Self> {
        Ok(Self {
            variables: std::env::vars_os().collect(),
            working_directory: std::env::current_dir()?,
            project: None,
        })
    }

    /// Builds an environment from its parts.
    pub fn new<K, V>(
        variables: impl IntoIterator<Item = (K, V)>,
        working_directory: impl Into<PathBuf>,
    ) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Self {
            variables,
            working_directory: working_directory.into(),
            project: None,
        }
    }

    /// Names the directory of the project's file, which need not lie above the working directory.
    #[must_use]
    pub fn in_project(self, directory: &Path) -> Self {
        Self {
            project: Some(directory.to_owned()),
            ..self
        }
    }

    /// Sets a variable.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Returns the directory of the project's file, where it is known.
    #[must_use]
    pub fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    /// Returns a variable; an empty one counts as unset, as shells and package managers do.
    #[must_use]
    pub fn variable(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.variables
            .get(name.as_ref())
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns every variable with its value.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Returns the directory pml was started in.
    #[must_use]
    pub fn working_directory(&self) -> &Path {
        &self.working_directory
    }
}
