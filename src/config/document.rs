//! A serde deserializer for JSON with comments that keeps the position of every value.
//!
//! Own deserializer over the syntax tree instead of a detour through values: every fault carries the position of
//! the innermost node it concerns, an unknown key knows the valid ones, and no message ever repeats a value of
//! the file, which may be a secret.

use std::collections::HashSet;
use std::fmt;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions};
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IntoDeserializer as _, MapAccess, SeqAccess, Unexpected,
    Visitor,
};

use super::Problem;
use crate::protocol::Shown;

/// A problem and the byte where it stands.
#[derive(Debug)]
pub(crate) struct DocumentFault {
    pub(crate) at: Option<usize>,
    pub(crate) problem: Problem,
}

impl DocumentFault {
    pub(crate) fn new(at: usize, problem: Problem) -> Self {
        Self {
            at: Some(at),
            problem,
        }
    }

    fn nowhere(problem: Problem) -> Self {
        Self { at: None, problem }
    }

    /// Places the fault unless something further inside already did.
    fn or_at(mut self, at: usize) -> Self {
        self.at.get_or_insert(at);
        self
    }
}

/// What is accepted beside plain JSON: comments and trailing commas, nothing else.
pub(crate) fn dialect() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Parses `text` to its one value; the parser itself refuses more than 512 levels.
pub(crate) fn parse(text: &str) -> Result<Value<'_>, DocumentFault> {
    let parsed =
        jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &dialect()).map_err(|error| {
            let reason = error.kind().to_string();
            let mut letters = reason.chars();
            let lower = letters
                .next()
                .map(|first| first.to_ascii_lowercase())
                .into_iter()
                .chain(letters);
            DocumentFault::new(error.range().start, Problem::Syntax(lower.collect()))
        })?;
    parsed.value.ok_or_else(|| DocumentFault::new(0, Problem::Empty))
}

/// Reads a `T` from a syntax tree.
pub(crate) fn read<'de, T: de::Deserialize<'de>>(value: &'de Value<'de>) -> Result<T, DocumentFault> {
    T::deserialize(Node(value)).map_err(|fault| fault.or_at(value.start()))
}

/// Returns line and column of a byte, both from 1, the column in characters.
pub(crate) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |found| found + 1);
    (line, before[start..].chars().count() + 1)
}

struct Node<'de>(&'de Value<'de>);

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = DocumentFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentFault> {
        match self.0 {
            Value::StringLit(text) => visitor.visit_str(&text.value),
            Value::NumberLit(number) => visit_number(number.value, visitor),
            Value::BooleanLit(boolean) => visitor.visit_bool(boolean.value),
            Value::NullKeyword(_) => visitor.visit_unit(),
            Value::Array(array) => visitor.visit_seq(Elements::of(array)),
            Value::Object(object) => visitor.visit_map(Properties::of(object)?),
        }
        .map_err(|fault| fault.or_at(self.0.start()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentFault> {
        match self.0 {
            Value::NullKeyword(_) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DocumentFault> {
        visitor.visit_newtype_struct(self)
    }

    /// Derived structs also read lists, field by field; a file that does so is a mistake.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DocumentFault> {
        match self.0 {
            Value::Array(_) => Err(de::Error::invalid_type(Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DocumentFault> {
        match self.0 {
            Value::StringLit(text) => visitor
                .visit_enum(text.value.as_ref().into_deserializer())
                .map_err(|fault: DocumentFault| fault.or_at(self.0.start())),
            _ => self.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

fn visit_number<'de, V: Visitor<'de>>(text: &str, visitor: V) -> Result<V::Value, DocumentFault> {
    if let Ok(number) = text.parse::<u64>() {
        visitor.visit_u64(number)
    } else if let Ok(number) = text.parse::<i64>() {
        visitor.visit_i64(number)
    } else if let Ok(number) = text.parse::<f64>() {
        visitor.visit_f64(number)
    } else {
        Err(DocumentFault::nowhere(Problem::Syntax("not a number".to_owned())))
    }
}

struct Elements<'de>(std::slice::Iter<'de, Value<'de>>);

impl<'de> Elements<'de> {
    fn of(array: &'de Array<'de>) -> Self {
        Self(array.elements.iter())
    }
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = DocumentFault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, DocumentFault> {
        let Some(value) = self.0.next() else {
            return Ok(None);
        };
        seed.deserialize(Node(value))
            .map(Some)
            .map_err(|fault| fault.or_at(value.start()))
    }
}

struct Properties<'de> {
    rest: std::slice::Iter<'de, ObjectProp<'de>>,
    current: Option<&'de ObjectProp<'de>>,
}

impl<'de> Properties<'de> {
    /// A key that stands twice is refused: which one counts would depend on the reader.
    fn of(object: &'de Object<'de>) -> Result<Self, DocumentFault> {
        let mut seen = HashSet::new();
        for property in &object.properties {
            let key = property.name.as_str();
            if !seen.insert(key) {
                let key = Shown::line(key).to_string();
                return Err(DocumentFault::new(
                    property.name.start(),
                    Problem::DuplicateKey { key },
                ));
            }
        }
        Ok(Self {
            rest: object.properties.iter(),
            current: None,
        })
    }
}

impl<'de> MapAccess<'de> for Properties<'de> {
    type Error = DocumentFault;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, DocumentFault> {
        self.current = self.rest.next();
        let Some(property) = self.current else {
            return Ok(None);
        };
        let key: de::value::StrDeserializer<'_, DocumentFault> = property.name.as_str().into_deserializer();
        seed.deserialize(key)
            .map(Some)
            .map_err(|fault| fault.or_at(property.name.start()))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, DocumentFault> {
        let Some(property) = self.current.take() else {
            return Err(DocumentFault::nowhere(Problem::Empty));
        };
        seed.deserialize(Node(&property.value))
            .map_err(|fault| fault.or_at(property.value.start()))
    }
}

impl fmt::Display for DocumentFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(formatter)
    }
}

impl std::error::Error for DocumentFault {}

impl de::Error for DocumentFault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::nowhere(Problem::Refused(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::nowhere(Problem::Type {
            found: kind(&found),
            expected: match expected.to_string().as_str() {
                "a sequence" => "a list".to_owned(),
                "a map" => "an object".to_owned(),
                "u64" => "a whole number".to_owned(),
                own => own.to_owned(),
            },
        })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_field(key: &str, expected: &'static [&'static str]) -> Self {
        Self::nowhere(Problem::UnknownKey {
            key: Shown::line(key).to_string(),
            nearest: super::nearest(key, expected.iter().copied()).map(str::to_owned),
            expected,
        })
    }

    fn unknown_variant(value: &str, expected: &'static [&'static str]) -> Self {
        Self::nowhere(Problem::UnknownValue {
            value: Shown::line(value).to_string(),
            expected,
        })
    }
}

/// Names what was found without repeating it.
fn kind(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Signed(..0) => "a negative number",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "a whole number",
        Unexpected::Float(_) => "a number with a fraction",
        Unexpected::Str(_) | Unexpected::Char(_) | Unexpected::Bytes(_) => "a string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "a list",
        _ => "an object",
    }
}
