//! What a server's line alone does not say: where it runs, and with which variables.

use crate::config::{Server, steers};
use crate::protocol::approval::Surroundings;
use crate::protocol::{Shown, shell};

/// Returns the declared variables that decide which code runs, each with its value as declared.
pub(super) fn steering(server: &Server) -> Vec<String> {
    server
        .env
        .iter()
        .filter(|(name, _)| steers(name))
        .map(|(name, value)| format!("{}={}", shell::word(name), shell::word(value)))
        .collect()
}

/// Returns where the server runs and the names of its variables.
pub(super) fn of(server: &Server) -> Surroundings {
    Surroundings {
        cwd: directory(server),
        // A name that could be taken for several is quoted.
        env: server.env.keys().map(|name| shell::word(name)).collect(),
        env_file: server
            .variables_file
            .as_ref()
            .map(|file| Shown::path(file.path())),
    }
}

/// Returns the working directory if it is another than that of the declaration: an approval is bound to it.
fn directory(server: &Server) -> Option<String> {
    (server.cwd != server.directory).then(|| Shown::path(&server.cwd))
}
