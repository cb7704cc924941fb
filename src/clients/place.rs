//! Where the files of a client are on this machine.

use std::path::{Path, PathBuf};

use super::client::{Base, Client, Scope};
use super::table::CLIENTS;
use crate::config::Environment;

/// One file in which a client keeps servers, whether or not it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientPlace {
    /// The client.
    pub client: &'static Client,
    /// For whom it counts.
    pub scope: Scope,
    /// The file, links not followed.
    pub path: PathBuf,
    /// The directory below which a link may lead; `None` for a file of the user's own, which may lead anywhere.
    pub border: Option<PathBuf>,
    /// The project that a local scope is about.
    pub project: PathBuf,
}

/// Returns every file of every client for a project; those of one path are named once, for the widest scope.
#[must_use]
pub fn places(environment: &Environment, project: &Path) -> Vec<ClientPlace> {
    let mut found: Vec<ClientPlace> = Vec::new();
    for client in &CLIENTS {
        for place in places_of(client, environment, project) {
            // A project that is the home has the user's own files, and a local scope is another part of one.
            let same = |known: &ClientPlace| {
                known.path == place.path && (known.scope == Scope::Local) == (place.scope == Scope::Local)
            };
            if !found.iter().any(same) {
                found.push(place);
            }
        }
    }
    found
}

/// Returns the file of a client in a scope, the one that counts or would be created.
#[must_use]
pub fn place_of(
    client: &'static Client,
    scope: Scope,
    environment: &Environment,
    project: &Path,
) -> Option<ClientPlace> {
    places_of(client, environment, project).find(|place| place.scope == scope)
}

fn places_of<'a>(
    client: &'static Client,
    environment: &'a Environment,
    project: &'a Path,
) -> impl Iterator<Item = ClientPlace> + 'a {
    client.locations.iter().filter_map(move |location| {
        let base = base(location.base, environment, project)?;
        let candidates = location.paths.iter().map(|path| base.join(path));
        let existing = candidates.clone().find(|path| path.symlink_metadata().is_ok());
        Some(ClientPlace {
            client,
            scope: location.scope,
            path: existing.or_else(|| { candidates }.next_back())?,
            border: (location.scope == Scope::Project).then(|| project.to_owned()),
            project: project.to_owned(),
        })
    })
}

fn base(base: Base, environment: &Environment, project: &Path) -> Option<PathBuf> {
    let home = || {
        let home = environment.variable("HOME").map(PathBuf::from);
        home.filter(|home| home.is_absolute())
    };
    let named = |variable: &str| {
        let named = environment.variable(variable).map(PathBuf::from);
        named.filter(|path| path.is_absolute())
    };
    match base {
        Base::Home => home(),
        Base::Variable(variable, below) => named(variable).or_else(|| Some(home()?.join(below))),
        Base::Application if cfg!(target_os = "macos") => Some(home()?.join("Library/Application Support")),
        Base::Config | Base::Application => {
            named("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
        }
        Base::Project => Some(project.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_file_of_the_user_and_ids_are_unique() {
        let environment = Environment::new([("HOME", "/home/me")], "/work");
        let found = places(&environment, Path::new("/work"));
        for client in &CLIENTS {
            let of_user = found
                .iter()
                .any(|place| place.client == client && place.scope == Scope::User);
            assert!(of_user, "{}", client.id);
            assert_eq!(CLIENTS.iter().filter(|other| other.id == client.id).count(), 1);
        }
        let shared = found
            .iter()
            .filter(|place| place.path == Path::new("/work/.mcp.json"));
        assert_eq!(shared.count(), 1, "two clients share it, and it is edited once");
    }

    #[test]
    fn a_variable_that_names_a_directory_counts_if_it_is_absolute() {
        let of = |value: &str| {
            let environment = Environment::new([("HOME", "/h"), ("CODEX_HOME", value)], "/w");
            let codex = super::super::table::client("codex").unwrap();
            place_of(codex, Scope::User, &environment, Path::new("/w"))
                .unwrap()
                .path
        };
        assert_eq!(of("/elsewhere"), Path::new("/elsewhere/config.toml"));
        assert_eq!(of("relative"), Path::new("/h/.codex/config.toml"));
    }
}
