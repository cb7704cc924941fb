//! Mends definitions of tools that clients cannot read.
//!
//! The official clients check a list as a whole: one tool without `"type":"object"` in its `inputSchema`, as a server
//! with two versions of its schema library sends it, costs the client the tools of every server behind pml. What has
//! the wrong JSON type is left out, what is missing is added, and everything else stays the text that was sent.

use bytes::Bytes;

use super::{Object, Splice};

/// The members that a client reads, and how the text of their values begins.
const MEMBERS: [(&str, char); 7] = [
    ("title", '"'),
    ("description", '"'),
    ("annotations", '{'),
    ("outputSchema", '{'),
    ("execution", '{'),
    ("_meta", '{'),
    ("icons", '['),
];

/// The schema of a tool that takes anything.
const ANY: &str = r#"{"type":"object"}"#;

/// Returns a definition as clients can read it; `None` where they can read it as it is.
#[must_use]
pub fn mended_tool(definition: &str) -> Option<String> {
    let tool = Object::parse(definition)?;
    let mut splice = None;
    let mut mend = |place: std::ops::Range<usize>, text: &str| {
        splice
            .get_or_insert_with(|| Splice::new(Bytes::copy_from_slice(definition.as_bytes())))
            .replace(place, text.to_owned());
    };
    let wrong: Vec<&str> = MEMBERS
        .into_iter()
        .filter(|(member, begins)| {
            tool.value(member)
                .is_some_and(|value| !value.get().starts_with(*begins))
        })
        .map(|(member, _)| member)
        .collect();
    for cut in tool.cuts(&wrong) {
        mend(cut, "");
    }
    match tool.value("inputSchema") {
        None => mend(tool.front()..tool.front(), &format!(r#""inputSchema":{ANY},"#)),
        Some(value) => match Object::parse(value.get()) {
            None => mend(tool.value_place(value), ANY),
            Some(schema) => {
                let start = tool.value_place(value).start;
                match schema.value("type") {
                    Some(kind) if kind.get() == r#""object""# => {}
                    Some(kind) => {
                        let place = schema.value_place(kind);
                        mend(start + place.start..start + place.end, r#""object""#);
                    }
                    None => {
                        let comma = if schema.is_empty() { "" } else { "," };
                        let front = start + schema.front();
                        mend(front..front, &format!(r#""type":"object"{comma}"#));
                    }
                }
            }
        },
    }
    splice.map(Splice::into_text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::growth::assert_linear_on_hostile;

    #[test]
    fn mending_is_linear() {
        assert_linear_on_hostile("mended tool", |text| {
            drop(mended_tool(text));
            let definition = format!(r#"{{"description":{text},"inputSchema":{text},"icons":{text}}}"#);
            drop(mended_tool(&definition));
        });
    }

    #[test]
    fn what_clients_can_read_stays_as_it_is() {
        for definition in [
            r#"{"name":"a","inputSchema":{"type":"object"}}"#,
            r#"{ "inputSchema" : { "properties":{}, "type":"object" }, "description":"", "x":1.0, "icons":[] }"#,
        ] {
            assert_eq!(mended_tool(definition), None, "{definition}");
        }
    }

    #[test]
    fn what_they_cannot_read_is_mended_and_the_rest_stays() {
        for (definition, expected) in [
            (
                r#"{"name":"a","inputSchema":{"$schema":"x"},"y":1.0}"#,
                r#"{"name":"a","inputSchema":{"type":"object","$schema":"x"},"y":1.0}"#,
            ),
            (
                r#"{"name":"a","inputSchema":{}}"#,
                r#"{"name":"a","inputSchema":{"type":"object"}}"#,
            ),
            (
                r#"{"name":"a","inputSchema":{"type":["object"]}}"#,
                r#"{"name":"a","inputSchema":{"type":"object"}}"#,
            ),
            (
                r#"{"name":"a","inputSchema":null}"#,
                r#"{"name":"a","inputSchema":{"type":"object"}}"#,
            ),
            (
                r#"{"name":"a"}"#,
                r#"{"inputSchema":{"type":"object"},"name":"a"}"#,
            ),
            (
                r#"{"description":null,"name":"a","inputSchema":{"type":"object"},"annotations":7}"#,
                r#"{"name":"a","inputSchema":{"type":"object"}}"#,
            ),
        ] {
            assert_eq!(mended_tool(definition).as_deref(), Some(expected), "{definition}");
        }
    }
}
