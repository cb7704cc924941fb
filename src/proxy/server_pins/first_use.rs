//! A server that is used for the first time, at this launch or by this kind of client: what is remembered of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::judged_tools::Pinning;
use super::{accepted_tools, reviewed_tools};
use crate::loader::Known;
use crate::pins::{AcceptedLaunch, AcceptedServer, Namesakes, PackagePin, ToolPin, some_of};
use crate::protocol::{DependencyName, Digest, Shown};

/// A server at the moment in which it is first used.
pub(super) struct FirstUse {
    pub(super) name: DependencyName,
    /// The launch as it is declared.
    pub(super) fresh: AcceptedLaunch,
    pub(super) package: Option<PackagePin>,
    pub(super) known: Arc<Known>,
    pub(super) client: Digest,
    /// What the lock says of its tools, where nothing was accepted before.
    pub(super) locked: Option<BTreeMap<String, ToolPin>>,
    /// The tools of other servers.
    pub(super) namesakes: Namesakes,
    pub(super) pinning: Pinning,
}

impl FirstUse {
    /// Returns the tools that only this kind of client is listed, and that are remembered without a question.
    ///
    /// A server sees which kind asks. What hides characters, or can be mistaken for a tool of another server, is left for a
    /// person to accept.
    fn more_tools(
        &self,
        accepted: &BTreeMap<String, ToolPin>,
        reviewed: &BTreeMap<String, ToolPin>,
    ) -> BTreeMap<String, ToolPin> {
        let mut more = self.known.tool_pins();
        more.retain(|name, tool| {
            let deceives = tool.hidden_characters() > 0 || self.namesakes.of(name).is_some();
            !accepted.contains_key(name) && !is_other(reviewed, name, tool) && !deceives
        });
        more
    }

    /// Names the tools that only this kind of client is listed.
    pub(super) fn notes_of_another_client(
        &self,
        accepted: &AcceptedServer,
        own: &AcceptedLaunch,
    ) -> Vec<String> {
        if own.pin.tools.is_none() || own.clients.contains(&self.client) {
            return Vec::new();
        }
        let nothing = BTreeMap::new();
        let known = accepted_tools(accepted, Some(own)).unwrap_or(&nothing);
        let more = self.more_tools(known, reviewed_tools(accepted, Some(own)).unwrap_or(&nothing));
        let named = some_of(more.keys().map(|tool| format!("`{}`", Shown::line(tool))));
        let note = named.map(|tools| {
            format!(
                "pml: `{}` lists tools to this kind of client that it did not list before: {tools}",
                self.name
            )
        });
        note.into_iter().collect()
    }

    /// Adds what is new to what was accepted before.
    pub(super) fn added_to(self, accepted: AcceptedServer) -> AcceptedServer {
        let own = accepted.of(&self.fresh.launch).cloned();
        let is_new_client = own.as_ref().is_none_or(|own| !own.clients.contains(&self.client));
        let accepted_before = accepted_tools(&accepted, own.as_ref()).cloned();
        let mut reviewed = reviewed_tools(&accepted, own.as_ref())
            .cloned()
            .unwrap_or_default();
        let observed = || self.known.tool_pins();
        let tools = match (self.pinning, accepted_before, &own) {
            (Pinning::Off, _, _) => {
                reviewed.clear();
                observed()
            }
            // A kind of client that was not seen before may be listed more; what was known before is compared.
            (Pinning::On, Some(mut known), Some(own)) if own.pin.tools.is_some() && is_new_client => {
                let more = self.more_tools(&known, &reviewed);
                known.extend(more);
                known
            }
            (Pinning::On, Some(known), _) => known,
            (Pinning::On, None, _) => {
                // What the lock says otherwise is kept apart: no person has accepted either. What it says nothing of is new
                // to the lock, not to the user.
                reviewed = self.locked.unwrap_or_default();
                let mut tools = observed();
                // What a person must see first is not remembered as accepted.
                tools.retain(|name, tool| !is_other(&reviewed, name, tool));
                reviewed.retain(|name, _| !tools.contains_key(name));
                tools
            }
        };
        let surroundings = self.fresh.surroundings.clone();
        let mut own = own.unwrap_or(self.fresh);
        own.surroundings = surroundings;
        own.pin.package = self.package.or(own.pin.package);
        own.pin.tools = Some(tools);
        own.reviewed = reviewed;
        if is_new_client {
            own.clients.push(self.client);
        }
        accepted.with(own)
    }

    /// Says what a person should know of tools that are remembered without a question.
    pub(super) fn notes(&self) -> Vec<String> {
        let observed = self.known.tool_pins();
        let name = &self.name;
        let quoted = |tool: &String| format!("`{}`", Shown::line(tool));
        let hidden = observed.iter().filter(|(_, tool)| tool.hidden_characters() > 0);
        let hidden = some_of(hidden.map(|(tool, _)| quoted(tool))).map(|tools| {
            format!(
                "pml: the definitions of these tools of `{name}` hold characters that do not show: {tools}"
            )
        });
        let mistakable = self
            .namesakes
            .notice(observed.keys().map(String::as_str))
            .map(|tools| {
                format!("pml: these tools of `{name}` can be mistaken for those of other servers: {tools}")
            });
        let unknown = self.locked.as_ref().and_then(|locked| {
            let missing = observed.keys().filter(|tool| !locked.contains_key(*tool));
            let missing = some_of(missing.map(quoted))?;
            Some(format!(
                "pml: `{name}` has tools that its lock does not have: {missing}; to add them: pml lock {name}"
            ))
        });
        hidden.into_iter().chain(mistakable).chain(unknown).collect()
    }
}

/// Tells whether a lock says something else of a tool.
fn is_other(reviewed: &BTreeMap<String, ToolPin>, name: &str, tool: &ToolPin) -> bool {
    reviewed.get(name).is_some_and(|reviewed| reviewed != tool)
}
