//! The directories of pml: below the base directories of the user, as XDG names them on every Unix.

use std::path::{Path, PathBuf};

use super::Environment;
use crate::protocol::Shown;

/// Says why the user's directories are not known.
#[derive(Debug, thiserror::Error)]
pub enum LocationsError {
    /// Neither `HOME` nor the variable in question is set.
    #[error("cannot tell where the user's files are: neither `{variable}` nor `HOME` is set")]
    NoHome {
        /// The XDG variable that would also do.
        variable: &'static str,
    },
    /// `HOME` leads to another place in every directory: what is kept in one, such as an approval, would be a project's.
    #[error("`HOME` is `{}`, which is not an absolute path", Shown::path(.home))]
    RelativeHome {
        /// The value of `HOME`.
        home: PathBuf,
    },
}

/// The directories of pml in the user's home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locations {
    config: PathBuf,
    data: PathBuf,
    state: PathBuf,
    cache: PathBuf,
}

impl Locations {
    /// Derives the directories from the environment; creates none of them.
    pub fn of(environment: &Environment) -> Result<Self, LocationsError> {
        let home = environment.variable("HOME").map(Path::new);
        if let Some(home) = home.filter(|home| !home.is_absolute()) {
            return Err(LocationsError::RelativeHome {
                home: home.to_owned(),
            });
        }
        let base = |variable: &'static str, below_home: &str| {
            // A relative XDG path is invalid by its specification and must be ignored.
            let set = environment
                .variable(variable)
                .map(Path::new)
                .filter(|path| path.is_absolute());
            match (set, home) {
                (Some(path), _) => Ok(path.join("pml")),
                (None, Some(home)) => Ok(home.join(below_home).join("pml")),
                (None, None) => Err(LocationsError::NoHome { variable }),
            }
        };
        Ok(Self {
            config: base("XDG_CONFIG_HOME", ".config")?,
            data: base("XDG_DATA_HOME", ".local/share")?,
            state: base("XDG_STATE_HOME", ".local/state")?,
            cache: base("XDG_CACHE_HOME", ".cache")?,
        })
    }

    /// Returns the user's own rules and servers, layered below every project's.
    #[must_use]
    pub fn user_config(&self) -> PathBuf {
        self.config.join("pml.json")
    }

    /// Returns the directory of installed packages and their records.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Returns the directory of workflows and approvals.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Returns the directory of the projects' files that the user accepted.
    #[must_use]
    pub fn trust(&self) -> PathBuf {
        self.state.join("trust")
    }

    /// Returns the directory of what the user accepted of each server.
    #[must_use]
    pub fn pins(&self) -> PathBuf {
        self.state.join("pins")
    }

    /// Returns the directory of the history.
    #[must_use]
    pub fn history(&self) -> PathBuf {
        self.state.join("history")
    }

    /// Returns the directory of the last failure of each server.
    #[must_use]
    pub fn failures(&self) -> PathBuf {
        self.state.join("failures")
    }

    /// Returns the directory that tells when each server was called last.
    #[must_use]
    pub fn uses(&self) -> PathBuf {
        self.state.join("uses")
    }

    /// Returns the directory of what can be fetched again: catalogs, package caches.
    #[must_use]
    pub fn cache(&self) -> &Path {
        &self.cache
    }
}
