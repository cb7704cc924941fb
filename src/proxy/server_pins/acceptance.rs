//! Remembers what a server is when it is first used, and what a person accepted of its changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::accepted_tools;
use super::first_use::FirstUse;
use super::judged_tools::Pinning;
use crate::config::Server;
use crate::loader::{Known, Plan, Started};
use crate::pins::{AcceptedLaunch, AcceptedScripts, AcceptedServer, Change, PinError, ToolChange, ToolPin};
use crate::protocol::Digest;
use crate::protocol::approval::{ChangedPart, ShownChange, ShownContents};
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
            let is_whole = own.pin.tools.is_some() && own.surroundings.is_some();
            is_whole && own.clients.contains(&client) && !lacks_lock
        });
        if complete {
            return Ok(Vec::new());
        }
        let pinning = Pinning::of(&view.config, plan);
        let has_tools = accepted
            .as_ref()
            .is_some_and(|accepted| accepted.newest_tools().is_some());
        let locked = if has_tools {
            None
        } else {
            self.0.pins.locked(&server.source.file, name)?
        };
        // Where a person accepted another version than the lock's, it says nothing of that one's tools.
        let accepted_package = own.and_then(|own| own.pin.package.as_ref());
        let locked = locked.filter(|locked| match (accepted_package, &locked.package) {
            (Some(accepted), Some(locked)) => accepted.is_same_as(locked),
            _ => true,
        });
        let first = FirstUse {
            name: name.clone(),
            fresh: AcceptedLaunch::new(plan.digest().clone(), server),
            package: self.package_now(plan).await,
            known: Arc::clone(known),
            client,
            locked: locked.and_then(|locked| locked.tools),
            namesakes: self.namesakes(view, plan).await,
            pinning,
        };
        let notes = match (pinning, &accepted, own) {
            (Pinning::Off, _, _) => Vec::new(),
            (Pinning::On, Some(accepted), Some(own)) if has_tools => {
                first.notes_of_another_client(accepted, own)
            }
            (Pinning::On, _, _) => first.notes(),
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
        let fresh = AcceptedLaunch::new(plan.digest().clone(), server);
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
                    let mut own = accepted.of(&fresh.launch).cloned().unwrap_or(fresh);
                    own.pin.package = own.pin.package.or(package);
                    own.pin.tools = Some(tools);
                    own.reviewed.clear();
                    accepted.with(own)
                })
                .await
            }
            ChangedPart::Launch => match self.accepted_launch(server, plan, &change.content)? {
                Some(own) => {
                    self.update(server, plan, move |accepted| accepted.with(own))
                        .await
                }
                None => Ok(()),
            },
            ChangedPart::Package => self.accept_package(server, plan, dependency, change).await,
        }
    }
}

fn tools_digest(tools: &BTreeMap<String, ToolPin>) -> Digest {
    let tools = tools.iter();
    let parts = tools.flat_map(|(name, tool)| [name.clone(), tool.digest().to_string()]);
    Digest::of(std::iter::once("tools 1".to_owned()).chain(parts))
}
