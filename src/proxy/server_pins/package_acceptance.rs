//! Accepts another package of a server as it was shown, and finds out first what a question could not show yet.

use std::sync::Arc;

use super::launch::package_content;
use crate::config::Server;
use crate::loader::{Plan, Steps};
use crate::pins::{AcceptedLaunch, Pin, PinError, provenance_alarm};
use crate::protocol::Digest;
use crate::protocol::approval::{ShownChange, ShownDependency};
use crate::proxy::{Proxy, Refusal};
use crate::workflow::Workflow;

/// Names what an answer accepts: the package, what is installed with it, its tools, and what is said of its provenance.
pub(super) fn shown_content(accepted: Digest, alarm: Option<&str>) -> Digest {
    match alarm {
        Some(alarm) => Digest::of([accepted.as_str(), alarm]),
        None => accepted,
    }
}

impl Proxy {
    /// Accepts what an answer covers, for the call that takes it; what its question did not know is found out instead.
    pub(in crate::proxy) async fn accept_answered(
        &self,
        server: &Server,
        plan: &Arc<Plan>,
        taken: &Workflow,
        steps: Option<Steps>,
    ) -> Result<(), Refusal> {
        let accepted = match self.find_awaited(plan, taken, steps).await {
            Ok(()) => self.accept_change(server, plan, taken).await,
            Err(refusal) => Err(refusal),
        };
        // Also where that failed: what comes after the answer is asked about anew.
        self.forget_shared(taken.id).await;
        accepted
    }

    /// Finds out what is installed with a package whose question did not know it: the person wants to go on.
    ///
    /// They are asked again with all of it; until then nothing of the package is fetched.
    pub(in crate::proxy) async fn find_awaited(
        &self,
        plan: &Arc<Plan>,
        taken: &Workflow,
        steps: Option<Steps>,
    ) -> Result<(), Refusal> {
        let awaited = { taken.ask.dependency() }.is_some_and(ShownDependency::awaits_contents);
        if !awaited {
            return Ok(());
        }
        let found = self.0.loader.find_contents(plan, steps).await;
        found.map_err(|error| Refusal::Load {
            dependency: plan.dependency().clone(),
            source: Arc::new(error),
        })
    }

    /// Remembers that a person accepted another package, if it is still exactly what they were shown.
    pub(super) async fn accept_package(
        &self,
        server: &Server,
        plan: &Arc<Plan>,
        dependency: &ShownDependency,
        change: &ShownChange,
    ) -> Result<(), Refusal> {
        let Some(now) = self.package_now(plan).await else {
            return Ok(());
        };
        if now.integrity != dependency.integrity || now.package_lock != dependency.installation.lock {
            return Ok(());
        }
        let before = self
            .0
            .pins
            .compared(server, plan)?
            .and_then(|before| before.package);
        let alarm = before.as_ref().and_then(|before| provenance_alarm(before, &now));
        let mut offered = self.offered(server, plan, now)?;
        let launch = self.launch_change(server, plan)?;
        let accepted = package_content(plan, launch.as_ref(), &offered);
        let is_shown = |alarm: Option<&str>| shown_content(accepted.clone(), alarm) == change.content;
        let was_shown = match alarm {
            Some(alarm) => is_shown(Some(&alarm.to_string())),
            // That it was built where the one before was may be known since: it needs no other question.
            None => {
                is_shown(None) || { change.lines.first() }
                    .is_some_and(|line| is_shown(line.strip_prefix("! ")))
            }
        };
        if !was_shown {
            return Ok(());
        }
        if let (Some(package), Some(before)) = (&mut offered.package, &before) {
            package.follow(before);
        }
        let fresh = AcceptedLaunch::new(plan.digest().clone(), server);
        self.update(server, plan, move |accepted| {
            let mut own = accepted.of(&fresh.launch).cloned().unwrap_or(fresh);
            own.pin.package = offered.package;
            // Without tools that were shown, those of the version before are what its own are compared with.
            if let Some(tools) = offered.tools {
                own.pin.tools = Some(tools);
                own.reviewed.clear();
            }
            accepted.with(own)
        })
        .await
    }

    /// Adds the tools that were accepted last to a pin that has none: a model has been shown those.
    ///
    /// Where there are none, every tool counts as new.
    pub(super) fn with_last_tools(&self, server: &Server, plan: &Plan, pin: Pin) -> Result<Pin, PinError> {
        if pin.tools.is_some() {
            return Ok(pin);
        }
        let accepted = self.0.pins.accepted(server, plan.dependency())?;
        let newest = accepted.as_ref().and_then(|accepted| accepted.newest_tools());
        Ok(Pin {
            tools: Some(newest.cloned().unwrap_or_default()),
            ..pin
        })
    }
}
