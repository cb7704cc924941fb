//! The grants of an approval beyond its own call: the server at exactly this launch, and a rule.
//!
//! The server is recorded by the store, in the transaction that records the answer or takes the call: both count or
//! neither. A rule stands in a file, so it is written under the lock of that file, right before that transaction, and put
//! back under the same lock where the store decides for another answer (a refusal that came meanwhile, another approval,
//! the deadline). What came while the lock was waited for is seen before the rule is written.
//!
//! A process that dies between the rule and the answer leaves a rule without an answer. That is harmless: a person did
//! allow exactly this tool, by an answer that counted when it came; the call did not run, and the ask can still be
//! refused, which then concerns this one call.

use crate::protocol::LaunchApproval;
use crate::protocol::approval::ChangedPart;
use crate::protocol::continuation::Scope;
use crate::workflow::{Answer, ApprovedLaunch, Ask, Timestamp, Workflow};

/// The grant of an approval that outlasts the call it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastingGrant {
    /// The server may run from now on, as it was shown.
    Server,
    /// Nothing.
    Nothing,
}

/// Returns the grant of an answer that outlasts the call.
#[must_use]
pub fn lasting_grant(ask: &Ask, answer: &Answer) -> LastingGrant {
    match (ask, answer) {
        (
            Ask::Install { .. } | Ask::Connect { .. },
            Answer::Approve {
                scope: Scope::Once | Scope::Always,
            },
        ) => LastingGrant::Server,
        (Ask::Integrity { dependency }, Answer::Approve { .. })
            if dependency
                .installation
                .change
                .as_ref()
                .is_some_and(|change| change.part == ChangedPart::Package && change.can_be_accepted()) =>
        {
            LastingGrant::Server
        }
        _ => LastingGrant::Nothing,
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
    if lasting_grant(&workflow.ask, answer) == LastingGrant::Nothing {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Digest;
    use serde_json::json;

    #[test]
    fn another_package_is_approved_where_its_question_showed_all_of_it() {
        let granted = |part: &str, contents: &str, missing: usize| {
            let change = json!({
                "part": part, "content": Digest::of(["x"]), "lines": [], "contents": contents, "missing": missing,
            });
            let dependency = serde_json::from_value(json!({
                "name": "x", "version": "2.0.0", "install": "npx x", "integrity": null, "change": change,
            }));
            let ask = Ask::Integrity {
                dependency: dependency.unwrap(),
            };
            lasting_grant(&ask, &Answer::Approve { scope: Scope::Once })
        };
        assert_eq!(granted("package", "whole", 0), LastingGrant::Server);
        for (part, contents, missing) in [
            ("package", "awaited", 0),
            ("package", "whole", 1),
            ("tools", "whole", 0),
            ("scripts", "whole", 0),
        ] {
            assert_eq!(granted(part, contents, missing), LastingGrant::Nothing);
        }
    }
}
