//! Edits the text of a configuration and nothing around it: comments, order, indentation and line ends stay.
//!
//! Pure: text in, text out. The edit is made on the concrete syntax tree, and the same change is made a second
//! time on the bare values: only if both agree is the text given out. A fault in the editing of text can thus
//! refuse a change but never write another one.

mod people;

use std::borrow::Cow;

use jsonc_parser::CollectOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use jsonc_parser::errors::ParseError;
use serde_json::{Map, Value};

use self::people::Membership;
use crate::config::{ChannelName, RuleList, dialect};
use crate::protocol::{Pattern, ToolName};

/// One change of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigChange {
    /// Puts a pattern into a list and takes it out of the others.
    AddRule {
        /// The list.
        list: RuleList,
        /// The pattern.
        pattern: Pattern,
    },
    /// Allows one tool, as a person answered "always": takes it out of the ask list, and never lifts a deny.
    AllowTool {
        /// The tool.
        tool: ToolName,
    },
    /// Takes a pattern out of every list.
    ForgetRule {
        /// The pattern as it is written.
        pattern: String,
    },
    /// Declares a server, in place of one of the same name.
    PutServer {
        /// Its name.
        name: String,
        /// Its entry.
        entry: Value,
    },
    /// Gives the package of a declared server another version; every other word of it stays.
    PinServer {
        /// Its name.
        name: String,
        /// Where the package stands in its declaration.
        word: LaunchWord,
        /// What stands there from now on.
        text: String,
    },
    /// Takes a server out.
    RemoveServer {
        /// Its name.
        name: String,
    },
    /// Lets a person in to a channel that is configured.
    AddPerson {
        /// The channel.
        channel: ChannelName,
        /// The opaque id by which its service names them.
        id: String,
    },
    /// Takes a person out of a channel.
    RemovePerson {
        /// The channel.
        channel: ChannelName,
        /// Their id.
        id: String,
    },
}

/// The word of a declaration that names a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchWord {
    /// One of `args`.
    Argument(usize),
    /// `package`.
    Package,
}

/// Says why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not JSON.
    #[error("{reason}")]
    Syntax {
        /// What the parser says, with line and column.
        reason: String,
    },
    /// The value at a key is not of the type the change needs.
    #[error("{place} is not {expected}")]
    Shape {
        /// The key, or the whole file.
        place: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// The edited text would not mean what it should.
    #[error("the edit would not have come out as meant")]
    Astray,
}

const LISTS: [RuleList; 3] = [RuleList::Allow, RuleList::Deny, RuleList::Ask];

/// A pattern's text on its way from some lists into at most one.
struct Move<'a> {
    text: Cow<'a, str>,
    from: Vec<RuleList>,
    into: Option<RuleList>,
}

/// What a change does, once the words are taken off.
enum EditStep<'a> {
    Rule(Move<'a>),
    Put(&'a str, &'a Value),
    Pin(&'a str, LaunchWord, &'a str),
    Remove(&'a str),
    People(ChannelName, &'a str, Membership),
}

impl ConfigChange {
    fn step(&self) -> EditStep<'_> {
        match self {
            Self::AddRule { list, pattern } => EditStep::Rule(Move {
                text: pattern.as_str().into(),
                from: LISTS.into_iter().filter(|other| other != list).collect(),
                into: Some(*list),
            }),
            Self::AllowTool { tool } => EditStep::Rule(Move {
                text: Pattern::exact_text(tool).into(),
                from: vec![RuleList::Ask],
                into: Some(RuleList::Allow),
            }),
            Self::ForgetRule { pattern } => EditStep::Rule(Move {
                text: pattern.into(),
                from: LISTS.to_vec(),
                into: None,
            }),
            Self::PutServer { name, entry } => EditStep::Put(name, entry),
            Self::PinServer { name, word, text } => EditStep::Pin(name, *word, text),
            Self::RemoveServer { name } => EditStep::Remove(name),
            Self::AddPerson { channel, id } => EditStep::People(*channel, id, Membership::In),
            Self::RemovePerson { channel, id } => EditStep::People(*channel, id, Membership::Out),
        }
    }
}

/// Returns `text` with `changes` made, in order; byte for byte the same if there was nothing to change.
pub fn apply(text: &str, changes: &[ConfigChange]) -> Result<String, EditError> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let before = values(body)?;
    let mut expected = before.clone();
    for change in changes {
        change_values(&mut expected, change)?;
    }
    if expected == before {
        return Ok(text.to_owned());
    }
    let edited = change_text(body, changes)?;
    if values(&edited)? == expected {
        Ok(format!("{mark}{edited}"))
    } else {
        Err(EditError::Astray)
    }
}

/// Returns the entries of `mcpServers` in their order, from a file of pml.
pub fn servers(text: &str) -> Result<Map<String, Value>, EditError> {
    let mut file = values(text.strip_prefix('\u{feff}').unwrap_or(text))?;
    match file.remove("mcpServers") {
        Some(Value::Object(servers)) => Ok(servers),
        Some(_) => Err(shape("mcpServers")),
        None => Ok(Map::new()),
    }
}

fn values(text: &str) -> Result<Map<String, Value>, EditError> {
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &dialect())
        .map_err(|error| syntax(&error))?;
    match parsed.value.map(Value::from) {
        Some(Value::Object(object)) => Ok(object),
        _ => Err(NOT_AN_OBJECT),
    }
}

fn syntax(error: &ParseError) -> EditError {
    EditError::Syntax {
        reason: error.to_string(),
    }
}

const NOT_AN_OBJECT: EditError = EditError::Shape {
    place: "the file",
    expected: "an object",
};

const NOT_DECLARED: EditError = EditError::Shape {
    place: "the declaration of the server",
    expected: "as it was when it was read",
};

fn object_at<'a>(
    parent: &'a mut Map<String, Value>,
    key: &'static str,
) -> Result<&'a mut Map<String, Value>, EditError> {
    match parent.entry(key).or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(object) => Ok(object),
        _ => Err(shape(key)),
    }
}

fn shape(key: &'static str) -> EditError {
    EditError::Shape {
        place: key,
        expected: match key {
            "allow" | "deny" | "ask" => "a list",
            _ => "an object",
        },
    }
}

/// Makes a change on bare values; what it says is what the text must say afterwards.
fn change_values(root: &mut Map<String, Value>, change: &ConfigChange) -> Result<(), EditError> {
    match change.step() {
        EditStep::Rule(Move { text, from, into }) => {
            if into.is_none() && !root.contains_key("permissions") {
                return Ok(());
            }
            let permissions = object_at(root, "permissions")?;
            for list in from {
                if let Some(entries) = permissions.get_mut(list.key()) {
                    let entries = entries.as_array_mut().ok_or(shape(list.key()))?;
                    entries.retain(|entry| entry != text.as_ref());
                }
            }
            if let Some(list) = into {
                let entries = permissions
                    .entry(list.key())
                    .or_insert_with(|| Value::Array(Vec::new()))
                    .as_array_mut()
                    .ok_or(shape(list.key()))?;
                if !entries.iter().any(|entry| entry == text.as_ref()) {
                    entries.push(Value::from(text.as_ref()));
                }
            }
        }
        EditStep::Put(name, entry) => {
            object_at(root, "mcpServers")?.insert(name.to_owned(), entry.clone());
        }
        EditStep::Pin(name, word, text) => {
            let servers = object_at(root, "mcpServers")?;
            let entry = servers.get_mut(name).and_then(Value::as_object_mut);
            let place = entry.and_then(|entry| match word {
                LaunchWord::Package => entry.get_mut("package"),
                LaunchWord::Argument(index) => entry.get_mut("args")?.get_mut(index),
            });
            *place.ok_or(NOT_DECLARED)? = Value::from(text);
        }
        EditStep::Remove(name) => {
            if root.contains_key("mcpServers") {
                // The plain `remove` would change the order of the others.
                object_at(root, "mcpServers")?.shift_remove(name);
            }
        }
        EditStep::People(channel, id, membership) => people::change_values(root, channel, id, membership)?,
    }
    Ok(())
}

fn change_text(text: &str, changes: &[ConfigChange]) -> Result<String, EditError> {
    let tree = CstRootNode::parse(text, &dialect()).map_err(|error| syntax(&error))?;
    let root = tree.object_value().ok_or(NOT_AN_OBJECT)?;
    for change in changes {
        change_tree(&root, change)?;
    }
    Ok(tree.to_string())
}

fn change_tree(root: &CstObject, change: &ConfigChange) -> Result<(), EditError> {
    let child = |key| root.object_value_or_create(key).ok_or(shape(key));
    match change.step() {
        EditStep::Rule(Move { text, from, into }) => {
            if into.is_none() && root.get("permissions").is_none() {
                return Ok(());
            }
            let permissions = child("permissions")?;
            for list in from {
                remove_elements(permissions.array_value(list.key()).as_ref(), |entry| {
                    is(entry, &text)
                });
            }
            if let Some(list) = into {
                let entries = permissions
                    .array_value_or_create(list.key())
                    .ok_or(shape(list.key()))?;
                if !entries.elements().iter().any(|entry| is(entry, &text)) {
                    entries.append(CstInputValue::String(text.into_owned()));
                }
            }
        }
        EditStep::Put(name, entry) => {
            let servers = child("mcpServers")?;
            match servers.get(name) {
                Some(old) if old.to_serde_value().as_ref() == Some(entry) => {}
                Some(old) => old.set_value(input(entry)),
                None => drop(servers.append(name, input(entry))),
            }
        }
        EditStep::Pin(name, word, text) => {
            let servers = root.object_value("mcpServers");
            let entry = servers.and_then(|servers| servers.get(name)?.object_value());
            let entry = entry.ok_or(NOT_DECLARED)?;
            let text = CstInputValue::String(text.to_owned());
            match word {
                LaunchWord::Package => entry.get("package").ok_or(NOT_DECLARED)?.set_value(text),
                LaunchWord::Argument(index) => {
                    let args = entry.array_value("args").map(|args| args.elements());
                    let word = args.and_then(|args| args.into_iter().nth(index));
                    let word = word.and_then(|word| word.as_string_lit()).ok_or(NOT_DECLARED)?;
                    drop(word.replace_with(text));
                }
            }
        }
        EditStep::Remove(name) => {
            let servers = root.object_value("mcpServers");
            if let Some(server) = servers.and_then(|servers| servers.get(name)) {
                server.remove();
            }
        }
        EditStep::People(channel, id, membership) => people::change_tree(root, channel, id, membership)?,
    }
    Ok(())
}

fn remove_elements(array: Option<&CstArray>, meant: impl Fn(&CstNode) -> bool) {
    let Some(array) = array else { return };
    // The space between the first two would be left over after the bracket.
    let space = || array.child_at_index(1).and_then(|child| child.as_whitespace());
    let spaced = space().is_some();
    for element in array.elements() {
        if meant(&element) {
            element.remove();
        }
    }
    if !spaced && let Some(space) = space() {
        space.remove();
    }
}

fn is(element: &CstNode, text: &str) -> bool {
    element
        .as_string_lit()
        .and_then(|literal| literal.decoded_value().ok())
        .is_some_and(|value| value == text)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(elements) => CstInputValue::Array(elements.iter().map(input).collect()),
        Value::Object(properties) => CstInputValue::Object(
            properties
                .iter()
                .map(|(key, value)| (key.clone(), input(value)))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests;
