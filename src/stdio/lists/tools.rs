//! How tools are listed: the definition of their dependency with the wire name, and room for a continuation.
//!
//! A tool that may answer `approval_required` is listed without its `outputSchema`: clients refuse a result whose
//! `structuredContent` does not match one. Everything else of a definition stays the text its dependency sent.

use bytes::Bytes;
use serde_json::json;

use crate::protocol::continuation::{self, MEMBER};
use crate::protocol::{
    DefinitionKind, Era, Object, Splice, mended_definition, quoted, wire_name, without_imitation,
};
use crate::proxy::{AskPossibility, ListedTool};

/// The tools of a `tools/list` result.
#[derive(Debug)]
pub(crate) struct ToolArray {
    /// The JSON array.
    pub(crate) text: String,
    /// The wire names of those that are listed with an output schema.
    pub(crate) with_output_schema: Vec<String>,
}

/// Writes the tools as clients of an era read them.
pub(crate) fn tools(listed: &[ListedTool], own: &[serde_json::Value], era: Era) -> ToolArray {
    let mut with_output_schema = Vec::new();
    let length: usize = listed
        .iter()
        .map(|tool| match tool {
            // A wire name and a continuation are the most that is added.
            ListedTool::Known { definition, .. } => definition.get().len() + 128,
            ListedTool::Connect { about, .. } => about.len() + 1024,
        })
        .sum();
    // Reserved at once: the list of a thousand tools would be copied many times over while it grows.
    let mut text = String::with_capacity(length + 16 * 1024);
    text.push('[');
    for tool in listed {
        match tool {
            ListedTool::Known {
                tool,
                definition,
                place,
                asking: asks,
            } => {
                let mended = mended_definition(DefinitionKind::Tool(era), definition.get());
                let readable = mended.as_deref().unwrap_or(definition.get());
                let changed = without_imitation(tool.dependency(), tool.tool(), readable).or(mended);
                let moved = changed
                    .as_deref()
                    .and_then(|changed| Object::parse(changed)?.place("name"));
                let place = moved.as_ref().unwrap_or(place);
                let definition = changed.as_deref().unwrap_or(definition.get());
                match asks {
                    AskPossibility::Never => {
                        text.push_str(&definition[..place.start]);
                        let wire = wire_name(tool);
                        text.push_str(&quoted(&wire));
                        text.push_str(&definition[place.end..]);
                        if has_output_schema(definition) {
                            with_output_schema.push(wire);
                        }
                    }
                    AskPossibility::Possible => asking(&mut text, definition, &wire_name(tool)),
                }
            }
            ListedTool::Connect { tool, about } => text.push_str(&connect(&wire_name(tool), about)),
        }
        text.push(',');
    }
    for tool in own {
        text.push_str(&tool.to_string());
        text.push(',');
    }
    if text.ends_with(',') {
        text.pop();
    }
    text.push(']');
    ToolArray {
        text,
        with_output_schema,
    }
}

fn has_output_schema(definition: &str) -> bool {
    definition.contains("outputSchema")
        && Object::parse(definition).is_some_and(|tool| tool.value("outputSchema").is_some())
}

/// Writes a tool that may be asked for: it takes a continuation, and promises no output.
fn asking(text: &mut String, definition: &str, wire: &str) {
    // The catalog keeps objects only.
    let Some(object) = Object::parse(definition) else {
        return text.push_str(definition);
    };
    let mut splice = Splice::new(Bytes::copy_from_slice(definition.as_bytes()));
    if let Some(place) = object.place("name") {
        splice.replace(place, quoted(wire));
    }
    if let Some((place, schema)) = object.place("inputSchema").zip(object.value("inputSchema")) {
        splice.replace(place, with_continuation(schema.get()));
    }
    for cut in object.cuts(&["outputSchema"]) {
        splice.replace(cut, "");
    }
    text.push_str(&splice.into_text());
}

/// Adds `continue_workflow` to the properties of a schema, whatever else the schema says.
fn with_continuation(schema: &str) -> String {
    let member = format!("{}:{}", json!(MEMBER), continuation::schema());
    let Some(object) = Object::parse(schema) else {
        return format!(r#"{{"type":"object","properties":{{{member}}}}}"#);
    };
    let mut splice = Splice::new(Bytes::copy_from_slice(schema.as_bytes()));
    let comma = |empty: bool| if empty { "" } else { "," };
    if let Some((place, properties)) = object.place("properties").zip(
        object
            .value("properties")
            .and_then(|raw| Object::parse(raw.get())),
    ) {
        // The name is pml's: what a dependency declares under it is not what a call with it would reach.
        let others = properties.without(&[MEMBER]);
        let comma = comma(!properties.has_others(&[MEMBER]));
        splice.replace(place, format!("{{{member}{comma}{}", &others[1..]));
    } else {
        let comma = comma(object.is_empty());
        splice.replace(
            object.front()..object.front(),
            format!(r#""properties":{{{member}}}{comma}"#),
        );
    }
    splice.into_text()
}

fn connect(wire: &str, about: &str) -> String {
    json!({
        "name": wire,
        "description": about,
        "inputSchema": { "type": "object", "properties": { MEMBER: continuation::schema() } },
        "annotations": { "openWorldHint": true },
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::growth::{assert_linear, assert_linear_on_hostile};
    use serde_json::Value;

    fn listed(definition: &str, asking: AskPossibility) -> String {
        let place = Object::parse(definition).unwrap().place("name").unwrap();
        let listed = ListedTool::Known {
            tool: "fs:read".parse().unwrap(),
            definition: serde_json::value::RawValue::from_string(definition.to_owned())
                .unwrap()
                .into(),
            place,
            asking,
        };
        let all = tools(&[listed], &[], Era::Legacy).text;
        all[1..all.len() - 1].to_owned()
    }

    #[test]
    fn writing_a_list_is_linear() {
        assert_linear_on_hostile("one tool", |text| {
            let definition = format!(
                r#"{{"name":"read","inputSchema":{{"properties":{text}}},"outputSchema":{text},"x":{text}}}"#
            );
            if Object::parse(&definition).is_some() {
                listed(&definition, AskPossibility::Possible);
                listed(&definition, AskPossibility::Never);
            }
        });
        let many = |size: usize| -> Vec<ListedTool> {
            let tool = |number| ListedTool::Connect {
                tool: format!("fs:tool.{number}").parse().unwrap(),
                about: String::new(),
            };
            (0..size / 64).map(tool).collect()
        };
        assert_linear("many tools", many, |listed| {
            drop(tools(listed, &[], Era::Legacy));
        });
    }

    #[test]
    fn an_allowed_tool_is_listed_as_it_was_sent_but_for_its_name() {
        let definition = r#"{"name":"read","x-long":12345678901234567890123,"outputSchema":{ "type":"object" },"inputSchema":{"type":"object"},"icons":[]}"#;
        assert_eq!(
            listed(definition, AskPossibility::Never),
            r#"{"name":"fs__read","x-long":12345678901234567890123,"outputSchema":{ "type":"object" },"inputSchema":{"type":"object"},"icons":[]}"#
        );
    }

    #[test]
    fn a_tool_that_may_be_asked_for_takes_a_continuation_and_promises_no_output() {
        for schema in [
            r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}"#,
            r#"{"type":"object","properties":{}}"#,
            r#"{"type":"object"}"#,
            "{}",
            "true",
            r#"{"properties":{"continue_workflow":{"type":"string"},"a":{}}}"#,
        ] {
            let text = listed(
                &format!(r#"{{"inputSchema":{schema},"outputSchema":{{}},"name":"read"}}"#),
                AskPossibility::Possible,
            );
            let tool: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                tool["inputSchema"]["properties"][MEMBER],
                continuation::schema(),
                "{text}"
            );
            assert_eq!(tool.get("outputSchema"), None);
            let original: Value = serde_json::from_str(schema).unwrap();
            for (name, value) in original
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(name, _)| *name != "properties")
            {
                assert_eq!(&tool["inputSchema"][name], value);
            }
            for (name, value) in original["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(name, _)| *name != MEMBER)
            {
                assert_eq!(&tool["inputSchema"]["properties"][name], value);
            }
        }
    }
}
