//! What a call will do, and why, in the words of `pml check` and `pml list`.

use serde_json::{Value, json};

use super::Ground;
use crate::loader::{Loader, Plan};
use crate::permissions::approved::{ApprovedError, Record};
use crate::permissions::{Approved, Because, Forecast, Happens};
use crate::protocol::Shown;
use crate::workflow::Timestamp;

/// Returns the approval that covers a server as it is declared and installed now.
pub(super) fn approval(
    approved: &Approved,
    plan: &Plan,
    loader: &Loader,
) -> Result<Option<Record>, ApprovedError> {
    let resolved = loader.resolved(plan);
    let (integrity, lock) = resolved.map_or((None, None), |resolved| (resolved.integrity, resolved.lock));
    if !approved.covers(plan.digest(), integrity.as_deref(), lock.as_ref())? {
        return Ok(None);
    }
    approved.find(plan.digest())
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

fn approved(record: &Record) -> String {
    let at = Timestamp::from_millis(i64::try_from(record.at_unix_ms).unwrap_or(i64::MAX));
    let version = record.version.as_deref();
    let version = version.map_or_else(String::new, |version| {
        format!(", at version {}", Shown::line(version))
    });
    format!("its server was approved on {at}{version}")
}

/// Returns an approval as scripts see it.
pub(super) fn approval_json(record: &Record) -> Value {
    json!({
        "approvedAt": record.at_unix_ms,
        "version": record.version,
        "integrity": record.integrity,
    })
}
