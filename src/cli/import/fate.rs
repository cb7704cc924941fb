//! Works out what becomes of each server of a client: a name, a declaration, a plan, or the reason why it stays.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::declarations::{Declarations, NewServer, Settled};
use super::reason::why;
use super::{Destination, ImportOrder};
use crate::cli::CommandContext;
use crate::clients::{
    ClientFile, ClientServer, Journal, NeededVariable, Scope, Translation, Untakeable, translate,
};
use crate::config::{self, ConfigError, Environment, Files, Launch, Server};
use crate::loader::{Plan, Resolved, plan};
use crate::permissions::writer::{self, FileKind, WriteError};
use crate::permissions::{ConfigChange, servers};
use crate::protocol::{DependencyName, Digest, Shown};
use crate::report::Hint as _;

/// What becomes of a server.
pub(super) enum Fate {
    /// pml declares it.
    Taken(Box<Taken>),
    /// pml declares the same already, under this name.
    Same {
        name: DependencyName,
        variables: Vec<NeededVariable>,
        variables_file: Option<String>,
    },
    /// It stays where it is, for this reason.
    Stays(String),
}

/// A server that pml will declare.
pub(super) struct Taken {
    pub(super) name: DependencyName,
    pub(super) translation: Translation,
    /// The secrets that stood in the clear: what each was given to, and the variable it becomes.
    pub(super) secrets: Vec<(String, String)>,
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

/// What decides the fates: where servers go, and all that is declared or was decided so far.
pub(super) struct Fates<'a> {
    context: &'a CommandContext,
    order: &'a ImportOrder,
    files: &'a Files,
    project: &'a Path,
    declarations: Declarations<'a>,
    /// The file of variables that the entry of pml in each client's file names.
    variables_files: BTreeMap<PathBuf, String>,
}

/// A server of a client in the words of pml, or why it stays.
pub(super) type Translated = Result<Translation, String>;

impl<'a> Fates<'a> {
    /// Takes note of what is declared, what `clients` hand to pml, and what earlier imports wrote down.
    pub(super) fn new(
        context: &'a CommandContext,
        order: &'a ImportOrder,
        files: &'a Files,
        project: &'a Path,
        clients: &[ClientFile],
    ) -> anyhow::Result<Self> {
        let journals = Journal::all(context.locations.state())?;
        let imported: Vec<_> = journals.into_iter().map(|journal| journal.handed).collect();
        let environment = &context.environment;
        let declarations = Declarations::new(environment, &imported, clients, declared(files)?, project);
        let variables_files = clients.iter().filter_map(|file| {
            let standing = &file.registration()?.entry;
            Some((file.path.clone(), standing.get("envFile")?.as_str()?.to_owned()))
        });
        let variables_files = variables_files.collect();
        Ok(Self {
            context,
            order,
            files,
            project,
            declarations,
            variables_files,
        })
    }

    /// Puts a server into the words of pml, and keeps the names that it needs from others.
    pub(super) fn translated(&mut self, file: &ClientFile, server: &ClientServer) -> Translated {
        let translation = translate(file.place.client, server, self.goes_into(file), self.project)
            .map_err(|Untakeable(reason)| reason)?;
        self.declarations.reserve(&file.path, &translation);
        Ok(translation)
    }

    /// Works out what becomes of a server; an error says why it stays.
    pub(super) fn fate(
        &mut self,
        file: &ClientFile,
        server: &ClientServer,
        translated: Translated,
    ) -> Result<Fate, String> {
        let mut translation = translated?;
        let variables_file = translation.variables_file.clone();
        if let Some(wanted) = &variables_file
            && let Some(named) = self
                .variables_files
                .get(&file.path)
                .filter(|named| *named != wanted)
        {
            return Err(format!(
                "its `envFile` is `{}`, and the entry of pml in this file can name one alone, which is `{}`\nto take it \
                 as well, put the variables of both into one file",
                Shown::line(wanted),
                Shown::line(named)
            ));
        }
        let target = self.target(file);
        let probe: DependencyName = "imported".parse().map_err(|_| String::new())?;
        target.declaration(&probe, &translation.entry)?;
        match self.declarations.settle(file, server, &mut translation)? {
            Settled::Same(name, variables) => {
                self.name_variables_file(file, variables_file.clone());
                Ok(Fate::Same {
                    name,
                    variables,
                    variables_file,
                })
            }
            Settled::New(new) => {
                let name = new.name.clone();
                let taken = self.taken(file, new, translation);
                if taken.is_err() {
                    self.declarations.withdraw(&name);
                }
                let taken = taken?;
                self.name_variables_file(file, variables_file);
                Ok(Fate::Taken(Box::new(taken)))
            }
        }
    }

    fn name_variables_file(&mut self, file: &ClientFile, named: Option<String>) {
        if let Some(named) = named {
            self.variables_files.insert(file.path.clone(), named);
        }
    }

    /// Returns which value each name stands for that a server got.
    pub(super) fn handed(&self) -> BTreeMap<String, Digest> {
        self.declarations.handed()
    }

    fn taken(&self, file: &ClientFile, new: NewServer, translation: Translation) -> Result<Taken, String> {
        let NewServer { name, secrets } = new;
        let target = self.target(file);
        let server = target.declaration(&name, &translation.entry)?;
        let environment = with_variables(&self.context.environment, &translation.variables);
        let plan = plan(&name, &server, &environment).map_err(|error| why(&name, &error, error.hint()))?;
        Ok(Taken {
            name,
            translation,
            secrets,
            file: target.path.to_owned(),
            is_users: target.is_users,
            server,
            plan: Arc::new(plan),
            resolved: None,
            floating: None,
        })
    }

    /// Returns whose file the servers of a client's file go into.
    fn goes_into(&self, file: &ClientFile) -> Scope {
        match (self.order.destination, file.place.scope) {
            (Destination::User, _) | (Destination::ByScope, Scope::User) => Scope::User,
            (Destination::Project, _) | (Destination::ByScope, Scope::Local | Scope::Project) => {
                Scope::Project
            }
        }
    }

    fn target(&self, file: &ClientFile) -> Target<'_> {
        let is_users = self.goes_into(file) == Scope::User;
        Target {
            context: self.context,
            files: self.files,
            path: if is_users {
                &self.files.user
            } else {
                &self.files.project
            },
            is_users,
        }
    }
}

/// Reads what the files of pml declare already.
fn declared(files: &Files) -> anyhow::Result<BTreeMap<DependencyName, Map<String, Value>>> {
    let mut all = BTreeMap::new();
    for path in [&files.user, &files.project] {
        let Some(text) = config::load_text(path)? else {
            continue;
        };
        let mut entries = servers(&text)?;
        for name in config::check(path, &text)?.servers.into_keys() {
            let entry = entries.remove(name.as_str()).unwrap_or_default();
            all.insert(name, entry.as_object().cloned().unwrap_or_default());
        }
    }
    Ok(all)
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

/// A file of pml that servers go into.
struct Target<'a> {
    context: &'a CommandContext,
    files: &'a Files,
    path: &'a Path,
    is_users: bool,
}

impl Target<'_> {
    /// Reads an entry as the configuration would; an error says what it does not take.
    fn declaration(&self, name: &DependencyName, entry: &Map<String, Value>) -> Result<Server, String> {
        let put = ConfigChange::PutServer {
            name: name.to_string(),
            entry: Value::Object(entry.clone()),
        };
        let kind = kind(self.is_users, self.files);
        let edited = writer::preview(self.path, kind, &[put]).map_err(|error| reason(&error))?;
        let mut config = config::check(self.path, &edited.after).map_err(|error| error.to_string())?;
        config
            .servers
            .remove(name)
            .ok_or_else(|| format!("it is lost on its way into {}", self.context.path(self.path)))
    }
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
        let target = Target {
            context,
            files,
            path: &self.file,
            is_users: self.is_users,
        };
        let Ok(server) = target.declaration(&self.name, &entry) else {
            return false;
        };
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
