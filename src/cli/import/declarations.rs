//! The servers that are declared already or will be: which of them a found one is, or its own name and references.
//!
//! Pure but for the names in files of variables.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::naming::{self, Identity, Naming, Standing};
use super::value_names::{HandedValues, renamed};
use crate::clients::{ClientFile, ClientServer, NeededVariable, Translation, standing_variables};
use crate::config::Environment;
use crate::protocol::{DependencyName, Digest};

/// All of them, and which value each of their variables stands for.
pub(super) struct Declarations<'a> {
    handed: HandedValues<'a>,
    entries: BTreeMap<DependencyName, Map<String, Value>>,
}

/// What a found server is.
#[derive(Debug)]
pub(super) enum Settled {
    /// One that is declared: its name, and the variables that it has there.
    Same(DependencyName, Vec<NeededVariable>),
    /// A new one, of this name.
    New(NewServer),
}

/// A server that will be declared.
#[derive(Debug)]
pub(super) struct NewServer {
    pub(super) name: DependencyName,
    /// Each secret that stood in the clear: what it was given to, and the variable it becomes.
    pub(super) secrets: Vec<(String, String)>,
}

impl<'a> Declarations<'a> {
    /// Takes note of what earlier imports wrote down, what `clients` hand to pml, and what is declared.
    pub(super) fn new(
        environment: &'a Environment,
        imported: &[BTreeMap<String, Digest>],
        clients: &[ClientFile],
        entries: BTreeMap<DependencyName, Map<String, Value>>,
        project: &Path,
    ) -> Self {
        let mut handed = HandedValues::new(environment);
        for import in imported {
            handed.imported(import);
        }
        for file in clients {
            if let Some(standing) = file.registration() {
                for variable in standing_variables(file.place.client, &standing.entry, project) {
                    handed.standing(&file.path, &variable);
                }
            }
        }
        for entry in entries.values() {
            handed.declared(entry);
        }
        Self { handed, entries }
    }

    /// Keeps the names that a found server needs, and can have no others for, from other values.
    pub(super) fn reserve(&mut self, file: &Path, translation: &Translation) {
        for variable in &translation.variables {
            self.handed.reserve(file, variable);
        }
    }

    /// Finds out whether a server of a client's file is declared; if not, names it and each of its variables.
    pub(super) fn settle(
        &mut self,
        file: &ClientFile,
        server: &ClientServer,
        translation: &mut Translation,
    ) -> Result<Settled, String> {
        match self.named(file, server, translation)? {
            Naming::Same(name) => {
                let entry = &self.entries[&name];
                let variables = self.handed.as_declared(&file.path, entry, &translation.variables);
                Ok(Settled::Same(name, variables))
            }
            Naming::New(name) => {
                let secrets = self.rename_variables(&name, file, server, translation)?;
                self.entries.insert(name.clone(), translation.entry.clone());
                Ok(Settled::New(NewServer { name, secrets }))
            }
        }
    }

    /// Takes a server out again: it cannot be declared.
    pub(super) fn withdraw(&mut self, name: &DependencyName) {
        self.entries.remove(name);
    }

    /// Returns which value each name stands for that a server got.
    pub(super) fn handed(&self) -> BTreeMap<String, Digest> {
        self.handed.of_servers()
    }

    fn named(
        &self,
        file: &ClientFile,
        server: &ClientServer,
        translation: &Translation,
    ) -> Result<Naming, String> {
        let own = HandedValues::canonical_found(&file.path, &translation.entry, &translation.variables);
        let own = Identity::of(&own);
        let standing = |name: &DependencyName| match self.entries.get(name) {
            None => Standing::Nothing,
            Some(entry) => {
                let known = Identity::of(&self.handed.canonical(&file.path, entry));
                if own.is_some() && known == own {
                    Standing::Same
                } else {
                    Standing::Other
                }
            }
        };
        naming::name(&server.name, file.place.client.id, standing)
            .ok_or_else(|| "no name is left for it".to_owned())
    }

    fn rename_variables(
        &mut self,
        name: &DependencyName,
        file: &ClientFile,
        server: &ClientServer,
        translation: &mut Translation,
    ) -> Result<Vec<(String, String)>, String> {
        let mut names = BTreeMap::new();
        for variable in &mut translation.variables {
            let decided = self.handed.name(name, &server.name, &file.path, variable)?;
            names.insert(std::mem::replace(&mut variable.name, decided.clone()), decided);
        }
        let decided = |name: &str| names.get(name).cloned().unwrap_or_else(|| name.to_owned());
        translation.entry = renamed(&translation.entry, &mut |name| decided(name));
        let secrets = translation.secrets.iter();
        Ok(secrets.map(|name| (name.clone(), decided(name))).collect())
    }
}

#[cfg(test)]
mod tests;
