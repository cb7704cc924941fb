//! The forecast of a call: the verdict of the rules and the approval of the server together.
//!
//! Pure. Grants that last for a session are known to the process that holds them only, so that a call there may run
//! where this says that it asks.

use std::sync::Arc;

use super::{AskKind, Ruling, Verdict};
use crate::config::Rule;
use crate::protocol::LaunchApproval;

/// The outcome that a call of a tool will have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForecastOutcome {
    /// It runs without a question.
    Runs,
    /// It asks before the server is first installed, started or connected to.
    AsksFirst,
    /// It asks before every call.
    AsksEvery,
    /// It never runs.
    Never,
}

/// The reason for a forecast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForecastReason {
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
    pub happens: ForecastOutcome,
    /// The reason for a forecast.
    pub because: ForecastReason,
    /// The rule that covers the tool.
    pub rule: Option<Arc<Rule>>,
}

impl Forecast {
    /// Returns what follows from a verdict and the approval that covers the server now.
    #[must_use]
    pub fn new(verdict: Verdict, approval: Option<&LaunchApproval>) -> Self {
        let (happens, because) = match (verdict.ruling, approval) {
            (Ruling::Allow, _) => (ForecastOutcome::Runs, ForecastReason::Rules),
            (Ruling::Ask(AskKind::First), Some(record)) => {
                (ForecastOutcome::Runs, ForecastReason::Approved(record.clone()))
            }
            (Ruling::Ask(AskKind::First), None) => (ForecastOutcome::AsksFirst, ForecastReason::Rules),
            (Ruling::Ask(AskKind::Every), _) => (ForecastOutcome::AsksEvery, ForecastReason::Rules),
            (Ruling::Deny, _) => (ForecastOutcome::Never, ForecastReason::Rules),
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
            happens: ForecastOutcome::Never,
            because: ForecastReason::Disabled,
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
        let happens = |ruling, approval| {
            let verdict = Verdict { ruling, rule: None };
            Forecast::new(verdict, approval).happens
        };
        for (ruling, plain, approved) in [
            (Ruling::Allow, ForecastOutcome::Runs, ForecastOutcome::Runs),
            (
                Ruling::Ask(AskKind::First),
                ForecastOutcome::AsksFirst,
                ForecastOutcome::Runs,
            ),
            (
                Ruling::Ask(AskKind::Every),
                ForecastOutcome::AsksEvery,
                ForecastOutcome::AsksEvery,
            ),
            (Ruling::Deny, ForecastOutcome::Never, ForecastOutcome::Never),
        ] {
            assert_eq!(happens(ruling, None), plain);
            assert_eq!(happens(ruling, Some(&record)), approved);
        }
    }
}
