//! Records what an approval grants beyond the call it was asked for: the server at exactly this launch, and a rule.
//!
//! What is granted is recorded *before* the answer itself is, and before the call is taken: a disk that fails, or a
//! lock that another process holds, then costs nothing, because the ask still waits and the same answer may be given
//! again. So that this holds:
//!
//! - What can no longer be answered or taken is refused before anything is recorded.
//! - The store decides which answer counts and who takes the call, once for all processes. Where it then decides for
//!   another answer (a refusal that came meanwhile, another approval, the deadline), what was recorded is taken back,
//!   as long as nothing newer stands in its place.
//! - What the answer that counts grants as well stands, whichever process wrote it: two that bring the same answer
//!   record the same, and only one of them takes the call.
//! - A process that dies between the record and the take leaves a record without a taken call. That is harmless: a
//!   person did approve exactly this launch, or this tool, by an answer that counted when it came; the call did not
//!   run, and the ask can still be refused, which then concerns this one call.

use crate::permissions::Approved;
use crate::permissions::approved::{ApprovedError, Record, Replaced};
use crate::permissions::writer::{self, Edited, Undone, WriteError};
use crate::protocol::Shown;
use crate::protocol::continuation::Scope;
use crate::workflow::{Answer, Ask, Timestamp, Workflow};

/// What an approval grants beyond the call it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The server may run from now on, as it was shown.
    Server,
    /// Nothing.
    Nothing,
}

/// What was recorded for an answer, so that it can be taken back.
#[derive(Debug, Default)]
#[must_use = "what was recorded is taken back if the answer does not count"]
pub struct Recorded {
    server: Option<Replaced>,
    rule: Option<Edited>,
}

/// Says what could not be taken back, and therefore still counts.
#[derive(Debug, thiserror::Error)]
pub enum StillCounts {
    /// The approval of a server.
    #[error("its approval still counts: it could not be taken back")]
    Server(#[source] ApprovedError),
    /// A rule.
    #[error("its rule still counts: it could not be taken back")]
    Rule(#[source] WriteError),
    /// A rule in a file that was edited meanwhile.
    #[error("its rule still counts: `{}` was edited meanwhile", Shown::path(file))]
    RuleEdited {
        /// The file.
        file: std::path::PathBuf,
    },
}

impl Recorded {
    /// Adds a rule that was written for the same answer.
    pub fn with_rule(mut self, edited: Edited) -> Self {
        self.rule = Some(edited);
        self
    }

    /// Takes back what the answer that counts does not grant as well; blocking.
    pub fn take_back(
        self,
        approved: &Approved,
        workflow: &Workflow,
        counts: Option<&Answer>,
    ) -> Result<(), StillCounts> {
        let rule_stands = matches!(counts, Some(Answer::Approve { scope: Scope::Always }));
        if let Some(edited) = self.rule.filter(|_| !rule_stands) {
            match writer::undo(&edited).map_err(StillCounts::Rule)? {
                Undone::PutBack => {}
                Undone::EditedSince => return Err(StillCounts::RuleEdited { file: edited.file }),
            }
        }
        let server_stands = counts.is_some_and(|answer| kept(&workflow.ask, answer) == Kept::Server);
        match self.server.filter(|_| !server_stands) {
            Some(replaced) => approved.take_back(&replaced).map_err(StillCounts::Server),
            None => Ok(()),
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

/// Records the approval of a server that an answer stands for; blocking.
///
/// Where `package` is not known here, the first use adds it. Written also where the same stands there already: what is
/// taken back later is then only what was recorded for the answer that does not count.
pub fn record(
    approved: &Approved,
    workflow: &Workflow,
    answer: &Answer,
    package: Option<String>,
    now: Timestamp,
) -> Result<Recorded, ApprovedError> {
    let (Kept::Server, Some(dependency)) = (kept(&workflow.ask, answer), workflow.ask.dependency()) else {
        return Ok(Recorded::default());
    };
    let record = Record {
        dependency: workflow.call.tool.dependency().clone(),
        version: dependency.version.clone(),
        integrity: dependency.integrity.clone(),
        package,
        lock: dependency.installation.lock.clone(),
        at_unix_ms: u64::try_from(now.millis()).unwrap_or_default(),
    };
    let server = Some(approved.record(&workflow.call.launch, &record)?);
    Ok(Recorded { server, rule: None })
}
