//! The words for a forecast in `pml check` and `pml list`.

use serde_json::{Value, json};

use super::CommandContext;
use crate::loader::{Loader, Plan};
use crate::permissions::{Forecast, ForecastOutcome, ForecastReason};
use crate::protocol::{LaunchApproval, Shown};
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
        (ForecastReason::Rules, Some(rule)) => format!(
            "rule `{}` in the {} list ({})",
            rule.pattern,
            rule.list.key(),
            context.place(rule.source.as_ref())
        ),
        (ForecastReason::Rules, None) => "no rule covers it".to_owned(),
    }
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
