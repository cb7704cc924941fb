//! What an import would do: every server of every client, what it becomes, and what happens to the client's file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::naming::{self, Identity, Naming};
use super::{Destination, ImportOrder, Originals};
use crate::cli::CommandContext;
use crate::cli::failure::{Hinted as _, Refused};
use crate::clients::{
    CLIENTS, Client, ClientFile, ClientPlace, ClientServer, NeededVariable, Scope, Translation, Untakeable,
    places, translate,
};
use crate::config::{self, ConfigError, Environment, Files, Launch, Server};
use crate::loader::{Plan, Resolved, plan};
use crate::permissions::writer::{self, FileKind, WriteError};
use crate::permissions::{ConfigChange, servers};
use crate::protocol::DependencyName;

/// Everything that was found.
pub(super) struct Survey {
    /// The files of pml.
    pub(super) files: Files,
    /// The clients' files with servers, each with what becomes of them.
    pub(super) found: Vec<FoundFile>,
    /// Files that could not be read.
    pub(super) unread: Vec<anyhow::Error>,
}

/// A file of a client.
pub(super) struct FoundFile {
    pub(super) file: ClientFile,
    pub(super) servers: Vec<FoundServer>,
    /// Whether pml stands there already.
    pub(super) registered: bool,
}

/// A server of a client.
pub(super) struct FoundServer {
    /// What the client calls it.
    pub(super) name: String,
    pub(super) fate: Fate,
}

/// What becomes of a server.
pub(super) enum Fate {
    /// pml declares it.
    Taken(Box<Taken>),
    /// pml declares the same already, under this name.
    Same {
        name: DependencyName,
        variables: Vec<NeededVariable>,
    },
    /// It stays where it is, for this reason.
    Stays(String),
}

/// A server that pml will declare.
pub(super) struct Taken {
    pub(super) name: DependencyName,
    pub(super) translation: Translation,
    /// The file that will declare it.
    pub(super) file: PathBuf,
    pub(super) is_users: bool,
    pub(super) server: Server,
    pub(super) plan: Arc<Plan>,
    /// The exact version, where it was looked up.
    pub(super) resolved: Option<Resolved>,
    /// What its package was before it got an exact version.
    pub(super) floating: Option<String>,
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
        match originals {
            Originals::Kept => Vec::new(),
            Originals::Replaced => self.behind_pml().map(|server| server.name.clone()).collect(),
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
                if all.iter().all(|known| known.name != variable.name) {
                    all.push(variable.clone());
                }
            }
        }
        all
    }

    /// Returns the file from which the client hands variables on; one alone can be named.
    pub(super) fn variables_file(&self) -> Option<&str> {
        self.taken()
            .find_map(|taken| taken.translation.variables_file.as_deref())
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
        for place in wanted(context, order, &project)? {
            // One broken file keeps nobody from importing the others, unless it was named.
            let named = order.from.is_some() || order.clients.contains(&place.client);
            match ClientFile::read(place) {
                Ok(file) if file.others().next().is_some() => read.push(file),
                Ok(_) => {}
                Err(error) if named => return Err(error.into()),
                Err(error) => unread.push(error.into()),
            }
        }
        let mut taken = declared(&files)?;
        let mut found = Vec::new();
        for file in read {
            let registered = file.registration().is_some();
            let servers = file
                .others()
                .map(|server| {
                    let fate = fate(context, order, &files, &project, &file, server, &mut taken);
                    FoundServer {
                        name: server.name.clone(),
                        fate: fate.unwrap_or_else(Fate::Stays),
                    }
                })
                .collect();
            found.push(FoundFile {
                file,
                servers,
                registered,
            });
        }
        Ok(Self { files, found, unread })
    }

    /// Tells whether there is nothing that could come behind pml.
    pub(super) fn is_empty(&self) -> bool {
        self.found.iter().all(|found| found.behind_pml().next().is_none())
    }

    /// Returns what will be declared.
    pub(super) fn taken(&self) -> impl Iterator<Item = &Taken> {
        self.found.iter().flat_map(FoundFile::taken)
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

/// Returns the places to look at.
fn wanted(context: &CommandContext, order: &ImportOrder, project: &Path) -> anyhow::Result<Vec<ClientPlace>> {
    let Some(from) = &order.from else {
        let all = places(&context.environment, project);
        let counts = |place: &ClientPlace| order.clients.is_empty() || order.clients.contains(&place.client);
        // Of a file that two clients share the first is named; the other means it, too.
        let shared = |place: &ClientPlace| {
            place.scope == Scope::Project
                && place.client.id == "claude"
                && order.clients.iter().any(|client| client.id == "copilot")
        };
        return Ok(all
            .into_iter()
            .filter(|place| counts(place) || shared(place))
            .collect());
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
        return Ok(vec![exact]);
    }
    // Most files are of one shape; of the clients that have it, this one spells references as pml does.
    let common = CLIENTS.iter().filter(|client| client.id == "junie");
    let others = CLIENTS.iter().filter(|client| !client.id.starts_with("claude"));
    let of_format = common.chain(others).find(|client| read(client));
    match of_format {
        Some(client) => Ok(vec![place(client)]),
        None => Err(Refused(format!(
            "no servers were found in `{}`",
            context.path(&path)
        )))
        .hint("pml reads JSON, TOML and YAML as the clients of `pml import --help` write them"),
    }
}

/// Reads what the files of pml declare already.
fn declared(files: &Files) -> anyhow::Result<BTreeMap<DependencyName, Identity>> {
    let mut all = BTreeMap::new();
    for path in [&files.user, &files.project] {
        let Some(text) = config::load_text(path)? else {
            continue;
        };
        let mut entries = servers(&text)?;
        for (name, server) in config::check(path, &text)?.servers {
            let entry = entries.remove(name.as_str()).unwrap_or_default();
            let entry = entry.as_object().cloned().unwrap_or_default();
            all.insert(name, Identity::of(&server.launch, &entry));
        }
    }
    Ok(all)
}

/// Works out what becomes of one server; an error says why it stays.
fn fate(
    context: &CommandContext,
    order: &ImportOrder,
    files: &Files,
    project: &Path,
    file: &ClientFile,
    server: &ClientServer,
    taken: &mut BTreeMap<DependencyName, Identity>,
) -> Result<Fate, String> {
    let into = match (order.destination, file.place.scope) {
        (Destination::User, _) | (Destination::ByScope, Scope::User) => Scope::User,
        (Destination::Project, _) | (Destination::ByScope, Scope::Local | Scope::Project) => Scope::Project,
    };
    let client = file.place.client;
    let translation = translate(client, server, into, project).map_err(|Untakeable(reason)| reason)?;
    let is_users = into == Scope::User;
    let path = if is_users { &files.user } else { &files.project };
    let probe: DependencyName = "imported".parse().map_err(|_| String::new())?;
    let read = declaration(context, path, is_users, files, &probe, &translation.entry)?;
    let identity = Identity::of(&read.launch, &translation.entry);
    let name = naming::name(&server.name, client.id, &identity, taken).ok_or("no name is left for it")?;
    let name = match name {
        Naming::Same(name) => {
            return Ok(Fate::Same {
                name,
                variables: translation.variables,
            });
        }
        Naming::New(name) => name,
    };
    let server = declaration(context, path, is_users, files, &name, &translation.entry)?;
    let environment = with_variables(&context.environment, &translation.variables);
    let plan = plan(&name, &server, &environment).map_err(|error| crate::report::render(&error, None))?;
    taken.insert(name.clone(), identity);
    Ok(Fate::Taken(Box::new(Taken {
        name,
        translation,
        file: path.clone(),
        is_users,
        server,
        plan: Arc::new(plan),
        resolved: None,
        floating: None,
    })))
}

/// Returns an environment in which every variable has a value: what a server is does not depend on which.
fn with_variables(environment: &Environment, variables: &[NeededVariable]) -> Environment {
    let mut with = environment.clone();
    for variable in variables {
        if environment.variable(&variable.name).is_none() {
            with = with.with(variable.name.clone(), "set-by-the-client");
        }
    }
    with
}

/// Returns whose file a configuration is.
pub(super) fn kind(is_users: bool, files: &Files) -> FileKind<'_> {
    if is_users {
        FileKind::User
    } else {
        FileKind::Pml(files)
    }
}

/// Reads an entry as the configuration would; an error says what it does not take.
fn declaration(
    context: &CommandContext,
    path: &Path,
    is_users: bool,
    files: &Files,
    name: &DependencyName,
    entry: &Map<String, Value>,
) -> Result<Server, String> {
    let put = ConfigChange::PutServer {
        name: name.to_string(),
        entry: Value::Object(entry.clone()),
    };
    let edited = writer::preview(path, kind(is_users, files), &[put]).map_err(|error| reason(&error))?;
    let mut config = config::check(path, &edited.after).map_err(|error| error.to_string())?;
    config
        .servers
        .remove(name)
        .ok_or_else(|| format!("it is lost on its way into {}", context.path(path)))
}

/// Returns what is wrong, without a place in a text that was not written.
fn reason(error: &WriteError) -> String {
    match error {
        WriteError::Breaking { source, .. } => match &**source {
            ConfigError::Invalid { problem, .. } => problem.to_string(),
            source => source.to_string(),
        },
        error => crate::report::render_hinted(error),
    }
}

impl Taken {
    /// Writes an exact version into the declaration; tells whether that was possible.
    pub(super) fn pinned(&mut self, context: &CommandContext, files: &Files, launch: &Launch) -> bool {
        let mut entry = self.translation.entry.clone();
        match launch {
            Launch::Command { args, .. } => entry.insert("args".to_owned(), serde_json::json!(args)),
            Launch::Package { package, .. } => entry.insert("package".to_owned(), serde_json::json!(package)),
            Launch::Remote { .. } => return false,
        };
        let read = declaration(context, &self.file, self.is_users, files, &self.name, &entry);
        let Ok(server) = read else { return false };
        let environment = with_variables(&context.environment, &self.translation.variables);
        let Ok(plan) = plan(&self.name, &server, &environment) else {
            return false;
        };
        self.translation.entry = entry;
        self.server = server;
        self.plan = Arc::new(plan);
        true
    }
}
