//! The merged lists of prompts, resources and templates of all servers, and the lookup of an item's server.
//!
//! Everything comes from the catalog or from what runs; nothing is started for a list. What a rule denies is not
//! listed: rules know a prompt as `server:prompts/NAME` and a resource as `server:resources/URI`.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::owner::{ResourcePresence, ServerResources, explicit, owner, possible_owners, seen, servers_of};
use super::{Proxy, View};
use crate::config::nearest;
use crate::loader::{Definition, Known};
use crate::permissions::Ruling;
use crate::protocol::{DependencyName, ListKind, ToolName, wire_name};

/// One thing of a merged list.
#[derive(Debug, Clone)]
pub struct ListedItem {
    /// What the client calls it: a wire name, a URI or a template.
    pub seen: String,
    /// Its definition, byte for byte as its server sent it.
    pub definition: Arc<RawValue>,
}

/// An enabled server and what is known of it.
pub(super) type EnabledServer = (DependencyName, Option<Arc<Known>>);

/// How long a list waits for the approvals: they are read within milliseconds unless the disk hangs.
const APPROVALS_PATIENCE: Duration = Duration::from_secs(1);

impl Proxy {
    /// Tells whether every list of this kind is known as it is now, so that listing it reads and compares nothing.
    #[must_use]
    pub fn is_fresh(&self, kind: ListKind) -> bool {
        // A list of tools says which of them may ask, and so depends on what was approved.
        let decided = kind != ListKind::Tools || self.0.workflows.known_approvals().is_some();
        decided
            && self.known_view().is_some_and(|view| {
                view.is_ok_and(|view| {
                    view.enabled(&self.0.environment).all(|(server, plan)| {
                        self.0.loader.is_fresh(&plan, kind)
                            && self.0.loader.is_read(&plan)
                            && (kind != ListKind::Tools || self.is_compared(&view, server, &plan))
                    })
                })
            })
    }

    /// Asks what runs, and would not say so by itself, whether its list of a kind has changed.
    pub async fn refresh(&self, kind: ListKind) {
        if kind == ListKind::Tools {
            // Without them every tool is listed as one that may ask, which is no harm.
            let _ = tokio::time::timeout(APPROVALS_PATIENCE, self.learn_approvals()).await;
        }
        let Ok(view) = self.current_view().await else {
            return;
        };
        self.read_known(&view).await;
        let plans: Vec<_> = view
            .enabled(&self.0.environment)
            .map(|(_, plan)| plan)
            .filter(|plan| !self.0.loader.is_fresh(plan, kind))
            .collect();
        // Each is waited for, but none waits for another.
        let mut asking = tokio::task::JoinSet::new();
        for plan in plans {
            let loader = self.0.loader.clone();
            asking.spawn(async move { loader.refresh(&plan, kind).await });
        }
        asking.join_all().await;
        if kind == ListKind::Tools {
            self.compare_all_tools().await;
        }
    }

    /// Lists the prompts of all servers under their wire names.
    #[must_use]
    pub fn prompts(&self) -> Vec<ListedItem> {
        self.view()
            .map_or_else(|_broken| Vec::new(), |view| self.prompts_of(&view))
    }

    /// Lists the prompts that a client sees under a configuration.
    pub(super) fn prompts_of(&self, view: &View) -> Vec<ListedItem> {
        let mut offered = Vec::new();
        for (server, known) in known_of(&self.offerings(view)) {
            offered.extend(
                permitted(view, server, "prompts", &known.prompts).map(|prompt| ListedItem {
                    seen: wire_name(&ToolName::new(server.clone(), prompt.name())),
                    definition: Arc::clone(prompt.definition()),
                }),
            );
        }
        offered
    }

    /// Lists the resources of all servers, each under a URI that finds it again.
    #[must_use]
    pub fn resources(&self) -> Vec<ListedItem> {
        self.view()
            .map_or_else(|_broken| Vec::new(), |view| self.resources_of(&view))
    }

    /// Lists the resources that a client sees under a configuration.
    pub(super) fn resources_of(&self, view: &View) -> Vec<ListedItem> {
        // A client that checks URIs gives up the whole list for one that is none.
        let is_uri = |uri: &str| url::Url::parse(uri).is_ok();
        self.merged(view, |known| &known.resources, is_uri)
    }

    /// Lists the templates of all servers, each of which gives URIs that are found again.
    #[must_use]
    pub fn templates(&self) -> Vec<ListedItem> {
        self.view()
            .map_or_else(|_broken| Vec::new(), |view| self.templates_of(&view))
    }

    /// Lists the templates that a client sees under a configuration.
    pub(super) fn templates_of(&self, view: &View) -> Vec<ListedItem> {
        self.merged(view, |known| &known.templates, |_template| true)
    }

    /// Merges a list of all servers; what is not readable as it is comes with the name of its server.
    fn merged<I>(
        &self,
        view: &View,
        of: fn(&Known) -> &Vec<Definition<I>>,
        is_readable: fn(&str) -> bool,
    ) -> Vec<ListedItem> {
        let offerings = self.offerings(view);
        let listed: Vec<(&DependencyName, &Definition<I>)> = known_of(&offerings)
            .flat_map(|(server, known)| {
                permitted(view, server, "resources", of(known)).map(move |definition| (server, definition))
            })
            .collect();
        let servers_of = servers_of(
            listed
                .iter()
                .map(|(server, definition)| (*server, definition.name())),
        );
        listed
            .iter()
            .map(|(server, definition)| ListedItem {
                seen: if is_readable(definition.name()) {
                    seen(server, definition.name(), &servers_of)
                } else {
                    explicit(server, definition.name())
                },
                definition: Arc::clone(definition.definition()),
            })
            .collect()
    }

    /// Finds the server of a prompt and the name it has there; else the nearest wire name there is.
    pub(super) fn prompt_named(
        &self,
        view: &View,
        wire: &str,
    ) -> Result<(DependencyName, String), Option<String>> {
        let names: Vec<ToolName> = known_of(&self.offerings(view))
            .flat_map(|(server, known)| {
                let name = |prompt: &Definition<_>| ToolName::new(server.clone(), prompt.name());
                known.prompts.iter().map(name).collect::<Vec<_>>()
            })
            .collect();
        let found = names.iter().find(|name| wire_name(name) == wire).cloned();
        if let Some(name) = found.or_else(|| view.split(wire)) {
            return Ok((name.dependency().clone(), name.tool().to_owned()));
        }
        let wires: Vec<String> = names.iter().map(wire_name).collect();
        Err(nearest(wire, wires.iter().map(String::as_str)).map(str::to_owned))
    }

    /// Finds the server of a URI and the URI it has there; else the nearest URI that is listed.
    pub(super) fn resource_owner(
        &self,
        view: &View,
        uri: &str,
    ) -> Result<(DependencyName, String), Option<String>> {
        owner(&shelves(&self.offerings(view), &permits(view)), uri)
    }

    /// Names the servers that may have a URI whose owner is not known.
    pub(super) fn possible_owners(&self, view: &View, uri: &str) -> Vec<DependencyName> {
        possible_owners(&shelves(&self.offerings(view), &permits(view)), uri)
    }

    /// Returns what is known of every server that could run.
    pub(super) fn offerings(&self, view: &View) -> Vec<EnabledServer> {
        view.enabled(&self.0.environment)
            .map(|(_, plan)| (plan.dependency().clone(), self.0.loader.known(&plan)))
            .collect()
    }
}

fn known_of(offerings: &[EnabledServer]) -> impl Iterator<Item = (&DependencyName, &Known)> {
    offerings
        .iter()
        .filter_map(|(server, known)| Some((server, known.as_deref()?)))
}

fn shelves<'a>(
    offerings: &'a [EnabledServer],
    permits: &'a dyn Fn(&DependencyName, &str) -> bool,
) -> Vec<ServerResources<'a>> {
    let shelf = |(server, known): &'a EnabledServer| {
        let known = known.as_deref();
        ServerResources {
            server,
            stock: stock(known),
            uris: names(known.map(|known| &known.resources)),
            templates: names(known.map(|known| &known.templates)),
            permits,
        }
    };
    offerings.iter().map(shelf).collect()
}

/// Tells whether a client may see a resource or a template of a server.
fn permits(view: &View) -> impl Fn(&DependencyName, &str) -> bool {
    |server, uri| {
        let name = ToolName::new(server.clone(), format!("resources/{uri}"));
        view.policy.check(&name).ruling != Ruling::Deny
    }
}

fn stock(known: Option<&Known>) -> ResourcePresence {
    match known.map(|known| known.capabilities.as_ref()) {
        None | Some(None) => ResourcePresence::Unknown,
        Some(Some(capabilities)) if capabilities.has("resources") => ResourcePresence::Some,
        Some(Some(_)) => ResourcePresence::None,
    }
}

/// Returns what a client may see of a list; what is listed twice is seen once.
fn permitted<'a, I>(
    view: &'a View,
    server: &'a DependencyName,
    kind: &'a str,
    definitions: &'a [Definition<I>],
) -> impl Iterator<Item = &'a Definition<I>> {
    let mut met = HashSet::new();
    definitions.iter().filter(move |definition| {
        let name = ToolName::new(server.clone(), format!("{kind}/{}", definition.name()));
        view.policy.check(&name).ruling != Ruling::Deny && met.insert(definition.name())
    })
}

fn names<I>(definitions: Option<&Vec<Definition<I>>>) -> Vec<&str> {
    let definitions = definitions.map(Vec::as_slice).unwrap_or_default();
    definitions.iter().map(Definition::name).collect()
}
