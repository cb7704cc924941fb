//! The tools of a server beside those that were accepted: what differs, and what a model is shown meanwhile.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;

use super::accepted_tools;
use crate::config::{Config, Server};
use crate::loader::{Known, KnownTool, Plan};
use crate::pins::{AcceptedServer, ToolChange, ToolPin, tool_changes};
use crate::protocol::Digest;
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
enum Baseline {
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
    fn new(known: &Arc<Known>, baseline: Baseline, launch: &Digest, pinning: Pinning) -> Self {
        let nothing = BTreeMap::new();
        let accepted = match &baseline {
            Baseline::Nothing => None,
            Baseline::Accepted(accepted) => accepted_tools(accepted, accepted.of(launch)),
            Baseline::Unreadable => Some(&nothing),
        };
        let (shown, changes) = match (accepted, pinning) {
            (Some(accepted), Pinning::On) => compare(known, accepted),
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

    /// Tells whether a call of a tool must be put to a person: it is not defined as they accepted it.
    pub(in crate::proxy) fn asks_for(&self, tool: &str) -> bool {
        self.asking.contains(tool)
    }
}

impl Proxy {
    /// Compares what a server lists with what was accepted; what was found before is found again at once.
    ///
    pub(in crate::proxy) fn judged_tools(
        &self,
        config: &Config,
        server: &Server,
        plan: &Plan,
        known: &Arc<Known>,
    ) -> Arc<JudgedTools> {
        let pins = &self.0.pins;
        let name = plan.dependency();
        let baseline = match pins.accepted(server, name) {
            Ok(None) => Baseline::Nothing,
            Ok(Some(accepted)) => Baseline::Accepted(accepted),
            Err(_told_by_the_call) => Baseline::Unreadable,
        };
        let pinning = Pinning::of(config, plan);
        let mut judged = pins
            .judged
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(found) = judged.get(name)
            && Arc::ptr_eq(&found.known, known)
            && found.launch == *plan.digest()
            && found.pinning == pinning
            && found.baseline.is_same(&baseline)
        {
            return Arc::clone(found);
        }
        let found = Arc::new(JudgedTools::new(known, baseline, plan.digest(), pinning));
        judged.insert(name.clone(), Arc::clone(&found));
        found
    }
}

fn compare(known: &Arc<Known>, baseline: &BTreeMap<String, ToolPin>) -> (Arc<Known>, Vec<ToolChange>) {
    let digests = known.tool_digests();
    let differs = |name: &String| baseline.get(name).map(ToolPin::digest) != digests.get(name);
    if !baseline.keys().chain(digests.keys()).any(differs) {
        return (Arc::clone(known), Vec::new());
    }
    let now = known.tool_pins();
    let changes = tool_changes(baseline, &now);
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

/// Defines a tool that nobody has seen yet without a word of its server: its description is text for a model.
fn unseen(name: &str) -> Option<Box<RawValue>> {
    let definition = json!({
        "name": name,
        "description": "This tool appeared after its server was accepted. What it does is not shown before a person has \
                        accepted it; calling it asks them.",
        "inputSchema": { "type": "object" },
    });
    serde_json::value::to_raw_value(&definition).ok()
}
