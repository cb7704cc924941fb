//! The lists of a server, learned page by page.
//!
//! Only its tools are a condition for a server to run; a list of another kind that cannot be had is empty, and that is
//! logged.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::error::HandshakeError;
use super::handshake::{IntroducedSession, text_of, unfit};
use crate::loader::catalog::{
    Collection, Definition, Identity, Known, KnownPrompt, KnownResource, KnownTemplate, KnownTool,
    ToolDigests,
};
use crate::protocol::{ListKind, Object};

/// More pages than any server has things to list: a cursor that never ends must end here.
const PAGE_LIMIT: usize = 200;

/// A list that is no condition for anything is not waited for longer than a person waits for a menu.
pub(in crate::loader) const LIST_PATIENCE: Duration = Duration::from_secs(5);

/// A list of MCP: how it is asked for and where it stands in the answer.
struct ListMethod {
    method: &'static str,
    member: &'static str,
}

const TOOLS: ListMethod = ListMethod {
    method: "tools/list",
    member: "tools",
};
const PROMPTS: ListMethod = ListMethod {
    method: "prompts/list",
    member: "prompts",
};
const RESOURCES: ListMethod = ListMethod {
    method: "resources/list",
    member: "resources",
};
const TEMPLATES: ListMethod = ListMethod {
    method: "resources/templates/list",
    member: "resourceTemplates",
};

/// What a dependency offers of one kind, and how much of it was left out.
pub(in crate::loader) enum LearnedList {
    Tools(Pages<KnownTool>),
    Prompts(Pages<KnownPrompt>),
    Resources(Pages<KnownResource>, Pages<KnownTemplate>),
    /// The tools, byte for byte as they were listed last.
    SameTools,
}

/// What all pages of a list hold together.
pub(in crate::loader) struct Pages<D> {
    definitions: Vec<D>,
    left_out: usize,
    is_one_page: bool,
}

impl LearnedList {
    /// Tells whether it is what was known.
    pub(in crate::loader) fn is_in(&self, known: &Known) -> bool {
        let left_out = known.left_out;
        match self {
            Self::SameTools => true,
            Self::Tools(tools) => tools.are(&known.tools, left_out.tools),
            Self::Prompts(prompts) => prompts.are(&known.prompts, left_out.prompts),
            Self::Resources(resources, templates) => {
                resources.definitions == known.resources
                    && templates.definitions == known.templates
                    && resources.left_out + templates.left_out == left_out.resources
            }
        }
    }

    /// Puts it in the place of what was known.
    pub(in crate::loader) fn put_into(self, known: &mut Known) {
        match self {
            Self::Tools(tools) => {
                known.tools = tools.definitions;
                known.digests = ToolDigests::default();
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
            Self::SameTools => {}
        }
    }
}

impl<D: PartialEq> Pages<D> {
    fn are(&self, definitions: &[D], left_out: usize) -> bool {
        self.definitions == definitions && self.left_out == left_out
    }
}

impl IntroducedSession {
    /// Learns everything that the dependency declares to have.
    pub(in crate::loader) async fn learn(&self, known: &mut Known) -> Result<(), HandshakeError> {
        let capabilities = known.capabilities.clone();
        let has = |kind: ListKind| {
            capabilities
                .as_ref()
                .is_some_and(|capabilities| capabilities.has(kind.capability()))
        };
        let other = async |kind: ListKind| {
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
            if has(ListKind::Tools) {
                self.list(ListKind::Tools).await.map(Some)
            } else {
                Ok(None)
            }
        };
        let (tools, prompts, resources) =
            tokio::join!(tools, other(ListKind::Prompts), other(ListKind::Resources));
        for part in [tools?, prompts, resources].into_iter().flatten() {
            part.put_into(known);
        }
        Ok(())
    }

    /// Lists what the dependency has of one kind.
    pub(in crate::loader) async fn list(&self, kind: ListKind) -> Result<LearnedList, HandshakeError> {
        match kind {
            ListKind::Tools => self.tools().await,
            ListKind::Prompts => self.pages(&PROMPTS).await.map(LearnedList::Prompts),
            ListKind::Resources => {
                let (resources, templates) = tokio::join!(self.pages(&RESOURCES), self.pages(&TEMPLATES));
                // Templates came later than resources: servers are known that have no answer for them.
                let templates = templates.unwrap_or_else(|error| {
                    tracing::info!(dependency = %self.session.dependency(), %error, "templates could not be learned");
                    Pages {
                        definitions: Vec::new(),
                        left_out: 0,
                        is_one_page: true,
                    }
                });
                Ok(LearnedList::Resources(resources?, templates))
            }
        }
    }

    /// Lists the tools; a server that says again what it said last costs no reading of it.
    async fn tools(&self) -> Result<LearnedList, HandshakeError> {
        let first = self.ask_again(TOOLS.method).await?;
        if self.last_tools().as_ref() == Some(&first) {
            return Ok(LearnedList::SameTools);
        }
        if self.last_tools().is_some() {
            self.session.forget_repeated();
        }
        let tools = self.pages_from(&TOOLS, first.clone()).await?;
        *self.last_tools() = tools.is_one_page.then_some(first);
        Ok(LearnedList::Tools(tools))
    }

    fn last_tools(&self) -> MutexGuard<'_, Option<Bytes>> {
        self.last_tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pages<I: Identity>(&self, list: &ListMethod) -> Result<Pages<Definition<I>>, HandshakeError> {
        let first = self.ask(list.method, "").await?;
        self.pages_from(list, first).await
    }

    /// Reads a list page by page; what is over the bounds, or lacks what it is known by, is left out.
    async fn pages_from<I: Identity>(
        &self,
        list: &ListMethod,
        mut page: Bytes,
    ) -> Result<Pages<Definition<I>>, HandshakeError> {
        let dependency = self.session.dependency();
        let mut collection = Collection::new();
        let mut pages = 0;
        loop {
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
            let members = format!(r#""cursor":{}"#, json!(cursor));
            page = self.ask(list.method, &members).await?;
        }
        let (definitions, left_out) = collection.finish();
        if let Some((count, reason)) = &left_out {
            tracing::warn!(%dependency, list = list.method, count, reason, "definitions are left out");
        }
        Ok(Pages {
            definitions,
            left_out: left_out.map_or(0, |(count, _)| count),
            is_one_page: pages == 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(tools: &[&str], left_out: usize) -> LearnedList {
        let mut collection = Collection::new();
        collection.add_all(&format!("[{}]", tools.join(","))).unwrap();
        let (definitions, _) = collection.finish();
        LearnedList::Tools(Pages {
            definitions,
            left_out,
            is_one_page: true,
        })
    }

    #[test]
    fn a_list_is_what_was_known_only_where_every_byte_and_all_that_was_left_out_is() {
        let tools = [r#"{"name":"a"}"#, r#"{"name":"b"}"#];
        let mut known = Known::default();
        listed(&tools, 1).put_into(&mut known);
        assert!(listed(&tools, 1).is_in(&known));
        assert!(!listed(&tools, 0).is_in(&known));
        assert!(!listed(&tools[..1], 1).is_in(&known));
        assert!(!listed(&[tools[0], r#"{"name":"b" }"#], 1).is_in(&known));
        assert!(!listed(&[tools[1], tools[0]], 1).is_in(&known));
    }
}
