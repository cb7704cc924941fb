//! JSON with comments: the edit is made on the concrete syntax tree.

use jsonc_parser::CollectOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};

use super::{Change, not_an_object};
use crate::config::dialect;

pub(super) fn values(text: &str) -> Result<Map<String, Value>, String> {
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &dialect())
        .map_err(|error| error.to_string())?;
    match parsed.value.map(Value::from) {
        Some(Value::Object(object)) => Ok(object),
        _ => Err("it is not an object".to_owned()),
    }
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
