//! JSON with comments: the edit is made on the concrete syntax tree.

use jsonc_parser::CollectOptions;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};

use super::{Change, not_an_object};
use crate::config::dialect;
use crate::protocol::Shown;

pub(super) fn values(text: &str) -> Result<Map<String, Value>, String> {
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &dialect())
        .map_err(|error| error.to_string())?;
    match parsed.value.map(Value::from) {
        Some(Value::Object(object)) => Ok(object),
        _ => Err("it is not an object".to_owned()),
    }
}

/// Finds a key that stands twice on the way to the servers, or among them: which of the two counts is not for pml to say.
pub(super) fn declared_twice(text: &str, key: &[String]) -> Option<String> {
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &dialect()).ok()?;
    let line = |at: usize| text.get(..at).unwrap_or(text).matches('\n').count() + 1;
    let Some(jsonc_parser::ast::Value::Object(root)) = parsed.value else {
        return None;
    };
    let mut place = &root;
    for depth in 0..=key.len() {
        let properties = &place.properties;
        for (at, property) in properties.iter().enumerate() {
            let name = property.name.as_str();
            let first = properties[..at]
                .iter()
                .find(|before| before.name.as_str() == name);
            if let Some(first) = first {
                return Some(format!(
                    "`{}` stands in it twice, in line {} and in line {}; keep one of them",
                    Shown::line(name),
                    line(first.start()),
                    line(property.start())
                ));
            }
        }
        let next = properties
            .iter()
            .find(|property| Some(property.name.as_str()) == key.get(depth).map(String::as_str))?;
        let jsonc_parser::ast::Value::Object(next) = &next.value else {
            return None;
        };
        place = next;
    }
    None
}

pub(super) fn edited(text: &str, key: &[String], changes: &[Change]) -> Result<String, String> {
    let tree = CstRootNode::parse(text, &dialect()).map_err(|error| error.to_string())?;
    let mut place = tree
        .object_value()
        .ok_or_else(|| "it is not an object".to_owned())?;
    for step in key {
        place = place
            .object_value_or_create(step)
            .ok_or_else(|| not_an_object(step))?;
    }
    for change in changes {
        match change {
            Change::Put(name, entry) => put(&place, name, entry),
            Change::Remove(name) => {
                if let Some(property) = place.get(name) {
                    property.remove();
                }
            }
        }
    }
    Ok(tree.to_string())
}

fn put(place: &CstObject, name: &str, entry: &Value) {
    match place.get(name) {
        Some(old) if old.to_serde_value().as_ref() == Some(entry) => {}
        Some(old) => old.set_value(input(entry)),
        None => drop(place.append(name, input(entry))),
    }
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
