//! What a call will do, and why, in the words of `pml check` and `pml list`.

use serde_json::{Value, json};

use super::Ground;
use crate::loader::{Loader, Plan};
use crate::permissions::{Because, Forecast, Happens};
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
pub(super) fn decision(happens: Happens) -> &'static str {
    match happens {
        Happens::Runs => "allow",
        Happens::AsksFirst | Happens::AsksEvery => "ask",
        Happens::Never => "deny",
    }
}

/// Tells how often a call asks; `None` if it does not.
pub(super) fn asks(happens: Happens) -> Option<&'static str> {
    match happens {
        Happens::AsksFirst => Some("first"),
        Happens::AsksEvery => Some("every"),
        Happens::Runs | Happens::Never => None,
    }
}

/// Says in a few words what decides.
pub(super) fn reason(ground: &Ground, forecast: &Forecast) -> String {
    match (&forecast.because, &forecast.rule) {
        (Because::Approved(record), _) => approved(record),
        (Because::Disabled, _) => "its server is disabled".to_owned(),
        (Because::Rules, Some(rule)) => format!(
            "rule `{}` in the {} list ({})",
            rule.pattern,
            rule.list.key(),
            ground.place(rule.source.as_ref())
        ),
        (Because::Rules, None) => "no rule covers it".to_owned(),
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
