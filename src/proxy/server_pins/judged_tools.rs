//! The tools of a server beside those that were accepted: what differs, and what a model is shown meanwhile.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};

use serde_json::json;
use serde_json::value::RawValue;

use super::{accepted_tools, reviewed_tools};
use crate::config::{Config, Server};
use crate::loader::{Known, KnownTool, Plan};
use crate::pins::{AcceptedServer, ToolChange, ToolPin, tool_changes};
use crate::protocol::{DependencyName, Digest};
use crate::proxy::Proxy;

/// The tools of a server as they were compared with what was accepted.
pub(in crate::proxy) struct JudgedTools {
    /// What the server listed.
    known: Arc<Known>,
    baseline: Baseline,
    launch: Digest,
    pinning: Pinning,
    /// What a client is shown: where a tool differs, the definition that was accepted.
    pub(in crate::proxy) shown: Arc<Known>,
    /// What differs.
    pub(super) changes: Vec<ToolChange>,
    /// The tools whose calls are put to a person.
    asking: HashSet<String>,
}

/// What the tools of a server are compared with.
pub(super) enum Baseline {
    /// Nothing was accepted yet.
    Nothing,
    /// What was accepted.
    Accepted(Arc<AcceptedServer>),
    /// What was accepted cannot be read: no tool is what it was, and its calls are refused.
    Unreadable,
}

impl Baseline {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Accepted(one), Self::Accepted(two)) => Arc::ptr_eq(one, two),
            (Self::Nothing, Self::Nothing) | (Self::Unreadable, Self::Unreadable) => true,
            (Self::Nothing | Self::Accepted(_) | Self::Unreadable, _) => false,
        }
    }
}

/// Whether definitions of a server are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pinning {
    On,
    /// The user develops this server.
    Off,
}

impl Pinning {
    pub(super) fn of(config: &Config, plan: &Plan) -> Self {
        if config.pin_tools.covers(plan.dependency()) {
            Self::On
        } else {
            Self::Off
        }
    }
}

impl JudgedTools {
    pub(super) fn new(known: &Arc<Known>, baseline: Baseline, launch: &Digest, pinning: Pinning) -> Self {
        let nothing = BTreeMap::new();
        let (accepted, reviewed) = match &baseline {
            Baseline::Nothing => (None, None),
            Baseline::Accepted(accepted) => {
                let own = accepted.of(launch);
                (accepted_tools(accepted, own), reviewed_tools(accepted, own))
            }
            Baseline::Unreadable => (Some(&nothing), None),
        };
        let (shown, changes) = match (accepted, pinning) {
            (Some(accepted), Pinning::On) => compare(known, accepted, reviewed.unwrap_or(&nothing)),
            (Some(_) | None, Pinning::Off) | (None, Pinning::On) => (Arc::clone(known), Vec::new()),
        };
        let asking = changes.iter().filter(|change| change.asks());
        Self {
            known: Arc::clone(known),
            asking: asking.map(|change| change.name().to_owned()).collect(),
            baseline,
            launch: launch.clone(),
            pinning,
            shown,
            changes,
        }
    }

    /// Returns the tools whose calls are put to a person.
    pub(super) fn asking(self) -> HashSet<String> {
        self.asking
    }

    /// Tells whether a call of a tool must be put to a person: it is not defined as they accepted it.
    pub(in crate::proxy) fn asks_for(&self, tool: &str) -> bool {
        self.asking.contains(tool)
    }
}

impl Proxy {
    /// Compares what a server lists with what was accepted; what was found before is found again at once.
    ///
    /// What is new costs as much as there are tools: [`Proxy::compare_tools`] has it done beside the runtime's thread.
    pub(in crate::proxy) fn judged_tools(
        &self,
        config: &Config,
        server: &Server,
        plan: &Plan,
        known: &Arc<Known>,
    ) -> Arc<JudgedTools> {
        if let Some(found) = self.found_tools(config, server, plan, known) {
            return found;
        }
        let baseline = self.baseline(server, plan);
        let pinning = Pinning::of(config, plan);
        // Not under the lock: comparing thousands of tools takes a while.
        let found = Arc::new(JudgedTools::new(known, baseline, plan.digest(), pinning));
        let mut judged = self.judged();
        judged.insert(plan.dependency().clone(), Arc::clone(&found));
        found
    }

    /// Returns what was found of a server's tools before, if it still holds.
    pub(super) fn found_tools(
        &self,
        config: &Config,
        server: &Server,
        plan: &Plan,
        known: &Arc<Known>,
    ) -> Option<Arc<JudgedTools>> {
        let baseline = self.baseline(server, plan);
        let pinning = Pinning::of(config, plan);
        let judged = self.judged();
        let found = judged.get(plan.dependency())?;
        let holds = Arc::ptr_eq(&found.known, known)
            && found.launch == *plan.digest()
            && found.pinning == pinning
            && found.baseline.is_same(&baseline);
        holds.then(|| Arc::clone(found))
    }

    fn baseline(&self, server: &Server, plan: &Plan) -> Baseline {
        match self.0.pins.accepted(server, plan.dependency()) {
            Ok(None) => Baseline::Nothing,
            Ok(Some(accepted)) => Baseline::Accepted(accepted),
            Err(_told_by_the_call) => Baseline::Unreadable,
        }
    }

    fn judged(&self) -> MutexGuard<'_, HashMap<DependencyName, Arc<JudgedTools>>> {
        self.0.pins.judged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares tools with those that were accepted, and with what a lock says of those that were not.
fn compare(
    known: &Arc<Known>,
    baseline: &BTreeMap<String, ToolPin>,
    reviewed: &BTreeMap<String, ToolPin>,
) -> (Arc<Known>, Vec<ToolChange>) {
    let digests = known.tool_digests();
    let before = |name: &String| baseline.get(name).or_else(|| reviewed.get(name));
    let differs = |name: &String| before(name).map(ToolPin::digest) != digests.get(name);
    let names = baseline.keys().chain(reviewed.keys()).chain(digests.keys());
    if !names.into_iter().any(differs) {
        return (Arc::clone(known), Vec::new());
    }
    let now = known.tool_pins();
    let changes = if reviewed.is_empty() {
        tool_changes(baseline, &now)
    } else {
        let mut compared = reviewed.clone();
        compared.extend(baseline.iter().map(|(name, tool)| (name.clone(), tool.clone())));
        tool_changes(&compared, &now)
    };
    if !changes.iter().any(ToolChange::asks) {
        return (Arc::clone(known), changes);
    }
    let tools = known.tools.iter().filter_map(|tool| {
        let name = tool.name().to_owned();
        if !differs(&name) {
            return Some(tool.clone());
        }
        let definition = baseline
            .get(&name)
            .map_or_else(|| unseen(&name), |pin| Some(pin.definition().to_owned()))?;
        KnownTool::try_from(definition).ok()
    });
    let shown = known.with_tools(tools.collect());
    (Arc::new(shown), changes)
}

/// Defines a tool that no person has accepted yet without a word of its server, or of a lock: a description is text for a
/// model.
fn unseen(name: &str) -> Option<Box<RawValue>> {
    let definition = json!({
        "name": name,
        "description": "This tool is not one that a person has accepted of its server. What it does is not shown before a person has \
                        accepted it; calling it asks them.",
        "inputSchema": { "type": "object" },
    });
    serde_json::value::to_raw_value(&definition).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::pins::{AcceptedLaunch, Pin};

    fn known(tools: &[(&str, &str)]) -> Arc<Known> {
        let tools = tools.iter().map(|(name, description)| {
            let definition = json!({ "name": name, "description": description, "inputSchema": {} });
            let definition = serde_json::value::to_raw_value(&definition).unwrap();
            KnownTool::try_from(definition).unwrap()
        });
        Arc::new(Known::default().with_tools(tools.collect()))
    }

    fn accepted(tools: &[(&str, &str)], reviewed: &[(&str, &str)]) -> Baseline {
        let launch = AcceptedLaunch {
            launch: Digest::of(["accepted"]),
            pin: Pin {
                tools: Some(known(tools).tool_pins()),
                ..Pin::default()
            },
            clients: Vec::new(),
            reviewed: known(reviewed).tool_pins(),
            surroundings: None,
        };
        let server = AcceptedServer::new(Path::new("/p/.pml.json"), &"x".parse().unwrap());
        Baseline::Accepted(Arc::new(server.with(launch)))
    }

    /// Judges the tools `same`, `changed` and `new` at a launch; returns those that ask, and the shown descriptions.
    fn judge(baseline: Baseline, launch: &str, pinning: Pinning) -> (Vec<&'static str>, Vec<String>) {
        let names = ["same", "changed", "new"];
        let known = known(&names.map(|name| (name, "Now.")));
        let judged = JudgedTools::new(&known, baseline, &Digest::of([launch]), pinning);
        let asking = names.into_iter().filter(|name| judged.asks_for(name)).collect();
        let shown = judged.shown.tools.iter().map(|tool| {
            let definition: Value = serde_json::from_str(tool.definition().get()).unwrap();
            definition["description"].as_str().unwrap().to_owned()
        });
        (asking, shown.collect())
    }

    const UNSEEN: &str = "This tool is not one that a person has accepted of its server. What it does is not shown before a person has \
                          accepted it; calling it asks them.";

    #[test]
    fn a_tool_that_is_not_as_it_was_accepted_asks_and_shows_no_word_of_its_own() {
        let before = || accepted(&[("same", "Now."), ("changed", "Before.")], &[]);
        let expected = (
            vec!["changed", "new"],
            ["Now.", "Before.", UNSEEN].map(str::to_owned).into(),
        );
        for launch in ["accepted", "another"] {
            assert_eq!(judge(before(), launch, Pinning::On), expected, "{launch}");
        }
    }

    #[test]
    fn what_a_lock_says_otherwise_asks_and_is_shown_to_no_model() {
        let before = || accepted(&[("same", "Now.")], &[("changed", "Locked."), ("new", "Now.")]);
        // What has become what the lock says is what was reviewed.
        let expected = (
            vec!["changed"],
            ["Now.", UNSEEN, "Now."].map(str::to_owned).into(),
        );
        for launch in ["accepted", "another"] {
            assert_eq!(judge(before(), launch, Pinning::On), expected, "{launch}");
        }
    }

    #[test]
    fn where_what_was_accepted_cannot_be_read_every_tool_asks() {
        let expected = (
            vec!["same", "changed", "new"],
            [UNSEEN; 3].map(str::to_owned).into(),
        );
        assert_eq!(judge(Baseline::Unreadable, "accepted", Pinning::On), expected);
    }

    #[test]
    fn nothing_asks_at_a_first_use_or_of_a_server_under_development() {
        let expected = (Vec::new(), ["Now."; 3].map(str::to_owned).into());
        assert_eq!(judge(Baseline::Nothing, "accepted", Pinning::On), expected);
        for baseline in [accepted(&[("changed", "Before.")], &[]), Baseline::Unreadable] {
            assert_eq!(judge(baseline, "accepted", Pinning::Off), expected);
        }
    }

    #[test]
    fn what_was_found_holds_only_for_what_it_was_compared_with() {
        let (one, two) = (accepted(&[], &[]), accepted(&[], &[]));
        let Baseline::Accepted(same) = &one else {
            unreachable!()
        };
        assert!(one.is_same(&Baseline::Accepted(Arc::clone(same))));
        assert!(!one.is_same(&two), "it was written anew");
        for (number, one) in [&one, &Baseline::Nothing, &Baseline::Unreadable]
            .into_iter()
            .enumerate()
        {
            for (other, two) in [&two, &Baseline::Nothing, &Baseline::Unreadable]
                .into_iter()
                .enumerate()
            {
                assert_eq!(
                    one.is_same(two),
                    number == other && number > 0,
                    "{number} {other}"
                );
            }
        }
    }
}
