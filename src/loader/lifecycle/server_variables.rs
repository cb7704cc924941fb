//! The variables of a server at the moment of its start: those of its declaration, and those of its file as it is then.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use crate::config::VariablesFileError;
use crate::loader::plan::{Plan, SecretCollector, variables};
use crate::protocol::Secrets;

/// The variables of a server, and everything that is given to it in confidence.
#[derive(Debug, Clone)]
pub struct ServerVariables {
    /// The variables; they may hold secrets.
    pub(super) variables: BTreeMap<String, String>,
    pub(super) secrets: Secrets,
}

impl ServerVariables {
    /// Reads them; what is declared wins over the file.
    ///
    /// What passes to every server decides whom it talks to, and of such a file no name is shown to a person: the file must
    /// not set it.
    pub fn read(plan: &Plan) -> Result<Self, VariablesFileError> {
        let Some(file) = plan.variables_file() else {
            return Ok(Self {
                variables: plan.variables().clone(),
                secrets: plan.secrets().clone(),
            });
        };
        let mut read = file.read(plan.variables())?;
        if let Some(name) = read.keys().find(|name| variables::passes(OsStr::new(name))) {
            return Err(VariablesFileError::Steers {
                path: file.path().to_owned(),
                name: name.clone(),
            });
        }
        let mut found = SecretCollector::default();
        for (name, value) in &read {
            found.variable(name, value);
        }
        read.extend(plan.variables().clone());
        Ok(Self {
            variables: read,
            secrets: plan.secrets().with(&found.secrets()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;
    use crate::config::{Environment, check};
    use crate::loader::plan::plan;

    fn planned(directory: &Path, entry: &Value) -> Plan {
        let text = json!({ "mcpServers": { "x": entry } }).to_string();
        let config = check(&directory.join(".pml.json"), &text).unwrap();
        let (name, server) = config.servers.first_key_value().unwrap();
        plan(name, server, &Environment::new([("HOME", "/")], directory)).unwrap()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
    fn an_approval_is_bound_to_the_path_of_a_file_of_variables_and_to_nothing_in_it() {
        let root = tempfile::tempdir().unwrap();
        let entry = |file: &str| json!({ "command": "./server", "env": { "B": "own" }, "envFile": file });
        let plan_of = |file: &str| planned(root.path(), &entry(file));
        let plan = plan_of("a.env");
        assert_ne!(plan.digest(), plan_of("b.env").digest());
        let without = json!({ "command": "./server", "env": { "B": "own" } });
        assert_ne!(plan.digest(), planned(root.path(), &without).digest());
        assert!(ServerVariables::read(&plan).is_err(), "it is not there");
        let path = root.path().join("a.env");
        std::fs::write(&path, "A_TOKEN=hunter2-of-the-file\nB=theirs\n").unwrap();
        let ServerVariables { variables, secrets } = ServerVariables::read(&plan).unwrap();
        let expected = [("A_TOKEN", "hunter2-of-the-file"), ("B", "own")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables, BTreeMap::from(expected));
        assert_eq!(secrets.hide("it is hunter2-of-the-file"), "it is [A_TOKEN]");
        assert_eq!(plan.digest(), plan_of("a.env").digest());
        assert_eq!(
            plan.shown(None, 0).surroundings.labelled(),
            [
                ("variables", "B".to_owned()),
                ("env file", path.display().to_string())
            ]
        );
        for name in ["HTTPS_PROXY", "NODE_EXTRA_CA_CERTS", "PATH"] {
            std::fs::write(&path, format!("{name}=evil\n")).unwrap();
            let refused = ServerVariables::read(&plan).unwrap_err().to_string();
            assert!(refused.contains(&format!("sets `{name}`")), "{refused}");
        }
    }
}
