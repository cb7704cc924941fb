//! What an import would do: every server of every client, what it becomes, and what happens to the client's file.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use super::fate::{Fate, Fates, Taken};
use super::{ImportOrder, Originals};
use crate::cli::CommandContext;
use crate::cli::failure::{Hinted as _, Refused};
use crate::clients::{
    CLIENTS, Client, ClientError, ClientFile, ClientPlace, NeededVariable, OWN_NAME, Scope, places,
};
use crate::config::Files;
use crate::protocol::{DependencyName, Digest};

/// Everything that was found.
pub(super) struct Survey {
    /// The files of pml.
    pub(super) files: Files,
    /// The clients' files with servers, each with what becomes of them.
    pub(super) found: Vec<FoundFile>,
    /// Files that could not be read.
    pub(super) unread: Vec<anyhow::Error>,
    /// Which value each variable stands for that servers refer to.
    pub(super) handed: BTreeMap<String, Digest>,
}

/// A file of a client.
pub(super) struct FoundFile {
    pub(super) file: ClientFile,
    pub(super) role: FileRole,
    pub(super) servers: Vec<FoundServer>,
    /// Whether pml stands there already.
    pub(super) registered: bool,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileRole {
    /// One in which a client keeps its servers: pml takes their place there.
    OfClient,
    /// One that a person named, which no client reads: it is only read.
    Source,
}

/// A server of a client.
pub(super) struct FoundServer {
    /// What the client calls it.
    pub(super) name: String,
    pub(super) fate: Fate,
}

impl FoundFile {
    /// Returns the servers that leave the client because pml has them.
    pub(super) fn behind_pml(&self) -> impl Iterator<Item = &FoundServer> {
        self.servers
            .iter()
            .filter(|server| !matches!(server.fate, Fate::Stays(_)))
    }

    /// Returns the names of the servers that leave the client.
    pub(super) fn removed(&self, originals: Originals) -> Vec<String> {
        match (originals, self.role) {
            (Originals::Kept, _) | (_, FileRole::Source) => Vec::new(),
            (Originals::Replaced, FileRole::OfClient) => {
                self.behind_pml().map(|server| server.name.clone()).collect()
            }
        }
    }

    /// Returns the variables that its servers need of the client.
    pub(super) fn variables(&self) -> Vec<NeededVariable> {
        let mut all: Vec<NeededVariable> = Vec::new();
        for server in &self.servers {
            let needed = match &server.fate {
                Fate::Taken(taken) => &taken.translation.variables,
                Fate::Same { variables, .. } => variables,
                Fate::Stays(_) => continue,
            };
            for variable in needed {
                // One name is one value, which may come in two ways.
                match all.iter_mut().find(|known| known.name == variable.name) {
                    Some(known) => known.take_stronger(variable.handover.clone()),
                    None => all.push(variable.clone()),
                }
            }
        }
        all
    }

    /// Returns the file from which the client hands variables on; one alone can be named.
    pub(super) fn variables_file(&self) -> Option<&str> {
        self.servers.iter().find_map(|server| match &server.fate {
            Fate::Taken(taken) => taken.translation.variables_file.as_deref(),
            Fate::Same { variables_file, .. } => variables_file.as_deref(),
            Fate::Stays(_) => None,
        })
    }

    pub(super) fn taken(&self) -> impl Iterator<Item = &Taken> {
        self.servers.iter().filter_map(|server| match &server.fate {
            Fate::Taken(taken) => Some(&**taken),
            Fate::Same { .. } | Fate::Stays(_) => None,
        })
    }
}

impl Survey {
    /// Reads the clients and works out what becomes of their servers; asks no registry.
    pub(super) fn new(context: &CommandContext, order: &ImportOrder) -> anyhow::Result<Self> {
        let files = context.files().at_root(&context.environment);
        let project = files.project.parent().unwrap_or(Path::new("/")).to_owned();
        let mut unread = Vec::new();
        let mut read = Vec::new();
        let (places, role) = wanted(context, order, &project)?;
        for place in places {
            // One broken file keeps nobody from importing the others, unless it was named.
            let named = order.from.is_some() || order.clients.contains(&place.client);
            let file = ClientFile::read(place).and_then(|file| match role {
                FileRole::OfClient => editable(&file).map(|()| file),
                FileRole::Source => Ok(file),
            });
            match file {
                Ok(file) if file.others().next().is_some() => read.push(file),
                Ok(_) => {}
                Err(error) if named => return Err(error.into()),
                Err(error) => unread.push(error.into()),
            }
        }
        let mut fates = Fates::new(context, order, &files, &project, &clients(context, &project))?;
        // What can have no other name is known before any is made up.
        let translated: Vec<_> = read
            .into_iter()
            .map(|file| {
                let servers: Vec<_> = file
                    .others()
                    .map(|server| (server.clone(), fates.translated(&file, server)))
                    .collect();
                (file, servers)
            })
            .collect();
        let mut found = Vec::new();
        for (file, servers) in translated {
            let servers = servers.into_iter().map(|(server, translated)| {
                let fate = fates.fate(&file, &server, translated);
                FoundServer {
                    name: server.name,
                    fate: fate.unwrap_or_else(Fate::Stays),
                }
            });
            let servers = servers.collect();
            found.push(FoundFile {
                registered: file.registration().is_some(),
                file,
                role,
                servers,
            });
        }
        let handed = fates.handed();
        Ok(Self {
            files,
            found,
            unread,
            handed,
        })
    }

    /// Tells whether there is nothing that could come behind pml.
    pub(super) fn is_empty(&self) -> bool {
        self.found.iter().all(|found| found.behind_pml().next().is_none())
    }

    /// Returns what will be declared.
    pub(super) fn taken(&self) -> impl Iterator<Item = &Taken> {
        self.found.iter().flat_map(FoundFile::taken)
    }

    /// Leaves a server in every client that has it, for this reason; returns where it stays.
    pub(super) fn leave(&mut self, name: &DependencyName, reason: &str) -> Vec<&'static Client> {
        let mut clients = Vec::new();
        for found in &mut self.found {
            for server in &mut found.servers {
                let declared = match &server.fate {
                    Fate::Taken(taken) => &taken.name,
                    Fate::Same { name, .. } => name,
                    Fate::Stays(_) => continue,
                };
                if declared == name {
                    server.fate = Fate::Stays(reason.to_owned());
                    clients.extend((found.role == FileRole::OfClient).then_some(found.file.place.client));
                }
            }
        }
        clients
    }

    /// Returns what will be declared, to be changed.
    pub(super) fn taken_mut(&mut self) -> impl Iterator<Item = &mut Taken> {
        let servers = self.found.iter_mut().flat_map(|found| found.servers.iter_mut());
        servers.filter_map(|server| match &mut server.fate {
            Fate::Taken(taken) => Some(&mut **taken),
            Fate::Same { .. } | Fate::Stays(_) => None,
        })
    }
}

/// Reads the files of all clients, whichever are imported from: what they hand to pml counts.
fn clients(context: &CommandContext, project: &Path) -> Vec<ClientFile> {
    places(&context.environment, project)
        .into_iter()
        .filter_map(|place| ClientFile::read(place).ok())
        .collect()
}

/// Tries the edit of a file that pml writes: where it fails, nothing is taken out of that file, and its servers stay.
fn editable(file: &ClientFile) -> Result<(), ClientError> {
    let names: Vec<String> = file.others().map(|server| server.name.clone()).collect();
    if names.is_empty() || !file.place.client.is_edited_by_pml(file.place.scope) {
        return Ok(());
    }
    let probe = json!({ "command": OWN_NAME });
    file.edited(&names, Some((OWN_NAME, &probe))).map(drop)
}

/// Returns the places to look at.
fn wanted(
    context: &CommandContext,
    order: &ImportOrder,
    project: &Path,
) -> anyhow::Result<(Vec<ClientPlace>, FileRole)> {
    let Some(from) = &order.from else {
        let all = places(&context.environment, project);
        let counts = |place: &ClientPlace| order.clients.is_empty() || order.clients.contains(&place.client);
        // Of a file that two clients share the first is named; the other means it, too.
        let shared = |place: &ClientPlace| {
            place.scope == Scope::Project
                && place.client.id == "claude"
                && order.clients.iter().any(|client| client.id == "copilot")
        };
        let wanted = all.into_iter().filter(|place| counts(place) || shared(place));
        return Ok((wanted.collect(), FileRole::OfClient));
    };
    let path = context.environment.working_directory().join(from);
    let path = path.canonicalize().unwrap_or(path);
    if !path.exists() {
        return Err(Refused(format!("there is no file `{}`", context.path(&path))))
            .hint("to import from every client that is there: pml import");
    }
    let scope = if path.starts_with(project) {
        Scope::Project
    } else {
        Scope::User
    };
    let place = |client: &'static Client| ClientPlace {
        client,
        scope,
        path: path.clone(),
        border: None,
        project: project.to_owned(),
    };
    let read = |client| ClientFile::read(place(client)).is_ok_and(|file| !file.servers.is_empty());
    let known = places(&context.environment, project);
    let exact = known.into_iter().find(|known| known.path == path);
    if let Some(exact) = exact {
        return Ok((vec![exact], FileRole::OfClient));
    }
    // Most files are of one shape; of the clients that have it, this one spells references as pml does.
    let common = CLIENTS.iter().filter(|client| client.id == "junie");
    let others = CLIENTS.iter().filter(|client| !client.id.starts_with("claude"));
    let of_format = common.chain(others).find(|client| read(client));
    match of_format {
        Some(client) => Ok((vec![place(client)], FileRole::Source)),
        None => Err(Refused(format!(
            "no servers were found in `{}`",
            context.path(&path)
        )))
        .hint("pml reads JSON, TOML and YAML as the clients of `pml import --help` write them"),
    }
}
