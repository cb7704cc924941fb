//! The records of starts and ends of servers in the history.

use super::error::LoadError;
use super::loader::Loader;
use crate::history::{Ended, Record, Sandbox, Text};
use crate::loader::install::Installed;
use crate::loader::plan::Plan;
use crate::loader::process::Exit;
use crate::loader::session::EndReason;

/// Whether exactly this was started before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acquaintance {
    /// It was, and what it offers is known.
    Known,
    /// It was not.
    New,
}

/// Who ended a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExitCause {
    /// pml asked it to go.
    Asked,
    /// It went by itself, or did not get ready.
    Own,
}

impl Loader {
    /// Records a start before it happens. What was never started before is not started without a record; a full disk
    /// does not keep what a person uses every day from starting again.
    pub(super) async fn record_start(
        &self,
        plan: &Plan,
        installed: Option<&Installed>,
        acquaintance: Acquaintance,
    ) -> Result<(), LoadError> {
        let resolved = installed.map(|installed| &installed.resolved);
        let package = plan.package().zip(resolved);
        let record = Record::Start {
            server: Text::of(plan.dependency().as_str()),
            launch: plan.digest().clone(),
            package: package.map(|(package, resolved)| Text::of(&package.exactly(&resolved.version))),
            integrity: resolved.and_then(|resolved| resolved.integrity.as_deref().map(Text::of)),
            lock: resolved.and_then(|resolved| resolved.lock.clone()),
            sandbox: Sandbox::None,
        };
        match acquaintance {
            Acquaintance::New => self.common.history.require(record).await?,
            // It is queued already; a call does not wait for the disk to confirm it.
            Acquaintance::Known => drop(self.common.history.note(record)),
        }
        Ok(())
    }

    /// Records that a server is gone.
    pub(super) async fn record_exit(&self, plan: &Plan, end: Ended, cause: ExitCause) {
        let record = Record::Exit {
            server: Text::of(plan.dependency().as_str()),
            launch: plan.digest().clone(),
            end,
            asked: cause == ExitCause::Asked,
        };
        self.common.history.note(record).await;
    }
}

/// Tells how a server ended, without its words.
pub(super) fn ended(reason: &EndReason) -> Ended {
    match reason {
        EndReason::Exited(Exit::Code(code)) => Ended::Code(*code),
        EndReason::Exited(Exit::Signal(signal)) => Ended::Signal(*signal),
        EndReason::Exited(Exit::NotStarted(_)) => Ended::NotStarted,
        EndReason::Exited(Exit::Unsupervised) => Ended::Unsupervised,
        EndReason::Stopped(_)
        | EndReason::Closed
        | EndReason::ClosedByServer
        | EndReason::Unauthorized { .. }
        | EndReason::Unreachable { .. }
        | EndReason::Gone { .. }
        | EndReason::NotRenewed
        | EndReason::Status { .. }
        | EndReason::BrokenOff(_)
        | EndReason::Unanswered
        | EndReason::Violation(_) => Ended::Disconnected,
    }
}
