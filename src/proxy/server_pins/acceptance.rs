//! Remembers what a server is when it is first used, and what a person accepted of its changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::judged_tools::Pinning;
use super::{accepted_tools, reviewed_tools};
use crate::config::Server;
use crate::loader::{Known, Plan, Started};
use crate::pins::{
    AcceptedLaunch, AcceptedScripts, AcceptedServer, Change, Namesakes, PackagePin, PinError, ToolChange,
    ToolPin, some_of,
};
use crate::protocol::approval::{ChangedPart, ShownChange, ShownContents};
use crate::protocol::{DependencyName, Digest, Shown};
use crate::proxy::{Proxy, Refusal, View};
use crate::workflow::{Ask, Workflow};

/// More tools than a server has; what it no longer lists is forgotten beyond this.
const TOOLS: usize = 5_000;

/// More changed tools than a model needs to know of.
const SUMMARY: usize = 50;

/// The tools of a started server beside what was accepted.
pub(in crate::proxy) enum ToolCheck {
    /// The tool that is called is what was accepted; what a person should know of a first use.
    Accepted(Vec<String>),
    /// It is not.
    Changed(ShownChange),
}

impl Proxy {
    /// Compares a started server with what was accepted of it; what is used for the first time is remembered.
    pub(in crate::proxy) async fn check_tools(
        &self,
        view: &View,
        server: &Server,
        plan: &Arc<Plan>,
        tool: &str,
        started: &Started,
    ) -> Result<ToolCheck, Refusal> {
        let known = started.known();
        self.read_pins(server, plan).await;
        // Compared before it was started; what it really is may be known only now.
        if let Some(change) = self.unaccepted_package(view, server, plan).await? {
            return Ok(ToolCheck::Changed(change));
        }
        let notes = self.remember_first_use(view, server, plan, &known).await?;
        self.compare_tools(view, server, plan).await;
        let judged = self.judged_tools(&view.config, server, plan, &known);
        if !judged.asks_for(tool) {
            return Ok(ToolCheck::Accepted(notes));
        }
        let changes: Vec<Change> = judged.changes.iter().cloned().map(Change::Tool).collect();
        let content = self.tools_after(server, plan, &known)?;
        let lines = self.describe_changes(view, plan, changes).await?;
        Ok(ToolCheck::Changed(ShownChange {
            part: ChangedPart::Tools,
            content: tools_digest(&content),
            missing: lines.missing,
            contents: ShownContents::Whole,
            lines: lines.shown,
            summary: judged
                .changes
                .iter()
                .take(SUMMARY)
                .map(ToolChange::title)
                .collect(),
        }))
    }

    /// Returns how the package of a launch that is new differs from what was accepted of the server.
    async fn unaccepted_package(
        &self,
        view: &View,
        server: &Server,
        plan: &Arc<Plan>,
    ) -> Result<Option<ShownChange>, Refusal> {
        let accepted = self.0.pins.accepted(server, plan.dependency())?;
        let is_new = accepted.is_some_and(|accepted| accepted.of(plan.digest()).is_none());
        if is_new {
            self.package_change(view, server, plan).await
        } else {
            Ok(None)
        }
    }

    /// Remembers what a server is, where this launch or this kind of client is new.
    async fn remember_first_use(
        &self,
        view: &View,
        server: &Server,
        plan: &Arc<Plan>,
        known: &Arc<Known>,
    ) -> Result<Vec<String>, Refusal> {
        let name = plan.dependency();
        let accepted = self.0.pins.accepted(server, name)?;
        let own = accepted.as_ref().and_then(|accepted| accepted.of(plan.digest()));
        let client = known.client_kind();
        let complete = own.is_some_and(|own| {
            let lacks_lock = own
                .pin
                .package
                .as_ref()
                .is_some_and(|package| package.package_lock.is_none());
            own.pin.tools.is_some() && own.clients.contains(&client) && !lacks_lock
        });
        if complete {
            return Ok(Vec::new());
        }
        let pinning = Pinning::of(&view.config, plan);
        let locked = match accepted {
            Some(_) => None,
            None => self.0.pins.locked(&server.source.file, name)?,
        };
        let first = FirstUse {
            name: name.clone(),
            launch: plan.digest().clone(),
            words: server.launch.words(),
            package: self.package_now(plan).await,
            known: Arc::clone(known),
            client,
            locked: locked.and_then(|locked| locked.tools),
            pinning,
        };
        let notes = match (pinning, own) {
            (Pinning::On, None) => first.notes(&self.namesakes(view, plan).await),
            (Pinning::On, Some(_)) | (Pinning::Off, _) => Vec::new(),
        };
        self.update(server, plan, move |accepted| first.added_to(accepted))
            .await?;
        Ok(notes)
    }

    /// Writes down what is accepted of a server, off the thread: it waits for the disk.
    pub(super) async fn update(
        &self,
        server: &Server,
        plan: &Plan,
        change: impl FnOnce(AcceptedServer) -> AcceptedServer + Send + 'static,
    ) -> Result<(), Refusal> {
        let (shared, file, name) = (
            Arc::clone(&self.0),
            server.source.file.clone(),
            plan.dependency().clone(),
        );
        let writing = tokio::task::spawn_blocking(move || shared.pins.accepted.update(&file, &name, change));
        match writing.await {
            Ok(written) => Ok(written.map(drop).map_err(PinError::from)?),
            Err(panicked) => Err(Refusal::NotRecorded(panicked.into())),
        }
    }

    /// Returns the tools that would be accepted: those that the server lists, and those it lists to other clients.
    fn tools_after(
        &self,
        server: &Server,
        plan: &Plan,
        known: &Known,
    ) -> Result<BTreeMap<String, ToolPin>, PinError> {
        let mut tools = known.tool_pins();
        let accepted = self.0.pins.accepted(server, plan.dependency())?;
        let before = accepted.as_ref().and_then(|accepted| {
            let own = accepted.of(plan.digest());
            accepted_tools(accepted, own)
        });
        if let Some(before) = before.filter(|before| before.len() + tools.len() <= TOOLS) {
            for (name, pin) in before {
                tools.entry(name.clone()).or_insert_with(|| pin.clone());
            }
        }
        Ok(tools)
    }

    /// Remembers that a person accepted a change, if the server is still exactly what they were shown.
    ///
    /// Where it is not, nothing is accepted: the call is decided anew, and asks about what it is now.
    pub(in crate::proxy) async fn accept_change(
        &self,
        server: &Server,
        plan: &Arc<Plan>,
        taken: &Workflow,
    ) -> Result<(), Refusal> {
        let Ask::Integrity { dependency } = &taken.ask else {
            return Ok(());
        };
        let Some(change) = &dependency.installation.change else {
            return Ok(());
        };
        // Its card offers no acceptance: what was not shown is not granted.
        if !change.can_be_accepted() {
            return Ok(());
        }
        let launch = plan.digest().clone();
        let words = server.launch.words();
        match change.part {
            ChangedPart::Scripts => {
                // Exactly those that were shown: where others lie there now, they are asked about anew.
                let scripts = AcceptedScripts::shown(change.content.clone(), &change.lines);
                self.update(server, plan, move |accepted| accepted.with_scripts(scripts))
                    .await
            }
            ChangedPart::Tools => {
                let Some(known) = self.0.loader.known(plan) else {
                    return Ok(());
                };
                let tools = self.tools_after(server, plan, &known)?;
                if tools_digest(&tools) != change.content {
                    return Ok(());
                }
                let package = self.package_now(plan).await;
                self.update(server, plan, move |accepted| {
                    let own = accepted.of(&launch).cloned();
                    let mut own = own.unwrap_or_else(|| AcceptedLaunch::new(launch, words));
                    own.pin.package = own.pin.package.or(package);
                    own.pin.tools = Some(tools);
                    own.reviewed.clear();
                    accepted.with(own)
                })
                .await
            }
            ChangedPart::Package => self.accept_package(server, plan, dependency, change).await,
        }
    }
}

/// A server at the moment in which it is first used.
struct FirstUse {
    name: DependencyName,
    launch: Digest,
    words: Vec<String>,
    package: Option<PackagePin>,
    known: Arc<Known>,
    client: Digest,
    /// What the lock says of its tools, where nothing was accepted before.
    locked: Option<BTreeMap<String, ToolPin>>,
    pinning: Pinning,
}

impl FirstUse {
    /// Adds what is new to what was accepted before.
    fn added_to(self, accepted: AcceptedServer) -> AcceptedServer {
        let own = accepted.of(&self.launch).cloned();
        let is_new_client = own.as_ref().is_none_or(|own| !own.clients.contains(&self.client));
        let accepted_before = accepted_tools(&accepted, own.as_ref()).cloned();
        let mut reviewed = reviewed_tools(&accepted, own.as_ref())
            .cloned()
            .unwrap_or_default();
        let observed = || self.known.tool_pins();
        // What a person must see first is not remembered as accepted.
        let is_other = |reviewed: &BTreeMap<String, ToolPin>, name: &String, tool: &ToolPin| {
            reviewed.get(name).is_some_and(|reviewed| reviewed != tool)
        };
        let tools = match (self.pinning, accepted_before, &own) {
            (Pinning::Off, _, _) => {
                reviewed.clear();
                observed()
            }
            // A kind of client that was not seen before may be listed more; what was known before is compared.
            (Pinning::On, Some(mut known), Some(own)) if own.pin.tools.is_some() && is_new_client => {
                let more = observed().into_iter();
                for (name, tool) in more.filter(|(name, tool)| !is_other(&reviewed, name, tool)) {
                    known.entry(name).or_insert(tool);
                }
                known
            }
            (Pinning::On, Some(known), _) => known,
            (Pinning::On, None, _) => {
                // What the lock says otherwise is kept apart: no person has accepted either. What it says nothing of is new
                // to the lock, not to the user.
                reviewed = self.locked.unwrap_or_default();
                let mut tools = observed();
                tools.retain(|name, tool| !is_other(&reviewed, name, tool));
                reviewed.retain(|name, _| !tools.contains_key(name));
                tools
            }
        };
        let mut own = own.unwrap_or_else(|| AcceptedLaunch::new(self.launch, self.words));
        own.pin.package = self.package.or(own.pin.package);
        own.pin.tools = Some(tools);
        own.reviewed = reviewed;
        if is_new_client {
            own.clients.push(self.client);
        }
        accepted.with(own)
    }

    /// Says what a person should know of tools that are remembered without a question.
    fn notes(&self, namesakes: &Namesakes) -> Vec<String> {
        let observed = self.known.tool_pins();
        let name = &self.name;
        let quoted = |tool: &String| format!("`{}`", Shown::line(tool));
        let hidden = observed.iter().filter(|(_, tool)| tool.hidden_characters() > 0);
        let hidden = some_of(hidden.map(|(tool, _)| quoted(tool))).map(|tools| {
            format!(
                "pml: the definitions of these tools of `{name}` hold characters that do not show: {tools}"
            )
        });
        let mistakable = namesakes
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

fn tools_digest(tools: &BTreeMap<String, ToolPin>) -> Digest {
    let tools = tools.iter();
    let parts = tools.flat_map(|(name, tool)| [name.clone(), tool.digest().to_string()]);
    Digest::of(std::iter::once("tools 1".to_owned()).chain(parts))
}
