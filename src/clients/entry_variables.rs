//! What clients hand to pml: the variables that their entries of pml set, and the names in the files that those name.
//!
//! Each is set where a client starts pml and not in a terminal. Values are taken from the user's own files alone, and
//! only where they stand there as they are: what a client fills in is known to it alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::client::Scope;
use super::file::ClientFile;
use super::place::{ClientPlace, places};
use super::reference::{ProjectDirectory, rewritten};
use super::variables_file;
use crate::config::Environment;

/// Stands for a value that only the client knows: what a server is does not depend on it.
const UNKNOWN: &str = "handed-over";

/// The variables that clients hand to pml.
#[derive(Debug, Clone, Default)]
pub struct HandedVariables(BTreeMap<String, Vec<HandedVariable>>);

/// A variable as one client hands it over.
#[derive(Clone)]
pub struct HandedVariable {
    /// The client, as its makers call it.
    pub client: &'static str,
    /// Its file.
    pub file: PathBuf,
    /// The value, where it stands in a file of the user's own.
    value: Option<String>,
}

impl std::fmt::Debug for HandedVariable {
    /// Leaves its value out.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HandedVariable")
            .field("client", &self.client)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl HandedVariables {
    /// Reads the entries of pml in every client's file; a file that cannot be read hands nothing over.
    #[must_use]
    pub fn read(environment: &Environment, project: &Path) -> Self {
        let files = places(environment, project).into_iter();
        let mut all = Self::default();
        for file in files.filter_map(|place| ClientFile::read(place).ok()) {
            all.add(&file);
        }
        all
    }

    /// Adds what one file hands over.
    fn add(&mut self, file: &ClientFile) {
        let Some(registration) = file.registration() else {
            return;
        };
        let entry = &registration.entry;
        for (name, value) in values(entry) {
            self.add_one(file, name, plain(&file.place, value));
        }
        let listed = entry.get("env_vars").and_then(Value::as_array);
        let listed = listed.into_iter().flatten().filter_map(Value::as_str);
        let named = entry.get("envFile").and_then(Value::as_str);
        // As the editor reads it: relative to the project.
        let named = named.and_then(|named| variables_file::names(&file.place.project.join(named)));
        for name in listed.map(str::to_owned).chain(named.unwrap_or_default()) {
            self.add_one(file, &name, None);
        }
    }

    fn add_one(&mut self, file: &ClientFile, name: &str, value: Option<String>) {
        self.0.entry(name.to_owned()).or_default().push(HandedVariable {
            client: file.place.client.title,
            file: file.path.clone(),
            value,
        });
    }

    /// Returns who hands a variable over.
    #[must_use]
    pub fn by(&self, name: &str) -> &[HandedVariable] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of a variable in the user's own files and who has it; `None` where they do not agree.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<(&str, &HandedVariable)> {
        let mut known = self
            .by(name)
            .iter()
            .filter_map(|handed| Some((handed.value.as_deref()?, handed)));
        let first = known.next()?;
        known.all(|(value, _)| value == first.0).then_some(first)
    }

    /// Returns an environment in which all of them are set, to plan servers in and never to start one.
    #[must_use]
    pub fn planning(&self, environment: &Environment) -> Environment {
        self.planning_with(environment, self.0.keys())
    }

    /// Returns an environment in which these of them are set, to plan a server in and never to start it.
    #[must_use]
    pub fn planning_with<'a>(
        &self,
        environment: &Environment,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Environment {
        let names = names.into_iter().filter(|name| self.0.contains_key(*name));
        let unset = names.filter(|name| environment.variable(name).is_none());
        unset.fold(environment.clone(), |planning, name| {
            let value = self.value(name).map_or(UNKNOWN, |(value, _)| value);
            planning.with(name.clone(), value)
        })
    }
}

/// Returns the variables that an entry sets.
fn values(entry: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let objects = ["env", "environment", "envs"].into_iter();
    let objects = objects.filter_map(|key| entry.get(key)?.as_object());
    objects.flatten()
}

/// Returns a value of the user's own file that the client passes on as it is.
fn plain(place: &ClientPlace, value: &Value) -> Option<String> {
    let text = value
        .as_str()
        .filter(|text| !text.is_empty() && place.scope != Scope::Project)?;
    let mut needed = Vec::new();
    let references = place.client.references;
    let read = rewritten(text, references, ProjectDirectory::Unknown, &mut needed).ok()?;
    (needed.is_empty() && read == text).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
    fn write(path: PathBuf, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn what_entries_of_pml_set_is_known_and_only_plain_values_of_the_user_count() {
        let root = tempfile::tempdir().unwrap();
        let (home, project) = (root.path().join("home"), root.path().join("project"));
        let own = |env: &str| format!("{{\"mcpServers\": {{\"pml\": {{\"command\": \"pml\", {env}}}}}}}");
        write(
            home.join(".cursor/mcp.json"),
            &own(
                "\"env\": {\"A\": \"a\", \"B\": \"${env:B}\", \"SAME\": \"s\", \"OTHER\": \"1\"}, \"envFile\": \".env\"",
            ),
        );
        write(
            home.join(".codeium/windsurf/mcp_config.json"),
            &own("\"env\": {\"SAME\": \"s\", \"OTHER\": \"2\"}"),
        );
        write(project.join(".env"), "FILED=secret\n");
        write(
            project.join(".mcp.json"),
            &own("\"env\": {\"P\": \"of the project\"}"),
        );
        write(
            home.join(".codex/config.toml"),
            "[mcp_servers.pml]\ncommand = \"pml\"\nenv_vars = [\"LISTED\"]\n[mcp_servers.other.env]\nNOT = \"n\"\n",
        );
        write(home.join(".gemini/settings.json"), "{ broken");
        let environment = Environment::new([("HOME", home.to_str().unwrap()), ("A", "mine")], &project);
        let handed = HandedVariables::read(&environment, &project);

        let value = |name: &str| handed.value(name).map(|(value, _)| value.to_owned());
        assert_eq!(value("A").as_deref(), Some("a"));
        assert_eq!(value("SAME").as_deref(), Some("s"));
        for unknown in ["B", "OTHER", "P", "FILED", "LISTED"] {
            assert_eq!(value(unknown), None, "{unknown}");
            assert!(!handed.by(unknown).is_empty(), "{unknown}");
        }
        assert!(handed.by("NOT").is_empty() && handed.by("C").is_empty());
        assert_eq!(handed.by("LISTED")[0].client, "Codex");
        assert_eq!(handed.by("LISTED")[0].file, home.join(".codex/config.toml"));

        let planning = handed.planning(&environment);
        let set = |name: &str| {
            planning
                .variable(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(set("A").as_deref(), Some("mine"), "what is set here counts");
        assert_eq!(set("SAME").as_deref(), Some("s"));
        assert_eq!(set("P").as_deref(), Some(UNKNOWN));
        assert_eq!(set("C"), None);
        assert!(!format!("{handed:?}").contains("of the project"));
    }
}
