//! How pml stands in the file of a client.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::client::{Client, Passing, Shape};
use super::reference::{Handover, NeededVariable, ProjectDirectory, rewritten};
use super::variables_file;
use crate::protocol::Shown;

/// Under which name pml stands there; tools are then `mcp__pml__…`.
pub const OWN_NAME: &str = "pml";

/// How the packages of pml are called, where a client starts it by a package runner.
const PACKAGE: &str = "pml-mcp";

/// Returns the entry by which a client starts `program` as its server, with the variables that its servers need.
#[must_use]
pub fn own_entry(
    client: &Client,
    program: &Path,
    variables: &[NeededVariable],
    variables_file: Option<&str>,
) -> Value {
    let program = program.to_string_lossy();
    let mut entry = match client.shape {
        Shape::Plain => json!({ "command": program, "args": ["stdio"] }),
        Shape::Typed => json!({ "type": "stdio", "command": program, "args": ["stdio"] }),
        Shape::Copilot => {
            json!({ "type": "local", "command": program, "args": ["stdio"], "tools": ["*"] })
        }
        Shape::CommandList => json!({ "type": "local", "command": [program, "stdio"], "enabled": true }),
    };
    let mut values = Map::new();
    let mut names = Vec::new();
    for variable in variables {
        match (&variable.handover, client.passes) {
            (Handover::Reference { variable: own, .. }, Passing::Everything) if *own == variable.name => {}
            (
                Handover::Value(value) | Handover::Reference { spelled: value, .. } | Handover::Client(value),
                _,
            ) => {
                values.insert(variable.name.clone(), json!(value));
            }
            (Handover::Environment, Passing::Listed) => names.push(json!(variable.name)),
            // What is left out the client passes on anyway, or the person sets it.
            (Handover::Environment | Handover::File(_) | Handover::Person, _) => {}
        }
    }
    if !values.is_empty() {
        let key = match client.shape {
            Shape::CommandList => "environment",
            Shape::Plain | Shape::Typed | Shape::Copilot => "env",
        };
        entry[key] = Value::Object(values);
    }
    if !names.is_empty() {
        entry["env_vars"] = Value::Array(names);
    }
    if let Some(file) = variables_file {
        entry["envFile"] = json!(file);
    }
    entry
}

/// Tells whether a person must set a variable, because the client does not hand it to what it starts.
#[must_use]
pub fn is_for_the_person(client: &Client, variable: &NeededVariable) -> bool {
    match variable.handover {
        Handover::Person => true,
        Handover::Environment => client.passes == Passing::Named,
        Handover::Value(_) | Handover::Reference { .. } | Handover::Client(_) | Handover::File(_) => false,
    }
}

/// Returns an entry of pml that keeps the variables and settings of one that stands there; an error says which variable
/// has another value there, which must not become that of a server it was not given to.
pub fn renewed_entry(standing: &Map<String, Value>, own: &Value) -> Result<Value, String> {
    let another = |name: &str| {
        format!(
            "its entry of pml has another value for `{}` already",
            Shown::line(name)
        )
    };
    let mut renewed = standing.clone();
    for (key, value) in own.as_object().into_iter().flatten() {
        match (renewed.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(new)) => {
                for (name, value) in new {
                    if known.entry(name).or_insert_with(|| value.clone()) != value {
                        return Err(another(name));
                    }
                }
            }
            (Some(Value::Array(known)), Value::Array(new)) if key == "env_vars" => {
                let more = new.iter().filter(|name| !known.contains(name)).cloned();
                let more: Vec<Value> = more.collect();
                known.extend(more);
            }
            (Some(known), value) if key == "envFile" && known != value => return Err(another(key)),
            _ => drop(renewed.insert(key.clone(), value.clone())),
        }
    }
    Ok(Value::Object(renewed))
}

/// Returns what a client hands to pml by the entry that stands in its file, relative paths being those of `directory`.
#[must_use]
pub fn standing_variables(
    client: &Client,
    entry: &Map<String, Value>,
    directory: &Path,
) -> Vec<NeededVariable> {
    let variable = |name: &str, handover| NeededVariable {
        name: name.to_owned(),
        handover,
    };
    let members = ["env", "environment"]
        .into_iter()
        .filter_map(|key| entry.get(key));
    let members = members.filter_map(Value::as_object).flatten();
    let values = members.filter_map(|(name, value)| Some((name, value.as_str()?)));
    let listed = entry
        .get("env_vars")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let listed = listed.filter_map(Value::as_str);
    let file = entry.get("envFile").and_then(Value::as_str);
    let file = file
        .and_then(|file| rewritten(file, client.references, ProjectDirectory::Here, &mut Vec::new()).ok());
    let file = file.map(|file| directory.join(file));
    let in_file = file.iter().flat_map(|file| {
        let names = variables_file::names(file).unwrap_or_default();
        names.into_iter().map(|name| (name, file.clone()))
    });
    values
        .map(|(name, value)| variable(name, handover_of(client, value)))
        .chain(listed.map(|name| variable(name, Handover::Environment)))
        .chain(in_file.map(|(name, file)| variable(&name, Handover::File(file))))
        .collect()
}

/// Returns what a text in the `env` of an entry is.
fn handover_of(client: &Client, text: &str) -> Handover {
    let mut needed = Vec::new();
    let Ok(read) = rewritten(text, client.references, ProjectDirectory::Here, &mut needed) else {
        return Handover::Client(text.to_owned());
    };
    match needed.pop() {
        None => Handover::Value(text.to_owned()),
        Some(one) if needed.is_empty() && read == format!("${{{}}}", one.name) => one.handover,
        Some(_) => Handover::Client(text.to_owned()),
    }
}

/// Returns the program that an entry starts.
#[must_use]
pub fn program_of(entry: &Map<String, Value>) -> Option<PathBuf> {
    let command = entry.get("command").or_else(|| entry.get("cmd"))?;
    let program = command
        .as_str()
        .or_else(|| command.get(0)?.as_str())
        .or_else(|| command.get("path")?.as_str());
    program.map(PathBuf::from)
}

/// Tells whether an entry is pml itself, under whatever name or path.
#[must_use]
pub fn is_pml(name: &str, entry: &Map<String, Value>) -> bool {
    let starts_pml = program_of(entry)
        .and_then(|program| Some(program.file_name()? == "pml"))
        .unwrap_or_default();
    let words = ["command", "args"].into_iter().filter_map(|key| entry.get(key));
    let words: Vec<&str> = words
        .flat_map(|words| words.as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    name == OWN_NAME || (words.contains(&"stdio") && (starts_pml || words.contains(&PACKAGE)))
}

#[cfg(test)]
mod tests {
    use super::super::table::client;
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            _ => unreachable!("the tests write objects"),
        }
    }

    #[test]
    fn pml_is_recognised_under_any_name_and_path() {
        for own in [
            json!({ "command": "pml", "args": ["stdio"] }),
            json!({ "command": "/opt/bin/pml", "args": ["stdio"] }),
            json!({ "type": "local", "command": ["/opt/bin/pml", "stdio"] }),
            json!({ "command": "uvx", "args": ["--from", "pml-mcp", "pml", "stdio"] }),
            json!({ "command": "npx", "args": ["-y", "pml-mcp", "stdio"] }),
        ] {
            assert!(is_pml("tools", &object(own.clone())), "{own}");
        }
        assert!(is_pml("pml", &object(json!({ "url": "x" }))));
        for other in [
            json!({ "command": "npx", "args": ["pml"] }),
            json!({ "command": "pml", "args": ["sample-server"] }),
            json!({ "url": "https://example.com" }),
        ] {
            assert!(!is_pml("tools", &object(other.clone())), "{other}");
        }
    }

    #[test]
    fn every_client_is_written_in_its_own_shape() {
        let needed = |name: &str, handover| NeededVariable {
            name: name.to_owned(),
            handover,
        };
        let variables = [
            needed("A", Handover::Value("s".to_owned())),
            needed("B", Handover::Environment),
        ];
        let entry =
            |id: &str| own_entry(client(id).unwrap(), Path::new("/b/pml"), &variables, None).to_string();
        let shapes = [
            entry("claude-desktop"),
            entry("vscode"),
            entry("copilot"),
            entry("codex"),
            entry("opencode"),
        ];
        insta::assert_snapshot!(shapes.join("\n"), @r#"
        {"command":"/b/pml","args":["stdio"],"env":{"A":"s"}}
        {"type":"stdio","command":"/b/pml","args":["stdio"],"env":{"A":"s"}}
        {"type":"local","command":"/b/pml","args":["stdio"],"tools":["*"],"env":{"A":"s"}}
        {"command":"/b/pml","args":["stdio"],"env":{"A":"s"},"env_vars":["B"]}
        {"type":"local","command":["/b/pml","stdio"],"enabled":true,"environment":{"A":"s"}}
        "#);
    }
}
