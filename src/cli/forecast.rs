//! The words for a forecast in `pml check` and `pml list`.

use serde_json::{Value, json};

use super::CommandContext;
use crate::config::RuleList;
use crate::loader::{Loader, Plan};
use crate::permissions::{CONNECT, Forecast, ForecastOutcome, ForecastReason};
use crate::protocol::{LaunchApproval, Pattern, Shown, ToolName, shell};
use crate::workflow::{Approvals, Timestamp};

/// Returns the approval that covers a server as it is declared and installed now.
pub(super) fn approval<'a>(
    approvals: &'a Approvals,
    plan: &Plan,
    loader: &Loader,
) -> Option<&'a LaunchApproval> {
    let resolved = loader.resolved(plan);
    let (integrity, lock) = resolved.map_or((None, None), |resolved| (resolved.integrity, resolved.lock));
    let approval = approvals.find(plan.digest())?;
    approval
        .covers(integrity.as_deref(), lock.as_ref())
        .then_some(approval)
}

/// Names what happens as the lists of rules do.
pub(super) fn decision(happens: ForecastOutcome) -> &'static str {
    match happens {
        ForecastOutcome::Runs => "allow",
        ForecastOutcome::AsksFirst | ForecastOutcome::AsksEvery => "ask",
        ForecastOutcome::Never => "deny",
    }
}

/// Tells how often a call asks; `None` if it does not.
pub(super) fn asks(happens: ForecastOutcome) -> Option<&'static str> {
    match happens {
        ForecastOutcome::AsksFirst => Some("first"),
        ForecastOutcome::AsksEvery => Some("every"),
        ForecastOutcome::Runs | ForecastOutcome::Never => None,
    }
}

/// Says in a few words what decides.
pub(super) fn reason(context: &CommandContext, forecast: &Forecast) -> String {
    match (&forecast.because, &forecast.rule) {
        (ForecastReason::Approved(record), _) => approved(record),
        (ForecastReason::Disabled, _) => "its server is disabled".to_owned(),
        (ForecastReason::Rules, Some(rule)) if rule.list == RuleList::Tools => format!(
            "it is not offered: `tools` of its server ({})",
            context.place(rule.source.as_ref())
        ),
        (ForecastReason::Rules, Some(rule)) => format!(
            "rule `{}` in the {} list ({})",
            rule.pattern,
            rule.list.key(),
            context.place(rule.source.as_ref())
        ),
        (ForecastReason::Rules, None) => "no rule covers it".to_owned(),
    }
}

/// Says in one line what a call will do, and how to have it otherwise.
pub(super) fn outlook(forecast: &Forecast, tool: &ToolName) -> String {
    match (forecast.happens, &forecast.because) {
        (ForecastOutcome::Runs, ForecastReason::Approved(record)) => {
            let version = record.version.as_deref();
            let version = version.map_or_else(String::new, |version| format!(" at {}", Shown::line(version)));
            format!(
                "runs: approved{version}; to be asked each time: {}",
                ask_each_time(tool)
            )
        }
        (ForecastOutcome::Runs, _) => "runs: allowed by a rule".to_owned(),
        (ForecastOutcome::AsksFirst, _) => {
            format!(
                "asks before the first use; to approve it now: pml approve {}",
                tool.dependency()
            )
        }
        (ForecastOutcome::AsksEvery, _) => "asks before every call".to_owned(),
        (ForecastOutcome::Never, _) => "never runs".to_owned(),
    }
}

/// Returns the command after which a tool asks before every call; the stand-in for unknown tools means all.
pub(super) fn ask_each_time(tool: &ToolName) -> String {
    let pattern = if tool.tool() == CONNECT {
        format!("{}:*", tool.dependency())
    } else {
        Pattern::exact_text(tool)
    };
    format!("pml ask {}", shell::operand(&pattern))
}

fn approved(record: &LaunchApproval) -> String {
    let at = Timestamp::from_millis(i64::try_from(record.at_unix_ms).unwrap_or(i64::MAX));
    let version = record.version.as_deref();
    let version = version.map_or_else(String::new, |version| {
        format!(", at version {}", Shown::line(version))
    });
    format!("its server was approved on {at}{version}")
}

/// Returns an approval as scripts see it.
pub(super) fn approval_json(record: &LaunchApproval) -> Value {
    json!({
        "approvedAt": record.at_unix_ms,
        "version": record.version,
        "integrity": record.integrity,
    })
}
