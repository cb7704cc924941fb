//! One file of a client as it was read: its text, and the servers in it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::client::{Client, Meaning, Scope};
use super::edit::Edit;
use super::error::ClientError;
use super::format::Change;
use super::journal::FileChange;
use super::own_entry::is_pml;
use super::place::ClientPlace;
use crate::config;
use crate::disk;

/// A server as a client declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientServer {
    /// What the client calls it.
    pub name: String,
    /// What is declared.
    pub entry: Map<String, Value>,
}

/// A file of a client that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientFile {
    /// Whose file it is, and for whom it counts.
    pub place: ClientPlace,
    /// The file itself, links followed.
    pub path: PathBuf,
    /// What it says; `None` if there is no file.
    pub text: Option<String>,
    /// The servers in it.
    pub servers: Vec<ClientServer>,
    /// The keys that lead to them.
    key: Vec<String>,
}

impl ClientFile {
    /// Reads a file; one that is not there has no servers.
    pub fn read(place: ClientPlace) -> Result<Self, ClientError> {
        let failed = |source| ClientError::Write {
            path: place.path.clone(),
            source,
        };
        let path = disk::follow(&place.path).map_err(failed)?;
        if let Some(border) = &place.border
            && path != place.path
            && disk::leads_out(border, &path)
        {
            return Err(ClientError::LeadsOut {
                path: place.path,
                target: path,
            });
        }
        // Some clients keep their whole history in it: it may be as long as a lock.
        let text = config::load_lock_text(&path).map_err(|source| ClientError::Read {
            path: path.clone(),
            source: Box::new(source),
        })?;
        let broken = |reason: String| ClientError::Broken {
            path: path.clone(),
            reason,
        };
        let values = place
            .client
            .format
            .values(text.as_deref().unwrap_or_default())
            .map_err(broken)?;
        let key = key(place.client, &place, &values);
        let servers = match servers(&values, &key) {
            Ok(servers) => servers,
            Err(step) => return Err(broken(format!("`{step}` is not an object"))),
        };
        Ok(Self {
            place,
            path,
            text,
            servers,
            key,
        })
    }

    /// Returns the key below which its servers stand.
    #[must_use]
    pub fn key(&self) -> String {
        self.key.join(".")
    }

    /// Returns the entry by which the client starts pml.
    #[must_use]
    pub fn registration(&self) -> Option<&ClientServer> {
        self.servers
            .iter()
            .find(|server| is_pml(&server.name, &server.entry))
    }

    /// Returns the servers that the client starts without pml.
    pub fn others(&self) -> impl Iterator<Item = &ClientServer> {
        self.servers
            .iter()
            .filter(|server| !is_pml(&server.name, &server.entry))
    }

    /// Tells whether a server is part of the client itself, which starts nothing for it.
    #[must_use]
    pub fn is_part_of_client(&self, server: &ClientServer) -> bool {
        let starts = |key: &String| {
            matches!(
                self.place.client.meaning(key),
                Some(Meaning::Command | Meaning::Address(_))
            )
        };
        !server.entry.keys().any(starts)
    }

    /// Works out the file without the servers `removed` and with `put`; writes nothing, and refuses a read-only file.
    pub fn edited(&self, removed: &[String], put: Option<(&str, &Value)>) -> Result<Edit, ClientError> {
        // It would be replaced all the same: its directory is what that takes.
        let is_read_only = |found: std::fs::Metadata| found.permissions().mode() & 0o200 == 0;
        if self.path.metadata().is_ok_and(is_read_only) {
            return Err(ClientError::ReadOnly {
                path: self.path.clone(),
            });
        }
        let put = put.map(|(name, entry)| Change::Put(name.to_owned(), entry.clone()));
        let removed = removed.iter().map(|name| Change::Remove(name.clone()));
        let changes: Vec<Change> = removed.chain(put).collect();
        let before = self.text.as_deref();
        let after = self
            .place
            .client
            .format
            .edited(before.unwrap_or_default(), &self.key, &changes)
            .map_err(|reason| ClientError::Edit {
                path: self.path.clone(),
                reason,
            })?;
        Ok(Edit {
            path: self.path.clone(),
            before: self.text.clone(),
            after,
        })
    }
}

impl ClientFile {
    /// Returns what is written into the journal of an edit.
    #[must_use]
    pub fn change(&self, edit: &Edit, removed: &[String], put: Option<&str>) -> FileChange {
        FileChange {
            client: self.place.client.id.to_owned(),
            path: self.path.clone(),
            key: self.key.clone(),
            before: edit.before.clone(),
            after: edit.after.clone(),
            removed: removed.to_vec(),
            put: put.map(str::to_owned),
        }
    }
}

/// Returns the keys that lead to the servers in a file that says this.
fn key(client: &Client, place: &ClientPlace, values: &Map<String, Value>) -> Vec<String> {
    let own = || client.key.iter().map(|step| (*step).to_owned());
    if place.scope == Scope::Local {
        let project = place.project.to_string_lossy().into_owned();
        return ["projects".to_owned(), project]
            .into_iter()
            .chain(own())
            .collect();
    }
    let mut key: Vec<String> = own().collect();
    if client.id == "opencode" {
        let deeper = values.get("mcp").and_then(|mcp| mcp.get("servers"));
        // A server that is called so has a type.
        let is_list = deeper.is_some_and(|deeper| deeper.is_object() && !deeper["type"].is_string());
        if is_list {
            key.push("servers".to_owned());
        }
    }
    key
}

fn servers(values: &Map<String, Value>, key: &[String]) -> Result<Vec<ClientServer>, String> {
    let mut place = values;
    for step in key {
        place = match place.get(step) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Object(next)) => next,
            Some(_) => return Err(crate::protocol::Shown::line(step).to_string()),
        };
    }
    let server = |(name, entry): (&String, &Value)| {
        Some(ClientServer {
            name: name.clone(),
            entry: entry.as_object()?.clone(),
        })
    };
    Ok(place.iter().filter_map(server).collect())
}
