//! The text of `.pml.lock`: the pins of every server that one configuration declares, made to be committed and reviewed.
//!
//! Pure: text in, text out. Servers and tools stand in the order of their names and every fact on a line of its own, so
//! that two branches merge and a changed description shows in a review. An edit changes the values that differ and
//! leaves everything else, comments included; it is given out only if it reads as what was meant.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde::{Deserialize, Serialize};

use super::Pin;
use crate::config::dialect;
use crate::protocol::{DependencyName, Json, JsonTree, Object, Shown, quoted};

/// Raised when an older pml must not read a lock.
const VERSION: u32 = 1;

/// The pins of the servers that one configuration declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockFile {
    /// The pin of each server.
    pub servers: BTreeMap<DependencyName, Pin>,
}

/// Says why a lock is not read or not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockFileError {
    /// The text is no lock.
    #[error("{reason}")]
    Unreadable {
        /// What is wrong, escaped, with its place.
        reason: String,
    },
    /// A newer pml wrote it.
    #[error("it is of version {found}, and this pml knows version {VERSION}")]
    Newer {
        /// The version it says.
        found: u32,
    },
    /// A definition holds what no text can.
    #[error("the definitions of `{server}` hold half a character, which no file can")]
    Unwritable {
        /// The server.
        server: DependencyName,
    },
    /// The edited text would not mean what it should.
    #[error("the edit would not have come out as meant")]
    Astray,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLock {
    version: u32,
    servers: BTreeMap<DependencyName, Pin>,
}

/// Returns where the lock of a configuration stands: beside it, under its name.
#[must_use]
pub fn lock_path(config: &Path) -> PathBuf {
    config.with_extension("lock")
}

impl LockFile {
    /// Reads a lock.
    pub fn read(text: &str) -> Result<Self, LockFileError> {
        let unreadable = |reason: String| LockFileError::Unreadable {
            reason: Shown::line(&reason).to_string(),
        };
        // No tree is made of it: what is not a lock would cost a hundred times its length.
        let plain = super::plain_json::without_comments(text);
        if plain.trim().is_empty() {
            return Err(unreadable("it is empty".to_owned()));
        }
        let version = Json::parse(&plain).and_then(|json| Object::parse(json.get())?.value("version"));
        if let Some(found) = version.and_then(|version| version.get().parse().ok())
            && found > VERSION
        {
            return Err(LockFileError::Newer { found });
        }
        let written: WrittenLock =
            serde_json::from_str(&plain).map_err(|error| unreadable(error.to_string()))?;
        Ok(Self {
            servers: written.servers,
        })
    }

    /// Returns `text` with the pins of this lock in it, and without those of servers that this lock does not have.
    pub fn written_into(&self, text: Option<&str>) -> Result<String, LockFileError> {
        let text = text.unwrap_or(EMPTY);
        if Self::read(text)? == *self {
            return Ok(text.to_owned());
        }
        let root = parse(text)?;
        let servers = root
            .object_value_or_create()
            .and_then(|object| object.object_value_or_create("servers"))
            .ok_or(LockFileError::Astray)?;
        let mut members = Vec::new();
        for (server, pin) in &self.servers {
            let json = serde_json::to_string(pin).map_err(|_never| LockFileError::Astray)?;
            let tree = Json::parse(&json).and_then(JsonTree::read);
            let tree = tree.ok_or_else(|| LockFileError::Unwritable {
                server: server.clone(),
            })?;
            members.push((server.to_string(), tree));
        }
        put_members(&servers, &members);
        let edited = root.to_string();
        if Self::read(&edited)? != *self {
            return Err(LockFileError::Astray);
        }
        Ok(edited)
    }
}

const EMPTY: &str = "{\n  \"version\": 1,\n  \"servers\": {}\n}\n";

fn parse(text: &str) -> Result<CstRootNode, LockFileError> {
    CstRootNode::parse(text, &dialect()).map_err(|error| LockFileError::Unreadable {
        reason: Shown::line(&error.to_string()).to_string(),
    })
}

/// Gives an object exactly these members: those that are equal stay as they are written, new ones come in their place.
fn put_members(object: &CstObject, members: &[(String, JsonTree)]) {
    for property in object.properties() {
        let name = property.decoded_name();
        if !members.iter().any(|(wanted, _)| Some(wanted) == name.as_ref()) {
            property.remove();
        }
    }
    for (at, (name, value)) in members.iter().enumerate() {
        match object.get(name) {
            None => {
                object.insert(at, name, input(value));
            }
            Some(property) => put_value(&property, value),
        }
    }
}

fn put_value(property: &CstObjectProp, value: &JsonTree) {
    if let (Some(object), JsonTree::Object(members)) = (property.object_value(), value) {
        put_members(&object, members);
        return;
    }
    let same = property.value().is_some_and(|written| {
        let mut plain = String::new();
        write_plain(&written, &mut plain);
        Json::parse(&plain).and_then(JsonTree::read).as_ref() == Some(value)
    });
    if !same {
        property.set_value(input(value));
    }
}

/// Writes a value as bare JSON, every literal as it is written.
fn write_plain(node: &CstNode, plain: &mut String) {
    if let Some(object) = node.as_object() {
        plain.push('{');
        for (at, property) in object.properties().iter().enumerate() {
            plain.push_str(if at == 0 { "" } else { "," });
            if let (Some(name), Some(value)) = (property.decoded_name(), property.value()) {
                plain.push_str(&quoted(&name));
                plain.push(':');
                write_plain(&value, plain);
            }
        }
        plain.push('}');
    } else if let Some(array) = node.as_array() {
        plain.push('[');
        for (at, element) in array.elements().iter().enumerate() {
            plain.push_str(if at == 0 { "" } else { "," });
            write_plain(element, plain);
        }
        plain.push(']');
    } else {
        plain.push_str(&node.to_string());
    }
}

fn input(value: &JsonTree) -> CstInputValue {
    match value {
        JsonTree::Null => CstInputValue::Null,
        JsonTree::Bool(value) => CstInputValue::Bool(*value),
        JsonTree::Number(number) => CstInputValue::Number(number.clone()),
        JsonTree::Text(text) => CstInputValue::String(text.clone()),
        JsonTree::Array(elements) => CstInputValue::Array(elements.iter().map(input).collect()),
        JsonTree::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::{PackagePin, ProvenanceFinding, ToolPin};
    use crate::protocol::growth::{InputShape, assert_linear};
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    fn tool(description: &str) -> ToolPin {
        let text = serde_json::json!({ "name": "t", "description": description, "inputSchema": { "type": "object" } });
        ToolPin::of(&RawValue::from_string(text.to_string()).unwrap())
    }

    fn pin(version: &str, tools: &[(&str, &str)]) -> Pin {
        Pin {
            launch: vec!["npx".to_owned(), "-y".to_owned(), format!("x@{version}")],
            surroundings: None,
            package: Some(PackagePin {
                name: "npm:x".to_owned(),
                version: version.to_owned(),
                integrity: Some("sha512-a".to_owned()),
                package_lock: None,
                published: "2026-08-31T10:11:12Z".parse().ok(),
                provenance: ProvenanceFinding::Absent,
                built_before: None,
                install_scripts: Vec::new(),
                packages: [(format!("x@{version}"), "sha512-a".to_owned())].into(),
            }),
            tools: Some(
                tools
                    .iter()
                    .map(|(name, description)| ((*name).to_owned(), tool(description)))
                    .collect(),
            ),
        }
    }

    fn lock(servers: &[(&str, Pin)]) -> LockFile {
        let servers = servers.iter();
        LockFile {
            servers: servers
                .map(|(name, pin)| (name.parse().unwrap(), pin.clone()))
                .collect(),
        }
    }

    #[test]
    fn a_lock_stands_beside_its_configuration_under_its_name() {
        assert_eq!(
            [Path::new("/project/.pml.json"), Path::new("/home/team.json")].map(lock_path),
            [
                PathBuf::from("/project/.pml.lock"),
                PathBuf::from("/home/team.lock")
            ]
        );
    }

    #[test]
    fn a_lock_is_written_one_fact_per_line() {
        let written = lock(&[("files", pin("1.0.0", &[("read", "Reads.")]))])
            .written_into(None)
            .unwrap();
        let expected = r#"{
  "version": 1,
  "servers": {
    "files": {
      "launch": ["npx", "-y", "x@1.0.0"],
      "package": {
        "name": "npm:x",
        "version": "1.0.0",
        "integrity": "sha512-a",
        "published": "2026-08-31T10:11:12Z",
        "packages": {
          "x@1.0.0": "sha512-a"
        }
      },
      "tools": {
        "read": {
          "digest": "df911b19336f558aaff7e011cb32db32b5e8ecbce8d6df8776b1ce13d2ed1084",
          "definition": {
            "description": "Reads.",
            "inputSchema": {
              "type": "object"
            },
            "name": "t"
          }
        }
      }
    }
  }
}
"#;
        assert_eq!(written, expected);
    }

    #[test]
    fn an_edit_changes_the_lines_that_differ_and_keeps_comments() {
        let before = lock(&[
            ("a", pin("1.0.0", &[("r", "Reads."), ("w", "Writes.")])),
            ("c", pin("2.0.0", &[])),
        ]);
        let text = before.written_into(None).unwrap();
        let text = text
            .replace("  \"servers\"", "  // reviewed by two people\n  \"servers\"")
            .replace(
                "\"version\": \"1.0.0\",",
                "\"version\": \"1.0.0\", // do not touch",
            );
        assert_eq!(LockFile::read(&text), Ok(before.clone()));
        let after = lock(&[
            ("a", pin("1.0.0", &[("r", "Reads!"), ("x", "New.")])),
            ("b", pin("1.0.0", &[])),
            ("c", pin("2.0.0", &[])),
        ]);
        let edited = after.written_into(Some(&text)).unwrap();
        assert_eq!(LockFile::read(&edited), Ok(after));
        assert!(
            edited.contains("// reviewed by two people") && edited.contains("// do not touch"),
            "{edited}"
        );
        let (a, b, c) = (edited.find("\"a\""), edited.find("\"b\""), edited.find("\"c\""));
        assert!(a < b && b < c, "{edited}");
        assert_eq!(
            before
                .written_into(Some(&edited))
                .map(|text| LockFile::read(&text)),
            Ok(Ok(before))
        );
    }

    #[test]
    fn numbers_of_a_definition_keep_their_digits() {
        let definition = r#"{"name":"t","x":12345678901234567890123,"y":1.0}"#;
        let mut before = pin("1.0.0", &[]);
        let tool = ToolPin::of(&RawValue::from_string(definition.to_owned()).unwrap());
        before.tools = Some([("t".to_owned(), tool)].into());
        let text = lock(&[("a", before.clone())]).written_into(None).unwrap();
        let read = LockFile::read(&text).unwrap();
        let read = read.servers.into_values().next().unwrap().tools.unwrap();
        assert_eq!(read["t"].definition().get(), definition);
    }

    #[test]
    fn what_is_broken_is_no_lock() {
        for broken in [
            "\"",
            "\"\\",
            "/*",
            "//",
            "/",
            ",}",
            "[1,,]",
            "{\"version\": 1,, \"servers\": {}}",
        ] {
            assert!(LockFile::read(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn what_is_no_lock_is_refused_in_time_that_grows_with_its_length() {
        let shapes: [InputShape; 5] = [
            ("brackets", |size| "[".repeat(size)),
            ("a member that is none of a lock", |size| {
                let numbers = "1,".repeat(size / 2);
                format!("{{\"version\":1,\"servers\":{{}},\"x\":[{numbers}1]}}")
            }),
            ("comments", |size| {
                let comments = "/**/".repeat(size / 4);
                format!("{{\"version\":1,{comments}\"servers\":[]}}")
            }),
            ("commas before brackets", |size| ",}".repeat(size / 2)),
            ("words of another type", |size| {
                let words = "\"a\",".repeat(size / 4);
                format!("{{\"version\":1,\"servers\":{{\"a\":{{\"launch\":[{words}1]}}}}}}")
            }),
        ];
        for (what, shape) in shapes {
            assert_linear(what, shape, |text| assert!(LockFile::read(text).is_err()));
        }
    }

    #[test]
    fn what_is_no_lock_is_refused_by_its_fault() {
        let error = |text: &str| LockFile::read(text).unwrap_err().to_string();
        assert_eq!(error(""), "it is empty");
        assert!(error("{").contains("line 1"), "{}", error("{"));
        assert_eq!(
            error(r#"{"version": 2, "servers": {}, "x": 1}"#),
            "it is of version 2, and this pml knows version 1"
        );
        assert!(
            error(r#"{"version": 1, "servers": {"a": {"launch": [], "x": 1}}}"#).contains("unknown field")
        );
        let conflict = "{\n<<<<<<< ours\n\"version\": 1\n";
        assert!(error(conflict).contains("line 2"), "{}", error(conflict));
        let edited = lock(&[("a", pin("1.0.0", &[("t", "Old.")]))])
            .written_into(None)
            .unwrap();
        assert!(error(&edited.replace("Old.", "New.")).contains("does not fit"));
    }

    #[test]
    fn half_a_character_is_not_written() {
        let mut pin = pin("1.0.0", &[]);
        let text = r#"{"name":"t","description":"\ud800"}"#.to_owned();
        pin.tools = Some([("t".to_owned(), ToolPin::of(&RawValue::from_string(text).unwrap()))].into());
        let error = lock(&[("a", pin)]).written_into(None).unwrap_err();
        assert!(matches!(error, LockFileError::Unwritable { .. }), "{error}");
    }

    fn pins() -> impl Strategy<Value = BTreeMap<DependencyName, Pin>> {
        let tools = proptest::collection::vec(("[a-c]{1,2}", "[a-z\"\\\\\n{}\u{e4}]{0,6}"), 0..4);
        let one = ("[1-3]\\.0\\.0", tools).prop_map(|(version, tools)| {
            let tools: Vec<(&str, &str)> = tools
                .iter()
                .map(|(name, description)| (name.as_str(), description.as_str()))
                .collect();
            pin(&version, &tools)
        });
        proptest::collection::btree_map("[a-d]".prop_map(|name| name.parse().unwrap()), one, 0..4)
    }

    proptest! {
        #[test]
        fn every_lock_becomes_every_other_by_an_edit(one in pins(), two in pins()) {
            let (one, two) = (LockFile { servers: one }, LockFile { servers: two });
            let text = one.written_into(None).unwrap();
            prop_assert_eq!(LockFile::read(&text).unwrap(), one);
            let edited = two.written_into(Some(&text)).unwrap();
            prop_assert_eq!(LockFile::read(&edited).unwrap(), two.clone());
            prop_assert_eq!(two.written_into(None).unwrap(), edited);
        }
    }
}
