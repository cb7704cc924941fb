//! A JSON-RPC batch: several messages in one line, which MCP allowed before 2025-06-18.

use std::fmt;

use bytes::Bytes;
use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// More messages than any peer puts in one line; each costs more than its bytes.
const MOST: usize = 10_000;

/// Returns the elements of a line that is a JSON array; `None` if it is not one, or has too many.
///
/// They are cut at one level only: a batch within a batch is an element like any other, and no message.
#[must_use]
pub fn elements(line: &Bytes) -> Option<Vec<Bytes>> {
    if !line.trim_ascii_start().starts_with(b"[") {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let elements = deserializer.deserialize_seq(Elements).ok()?;
    deserializer.end().ok()?;
    Some(
        elements
            .into_iter()
            .map(|element| line.slice_ref(element.get().as_bytes()))
            .collect(),
    )
}

struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element()? {
            if elements.len() == MOST {
                return Err(A::Error::custom("too many messages"));
            }
            elements.push(element);
        }
        Ok(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_cut_into_its_messages() {
        let cut = |text: &'static str| {
            elements(&Bytes::from_static(text.as_bytes())).map(|elements| {
                elements
                    .iter()
                    .map(|element| String::from_utf8_lossy(element).into_owned())
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(
            cut(r#" [{"id":1} , {"id": 2}]"#),
            Some(vec![r#"{"id":1}"#.to_owned(), r#"{"id": 2}"#.to_owned()])
        );
        assert_eq!(cut("[]"), Some(vec![]));
        assert_eq!(cut(r#"{"id":1}"#), None);
        assert_eq!(cut(r#"[{"id":1}"#), None);
        assert_eq!(cut("[[1],[[]]]"), Some(vec!["[1]".to_owned(), "[[]]".to_owned()]));
    }

    #[test]
    fn a_line_of_countless_or_endlessly_nested_elements_costs_next_to_nothing() {
        let many = |count: usize| elements(&format!("[{}1]", "1,".repeat(count - 1)).into());
        assert_eq!(many(MOST).map(|elements| elements.len()), Some(MOST));
        assert_eq!(many(MOST + 1), None);
        let nested = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        let cut = elements(&nested.into()).unwrap();
        assert_eq!(cut.iter().map(Bytes::len).collect::<Vec<_>>(), [1_999_998]);
    }
}
