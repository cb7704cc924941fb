//! The handshake with a server in either era.
//!
//! Uses a [`Session`] and nothing of processes: whether a server that refused is started again is decided by the
//! lifecycle, which opened it.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::json;

use super::client_info::Declared;
use super::connection::Session;
use super::error::{HandshakeError, HandshakeRefusal};
use super::reply::{OwnReply, Reply};
use crate::loader::catalog::{Capabilities, Known};
use crate::protocol::{Era, Json, ListKind, Object, Shown};

/// The conversation in one era, on behalf of one client.
#[derive(Clone)]
pub(in crate::loader) struct IntroducedSession {
    pub(super) session: Session,
    era: Era,
    declared: Declared,
    /// The last list of tools that came on one page, as it came: most servers are asked again and say the same.
    pub(super) last_tools: Arc<Mutex<Option<Bytes>>>,
}

/// Opens the conversation in one era; returns what the dependency said of itself, with nothing listed yet.
pub(in crate::loader) async fn introduce(
    session: &Session,
    era: Era,
    declared: &Declared,
) -> Result<(IntroducedSession, Known), HandshakeError> {
    let introduced = IntroducedSession {
        session: session.clone(),
        era,
        declared: declared.clone(),
        last_tools: Arc::default(),
    };
    let mut known = match era {
        Era::Legacy => {
            let opened = introduced.ask("initialize", &declared.introduction()).await?;
            session.notify("notifications/initialized", None);
            said(&opened, "initialize", era)?
        }
        Era::Modern => {
            let discovered = introduced.ask("server/discover", "").await?;
            said(&discovered, "server/discover", era)?
        }
    };
    known.offer = Some(declared.offer());
    session.set_era(era);
    Ok((introduced, known))
}

/// Reads what a dependency said of itself.
fn said(result: &Bytes, method: &'static str, era: Era) -> Result<Known, HandshakeError> {
    let object = text_of(result).and_then(Object::parse);
    let object = object.ok_or_else(|| unfit(method, "its result is not an object"))?;
    let versions = object
        .value("supportedVersions")
        .map(|versions| versions.get().to_owned());
    if era == Era::Modern && versions.is_some_and(|versions| !versions.contains(Declared::MODERN_VERSION)) {
        return Err(unfit(method, "it speaks no version that pml speaks"));
    }
    let nothing = Json::parse("{}").and_then(Capabilities::new);
    Ok(Known {
        era,
        capabilities: object
            .value("capabilities")
            .and_then(Capabilities::new)
            .or(nothing),
        instructions: object
            .text("instructions")
            .map(std::borrow::Cow::into_owned)
            .filter(|text| !text.trim().is_empty()),
        ..Known::default()
    })
}

pub(super) fn text_of(raw: &Bytes) -> Option<&str> {
    std::str::from_utf8(raw).ok()
}

pub(super) fn unfit(method: &'static str, reason: impl Into<String>) -> HandshakeError {
    HandshakeError::Refused(HandshakeRefusal {
        method,
        reason: reason.into(),
        cause: None,
    })
}

impl IntroducedSession {
    /// Asks a Modern dependency to say when one of its lists changes; a Legacy one says so by itself.
    pub(in crate::loader) fn follow_lists(&self, capabilities: &Capabilities) {
        let wishes: serde_json::Map<String, serde_json::Value> = ListKind::ALL
            .into_iter()
            .filter(|kind| capabilities.tells_changes(*kind))
            .map(|kind| (kind.wish().to_owned(), json!(true)))
            .collect();
        if self.era == Era::Modern && !wishes.is_empty() {
            let params = self.params(&format!(r#""notifications":{}"#, json!(wishes)));
            self.session.send_and_forget("subscriptions/listen", &params);
        }
    }

    /// Writes parameters as the era wants them.
    fn params(&self, members: &str) -> String {
        match self.era {
            Era::Legacy => format!("{{{members}}}"),
            Era::Modern => {
                let comma = if members.is_empty() { "" } else { "," };
                format!(r#"{{{members}{comma}"_meta":{{{}}}}}"#, self.declared.envelope())
            }
        }
    }

    pub(super) async fn ask(&self, method: &'static str, members: &str) -> Result<Bytes, HandshakeError> {
        result_of(method, self.session.ask(method, &self.params(members)).await)
    }

    /// Asks something that is asked again and again, and is mostly answered by the same bytes.
    pub(super) async fn ask_again(&self, method: &'static str) -> Result<Bytes, HandshakeError> {
        result_of(method, self.session.ask_again(method, &self.params("")).await)
    }
}

fn result_of(method: &'static str, OwnReply { reply, reason }: OwnReply) -> Result<Bytes, HandshakeError> {
    match reply {
        Reply::Result(raw) => Ok(raw),
        Reply::Error(raw) => {
            let text = String::from_utf8_lossy(&raw[..raw.len().min(2000)]).into_owned();
            Err(HandshakeError::Refused(HandshakeRefusal {
                method,
                reason: Shown::line(&text).to_string(),
                cause: reason,
            }))
        }
        Reply::Unusable(reason) => Err(unfit(method, reason)),
        Reply::Ended(ended) => Err(HandshakeError::Ended(ended)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(result: &'static str, era: Era) -> Result<Known, String> {
        said(&Bytes::from_static(result.as_bytes()), "server/discover", era)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_dependency_says_of_itself_is_kept_as_it_was_said() {
        let known = read(
            r#"{"capabilities":{ "tools":{} },"instructions":"Be kind.","protocolVersion":"2024-11-05"}"#,
            Era::Legacy,
        )
        .unwrap();
        assert_eq!(
            known.capabilities.as_ref().map(Capabilities::get),
            Some(r#"{ "tools":{} }"#)
        );
        assert_eq!(
            (known.instructions.as_deref(), known.era),
            (Some("Be kind."), Era::Legacy)
        );
        let silent = read(r#"{"instructions":" "}"#, Era::Legacy).unwrap();
        assert_eq!(silent.capabilities.as_ref().map(Capabilities::get), Some("{}"));
        assert_eq!(silent.instructions, None);
    }

    #[test]
    fn a_version_that_nobody_speaks_is_a_refusal() {
        assert!(
            read(
                r#"{"supportedVersions":["2026-07-28","2030-01-01"]}"#,
                Era::Modern
            )
            .is_ok()
        );
        assert!(
            read("{}", Era::Modern).is_ok(),
            "what is not said is not held against it"
        );
        assert_eq!(
            read(r#"{"supportedVersions":["2030-01-01"]}"#, Era::Modern).unwrap_err(),
            "it does not answer `server/discover` as MCP requires: it speaks no version that pml speaks"
        );
        assert_eq!(
            read("[]", Era::Modern).unwrap_err(),
            "it does not answer `server/discover` as MCP requires: its result is not an object"
        );
    }
}
