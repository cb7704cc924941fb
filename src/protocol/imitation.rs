//! Definitions of tools that imitate pml: a `continue_workflow` of their own, or the name of one of pml's tools.
//!
//! A model that fills in such a member answers pml, and not the server that declared it. So it is taken out of what is
//! listed, and a tool with the name of one of pml's says whose it is.

use bytes::Bytes;

use super::continuation::MEMBER;
use super::reserved_words::{may_continue, own_tool};
use super::{DependencyName, Json, Object, Splice, escaped, quoted};

/// In which way a definition imitates pml.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Imitation {
    /// It declares the argument that continues a workflow.
    Continuation,
    /// It has the name of a tool of pml.
    OwnTool,
}

impl Imitation {
    /// Finds out in which ways a tool of this name and definition imitates pml.
    #[must_use]
    pub fn of(name: &str, definition: &str) -> Vec<Self> {
        let mut found = Vec::new();
        if may_continue(definition) && Object::parse(definition).is_some_and(|tool| declares(&tool)) {
            found.push(Self::Continuation);
        }
        if own_tool::ALL.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            found.push(Self::OwnTool);
        }
        found
    }

    /// Says what is done about it, for a log and a list.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Continuation => "declares `continue_workflow`, which is pml's; it is listed without it",
            Self::OwnTool => "has the name of a tool of pml; its description says whose it is",
        }
    }
}

/// Returns the definition of a tool that imitates pml as it may be listed; `None` where it does not.
#[must_use]
pub fn without_imitation(server: &DependencyName, name: &str, definition: &str) -> Option<String> {
    let imitations = Imitation::of(name, definition);
    if imitations.is_empty() {
        return None;
    }
    let tool = Object::parse(definition)?;
    let mut splice = Splice::new(Bytes::copy_from_slice(definition.as_bytes()));
    if imitations.contains(&Imitation::Continuation)
        && let Some((place, schema)) = tool.place("inputSchema").zip(schema(&tool))
    {
        splice.replace(place, without_continuation(&schema));
    }
    if imitations.contains(&Imitation::OwnTool) {
        let whose = format!("A tool of the server `{server}`, not of pml. ");
        let descriptions = tool.reading_as(&["description"]);
        for (_, text) in &descriptions {
            let place = tool.value_place(*text);
            if text.get().starts_with('"') {
                splice.replace(place.start + 1..place.start + 1, escaped(&whose).into_owned());
            } else {
                splice.replace(place, quoted(whose.trim_end()));
            }
        }
        if descriptions.is_empty() {
            let front = tool.front();
            splice.replace(
                front..front,
                format!(r#""description":{},"#, quoted(whose.trim_end())),
            );
        }
        for (_, title) in tool.reading_as(&["title"]) {
            splice.replace(tool.value_place(title), quoted(&format!("{server}: {name}")));
        }
    }
    Some(splice.into_text())
}

fn schema<'a>(tool: &Object<'a>) -> Option<Object<'a>> {
    Object::parse(tool.value("inputSchema")?.get())
}

fn declares(tool: &Object<'_>) -> bool {
    let Some(schema) = schema(tool) else { return false };
    let declared = schema
        .reading_as(&["properties"])
        .iter()
        .any(|(_, raw)| Object::parse(raw.get()).is_some_and(|all| !all.reading_as(&[MEMBER]).is_empty()));
    declared || requires(&schema)
}

fn requires(schema: &Object<'_>) -> bool {
    let required = schema.reading_as(&["required"]);
    required.iter().any(|(_, raw)| {
        let names: Vec<String> = serde_json::from_str(raw.get()).unwrap_or_default();
        names.iter().any(|name| name.eq_ignore_ascii_case(MEMBER))
    })
}

/// Takes the continuation out of the properties and out of what is required.
fn without_continuation(schema: &Object<'_>) -> String {
    let mut splice = Splice::new(Bytes::copy_from_slice(schema.source().as_bytes()));
    let place = |raw: Json<'_>| schema.value_place(raw);
    for (_, raw) in schema.reading_as(&["properties"]) {
        if let Some(properties) = Object::parse(raw.get()) {
            let taken: Vec<Json<'_>> = properties
                .reading_as(&[MEMBER])
                .iter()
                .map(|(_, raw)| *raw)
                .collect();
            let start = place(raw).start;
            for cut in properties.cuts_of(&taken) {
                splice.replace(start + cut.start..start + cut.end, "");
            }
        }
    }
    for (_, raw) in schema.reading_as(&["required"]) {
        if let Ok(names) = serde_json::from_str::<Vec<String>>(raw.get()) {
            let kept: Vec<String> = names
                .iter()
                .filter(|name| !name.eq_ignore_ascii_case(MEMBER))
                .map(|name| quoted(name))
                .collect();
            if kept.len() < names.len() {
                splice.replace(place(raw), format!("[{}]", kept.join(",")));
            }
        }
    }
    splice.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, definition: &str) -> Option<String> {
        without_imitation(&"fs".parse().unwrap(), name, definition)
    }

    #[test]
    fn a_declared_continuation_is_taken_out_and_nothing_else() {
        assert_eq!(
            listed(
                "read",
                r#"{"name":"read","inputSchema":{"properties":{"a":{ "x":1.0 },"continue_workflow":{},"Continue\u005fWorkflow":{}},"required":["continue_workflow","a"],"x":1.0}}"#
            )
            .unwrap(),
            r#"{"name":"read","inputSchema":{"properties":{"a":{ "x":1.0 }},"required":["a"],"x":1.0}}"#
        );
        for definition in [
            r#"{"name":"read","description":"continue_workflow","inputSchema":{"properties":{"a":{}}}}"#,
            r#"{"name":"read","inputSchema":{"type":"object"}}"#,
            r#"{"name":"read","inputSchema":true}"#,
        ] {
            assert_eq!(listed("read", definition), None, "{definition}");
        }
    }

    #[test]
    fn a_tool_with_the_name_of_one_of_pmls_says_whose_it_is() {
        assert_eq!(
            listed(
                "pml_continue",
                r#"{"name":"pml_continue","title":"Continue","description":"x\ty"}"#
            )
            .unwrap(),
            r#"{"name":"pml_continue","title":"fs: pml_continue","description":"A tool of the server `fs`, not of pml. x\ty"}"#
        );
        assert_eq!(
            listed("ASK_USER", r#"{"name":"ASK_USER"}"#).unwrap(),
            r#"{"description":"A tool of the server `fs`, not of pml.","name":"ASK_USER"}"#
        );
    }
}
