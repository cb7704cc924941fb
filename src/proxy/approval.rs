//! What an approval grants beyond the call it was asked for: the server at exactly this launch, and a rule.
//!
//! The server is recorded by the store, in the transaction that records the answer or takes the call: both count or
//! neither. A rule stands in a file, so it is written *before* the answer is recorded: a disk that fails, or a lock that
//! another process holds, then costs nothing, because the ask still waits and the same answer may be given again. So
//! that this holds:
//!
//! - What can no longer be answered or taken is refused before a rule is written.
//! - The store decides which answer counts and who takes the call, once for all processes. Where it then decides for
//!   another answer (a refusal that came meanwhile, another approval, the deadline), the rule is taken back, as long as
//!   nothing newer stands in its place.
//! - A rule that the answer that counts grants as well stands, whichever process wrote it: two that bring the same
//!   answer write the same, and only one of them takes the call.
//! - A process that dies between the rule and the answer leaves a rule without an answer. That is harmless: a person
//!   did allow exactly this tool, by an answer that counted when it came; the call did not run, and the ask can still
//!   be refused, which then concerns this one call.

use crate::permissions::writer::{self, Edited, Undone, WriteError};
use crate::protocol::continuation::Scope;
use crate::protocol::{LaunchApproval, Shown};
use crate::workflow::{Answer, ApprovedLaunch, Ask, Timestamp, Workflow};

/// What an approval grants beyond the call it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The server may run from now on, as it was shown.
    Server,
    /// Nothing.
    Nothing,
}

/// The rule that was written for an answer, so that it can be taken back.
#[derive(Debug, Default)]
#[must_use = "a rule is taken back if its answer does not count"]
pub struct WrittenRule(Option<Edited>);

/// Says which rule could not be taken back, and therefore still counts.
#[derive(Debug, thiserror::Error)]
pub enum StillCounts {
    /// The file could not be written.
    #[error("its rule still counts: it could not be taken back")]
    Rule(#[source] WriteError),
    /// The file was edited meanwhile.
    #[error("its rule still counts: `{}` was edited meanwhile", Shown::path(file))]
    RuleEdited {
        /// The file.
        file: std::path::PathBuf,
    },
}

impl WrittenRule {
    /// Returns what takes this edit back.
    pub fn new(edited: Edited) -> Self {
        Self(Some(edited))
    }

    /// Takes the rule back unless the answer that counts grants it as well; blocking.
    pub fn take_back(self, counts: Option<&Answer>) -> Result<(), StillCounts> {
        let stands = matches!(counts, Some(Answer::Approve { scope: Scope::Always }));
        let Some(edited) = self.0.filter(|_| !stands) else {
            return Ok(());
        };
        match writer::undo(&edited).map_err(StillCounts::Rule)? {
            Undone::PutBack => Ok(()),
            Undone::EditedSince => Err(StillCounts::RuleEdited { file: edited.file }),
        }
    }
}

/// Tells what an answer to an ask grants beyond the call.
#[must_use]
pub fn kept(ask: &Ask, answer: &Answer) -> Kept {
    match (ask, answer) {
        (
            Ask::Install { .. } | Ask::Connect { .. },
            Answer::Approve {
                scope: Scope::Once | Scope::Always,
            },
        ) => Kept::Server,
        _ => Kept::Nothing,
    }
}

/// Returns the launch that an answer approves beyond the call, exactly as the person was shown it.
///
/// Where `package` is not known here, the first use adds it.
#[must_use]
pub fn approved_launch(
    workflow: &Workflow,
    answer: &Answer,
    package: Option<String>,
    now: Timestamp,
) -> Option<ApprovedLaunch> {
    if kept(&workflow.ask, answer) == Kept::Nothing {
        return None;
    }
    let dependency = workflow.ask.dependency()?;
    Some(ApprovedLaunch {
        launch: workflow.call.launch.clone(),
        approval: LaunchApproval {
            dependency: workflow.call.tool.dependency().clone(),
            version: dependency.version.clone(),
            integrity: dependency.integrity.clone(),
            package,
            lock: dependency.installation.lock.clone(),
            at_unix_ms: u64::try_from(now.millis()).unwrap_or_default(),
        },
    })
}
