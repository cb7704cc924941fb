//! What a server of a client is in `.pml.json`: its keys in the words of pml, and what of it cannot be taken, with the reason.
//!
//! Pure but for the names in a file of variables. No value of a variable leaves the entry: a secret becomes `${NAME}`.

mod parts;
mod reading;

use std::path::Path;

use serde_json::{Map, Value};

use self::reading::Reading;
use super::client::{Client, Scope};
use super::file::ClientServer;
use super::reference::NeededVariable;

/// A server as pml would declare it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translation {
    /// The entry of `mcpServers`.
    pub entry: Map<String, Value>,
    /// The variables that it refers to, and how pml gets them.
    pub variables: Vec<NeededVariable>,
    /// The names under which secrets that stood in the clear are referred to.
    pub secrets: Vec<String>,
    /// The file from which the client reads variables for it, as it is written there.
    pub variables_file: Option<String>,
    /// What is not taken over, and why.
    pub notes: Vec<String>,
    /// A tool that the client runs without its own question; `*` is all of them.
    pub unasked: Option<String>,
}

/// Says why a server stays in its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untakeable(pub String);

/// Works out what a server becomes; `into` says whose file it goes into, `project` where the project is.
pub fn translate(
    client: &Client,
    server: &ClientServer,
    into: Scope,
    project: &Path,
) -> Result<Translation, Untakeable> {
    let mut reading = Reading::new(client, &server.name, into, project);
    for (key, value) in &server.entry {
        reading.take(key, value).map_err(Untakeable)?;
    }
    reading.finish().map_err(Untakeable)
}

#[cfg(test)]
mod tests;
