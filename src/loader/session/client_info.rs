//! What the client said of itself, as a dependency is told: exactly its capabilities, its name where it gave one, and
//! the version it speaks where that is opened by `initialize`.

use serde_json::json;

use crate::protocol::{Digest, Era, Json, Object, canonical};

/// The newest version that is opened by `initialize`: what a dependency is offered for a Modern client, and where there
/// is no client yet.
const LEGACY_VERSION: &str = "2025-11-25";

/// The longest name of a client that is shown; a line has room for it.
const CLIENT_NAME_LIMIT: usize = 60;

/// What the client declared, as the texts it sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    capabilities: String,
    client: Option<String>,
    version: Option<String>,
}

impl Default for Declared {
    fn default() -> Self {
        Self {
            capabilities: "{}".to_owned(),
            client: None,
            version: None,
        }
    }
}

impl Declared {
    /// The version that has no `initialize`.
    pub(in crate::loader) const MODERN_VERSION: &str = "2026-07-28";

    /// Takes the raw `capabilities` and the raw description of a client; what is no object counts as absent.
    #[must_use]
    pub fn new(capabilities: Option<&str>, client: Option<&str>) -> Self {
        let object = |text: &&str| Object::parse(text).is_some();
        Self {
            capabilities: capabilities.filter(object).unwrap_or("{}").to_owned(),
            client: client.filter(object).map(str::to_owned),
            version: None,
        }
    }

    /// Names the version that was agreed on with a Legacy client. What came later than it, a dependency must not use.
    #[must_use]
    pub fn speaking(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// Reads what a Modern request says of its client in its `_meta`.
    #[must_use]
    pub fn of_envelope(meta: &Object<'_>) -> Self {
        Self::new(
            meta.value(Era::CAPABILITIES).map(Json::get),
            meta.value(Era::CLIENT).map(Json::get),
        )
    }

    /// Digests what a dependency may choose its lists by: the capabilities and the version, not the name of the client.
    #[must_use]
    pub fn offer(&self) -> Digest {
        let capabilities = Json::parse(&self.capabilities).map(canonical);
        Digest::of([
            self.version.as_deref().unwrap_or(LEGACY_VERSION),
            capabilities.as_deref().unwrap_or(&self.capabilities),
        ])
    }

    /// Returns the name and the version of the client for a person, as it says them itself.
    #[must_use]
    pub fn client_name(&self) -> Option<String> {
        let client = Object::parse(self.client.as_deref()?)?;
        let name = client.text("name").filter(|name| !name.is_empty())?;
        let version = client.text("version").unwrap_or_default();
        let named = format!("{name} {version}");
        Some(named.trim_end().chars().take(CLIENT_NAME_LIMIT).collect())
    }

    /// Returns the raw capabilities.
    #[must_use]
    pub fn capabilities(&self) -> &str {
        &self.capabilities
    }

    /// Returns the members of the `_meta` that a Modern request must carry, without the braces around them.
    #[must_use]
    pub fn envelope(&self) -> String {
        format!(
            r#""{}":"{}","{}":{},"{}":{}"#,
            Era::VERSION,
            Self::MODERN_VERSION,
            Era::CAPABILITIES,
            self.capabilities,
            Era::CLIENT,
            self.client(),
        )
    }

    /// Returns the members of the parameters of `initialize`, without the braces around them.
    pub(in crate::loader) fn introduction(&self) -> String {
        format!(
            r#""protocolVersion":{},"capabilities":{},"clientInfo":{}"#,
            json!(self.version.as_deref().unwrap_or(LEGACY_VERSION)),
            self.capabilities,
            self.client()
        )
    }

    fn client(&self) -> String {
        self.client.clone().unwrap_or_else(|| {
            json!({ "name": "pml", "title": "pml", "version": env!("CARGO_PKG_VERSION") }).to_string()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_told_what_the_client_said_byte_for_byte() {
        let declared = Declared::new(
            Some(r#"{ "roots":{}, "x":1.0 }"#),
            Some(r#"{"name":"editor","version":"1"}"#),
        );
        assert_eq!(
            declared.envelope(),
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{ "roots":{}, "x":1.0 },"io.modelcontextprotocol/clientInfo":{"name":"editor","version":"1"}"#
        );
        let envelope = format!("{{{}}}", declared.envelope());
        assert_eq!(
            Declared::of_envelope(&Object::parse(&envelope).unwrap()),
            declared
        );
        assert_eq!(
            declared.introduction(),
            r#""protocolVersion":"2025-11-25","capabilities":{ "roots":{}, "x":1.0 },"clientInfo":{"name":"editor","version":"1"}"#
        );
        assert_eq!(
            declared.speaking("2025-06-18").introduction(),
            r#""protocolVersion":"2025-06-18","capabilities":{ "roots":{}, "x":1.0 },"clientInfo":{"name":"editor","version":"1"}"#
        );
    }

    #[test]
    fn an_offer_is_what_a_client_can_do_and_not_who_it_is() {
        let offer = |capabilities, client| Declared::new(Some(capabilities), Some(client)).offer();
        let one = offer(r#"{"roots":{},"sampling":{}}"#, r#"{"name":"a"}"#);
        assert_eq!(one, offer(r#"{ "sampling":{}, "roots":{} }"#, r#"{"name":"b"}"#));
        assert_ne!(one, offer(r#"{"roots":{}}"#, r#"{"name":"a"}"#));
        let declared = Declared::default();
        assert_eq!(declared.offer(), declared.clone().speaking("2025-11-25").offer());
        assert_ne!(declared.offer(), declared.clone().speaking("2024-11-05").offer());
    }

    #[test]
    fn a_client_that_said_nothing_can_do_nothing_and_is_pml() {
        assert_eq!(Declared::new(Some("[]"), Some("7")), Declared::default());
        assert_eq!(Declared::new(None, None).capabilities(), "{}");
        let told: serde_json::Value =
            serde_json::from_str(&format!("{{{}}}", Declared::default().introduction())).unwrap();
        assert_eq!(told["clientInfo"]["name"], "pml");
    }
}
