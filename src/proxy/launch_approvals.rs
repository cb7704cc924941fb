//! The approvals of launches that this process knows, as calls look them up.
//!
//! They are kept in the store and read off the thread of the conversation. What is known is believed as long as one look
//! at a file says that no process changed an approval; otherwise nothing counts as approved until
//! [`Proxy::learn_approvals`] has read them again. So a withdrawal counts from the next call on, and no call costs a
//! read of the database.

use super::{Proxy, Refusal};
use crate::loader::{Content, Plan, Started};
use crate::protocol::{LaunchApproval, ToolName};
use crate::workflow::FoundContent;

impl Proxy {
    /// Completes an approval that was given before the integrity was known, unless it was taken back meanwhile.
    pub(super) async fn record_first_use(
        &self,
        tool: &ToolName,
        plan: &Plan,
        started: &Started,
    ) -> Result<Option<String>, Refusal> {
        self.learn_approvals().await;
        let found = self.0.workflows.known_approvals();
        let found = found.and_then(|approvals| approvals.find(plan.digest()).cloned());
        let (Some(resolved), Some(found)) = (started.resolved.clone(), found) else {
            return Ok(None);
        };
        let Some(integrity) = resolved.integrity.clone() else {
            return Ok(None);
        };
        // An approval of an older pml names neither its package nor its lock.
        let package = plan.package().map(ToString::to_string);
        let lacks_lock = found.lock.is_none() && resolved.lock.is_some();
        if found.integrity.is_some() && found.package == package && !lacks_lock {
            return Ok(None);
        }
        let (name, version) = (plan.dependency(), resolved.version.clone());
        let content = FoundContent {
            version: resolved.version,
            integrity: resolved.integrity,
            package,
            lock: resolved.lock,
        };
        let completed = self
            .0
            .workflows
            .complete_approval(plan.digest().clone(), content)
            .await;
        Ok(Some(match completed {
            Ok(Some(_)) if found.integrity.is_some() => return Ok(None),
            Ok(Some(_)) => format!(
                "pml: the integrity of {name}@{version} was not known when it was approved; {integrity} was recorded \
                 at this first use, and only that runs from now on"
            ),
            Ok(None) => return Err(Refusal::Withdrawn { tool: tool.clone() }),
            Err(error) => format!("pml: the integrity of {name} could not be recorded: {error}"),
        }))
    }

    /// Tells whether a person approved this dependency as it is declared and installed.
    pub(super) fn is_approved(&self, plan: &Plan) -> bool {
        self.approved(plan).is_some()
    }

    /// Returns the content that a person approved of this dependency, if they approved it as it is declared and
    /// installed; both by the same look at the approvals.
    ///
    /// Nothing counts as approved while the approvals are not known: [`Proxy::learn_approvals`] comes first.
    pub(super) fn approved(&self, plan: &Plan) -> Option<Content> {
        let approvals = self.0.workflows.known_approvals();
        let approval = approvals
            .as_ref()
            .and_then(|approvals| approvals.find(plan.digest()));
        let covered = || {
            let resolved = self.0.loader.resolved(plan);
            let (integrity, lock) =
                resolved.map_or((None, None), |resolved| (resolved.integrity, resolved.lock));
            approval.is_some_and(|approval| approval.covers(integrity.as_deref(), lock.as_ref()))
        };
        (self.0.grants.allows_launch(plan.digest()) || covered()).then(|| content_of(approval))
    }

    /// Tells whether no approval changed since they were read; costs a look at one file.
    #[must_use]
    pub fn knows_approvals(&self) -> bool {
        self.0.workflows.known_approvals().is_some()
    }

    /// Reads the approvals again if this or another process changed one.
    pub async fn read_approvals(&self) -> Result<(), Refusal> {
        self.0.workflows.approvals().await?;
        Ok(())
    }

    /// Reads the approvals again if one changed; where they cannot be read, none counts.
    pub(super) async fn learn_approvals(&self) {
        if let Err(error) = self.0.workflows.approvals().await {
            let error = crate::report::render_hinted(&error);
            tracing::warn!(%error, "the approvals cannot be read and do not count");
        }
    }

    /// Returns the content that a person approved, whether or not it is what is installed now.
    pub(super) fn approved_content(&self, plan: &Plan) -> Content {
        let approvals = self.0.workflows.known_approvals();
        content_of(
            approvals
                .as_ref()
                .and_then(|approvals| approvals.find(plan.digest())),
        )
    }
}

fn content_of(approval: Option<&LaunchApproval>) -> Content {
    approval.map_or_else(Content::default, |approval| Content {
        integrity: approval.integrity.clone(),
        lock: approval.lock.clone(),
        ..Content::default()
    })
}
