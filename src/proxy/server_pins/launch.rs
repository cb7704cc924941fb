//! The launch of a server before it is started: is it declared as it was accepted?
//!
//! Where no rule allows a call, another launch is approved like a server that is new. Where a rule does, that rule was
//! written for the launch that was accepted, so that another one is put to the person with what differs.

use crate::config::{self, Server};
use crate::loader::Plan;
use crate::permissions::Ruling;
use crate::pins::{AcceptedLaunch, Change, LaunchChange, Pin, ToolNames};
use crate::protocol::Digest;
use crate::protocol::approval::{ChangedPart, ShownChange, ShownContents};
use crate::proxy::ask_reason::AskReason;
use crate::proxy::{Proxy, Refusal, View};

impl Proxy {
    /// Tells whether a launch that a rule allows is another than was accepted, and none that a person agreed to.
    pub(in crate::proxy) async fn has_other_launch(
        &self,
        server: &Server,
        plan: &Plan,
    ) -> Result<bool, Refusal> {
        if self.launch_change(server, plan)?.is_none() {
            return Ok(false);
        }
        self.learn_approvals().await;
        if self.approved(plan).is_some() {
            return Ok(false);
        }
        // A person who accepted the file that declares it was shown the same there.
        let (marks, file) = (self.0.files.accepted.clone(), server.source.file.clone());
        let looking = tokio::task::spawn_blocking(move || config::is_accepted_by_a_person(&marks, &file));
        Ok(!looking.await.unwrap_or(false))
    }

    /// Tells why a person must decide about a server that is not what they accepted, whatever rules allow.
    pub(in crate::proxy) async fn change_to_ask(
        &self,
        ruling: Ruling,
        server: &Server,
        plan: &Plan,
    ) -> Result<Option<AskReason>, Refusal> {
        if self.has_other_package(server, plan)? {
            return Ok(Some(AskReason::PackageChanged));
        }
        // Where no rule allows it, another launch is asked about as one that was not approved yet.
        let asks = ruling == Ruling::Allow && self.has_other_launch(server, plan).await?;
        Ok(asks.then_some(AskReason::LaunchChanged))
    }

    /// Returns how a launch that is new differs from the one that was accepted last; from the lock where none was.
    pub(in crate::proxy) fn launch_change(
        &self,
        server: &Server,
        plan: &Plan,
    ) -> Result<Option<LaunchChange>, Refusal> {
        Ok(self.0.pins.launch_change(server, plan, &self.0.environment)?)
    }

    /// Describes for a person how a launch differs from what they accepted; `None` where it does not.
    pub(in crate::proxy) async fn launch_question(
        &self,
        view: &View,
        server: &Server,
        plan: &Plan,
    ) -> Result<Option<ShownChange>, Refusal> {
        let Some(change) = self.launch_change(server, plan)? else {
            return Ok(None);
        };
        let content = launch_content(plan, &change, &Pin::default());
        let changes = vec![Change::Launch(change)];
        let lines = self.describe_changes(view, plan, changes).await?;
        Ok(Some(ShownChange {
            part: ChangedPart::Launch,
            content,
            missing: lines.missing,
            summary: lines.shown.clone(),
            lines: lines.shown,
            contents: ShownContents::Whole,
        }))
    }

    /// Returns what is accepted with another launch, if it is still the one that was shown: its package is as before.
    pub(super) fn accepted_launch(
        &self,
        server: &Server,
        plan: &Plan,
        shown: &Digest,
    ) -> Result<Option<AcceptedLaunch>, Refusal> {
        let change = self.launch_change(server, plan)?;
        let content = change.map(|change| launch_content(plan, &change, &Pin::default()));
        if content.as_ref() != Some(shown) {
            return Ok(None);
        }
        let before = self.0.pins.compared(server, plan)?;
        let mut own = AcceptedLaunch::new(plan.digest().clone(), server);
        own.pin.package = before
            .and_then(|before| before.package)
            .filter(|_| plan.package().is_some());
        Ok(Some(own))
    }
}

/// Names what a person accepts with another launch: it, the lines that they were shown, and what comes with it.
fn launch_content(plan: &Plan, change: &LaunchChange, with: &Pin) -> Digest {
    let lines = Change::Launch(change.clone()).lines(&ToolNames::default().beside(plan.dependency()));
    let parts = [
        "launch 1".to_owned(),
        plan.digest().to_string(),
        with.content().to_string(),
    ];
    Digest::of(parts.into_iter().chain(lines))
}

/// Names what a person accepts with a package; where its launch is another as well, they accept both.
pub(super) fn package_content(plan: &Plan, launch: Option<&LaunchChange>, now: &Pin) -> Digest {
    launch.map_or_else(|| now.content(), |change| launch_content(plan, change, now))
}
