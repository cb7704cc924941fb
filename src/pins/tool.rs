//! The definition of one tool, and the digest that any change of its meaning changes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::protocol::{Digest, Json, JsonTree, Shown, canonical, mended_json};

/// A tool as its server defined it.
///
/// The text is the canonical one: members in the order of their names, strings with the fewest escapes. So what is
/// written down does not change while the definition means the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "WrittenTool", into = "WrittenTool")]
pub struct ToolPin {
    digest: Digest,
    definition: Box<RawValue>,
}

/// Says why a written tool is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolPinError {
    /// The definition was edited, or merged with another one.
    #[error("the digest of a tool does not fit its definition")]
    OtherDigest,
}

/// A tool as it stands in a file.
#[derive(Clone, Serialize, Deserialize)]
struct WrittenTool {
    digest: Digest,
    definition: Box<RawValue>,
}

impl ToolPin {
    /// Pins a definition as a server sent it.
    #[must_use]
    pub fn of(definition: &RawValue) -> Self {
        let text = Json::parse(definition.get()).map_or_else(|| definition.get().to_owned(), canonical);
        Self {
            digest: Digest::of(["tool 1", &text]),
            // The canonical text of JSON is JSON.
            definition: RawValue::from_string(text).unwrap_or_else(|_broken| definition.to_owned()),
        }
    }

    /// Returns the digest of what it means.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns how many characters of its texts do not show where they stand; those of emoji do not count.
    #[must_use]
    pub fn hidden_characters(&self) -> usize {
        // Read as it is listed to a model: half a surrogate pair must not take the rest out of sight.
        let listed = mended_json(self.definition.get());
        let tree = Json::parse(&listed).and_then(JsonTree::read);
        tree.as_ref()
            .map_or_else(|| Shown::hidden_characters(&listed), hidden_in)
    }

    /// Tells whether it says of itself that it only reads: `readOnlyHint` and not `destructiveHint`.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        let Some(JsonTree::Object(members)) = self.tree() else {
            return false;
        };
        let Some(JsonTree::Object(hints)) = only(&members, "annotations") else {
            return false;
        };
        let destroys = hints
            .iter()
            .any(|(name, value)| name == "destructiveHint" && *value != JsonTree::Bool(false));
        only(hints, "readOnlyHint") == Some(&JsonTree::Bool(true)) && !destroys
    }

    /// Returns its definition as a tree; `None` where it holds what no text can.
    pub(super) fn tree(&self) -> Option<JsonTree> {
        JsonTree::read(Json::parse(self.definition.get())?)
    }

    /// Returns its definition.
    #[must_use]
    pub fn definition(&self) -> &RawValue {
        &self.definition
    }
}

/// Returns a member that stands once: of one that stands twice, readers take different ones.
fn only<'a>(members: &'a [(String, JsonTree)], wanted: &str) -> Option<&'a JsonTree> {
    let mut found = members.iter().filter(|(name, _)| name == wanted);
    match (found.next(), found.next()) {
        (Some((_, value)), None) => Some(value),
        (Some(_) | None, _) => None,
    }
}

/// Counts the characters of a value's strings that do not show where they stand.
fn hidden_in(value: &JsonTree) -> usize {
    match value {
        JsonTree::Text(text) => Shown::hidden_characters(text),
        JsonTree::Array(elements) => elements.iter().map(hidden_in).sum(),
        JsonTree::Object(members) => {
            let members = members.iter();
            members
                .map(|(name, value)| Shown::hidden_characters(name) + hidden_in(value))
                .sum()
        }
        JsonTree::Null | JsonTree::Bool(_) | JsonTree::Number(_) => 0,
    }
}

impl PartialEq for ToolPin {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for ToolPin {}

impl TryFrom<WrittenTool> for ToolPin {
    type Error = ToolPinError;

    fn try_from(written: WrittenTool) -> Result<Self, ToolPinError> {
        let pin = Self::of(&written.definition);
        if pin.digest == written.digest {
            Ok(pin)
        } else {
            Err(ToolPinError::OtherDigest)
        }
    }
}

impl From<ToolPin> for WrittenTool {
    fn from(pin: ToolPin) -> Self {
        Self {
            digest: pin.digest,
            definition: pin.definition,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(text: &str) -> ToolPin {
        ToolPin::of(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn one_character_counts_and_the_order_of_members_does_not() {
        let tool = pin(r#"{"name":"a","description":"Reads a file."}"#);
        assert_eq!(tool, pin(r#"{ "description": "Reads a file.", "name": "a" }"#));
        assert_ne!(tool, pin(r#"{"name":"a","description":"Reads a file!"}"#));
        assert_ne!(
            tool,
            pin(r#"{"name":"a","description":"Reads a file.","x":null}"#)
        );
    }

    #[test]
    fn half_a_surrogate_pair_takes_no_hidden_character_out_of_sight() {
        let hidden = |text: &str| pin(text).hidden_characters();
        assert_eq!(hidden(r#"{"name":"a","description":"x\u200b\ud83e\udd80"}"#), 1);
        assert_eq!(
            hidden(r#"{"name":"a","description":"x\u200b","title":"\ud800"}"#),
            1
        );
        assert_eq!(
            hidden("{\"name\":\"a\",\"description\":\"\\udc00x\\u200b\u{2060}\"}"),
            2
        );
        assert_eq!(hidden(r#"{"\ud800\u200b":[1e999,{"a\u2060":"\u200d"}]}"#), 3);
    }

    #[test]
    fn a_tool_only_reads_where_it_says_so_and_says_nothing_else() {
        let reads =
            |annotations: &str| pin(&format!(r#"{{"name":"a","annotations":{annotations}}}"#)).is_read_only();
        assert!(reads(r#"{"readOnlyHint":true}"#));
        assert!(reads(r#"{"readOnlyHint":true,"destructiveHint":false}"#));
        for otherwise in [
            "{}",
            "null",
            r#"{"readOnlyHint":false}"#,
            r#"{"readOnlyHint":"true"}"#,
            r#"{"readOnlyHint":1}"#,
            r#"{"readonlyhint":true}"#,
            r#"{"readOnlyHint":true,"destructiveHint":true}"#,
            r#"{"readOnlyHint":true,"readOnlyHint":false}"#,
            r#"[{"readOnlyHint":true}]"#,
        ] {
            assert!(!reads(otherwise), "{otherwise}");
        }
        assert!(!pin(r#"{"name":"a"}"#).is_read_only());
        assert!(!pin(r#"{"name":"a","readOnlyHint":true}"#).is_read_only());
    }

    #[test]
    fn a_written_tool_whose_text_was_edited_is_refused() {
        let written = serde_json::to_string(&pin(r#"{"name":"a","description":"x"}"#)).unwrap();
        let read: ToolPin = serde_json::from_str(&written).unwrap();
        assert_eq!(read.definition().get(), r#"{"description":"x","name":"a"}"#);
        let edited = written.replace(r#""x""#, r#""y""#);
        let error = serde_json::from_str::<ToolPin>(&edited).unwrap_err();
        assert!(error.to_string().contains("does not fit"), "{error}");
    }
}
