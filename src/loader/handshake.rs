//! How pml itself speaks to a dependency: introducing itself in either era, and learning all that is offered.
//!
//! Uses a [`Session`] and nothing of processes: whether a dependency that refused is started again is decided by
//! whoever opened it. Only its tools are a condition for a dependency to run; a list of another kind that cannot be
//! had is empty, and that is logged.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::collection::Collection;
use super::definition::{Definition, Identity};
use super::{
    Capabilities, Declared, Known, KnownPrompt, KnownResource, KnownTemplate, KnownTool, LoadError, Reply,
    Session,
};
use crate::protocol::{Era, Json, Kind, Object, Shown};

/// More pages than any server has things to list: a cursor that never ends must end here.
const PAGE_LIMIT: usize = 200;

/// A list that is no condition for anything is not waited for longer than a person waits for a menu.
pub(super) const LIST_PATIENCE: Duration = Duration::from_secs(5);

/// A list of MCP: how it is asked for and where it stands in the answer.
struct List {
    method: &'static str,
    member: &'static str,
}

const TOOLS: List = List {
    method: "tools/list",
    member: "tools",
};
const PROMPTS: List = List {
    method: "prompts/list",
    member: "prompts",
};
const RESOURCES: List = List {
    method: "resources/list",
    member: "resources",
};
const TEMPLATES: List = List {
    method: "resources/templates/list",
    member: "resourceTemplates",
};

/// What a dependency offers of one kind, and how much of it was left out.
pub(super) enum Part {
    Tools(Pages<KnownTool>),
    Prompts(Pages<KnownPrompt>),
    Resources(Pages<KnownResource>, Pages<KnownTemplate>),
}

/// What all pages of a list hold together.
pub(super) struct Pages<D> {
    definitions: Vec<D>,
    left_out: usize,
}

impl Part {
    /// Puts it in the place of what was known.
    pub(super) fn put_into(self, known: &mut Known) {
        match self {
            Self::Tools(tools) => {
                known.tools = tools.definitions;
                known.left_out.tools = tools.left_out;
            }
            Self::Prompts(prompts) => {
                known.prompts = prompts.definitions;
                known.left_out.prompts = prompts.left_out;
            }
            Self::Resources(resources, templates) => {
                known.resources = resources.definitions;
                known.templates = templates.definitions;
                known.left_out.resources = resources.left_out + templates.left_out;
            }
        }
    }
}

/// The conversation in one era, on behalf of one client.
#[derive(Clone)]
pub(super) struct Introduced {
    session: Session,
    era: Era,
    declared: Declared,
}

/// Opens the conversation in one era; returns what the dependency said of itself, with nothing listed yet.
pub(super) async fn introduce(
    session: &Session,
    era: Era,
    declared: &Declared,
) -> Result<(Introduced, Known), LoadError> {
    let introduced = Introduced {
        session: session.clone(),
        era,
        declared: declared.clone(),
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
    session.speaks(era);
    Ok((introduced, known))
}

/// Reads what a dependency said of itself.
fn said(result: &Bytes, method: &'static str, era: Era) -> Result<Known, LoadError> {
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

fn text_of(raw: &Bytes) -> Option<&str> {
    std::str::from_utf8(raw).ok()
}

fn unfit(method: &'static str, reason: impl Into<String>) -> LoadError {
    LoadError::Handshake {
        method,
        reason: reason.into(),
    }
}

impl Introduced {
    /// Learns everything that the dependency declares to have.
    pub(super) async fn learn(&self, known: &mut Known) -> Result<(), LoadError> {
        let capabilities = known.capabilities.clone();
        let has = |kind: Kind| {
            capabilities
                .as_ref()
                .is_some_and(|capabilities| capabilities.has(kind.capability()))
        };
        let other = async |kind: Kind| {
            if !has(kind) {
                return None;
            }
            match tokio::time::timeout(LIST_PATIENCE, self.list(kind)).await {
                Ok(Ok(part)) => Some(part),
                Ok(Err(error)) => {
                    tracing::warn!(dependency = %self.session.dependency(), %error, "a list could not be learned and is empty");
                    None
                }
                Err(_elapsed) => {
                    tracing::warn!(dependency = %self.session.dependency(), list = kind.capability(), "a list did not come in time and is empty");
                    None
                }
            }
        };
        let tools = async {
            if has(Kind::Tools) {
                self.list(Kind::Tools).await.map(Some)
            } else {
                Ok(None)
            }
        };
        let (tools, prompts, resources) = tokio::join!(tools, other(Kind::Prompts), other(Kind::Resources));
        for part in [tools?, prompts, resources].into_iter().flatten() {
            part.put_into(known);
        }
        Ok(())
    }

    /// Lists what the dependency has of one kind.
    pub(super) async fn list(&self, kind: Kind) -> Result<Part, LoadError> {
        match kind {
            Kind::Tools => self.pages(&TOOLS).await.map(Part::Tools),
            Kind::Prompts => self.pages(&PROMPTS).await.map(Part::Prompts),
            Kind::Resources => {
                let (resources, templates) = tokio::join!(self.pages(&RESOURCES), self.pages(&TEMPLATES));
                // Templates came later than resources: servers are known that have no answer for them.
                let templates = templates.unwrap_or_else(|error| {
                    tracing::info!(dependency = %self.session.dependency(), %error, "templates could not be learned");
                    Pages {
                        definitions: Vec::new(),
                        left_out: 0,
                    }
                });
                Ok(Part::Resources(resources?, templates))
            }
        }
    }

    /// Asks a Modern dependency to say when one of its lists changes; a Legacy one says so by itself.
    pub(super) fn follow_lists(&self, capabilities: &Capabilities) {
        let wishes: serde_json::Map<String, serde_json::Value> = Kind::ALL
            .into_iter()
            .filter(|kind| capabilities.tells_changes(*kind))
            .map(|kind| (kind.wish().to_owned(), json!(true)))
            .collect();
        if self.era == Era::Modern && !wishes.is_empty() {
            let params = self.params(&format!(r#""notifications":{}"#, json!(wishes)));
            self.session.send_and_forget("subscriptions/listen", &params);
        }
    }

    /// Reads a list page by page; what is over the bounds, or lacks what it is known by, is left out.
    async fn pages<I: Identity>(&self, list: &List) -> Result<Pages<Definition<I>>, LoadError> {
        let dependency = self.session.dependency();
        let mut collection = Collection::new();
        let mut members = String::new();
        let mut pages = 0;
        loop {
            let page = self.ask(list.method, &members).await?;
            let object = text_of(&page).and_then(Object::parse);
            let object = object.ok_or_else(|| unfit(list.method, "its result is not an object"))?;
            object
                .value(list.member)
                .and_then(|raw| collection.add_all(raw.get()).ok())
                .ok_or_else(|| unfit(list.method, format!("it has no list `{}`", list.member)))?;
            let Some(cursor) = object.text("nextCursor").filter(|cursor| !cursor.is_empty()) else {
                break;
            };
            pages += 1;
            if pages == PAGE_LIMIT || collection.is_full() {
                tracing::warn!(%dependency, list = list.method, pages, "a list does not end; its further pages are left out");
                break;
            }
            members = format!(r#""cursor":{}"#, json!(cursor));
        }
        let (definitions, left_out) = collection.finish();
        if let Some((count, reason)) = &left_out {
            tracing::warn!(%dependency, list = list.method, count, reason, "definitions are left out");
        }
        Ok(Pages {
            definitions,
            left_out: left_out.map_or(0, |(count, _)| count),
        })
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

    async fn ask(&self, method: &'static str, members: &str) -> Result<Bytes, LoadError> {
        match self.session.request(method, &self.params(members)).await {
            Reply::Result(raw) => Ok(raw),
            Reply::Error(raw) => {
                let text = String::from_utf8_lossy(&raw[..raw.len().min(2000)]).into_owned();
                Err(unfit(method, Shown::line(&text).to_string()))
            }
            Reply::Unusable(reason) => Err(unfit(method, reason)),
            Reply::Ended(ended) => Err(LoadError::Ended(ended)),
        }
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
