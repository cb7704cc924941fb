//! Which MCP a request speaks, and what an answer needs to be understood there.
//!
//! `initialize` without a Modern envelope makes the whole conversation Legacy; otherwise every request says for itself
//! that it is Modern.

use std::borrow::Cow;

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

pub(crate) use crate::protocol::Era;
use crate::protocol::{Json, Object, Payload};
use crate::proxy::Declared;

/// A JSON-RPC error that answers a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) detail: Option<Value>,
}

impl RpcError {
    pub(crate) const PARSE: i64 = -32700;
    pub(crate) const INVALID_REQUEST: i64 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
    pub(crate) const INVALID_PARAMS: i64 = -32602;
    pub(crate) const INTERNAL: i64 = -32603;
    /// Legacy only.
    pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
    /// pml's own: outside what JSON-RPC and MCP reserve.
    pub(crate) const REFUSED: i64 = -31001;
    /// pml's own.
    pub(crate) const APPROVAL_REQUIRED: i64 = -31002;
    /// The codes that pml alone uses.
    pub(crate) const OWN: [i32; 2] = [-31001, -31002];
    /// What JSON-RPC leaves to servers.
    pub(crate) const SERVER: i64 = -32000;
    const UNSUPPORTED_VERSION: i64 = -32022;

    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            detail: None,
        }
    }

    /// Answers a method that does not exist in the era of its request.
    pub(crate) fn unknown_method() -> Self {
        Self::new(Self::METHOD_NOT_FOUND, "Method not found")
    }

    pub(crate) fn to_json(&self) -> String {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(detail) = &self.detail {
            error["data"] = detail.clone();
        }
        error.to_string()
    }
}

/// The versions pml speaks, the newest first.
pub(crate) fn versions() -> Vec<ProtocolVersion> {
    ProtocolVersion::KNOWN_VERSIONS.iter().rev().cloned().collect()
}

/// Chooses the version that answers an `initialize`: the client's where it is known, the newest otherwise.
pub(crate) fn negotiate(requested: Option<&str>) -> ProtocolVersion {
    versions()
        .into_iter()
        .find(|version| version.has_initialize() && Some(version.as_str()) == requested)
        .unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

/// Tells whether a request names no version in its `_meta`, as requests of Legacy clients do.
pub(crate) fn is_bare(params: Option<&Payload<'_>>) -> bool {
    meta_of(params).is_none_or(|meta| meta.value(Era::VERSION).is_none())
}

fn meta_of<'a>(params: Option<&Payload<'a>>) -> Option<Object<'a>> {
    let meta = params.and_then(Payload::object)?.value("_meta")?;
    Object::parse(meta.get())
}

/// Tells which era a request belongs to; `opened` is whether `initialize` was answered before.
pub(crate) fn of_request(params: Option<&Payload<'_>>, opened: Opened) -> Result<Era, RpcError> {
    if opened == Opened::ByInitialize {
        return Ok(Era::Legacy);
    }
    let Some((meta, version)) = meta_of(params).and_then(|meta| {
        meta.text(Era::VERSION)
            .map(Cow::into_owned)
            .map(|version| (meta, version))
    }) else {
        return Err(RpcError::new(
            RpcError::INVALID_PARAMS,
            format!(
                "`params._meta[\"{}\"]` is missing; send it, or open the conversation with `initialize`",
                Era::VERSION
            ),
        ));
    };
    if version != ProtocolVersion::V_2026_07_28.as_str() {
        let supported: Vec<String> = versions().iter().map(ToString::to_string).collect();
        return Err(RpcError {
            code: RpcError::UNSUPPORTED_VERSION,
            message: "Unsupported protocol version".to_owned(),
            detail: Some(json!({ "supported": supported, "requested": version })),
        });
    }
    match meta.value(Era::CAPABILITIES).map(|raw| Object::parse(raw.get())) {
        Some(Some(_)) => Ok(Era::Modern),
        _ => Err(RpcError::new(
            RpcError::INVALID_PARAMS,
            format!("`params._meta[\"{}\"]` must be an object", Era::CAPABILITIES),
        )),
    }
}

/// How the conversation was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    /// By nothing that binds it.
    Not,
    /// By `initialize`.
    ByInitialize,
}

/// Tells whether capabilities declare forms: an empty `elicitation` means forms only.
pub(crate) fn shows_forms(capabilities: &str) -> bool {
    let elicitation = Object::parse(capabilities).and_then(|object| object.value("elicitation"));
    elicitation
        .and_then(|raw| Object::parse(raw.get()))
        .is_some_and(|elicitation| elicitation.is_empty() || elicitation.value("form").is_some())
}

/// Tells whether this very Modern request can show a form.
pub(crate) fn request_shows_forms(params: &Object<'_>) -> bool {
    capabilities_of(params).is_some_and(shows_forms)
}

/// Returns the values of the members of a `_meta` that only a Modern peer should see: a Legacy dependency that knows
/// both eras would otherwise answer in the wrong one.
pub(crate) fn envelope_members<'m>(meta: &Object<'m>) -> Vec<Json<'m>> {
    meta.members()
        .filter(|(name, _)| name.is_some_and(|name| name.starts_with(Era::ENVELOPE)))
        .map(|(_, value)| value)
        .collect()
}

/// Tells whether capabilities cover a request of a server; what pml does not know is for the client to judge.
pub(crate) fn covers(capabilities: &str, method: &str, params: Option<&str>) -> Covered {
    let declared = |name: &str| {
        Object::parse(capabilities)
            .and_then(|object| object.value(name))
            .and_then(|raw| Object::parse(raw.get()))
    };
    let covered = match method {
        "elicitation/create" => {
            let mode = params
                .and_then(Object::parse)
                .and_then(|params| params.text("mode").map(Cow::into_owned));
            match mode.as_deref() {
                Some("url") => declared("elicitation").is_some_and(|found| found.value("url").is_some()),
                _ => shows_forms(capabilities),
            }
        }
        "sampling/createMessage" => declared("sampling").is_some(),
        "roots/list" => declared("roots").is_some(),
        _ => return Covered::Unknown,
    };
    if covered { Covered::Yes } else { Covered::No }
}

/// Whether a client can answer a request of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Covered {
    /// It declared so.
    Yes,
    /// It did not.
    No,
    /// Nothing that pml knows of declares it.
    Unknown,
}

/// Returns what this very Modern request says of its client.
pub(crate) fn declared(params: &Object<'_>) -> Declared {
    let meta = params.value("_meta").and_then(|raw| Object::parse(raw.get()));
    meta.as_ref().map(Declared::of_envelope).unwrap_or_default()
}

/// Returns the raw level of the log messages that a Modern request with this `_meta` wants to hear of.
pub(crate) fn log_level<'a>(meta: &Object<'a>) -> Option<&'a str> {
    meta.value(Era::LOG_LEVEL).map(Json::get)
}

/// Returns what this very Modern request declares.
pub(crate) fn capabilities_of<'a>(params: &Object<'a>) -> Option<&'a str> {
    let meta = Object::parse(params.value("_meta")?.get())?;
    meta.value(Era::CAPABILITIES).map(Json::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn era(params: &str, opened: Opened) -> Result<Era, (i64, String)> {
        let raw = Payload::parse(params).unwrap();
        of_request(Some(&raw), opened).map_err(|fault| (fault.code, fault.message))
    }

    #[test]
    fn an_enveloped_request_is_modern_unless_the_conversation_was_initialized() {
        let enveloped = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;
        assert_eq!(era(enveloped, Opened::Not), Ok(Era::Modern));
        assert_eq!(era(enveloped, Opened::ByInitialize), Ok(Era::Legacy));
        assert_eq!(era("{}", Opened::ByInitialize), Ok(Era::Legacy));
    }

    #[test]
    fn a_bad_envelope_says_what_is_missing() {
        assert_eq!(era("{}", Opened::Not).unwrap_err().0, -32602);
        let no_capabilities = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        assert_eq!(era(no_capabilities, Opened::Not).unwrap_err().0, -32602);
        let future = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01","io.modelcontextprotocol/clientCapabilities":{}}}"#;
        assert_eq!(
            era(future, Opened::Not).unwrap_err(),
            (-32022, "Unsupported protocol version".to_owned())
        );
    }

    #[test]
    fn initialize_is_answered_with_a_version_that_has_it() {
        assert_eq!(negotiate(Some("2025-06-18")).as_str(), "2025-06-18");
        assert_eq!(negotiate(Some("2024-11-05")).as_str(), "2024-11-05");
        assert_eq!(negotiate(Some("2026-07-28")).as_str(), "2025-11-25");
        assert_eq!(negotiate(Some("1999-01-01")).as_str(), "2025-11-25");
        assert_eq!(negotiate(None).as_str(), "2025-11-25");
    }

    #[test]
    fn capabilities_cover_what_they_declare() {
        let all = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}}"#;
        let url = Some(r#"{"mode":"url"}"#);
        for (capabilities, method, params, expected) in [
            (all, "elicitation/create", None, Covered::Yes),
            (all, "elicitation/create", url, Covered::Yes),
            (all, "sampling/createMessage", None, Covered::Yes),
            (all, "roots/list", None, Covered::Yes),
            (all, "x/y", None, Covered::Unknown),
            (r#"{"elicitation":{}}"#, "elicitation/create", None, Covered::Yes),
            (r#"{"elicitation":{}}"#, "elicitation/create", url, Covered::No),
            ("{}", "elicitation/create", None, Covered::No),
            ("{}", "sampling/createMessage", None, Covered::No),
            ("{}", "roots/list", None, Covered::No),
        ] {
            assert_eq!(
                covers(capabilities, method, params),
                expected,
                "{capabilities} {method} {params:?}"
            );
        }
    }
}
