//! Schemas that clients can compile.
//!
//! A client compiles the output schemas of a list as soon as it has it, and gives up the whole list where one of them
//! fails. What compiles is what JSON Schema allows, in the vocabulary of draft 7 that the compiler of the official
//! clients knows; it passes over what it does not know. In doubt a schema does not count as one that compiles.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::pattern;

/// The names of types.
const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "null", "object", "array",
];

/// How many references may lead to each other before one leads to a schema: more are a circle, or as good as one.
const REFERENCES: usize = 16;

/// Members by which a schema within a schema gets a name, which may be that of a schema of another tool.
const NAMES: [&str; 3] = ["$id", "$anchor", "$dynamicAnchor"];

/// Tells whether a text is a schema that clients can compile.
pub(super) fn compiles(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|root| {
        let mut check = Check {
            root: &root,
            waiting: vec![&root],
            met: HashSet::new(),
        };
        check.run() && root.as_object().is_some_and(has_plain_root)
    })
}

/// Tells whether no other schema is named in an object, and its own name is one.
fn has_plain_root(root: &Map<String, Value>) -> bool {
    let id = root
        .get("$id")
        .is_none_or(|id| id.as_str().is_some_and(is_plain_name));
    let schema = root.get("$schema").is_none_or(Value::is_string);
    id && schema && root.values().all(is_nameless)
}

/// Tells whether a name of a schema is an address without anything that must be resolved.
fn is_plain_name(id: &str) -> bool {
    id.contains("://")
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b":/.-_".contains(&byte))
}

fn is_nameless(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            let named = NAMES
                .iter()
                .any(|name| members.get(*name).is_some_and(Value::is_string));
            !named && members.values().all(is_nameless)
        }
        Value::Array(elements) => elements.iter().all(is_nameless),
        _ => true,
    }
}

/// The schemas of one text that have been met and those that are still to be looked at.
struct Check<'a> {
    root: &'a Value,
    waiting: Vec<&'a Value>,
    met: HashSet<*const Value>,
}

impl<'a> Check<'a> {
    /// Looks at each schema once.
    fn run(&mut self) -> bool {
        while let Some(schema) = self.waiting.pop() {
            if !self.met.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            let fits = match schema {
                Value::Bool(_) => true,
                Value::Object(members) => {
                    members.iter().all(|(name, value)| self.fits(name, value)) && is_nullable_rightly(members)
                }
                _ => false,
            };
            if !fits {
                return false;
            }
        }
        true
    }

    /// Tells whether a keyword has a value that it may have; the schemas in it are looked at later.
    fn fits(&mut self, keyword: &str, value: &'a Value) -> bool {
        match keyword {
            "type" => match value {
                Value::Array(types) => !types.is_empty() && types.iter().all(is_type),
                one => is_type(one),
            },
            "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames"
            | "additionalProperties"
            | "additionalItems" => self.wait_for(value),
            "items" => match value {
                Value::Array(schemas) => schemas.iter().all(|schema| self.wait_for(schema)),
                one => self.wait_for(one),
            },
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => value.as_array().is_some_and(|schemas| {
                !schemas.is_empty() && schemas.iter().all(|schema| self.wait_for(schema))
            }),
            "properties" | "definitions" | "$defs" | "dependentSchemas" => value
                .as_object()
                .is_some_and(|schemas| schemas.values().all(|schema| self.wait_for(schema))),
            "patternProperties" => value.as_object().is_some_and(|schemas| {
                let mut schemas = schemas.iter();
                schemas.all(|(name, schema)| pattern::is_common(name) && self.wait_for(schema))
            }),
            "dependencies" => value.as_object().is_some_and(|found| {
                let mut found = found.values();
                found.all(|found| are_texts(found) || self.wait_for(found))
            }),
            "required" => are_texts(value),
            "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
            "pattern" => value.as_str().is_some_and(pattern::is_common),
            "format" => value.as_str().is_some_and(is_format),
            "$ref" => value.as_str().is_some_and(|reference| self.follow(reference)),
            "$id" | "$comment" | "title" | "description" => value.is_string(),
            "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" | "multipleOf" => {
                value.is_number()
            }
            "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties"
            | "maxContains" | "minContains" => value.is_u64(),
            "uniqueItems" | "nullable" => value.is_boolean(),
            // Older or of a validator's own; they are refused, or change what the whole schema means.
            "id"
            | "$async"
            | "$recursiveRef"
            | "$dynamicRef"
            | "formatMinimum"
            | "formatMaximum"
            | "formatExclusiveMinimum"
            | "formatExclusiveMaximum" => false,
            _ => true,
        }
    }

    fn wait_for(&mut self, schema: &'a Value) -> bool {
        self.waiting.push(schema);
        matches!(schema, Value::Object(_) | Value::Bool(_))
    }

    /// Follows a reference within the text to the schema it means.
    fn follow(&mut self, reference: &str) -> bool {
        let mut reference = reference;
        for _ in 0..REFERENCES {
            let target = match reference.strip_prefix('#') {
                Some("") => Some(self.root),
                // What is percent-encoded stands for another name.
                Some(pointer) if !pointer.contains('%') => self.root.pointer(pointer),
                _ => None,
            };
            let Some(target) = target.filter(|target| self.wait_for(target)) else {
                return false;
            };
            match target.get("$ref").map(Value::as_str) {
                None => return true,
                Some(None) => return false,
                Some(Some(next)) => reference = next,
            }
        }
        false
    }
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn are_texts(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|values| values.iter().all(Value::is_string))
}

/// Tells whether a text can name a format; the names that every object of `JavaScript` has are none.
fn is_format(name: &str) -> bool {
    name != "constructor"
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Tells whether `nullable` stands beside a type, which it may not contradict.
fn is_nullable_rightly(schema: &Map<String, Value>) -> bool {
    let Some(nullable) = schema.get("nullable") else {
        return true;
    };
    schema.get("type").is_some_and(|types| {
        let null = Value::from("null");
        let has_null = types == &null || types.as_array().is_some_and(|types| types.contains(&null));
        !(has_null && nullable == &Value::Bool(false))
    })
}
