//! A JSON value as a tree that loses nothing a reader could tell apart: numbers are their text, members keep their order.

use super::scan::{Key, Opened, Scanner};
use super::{Json, text};

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonTree {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    /// A string, decoded.
    Text(String),
    /// An array.
    Array(Vec<JsonTree>),
    /// An object; its members in their order.
    Object(Vec<(String, JsonTree)>),
}

impl JsonTree {
    /// Reads a value; `None` where it holds half a surrogate pair, which no text can.
    ///
    /// The scanner bounds how deep this recurses.
    #[must_use]
    pub fn read(json: Json<'_>) -> Option<Self> {
        next(&mut Scanner::new(json.get()))
    }
}

fn next(scanner: &mut Scanner<'_>) -> Option<JsonTree> {
    Some(match scanner.open().ok()? {
        Opened::Object => {
            let mut members = Vec::new();
            while let Some(key) = scanner.key().ok()? {
                let name = match key {
                    Key::Plain(name) => name.to_owned(),
                    Key::Escaped(written) => text(Json::known(written))?.into_owned(),
                };
                members.push((name, next(scanner)?));
            }
            JsonTree::Object(members)
        }
        Opened::Array => {
            let mut elements = Vec::new();
            while scanner.element().ok()? {
                elements.push(next(scanner)?);
            }
            JsonTree::Array(elements)
        }
        Opened::Scalar(json) => match json.get() {
            "null" => JsonTree::Null,
            "true" => JsonTree::Bool(true),
            "false" => JsonTree::Bool(false),
            written if written.starts_with('"') => JsonTree::Text(text(json)?.into_owned()),
            number => JsonTree::Number(number.to_owned()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_members_their_order() {
        let text = r#" { "b\u0062" : [ 1.0, 12345678901234567890123, null, true ], "a": "\u00e4\n" } "#;
        let number = |text: &str| JsonTree::Number(text.to_owned());
        assert_eq!(
            JsonTree::read(Json::parse(text).unwrap()),
            Some(JsonTree::Object(vec![
                (
                    "bb".to_owned(),
                    JsonTree::Array(vec![
                        number("1.0"),
                        number("12345678901234567890123"),
                        JsonTree::Null,
                        JsonTree::Bool(true),
                    ])
                ),
                ("a".to_owned(), JsonTree::Text("ä\n".to_owned())),
            ]))
        );
        assert_eq!(JsonTree::read(Json::parse(r#"["\ud800"]"#).unwrap()), None);
    }
}
