//! What a server declared that it can do, kept as the text it sent.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::protocol::{Json, ListKind, Object};

/// The raw capabilities of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Capabilities(Box<RawValue>);

impl Capabilities {
    /// Takes the text of a server.
    #[must_use]
    pub fn new(text: Json<'_>) -> Option<Self> {
        RawValue::from_string(text.get().to_owned()).ok().map(Self)
    }

    /// Returns the text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Returns its members; none where the server sent something else than an object.
    #[must_use]
    pub fn members(&self) -> Vec<(String, Json<'_>)> {
        let object = Object::parse(self.get());
        let members = object.iter().flat_map(|object| {
            object
                .members()
                .filter_map(|(name, value)| Some((name?.to_owned(), value)))
                .collect::<Vec<_>>()
        });
        members.filter(|(_, value)| value.get() != "null").collect()
    }

    /// Tells whether a member is declared.
    #[must_use]
    pub fn has(&self, member: &str) -> bool {
        self.members().iter().any(|(name, _)| name == member)
    }

    /// Tells whether a declared member says `true` to `promise`.
    #[must_use]
    pub fn promises(&self, member: &str, promise: &str) -> bool {
        let members = self.members();
        let declared = members.iter().find(|(name, _)| name == member);
        declared
            .and_then(|(_, value)| Object::parse(value.get()))
            .and_then(|object| object.value(promise))
            .is_some_and(|value| value.get() == "true")
    }

    /// Tells whether the server says when a list changes.
    #[must_use]
    pub fn tells_changes(&self, kind: ListKind) -> bool {
        self.promises(kind.capability(), "listChanged")
    }
}

impl PartialEq for Capabilities {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_and_promised_is_found() {
        let text =
            r#"{"tools":{"listChanged":true},"prompts":{"listChanged":false},"resources":{},"logging":null}"#;
        let capabilities = Capabilities::new(Json::parse(text).unwrap()).unwrap();
        let told = ListKind::ALL.map(|kind| {
            (
                capabilities.has(kind.capability()),
                capabilities.tells_changes(kind),
            )
        });
        assert_eq!(told, [(true, true), (true, false), (true, false)]);
        assert!(!capabilities.has("logging") && !capabilities.has("completions"));
        let odd = Capabilities::new(Json::parse("[1]").unwrap()).unwrap();
        assert_eq!(odd.members(), []);
    }
}
