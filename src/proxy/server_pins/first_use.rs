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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::loader::KnownTool;
    use crate::pins::{Pin, ToolNames};
    use crate::protocol::ToolName;

    fn known(tools: &[(&str, &str)]) -> Known {
        let tools = tools.iter().map(|(name, description)| {
            let definition = json!({ "name": name, "description": description, "inputSchema": {} });
            KnownTool::try_from(to_raw_value(&definition).unwrap()).unwrap()
        });
        Known::default().with_tools(tools.collect())
    }

    fn pins(tools: &[(&str, &str)]) -> BTreeMap<String, ToolPin> {
        known(tools).tool_pins()
    }

    fn launch(name: &str) -> AcceptedLaunch {
        AcceptedLaunch {
            launch: Digest::of([name]),
            pin: Pin::default(),
            clients: Vec::new(),
            reviewed: BTreeMap::new(),
            surroundings: None,
        }
    }

    /// A first use of the server `own` at the launch `now`, beside a server `other` that has a tool `read_file`.
    fn first_use(client: &str, tools: &[(&str, &str)]) -> FirstUse {
        let own: DependencyName = "own".parse().unwrap();
        let other = ToolName::new("other".parse().unwrap(), "read_file".to_owned());
        FirstUse {
            namesakes: ToolNames::from_iter([other]).beside(&own),
            name: own,
            fresh: launch("now"),
            package: None,
            known: Arc::new(known(tools)),
            client: Digest::of([client]),
            locked: None,
            pinning: Pinning::On,
        }
    }

    fn nothing() -> AcceptedServer {
        AcceptedServer::new(Path::new("/p/.pml.json"), &"own".parse().unwrap())
    }

    /// What was accepted of a launch for the client `one`, where a lock says something of another tool.
    fn accepted(name: &str, tools: &[(&str, &str)], reviewed: &[(&str, &str)]) -> AcceptedLaunch {
        let pin = Pin {
            tools: Some(pins(tools)),
            ..Pin::default()
        };
        AcceptedLaunch {
            pin,
            clients: vec![Digest::of(["one"])],
            reviewed: pins(reviewed),
            ..launch(name)
        }
    }

    #[test]
    fn what_a_lock_says_otherwise_is_not_remembered_as_accepted() {
        let first = FirstUse {
            locked: Some(pins(&[
                ("same", "Same."),
                ("other", "Before."),
                ("gone", "Gone."),
            ])),
            ..first_use("one", &[("same", "Same."), ("other", "Now."), ("new", "New.")])
        };
        assert_eq!(
            first.notes(),
            ["pml: `own` has tools that its lock does not have: `new`; to add them: pml lock own"]
        );
        let expected = accepted(
            "now",
            &[("same", "Same."), ("new", "New.")],
            &[("other", "Before."), ("gone", "Gone.")],
        );
        assert_eq!(first.added_to(nothing()), nothing().with(expected));
    }

    const LISTED: [(&str, &str); 5] = [
        ("known", "Changed."),
        ("reviewed", "Changed."),
        ("more", "More."),
        ("hides", "More\u{200b}."),
        ("readFile", "More."),
    ];

    #[test]
    fn another_kind_of_client_adds_tools_that_are_new_and_deceive_nobody() {
        let before = nothing().with(accepted(
            "now",
            &[("known", "Known.")],
            &[("reviewed", "Locked.")],
        ));
        let first = first_use("two", &LISTED);
        assert_eq!(
            first.notes_of_another_client(&before, before.latest().unwrap()),
            ["pml: `own` lists tools to this kind of client that it did not list before: `more`"]
        );
        let expected = AcceptedLaunch {
            clients: ["one", "two"].map(|client| Digest::of([client])).into(),
            ..accepted(
                "now",
                &[("known", "Known."), ("more", "More.")],
                &[("reviewed", "Locked.")],
            )
        };
        assert_eq!(first.added_to(before), nothing().with(expected));
    }

    #[test]
    fn a_kind_of_client_that_was_seen_before_adds_no_tool() {
        let before = nothing().with(accepted("now", &[("known", "Known.")], &[]));
        let first = first_use("one", &LISTED);
        let notes = first.notes_of_another_client(&before, before.latest().unwrap());
        assert_eq!(notes, Vec::<String>::new());
        assert_eq!(first.added_to(before.clone()), before);
    }

    #[test]
    fn a_launch_whose_tools_were_never_seen_is_compared_with_the_newest_that_were() {
        let old = accepted("old", &[("known", "Known.")], &[("reviewed", "Locked.")]);
        let expected = AcceptedLaunch {
            launch: Digest::of(["now"]),
            ..old.clone()
        };
        let seen = nothing().with(old);
        for before in [seen.clone(), seen.clone().with(launch("now"))] {
            let first = FirstUse {
                locked: Some(pins(&[("more", "Locked.")])),
                ..first_use("one", &LISTED)
            };
            if let Some(own) = before.of(&Digest::of(["now"])) {
                assert_eq!(first.notes_of_another_client(&before, own), Vec::<String>::new());
            }
            assert_eq!(first.added_to(before), seen.clone().with(expected.clone()));
        }
    }

    #[test]
    fn of_a_server_under_development_everything_is_remembered_as_it_is() {
        let before = nothing().with(accepted(
            "now",
            &[("known", "Known.")],
            &[("reviewed", "Locked.")],
        ));
        let first = FirstUse {
            pinning: Pinning::Off,
            ..first_use("one", &LISTED)
        };
        let expected = accepted("now", &LISTED, &[]);
        assert_eq!(first.added_to(before), nothing().with(expected));
    }

    #[test]
    fn a_first_use_names_what_could_deceive() {
        assert_eq!(
            first_use("one", &LISTED).notes(),
            [
                "pml: the definitions of these tools of `own` hold characters that do not show: `hides`",
                "pml: these tools of `own` can be mistaken for those of other servers: `readFile` (like `other:read_file`)",
            ]
        );
        assert_eq!(
            first_use("one", &[("plain", "Plain.")]).notes(),
            Vec::<String>::new()
        );
    }
}
