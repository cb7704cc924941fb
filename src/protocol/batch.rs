//! Several messages in one line, as JSON-RPC batches were allowed before 2025-06-18.

use bytes::Bytes;
use serde_json::value::RawValue;

/// Returns the elements of a line that is a JSON array; `None` if it is not one.
#[must_use]
pub fn elements(line: &Bytes) -> Option<Vec<Bytes>> {
    if !line.trim_ascii_start().starts_with(b"[") {
        return None;
    }
    let elements: Vec<&RawValue> = serde_json::from_slice(line).ok()?;
    Some(
        elements
            .into_iter()
            .map(|element| line.slice_ref(element.get().as_bytes()))
            .collect(),
    )
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
    }
}
