//! Definitions of tools, prompts, resources and templates, mended where clients cannot read them.
//!
//! The official clients check a list as a whole: one tool without `"type":"object"` in its `inputSchema`, or one
//! resource without a name, costs the client the list of every server behind pml. The tables
//! below say what they read. An optional member that does not fit is taken out, a missing one that clients need is added, and everything
//! else stays the text that was sent.

mod json_text;
mod output_schema;
mod pattern;
mod shape;

use std::borrow::Cow;

use bytes::Bytes;

use self::shape::{Fallback, Member, Shape};
use super::{Era, Splice};

/// The kind of thing that a definition defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionKind {
    /// A tool, as clients of this era read it: the Modern one has output schemas of any type.
    Tool(Era),
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A template of resources.
    Template,
}

/// Returns a JSON text as clients are sent it: without halves of surrogate pairs and numbers beyond a double.
#[must_use]
pub fn mended_json(text: &str) -> Cow<'_, str> {
    json_text::mended(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// What a schema of arguments says that takes anything.
const ANY: &str = r#"{"type":"object"}"#;

const ICON: Shape = Shape::Object(&[
    Member::needed("src", Shape::Text),
    Member::optional("mimeType", Shape::Text),
    Member::optional("sizes", Shape::Elements(&Shape::Text)),
    Member::optional("theme", Shape::Word(&["light", "dark"])),
]);
const ICONS: Member = Member::optional("icons", Shape::Elements(&ICON));
const TITLE: Member = Member::optional("title", Shape::Text);
const DESCRIPTION: Member = Member::optional("description", Shape::Text);
const META: Member = Member::optional("_meta", Shape::Object(&[]));
const MIME_TYPE: Member = Member::optional("mimeType", Shape::Text);

const INPUT_SCHEMA: Shape = Shape::Object(&[
    Member::optional("$schema", Shape::Text),
    Member::new("type", Shape::Word(&["object"]), Fallback::Text(r#""object""#)),
    Member::optional("properties", Shape::Properties),
    Member::optional("required", Shape::Elements(&Shape::Text)),
]);

const TOOL_ANNOTATIONS: Shape = Shape::Object(&[
    TITLE,
    Member::optional("readOnlyHint", Shape::Boolean),
    Member::optional("destructiveHint", Shape::Boolean),
    Member::optional("idempotentHint", Shape::Boolean),
    Member::optional("openWorldHint", Shape::Boolean),
]);

const EXECUTION: Shape = Shape::Object(&[Member::optional(
    "taskSupport",
    Shape::Word(&["required", "optional", "forbidden"]),
)]);

const fn tool(output: Shape) -> [Member; 8] {
    [
        TITLE,
        DESCRIPTION,
        Member::new("inputSchema", INPUT_SCHEMA, Fallback::Text(ANY)),
        Member::optional("outputSchema", output),
        Member::optional("annotations", TOOL_ANNOTATIONS),
        Member::optional("execution", EXECUTION),
        META,
        ICONS,
    ]
}

static LEGACY_TOOL: [Member; 8] = tool(Shape::LegacyOutputSchema);
static MODERN_TOOL: [Member; 8] = tool(Shape::ModernOutputSchema);

const ARGUMENT: Shape = Shape::Object(&[
    Member::needed("name", Shape::Text),
    TITLE,
    DESCRIPTION,
    Member::optional("required", Shape::Boolean),
]);

static PROMPT: [Member; 5] = [
    TITLE,
    DESCRIPTION,
    Member::optional("arguments", Shape::Elements(&ARGUMENT)),
    META,
    ICONS,
];

const ANNOTATIONS: Member = Member::optional(
    "annotations",
    Shape::Object(&[
        Member::optional(
            "audience",
            Shape::EveryElement(&Shape::Word(&["user", "assistant"])),
        ),
        Member::optional("priority", Shape::Share),
        Member::optional("lastModified", Shape::Time),
    ]),
);

static RESOURCE: [Member; 8] = [
    Member::new("name", Shape::Text, Fallback::CopyOf("uri")),
    TITLE,
    DESCRIPTION,
    MIME_TYPE,
    Member::optional("size", Shape::Size),
    ANNOTATIONS,
    META,
    ICONS,
];

static TEMPLATE: [Member; 7] = [
    Member::new("name", Shape::Text, Fallback::CopyOf("uriTemplate")),
    TITLE,
    DESCRIPTION,
    MIME_TYPE,
    ANNOTATIONS,
    META,
    ICONS,
];

impl DefinitionKind {
    fn members(self) -> &'static [Member] {
        match self {
            Self::Tool(Era::Legacy) => &LEGACY_TOOL,
            Self::Tool(Era::Modern) => &MODERN_TOOL,
            Self::Prompt => &PROMPT,
            Self::Resource => &RESOURCE,
            Self::Template => &TEMPLATE,
        }
    }
}

/// Returns a definition as clients can read it; `None` where they can read it as it is.
///
/// The text must be an object; the member that tells a definition from others is not looked at.
#[must_use]
pub fn mended_definition(kind: DefinitionKind, definition: &str) -> Option<String> {
    let readable = json_text::mended(definition);
    let text = readable.as_deref().unwrap_or(definition);
    let changes = shape::changes_of_object(text, kind.members(), 0).unwrap_or_default();
    if changes.is_empty() {
        return readable;
    }
    let mut splice = Splice::new(Bytes::copy_from_slice(text.as_bytes()));
    for (place, change) in changes {
        splice.replace(place, change);
    }
    Some(splice.into_text())
}

#[cfg(test)]
mod tests;
