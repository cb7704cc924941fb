//! The forecast of a call: the verdict of the rules, the approval of the server, and what of it waits to be accepted.
//!
//! Pure. Grants that last for a session are known to the process that holds them only, so that a call there may run
//! where this says that it asks.

use std::sync::Arc;

use super::{AskKind, Ruling, Verdict};
use crate::config::Rule;
use crate::protocol::LaunchApproval;
use crate::protocol::approval::ChangedPart;

/// The outcome that a call of a tool will have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForecastOutcome {
    /// It runs without a question.
    Runs,
    /// It asks before the server is first installed, started or connected to.
    AsksFirst,
    /// It asks before every call.
    AsksEvery,
    /// It asks whether the person accepts what differs from what they accepted before.
    AsksAboutChange,
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
    /// This part of the server is not what the user accepted.
    Changed(ChangedPart),
    /// The server cannot be called, whatever the rules say.
    Obstacle(Obstacle),
}

/// What keeps every tool of a server from running, whatever the rules say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// It is disabled.
    Disabled,
    /// What the user accepted of it cannot be read.
    UnreadableAcceptance,
    /// Which packages are malicious cannot be read.
    UnreadableVerdicts,
    /// A package of it is known to be malicious.
    Malicious {
        /// The package, as `name@version`.
        package: String,
        /// The id of the advisory that says so.
        advisory: String,
    },
}

/// What is known of a server beside the rules.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// The approval that covers it now.
    pub approval: Option<&'a LaunchApproval>,
    /// The parts that are not what the user accepted; of its tools, the one that is called.
    pub changed: &'a [ChangedPart],
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
    /// Returns what follows from a verdict and what is known of the server: in the order in which a call asks.
    #[must_use]
    pub fn new(verdict: Verdict, standing: Standing<'_>) -> Self {
        let Standing { approval, changed } = standing;
        let asks_about = |part: ChangedPart| {
            let asks = changed.contains(&part);
            asks.then_some((ForecastOutcome::AsksAboutChange, ForecastReason::Changed(part)))
        };
        // Where no rule allows it, another launch is a server that is new; an approval of it was given for what it is now.
        let of_launch = || match (verdict.ruling, approval) {
            (Ruling::Allow, None) => asks_about(ChangedPart::Launch),
            (Ruling::Allow | Ruling::Ask(_) | Ruling::Deny, _) => None,
        };
        let of_rules = || match (verdict.ruling, approval) {
            (Ruling::Ask(AskKind::First), None) => Some((ForecastOutcome::AsksFirst, ForecastReason::Rules)),
            (Ruling::Ask(AskKind::Every), _) => Some((ForecastOutcome::AsksEvery, ForecastReason::Rules)),
            (Ruling::Ask(AskKind::First), Some(_)) | (Ruling::Allow | Ruling::Deny, _) => None,
        };
        let runs = || match (verdict.ruling, approval) {
            (Ruling::Ask(_), Some(record)) => ForecastReason::Approved(record.clone()),
            (Ruling::Ask(_), None) | (Ruling::Allow | Ruling::Deny, _) => ForecastReason::Rules,
        };
        let (happens, because) = if verdict.ruling == Ruling::Deny {
            (ForecastOutcome::Never, ForecastReason::Rules)
        } else {
            asks_about(ChangedPart::Package)
                .or_else(of_launch)
                .or_else(of_rules)
                .or_else(|| asks_about(ChangedPart::Scripts))
                .or_else(|| asks_about(ChangedPart::Tools))
                .unwrap_or_else(|| (ForecastOutcome::Runs, runs()))
        };
        Self {
            happens,
            because,
            rule: verdict.rule,
        }
    }

    /// Returns what becomes of a call of a server that cannot be called.
    #[must_use]
    pub fn hindered(verdict: Verdict, by: Obstacle) -> Self {
        Self {
            happens: ForecastOutcome::Never,
            because: ForecastReason::Obstacle(by),
            rule: verdict.rule,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> LaunchApproval {
        LaunchApproval {
            dependency: "fs".parse().unwrap(),
            version: None,
            integrity: None,
            package: None,
            lock: None,
            at_unix_ms: 7,
        }
    }

    fn forecast(ruling: Ruling, approval: Option<&LaunchApproval>, changed: &[ChangedPart]) -> Forecast {
        let verdict = Verdict { ruling, rule: None };
        Forecast::new(verdict, Standing { approval, changed })
    }

    #[test]
    fn an_approval_answers_only_the_question_before_the_first_use() {
        let record = record();
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
            assert_eq!(forecast(ruling, None, &[]).happens, plain);
            assert_eq!(forecast(ruling, Some(&record), &[]).happens, approved);
        }
    }

    #[test]
    fn what_differs_asks_in_the_order_of_a_call() {
        use ChangedPart::{Launch, Package, Scripts, Tools};
        let approved = record();
        let (first, every) = (Ruling::Ask(AskKind::First), Ruling::Ask(AskKind::Every));
        let all = [Launch, Package, Scripts, Tools];
        let asks = |part: ChangedPart| (ForecastOutcome::AsksAboutChange, ForecastReason::Changed(part));
        let rules = |happens: ForecastOutcome| (happens, ForecastReason::Rules);
        for (ruling, approval, changed, expected) in [
            (Ruling::Deny, None, &all[..], rules(ForecastOutcome::Never)),
            (Ruling::Allow, None, &all, asks(Package)),
            (every, None, &all, asks(Package)),
            (first, Some(&approved), &all, asks(Package)),
            (Ruling::Allow, None, &[Launch, Tools], asks(Launch)),
            // A person approved exactly this launch.
            (Ruling::Allow, Some(&approved), &[Launch, Tools], asks(Tools)),
            (first, None, &[Launch, Tools], rules(ForecastOutcome::AsksFirst)),
            (
                every,
                Some(&approved),
                &[Tools],
                rules(ForecastOutcome::AsksEvery),
            ),
            (Ruling::Allow, None, &[Scripts, Tools], asks(Scripts)),
            (first, Some(&approved), &[Tools], asks(Tools)),
            (Ruling::Allow, None, &[], rules(ForecastOutcome::Runs)),
        ] {
            let found = forecast(ruling, approval, changed);
            assert_eq!((found.happens, found.because), expected, "{ruling:?} {changed:?}");
        }
    }
}
