//! What a call of a tool will do, and why: the verdict of the rules and the approval of the server together.
//!
//! Pure. Grants that last for a session are known to the process that holds them only, so that a call there may run
//! where this says that it asks.

use std::sync::Arc;

use super::{AskKind, Decision, Verdict};
use crate::config::Rule;
use crate::protocol::LaunchApproval;

/// What a call will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happens {
    /// It runs without a question.
    Runs,
    /// It asks before the server is first installed, started or connected to.
    AsksFirst,
    /// It asks before every call.
    AsksEvery,
    /// It never runs.
    Never,
}

/// What decides that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// The rule, or that there is none.
    Rules,
    /// A person approved the server as it is declared.
    Approved(LaunchApproval),
    /// The server is disabled.
    Disabled,
}

/// What a call of one tool will do, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// What it will do.
    pub happens: Happens,
    /// What decides that.
    pub because: Because,
    /// The rule that covers the tool.
    pub rule: Option<Arc<Rule>>,
}

impl Forecast {
    /// Returns what follows from a verdict and the approval that covers the server now.
    #[must_use]
    pub fn new(verdict: Verdict, approval: Option<&LaunchApproval>) -> Self {
        let (happens, because) = match (verdict.decision, approval) {
            (Decision::Allow, _) => (Happens::Runs, Because::Rules),
            (Decision::Ask(AskKind::First), Some(record)) => {
                (Happens::Runs, Because::Approved(record.clone()))
            }
            (Decision::Ask(AskKind::First), None) => (Happens::AsksFirst, Because::Rules),
            (Decision::Ask(AskKind::Every), _) => (Happens::AsksEvery, Because::Rules),
            (Decision::Deny, _) => (Happens::Never, Because::Rules),
        };
        Self {
            happens,
            because,
            rule: verdict.rule,
        }
    }

    /// Returns what becomes of a call of a disabled server.
    #[must_use]
    pub fn disabled(verdict: Verdict) -> Self {
        Self {
            happens: Happens::Never,
            because: Because::Disabled,
            rule: verdict.rule,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_answers_only_the_question_before_the_first_use() {
        let record = LaunchApproval {
            dependency: "fs".parse().unwrap(),
            version: None,
            integrity: None,
            package: None,
            lock: None,
            at_unix_ms: 7,
        };
        let happens = |decision, approval| {
            let verdict = Verdict { decision, rule: None };
            Forecast::new(verdict, approval).happens
        };
        for (decision, plain, approved) in [
            (Decision::Allow, Happens::Runs, Happens::Runs),
            (Decision::Ask(AskKind::First), Happens::AsksFirst, Happens::Runs),
            (
                Decision::Ask(AskKind::Every),
                Happens::AsksEvery,
                Happens::AsksEvery,
            ),
            (Decision::Deny, Happens::Never, Happens::Never),
        ] {
            assert_eq!(happens(decision, None), plain);
            assert_eq!(happens(decision, Some(&record)), approved);
        }
    }
}
