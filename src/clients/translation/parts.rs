//! The values of a server's keys, in the types that they must have.

use serde_json::{Map, Value, json};

use crate::protocol::Shown;

/// Says that a value is of another type than the key needs.
pub(super) fn odd(key: &str, expected: &str) -> String {
    format!("its `{}` is not {expected}", Shown::line(key))
}

pub(super) fn text<'a>(key: &str, value: &'a Value) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| odd(key, "a text"))
}

pub(super) fn texts(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let list = || odd(key, "a list of texts");
    let elements = value.as_array().ok_or_else(list)?;
    elements
        .iter()
        .map(|element| match element {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            _ => Err(list()),
        })
        .collect()
}

/// Reads variables or headers; numbers and booleans are taken as they are written.
pub(super) fn pairs(key: &str, value: &Value) -> Result<Vec<(String, String)>, String> {
    let object = || odd(key, "an object of texts");
    let members: &Map<String, Value> = value.as_object().ok_or_else(object)?;
    members
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name.clone(), text.clone())),
            Value::Number(_) | Value::Bool(_) => Ok((name.clone(), value.to_string())),
            _ => Err(object()),
        })
        .collect()
}

/// Reads a time of which `per_second` fit into a second, as whole seconds.
pub(super) fn seconds(key: &str, value: &Value, per_second: u64) -> Result<u64, String> {
    if let Some(whole) = value.as_u64() {
        return Ok(whole.div_ceil(per_second));
    }
    let fraction = value.as_f64().filter(|found| *found >= 0.0 && *found < 1e9);
    let fraction = fraction.ok_or_else(|| odd(key, "a time"))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is positive and below a billion"
    )]
    let whole = fraction.ceil() as u64;
    Ok(whole.div_ceil(per_second))
}

/// Writes variables or headers as they stand in an entry.
pub(super) fn objects(pairs: &[(String, String)]) -> Map<String, Value> {
    pairs
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect()
}

/// Returns the value of `"tools"`: what is used, then what is not; `None` where everything is.
pub(super) fn tool_filter(only: Option<Vec<String>>, without: &[String]) -> Option<Vec<String>> {
    let only = only.filter(|only| !only.iter().any(|tool| tool == "*"));
    let excluded = without.iter().map(|tool| format!("!{tool}"));
    match only {
        None if without.is_empty() => None,
        None => Some(std::iter::once("*".to_owned()).chain(excluded).collect()),
        Some(only) if only.is_empty() => Some(vec!["!*".to_owned()]),
        Some(only) => Some(only.into_iter().chain(excluded).collect()),
    }
}
