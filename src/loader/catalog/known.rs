//! What was learned from a server: its capabilities and its lists, with the version they were learned from.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::capabilities::Capabilities;
use super::collection::bounded;
use super::definition::{Definition, KnownPrompt, KnownResource, KnownTemplate, KnownTool};
use crate::pins::ToolPin;
use crate::protocol::{DefinitionKind, Digest, Era, ListKind, mended_definition};

/// How much of what a dependency lists was left out: it is too long, too much or has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct LeftOut {
    /// How many tools.
    pub tools: usize,
    /// How many prompts.
    pub prompts: usize,
    /// How many resources and templates of resources.
    pub resources: usize,
}

/// What was learned from a dependency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Known {
    /// The package's version; `None` for a plain command.
    pub version: Option<String>,
    /// The package's integrity; `None` for a plain command.
    pub integrity: Option<String>,
    /// What the client offered that it was learned for; `None` where a pml learned it that did not keep it.
    #[serde(default)]
    pub offer: Option<Digest>,
    /// The era in which it was opened.
    #[serde(default)]
    pub era: Era,
    /// What it declared that it can do; `None` where a pml learned it that did not keep it.
    #[serde(default)]
    pub capabilities: Option<Capabilities>,
    /// What it tells a model about itself.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Its tools in their order.
    #[serde(deserialize_with = "bounded")]
    pub tools: Vec<KnownTool>,
    /// Its prompts in their order.
    #[serde(default, deserialize_with = "bounded")]
    pub prompts: Vec<KnownPrompt>,
    /// Its resources in their order.
    #[serde(default, deserialize_with = "bounded")]
    pub resources: Vec<KnownResource>,
    /// Its templates of resources in their order.
    #[serde(default, deserialize_with = "bounded")]
    pub templates: Vec<KnownTemplate>,
    /// What else it lists.
    #[serde(default)]
    pub left_out: LeftOut,
    /// The digests of its tools, once they were asked for.
    #[serde(skip)]
    pub(in crate::loader) digests: ToolDigests,
}

/// The digests of tools, made once from the list they belong to; says nothing of its own.
#[derive(Debug, Clone, Default)]
pub(in crate::loader) struct ToolDigests(OnceLock<Arc<BTreeMap<String, Digest>>>);

impl PartialEq for ToolDigests {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Known {
    /// Tells whether a tool is among them.
    #[must_use]
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name() == name)
    }

    /// Returns the digest of each tool by its name; the first of a name counts. Costs as much as the list is long, once.
    #[must_use]
    pub fn tool_digests(&self) -> Arc<BTreeMap<String, Digest>> {
        let digests = || {
            let mut digests = BTreeMap::new();
            for tool in &self.tools {
                let digest = || ToolPin::of(tool.definition()).digest().clone();
                digests.entry(tool.name().to_owned()).or_insert_with(digest);
            }
            Arc::new(digests)
        };
        Arc::clone(self.digests.0.get_or_init(digests))
    }

    /// Returns its tools by their names; the first of a name counts, as in a list.
    #[must_use]
    pub fn tool_pins(&self) -> BTreeMap<String, ToolPin> {
        let mut pins = BTreeMap::new();
        for tool in &self.tools {
            pins.entry(tool.name().to_owned())
                .or_insert_with(|| ToolPin::of(tool.definition()));
        }
        pins
    }

    /// Names the kind of client that it was learned for.
    #[must_use]
    pub fn client_kind(&self) -> Digest {
        self.offer.clone().unwrap_or_else(|| Digest::of(["any client"]))
    }

    /// Returns the same with other tools.
    #[must_use]
    pub fn with_tools(&self, tools: Vec<KnownTool>) -> Self {
        Self {
            tools,
            digests: ToolDigests::default(),
            ..self.clone()
        }
    }

    /// Returns how many definitions of each list clients cannot read as they were sent; such lists only.
    #[must_use]
    pub fn mended(&self) -> Vec<(&'static str, usize)> {
        fn count<I>(kind: DefinitionKind, definitions: &[Definition<I>]) -> usize {
            let texts = definitions.iter().map(|definition| definition.definition().get());
            texts
                .filter(|text| mended_definition(kind, text).is_some())
                .count()
        }
        let mut counts = vec![
            ("tools", count(DefinitionKind::Tool(Era::Legacy), &self.tools)),
            ("prompts", count(DefinitionKind::Prompt, &self.prompts)),
            ("resources", count(DefinitionKind::Resource, &self.resources)),
            ("templates", count(DefinitionKind::Template, &self.templates)),
        ];
        counts.retain(|(_, count)| *count > 0);
        counts
    }

    /// Tells whether it says by itself when a list changes; what it never declared does not change.
    #[must_use]
    pub fn tells_changes(&self, kind: ListKind) -> bool {
        self.capabilities.as_ref().is_none_or(|capabilities| {
            !capabilities.has(kind.capability()) || capabilities.tells_changes(kind)
        })
    }

    /// Tells whether it was learned from the very package that `other` was learned from.
    pub(super) fn is_of_version(&self, other: &Self) -> bool {
        (&self.version, &self.integrity) == (&other.version, &other.integrity)
    }

    /// Tells whether the same was learned, for whichever client.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let offer = self.offer.clone();
        *self
            == Self {
                offer,
                ..other.clone()
            }
    }

    /// Returns the kinds whose lists a client sees differently than `before`.
    #[must_use]
    pub fn changed_since(&self, before: Option<&Self>) -> Vec<ListKind> {
        let before = before.filter(|before| before.is_of_version(self));
        let changed = |kind: &ListKind| match (before, kind) {
            // In place of the tools of a dependency that is not known stands a tool that connects it.
            (None, ListKind::Tools) => true,
            (None, ListKind::Prompts) => !self.prompts.is_empty(),
            (None, ListKind::Resources) => !(self.resources.is_empty() && self.templates.is_empty()),
            (Some(before), ListKind::Tools) => before.tools != self.tools,
            (Some(before), ListKind::Prompts) => before.prompts != self.prompts,
            (Some(before), ListKind::Resources) => {
                before.resources != self.resources || before.templates != self.templates
            }
        };
        ListKind::ALL.into_iter().filter(changed).collect()
    }
}
