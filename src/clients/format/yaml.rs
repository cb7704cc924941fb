//! YAML, which is read only.

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Number, Value};

/// An alias can stand for a text that is written once and meant a million times.
const VALUES: usize = 100_000;

pub(super) fn values(text: &str) -> Result<Map<String, Value>, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| error.to_string())?;
    let mut left = VALUES;
    match documents.first().map(|document| value(document, &mut left)) {
        None => Ok(Map::new()),
        Some(Some(Value::Object(object))) => Ok(object),
        Some(Some(_)) => Err("it is not a mapping".to_owned()),
        Some(None) => {
            Err("it has more values than any configuration, or one that is none of JSON".to_owned())
        }
    }
}

fn value(node: &Yaml<'_>, left: &mut usize) -> Option<Value> {
    *left = left.checked_sub(1)?;
    Some(match node {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => Value::from(*value),
        Yaml::Value(Scalar::Integer(value)) => Value::from(*value),
        Yaml::Value(Scalar::FloatingPoint(value)) => Value::Number(Number::from_f64(value.into_inner())?),
        Yaml::Value(Scalar::String(text)) | Yaml::Representation(text, ..) => Value::from(text.as_ref()),
        Yaml::Sequence(elements) => {
            let elements: Option<Vec<_>> = elements.iter().map(|element| value(element, left)).collect();
            Value::Array(elements?)
        }
        Yaml::Mapping(members) => {
            let mut object = Map::new();
            for (key, member) in members {
                let Value::String(key) = value(key, left)? else {
                    return None;
                };
                object.insert(key, value(member, left)?);
            }
            Value::Object(object)
        }
        Yaml::Tagged(_, inner) => value(inner, left)?,
        Yaml::Alias(_) | Yaml::BadValue => return None,
    })
}
