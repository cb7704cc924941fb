//! A line that the session writes: its kind, and the headers that its request carries. Pure.
//!
//! Modern servers want the version, the method and the name of a request in headers too, so that a proxy
//! between can route it without reading it; a value that no header can hold goes as base64 between two marks.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::protocol::{Era, Message, Object, Payload};

/// The header that names the version of the protocol.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What a value that no header can hold is put between.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// What the session wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutgoingLine {
    /// `initialize`, which wants an answer and opens a session.
    Initialize {
        /// The raw id.
        id: String,
    },
    /// Any other request.
    Request {
        /// The raw id.
        id: String,
        /// Whether it carries everything itself or belongs to a session.
        era: Era,
    },
    /// `notifications/initialized`.
    Initialized,
    /// A request is no longer wanted.
    Cancelled {
        /// The raw id of that request.
        id: String,
    },
    /// Another notification, or the answer to a request of the server.
    Notice,
}

impl OutgoingLine {
    /// Reads a line and returns it with the headers it asks for; `None` if it is no message.
    pub(super) fn read(line: &[u8]) -> Option<(Self, HeaderMap)> {
        Some(match Message::parse(line).ok()? {
            Message::Request { id, method, params } => {
                let (era, headers) = mirrored(&method, params.as_ref());
                let id = id.get().to_owned();
                match method.as_ref() {
                    "initialize" => (Self::Initialize { id }, headers),
                    _ => (Self::Request { id, era }, headers),
                }
            }
            Message::Notification { method, params } => {
                let (_, headers) = mirrored(&method, params.as_ref());
                let object = params.as_ref().and_then(Payload::object);
                match (
                    method.as_ref(),
                    object.and_then(|object| object.value("requestId")),
                ) {
                    ("notifications/cancelled", Some(id)) => {
                        let id = id.get().to_owned();
                        (Self::Cancelled { id }, headers)
                    }
                    ("notifications/initialized", _) => (Self::Initialized, headers),
                    _ => (Self::Notice, headers),
                }
            }
            Message::Response { .. } => (Self::Notice, HeaderMap::new()),
        })
    }
}

/// Tells whether a message is the answer to the request `id`.
pub(super) fn answers(message: &[u8], id: &str) -> bool {
    matches!(Message::parse(message), Ok(Message::Response { id: found, .. }) if found.get() == id)
}

fn mirrored(method: &str, params: Option<&Payload<'_>>) -> (Era, HeaderMap) {
    let mut headers = HeaderMap::new();
    let object = params.and_then(Payload::object);
    let version = object
        .and_then(|object| Object::parse(object.value("_meta")?.get()))
        .and_then(|meta| meta.text(Era::VERSION));
    let Some(version) = version.and_then(|version| HeaderValue::from_str(&version).ok()) else {
        return (Era::Legacy, headers);
    };
    headers.insert(VERSION, version);
    let member = match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    };
    let name = member.and_then(|member| object?.text(member));
    for (header, value) in [(METHOD, Some(Cow::Borrowed(method))), (NAME, name)] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&encoded(&value)).ok()) {
            headers.insert(header, value);
        }
    }
    (Era::Modern, headers)
}

/// Returns a value as a header can hold it.
pub(super) fn encoded(value: &str) -> Cow<'_, str> {
    let (open, close) = ENCODED;
    let plain = value.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && value.trim_matches(' ') == value
        && !(value.starts_with(open) && value.ends_with(close));
    if plain {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!("{open}{}{close}", STANDARD.encode(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(line: &str) -> Vec<(String, String)> {
        let (_, headers) = OutgoingLine::read(line.as_bytes()).unwrap();
        headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect()
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn each_kind_of_line_is_known() {
        let read = |line: &str| OutgoingLine::read(line.as_bytes()).map(|(spoken, _)| spoken);
        let id = || "7".to_owned();
        for (line, spoken) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}"#,
                Some(OutgoingLine::Initialize { id: id() }),
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#,
                Some(OutgoingLine::Request {
                    id: id(),
                    era: Era::Legacy,
                }),
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
                Some(OutgoingLine::Request {
                    id: id(),
                    era: Era::Modern,
                }),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                Some(OutgoingLine::Initialized),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
                Some(OutgoingLine::Cancelled { id: id() }),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#,
                Some(OutgoingLine::Notice),
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
                Some(OutgoingLine::Notice),
            ),
            ("[]", None),
        ] {
            assert_eq!(read(line), spoken, "{line}");
        }
    }

    #[test]
    fn a_modern_request_shows_its_version_its_method_and_its_name() {
        let call = |name: &str| {
            let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
            headers(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{name},"_meta":{meta}}}}}"#
            ))
        };
        let expected = |name| {
            owned(&[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", name),
            ])
        };
        assert_eq!(call(r#""read""#), expected("read"));
        assert_eq!(call(r#""gr\u00fc\u00df""#), expected("=?base64?Z3LDvMOf?="));
        assert_eq!(call(r#"" x""#), expected("=?base64?IHg=?="));
    }

    #[test]
    fn a_legacy_request_shows_nothing() {
        assert_eq!(
            headers(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}"#),
            []
        );
    }

    #[test]
    fn an_answer_is_told_by_its_id() {
        assert!(answers(br#"{"jsonrpc":"2.0","id":3,"result":{}}"#, "3"));
        assert!(!answers(br#"{"jsonrpc":"2.0","id":4,"result":{}}"#, "3"));
        assert!(!answers(br#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#, "3"));
    }
}
