//! The decisions that a card offers, each with what it grants.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::protocol::approval::ShownDependency;
use crate::protocol::{Pattern, Shown};
use crate::workflow::{Ask, Scope, UseReach, Workflow};

/// What a person may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It runs; a server is approved as it is shown, a call once.
    Once,
    /// It runs, also while the pml that asked runs.
    Session,
    /// It runs from now on: a rule is written.
    Always,
    /// It does not run, a question is not answered.
    Abort,
}

impl Decision {
    /// Returns how far an approval reaches; `None` for a refusal.
    #[must_use]
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Once => Some(Scope::Once),
            Self::Session => Some(Scope::Session),
            Self::Always => Some(Scope::Always),
            Self::Abort => None,
        }
    }
}

impl From<Scope> for Decision {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Once => Self::Once,
            Scope::Session => Self::Session,
            Scope::Always => Self::Always,
        }
    }
}

impl fmt::Display for Decision {
    /// Writes it as surfaces do.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::Abort => "abort",
        })
    }
}

/// One decision that is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What is decided.
    pub decision: Decision,
    /// What stands on its button.
    pub label: &'static str,
    /// What it grants, in words that follow the label.
    pub grants: String,
}

/// The rule that `always` writes, and its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AlwaysRule {
    /// The file, escaped.
    pub file: String,
    /// The pattern, escaped.
    pub rule: String,
}

impl AlwaysRule {
    /// Returns the rule that an approval of an ask writes; `None` where no rule can say it.
    pub(super) fn of(workflow: &Workflow) -> Option<Self> {
        match &workflow.ask {
            Ask::Install { .. }
            | Ask::Connect { .. }
            | Ask::Permit { .. }
            | Ask::Use {
                reach: UseReach::Lasting | UseReach::Proposed { .. },
            } => {}
            Ask::Use {
                reach: UseReach::OnceOnly,
            }
            | Ask::Trust { .. }
            | Ask::Integrity { .. }
            | Ask::Questions { .. } => return None,
        }
        let pattern: Pattern = Pattern::exact_text(&workflow.call.tool).parse().ok()?;
        Some(Self {
            file: Shown::path(&workflow.origin.config),
            rule: Shown::line(pattern.as_str()).to_string(),
        })
    }
}

fn choice(decision: Decision, label: &'static str, grants: &str) -> Choice {
    Choice {
        decision,
        label,
        grants: grants.to_owned(),
    }
}

/// Tells whether a question shows less than its answer would accept.
fn misses_lines(dependency: &ShownDependency) -> bool {
    let change = dependency.installation.change.as_ref();
    change.is_some_and(|change| change.missing > 0)
}

/// Lists the decisions that an ask offers; questions are answered in other ways.
pub(super) fn choices(workflow: &Workflow, always: Option<&AlwaysRule>) -> Vec<Choice> {
    let (once, session) = match &workflow.ask {
        Ask::Install { dependency } if dependency.version.is_some() => {
            ("this version, from now on", "Only this session")
        }
        Ask::Install { .. } => ("this command, from now on", "Only this session"),
        Ask::Connect { .. } => ("this address, from now on", "Only this session"),
        Ask::Permit { .. } => ("this call only", "This tool, for this session"),
        Ask::Use {
            reach: UseReach::OnceOnly,
        } => {
            return vec![
                choice(Decision::Once, "Continue", "this use only"),
                choice(Decision::Abort, "Abort", "nothing runs"),
            ];
        }
        Ask::Use {
            reach: UseReach::Lasting,
        } => ("this use only", "This tool, for this session"),
        // What is proposed stands above, whole.
        Ask::Use {
            reach: UseReach::Proposed { .. },
        } => ("this use only", "Do not ask again"),
        Ask::Trust { .. } => {
            return vec![
                choice(Decision::Once, "Trust", "this file exactly as it is, from now on"),
                choice(
                    Decision::Abort,
                    "Abort",
                    "it may declare servers and forbid, and nothing else",
                ),
            ];
        }
        Ask::Integrity { dependency } if misses_lines(dependency) => {
            return vec![choice(Decision::Abort, "Abort", "nothing runs")];
        }
        Ask::Integrity { dependency } if dependency.awaits_contents() => {
            return vec![
                choice(
                    Decision::Once,
                    "Continue",
                    "asks again with all that is installed",
                ),
                choice(Decision::Abort, "Abort", "nothing runs"),
            ];
        }
        Ask::Integrity { .. } => {
            return vec![
                choice(Decision::Once, "Accept", "exactly this, from now on"),
                choice(Decision::Abort, "Abort", "nothing runs"),
            ];
        }
        Ask::Questions { .. } => return Vec::new(),
    };
    let until = match &workflow.ask {
        Ask::Use {
            reach: UseReach::Proposed { .. },
        } => "for what is proposed, while this agent runs",
        _ => "until the pml of this agent ends",
    };
    let mut offered = vec![
        choice(Decision::Once, "Continue", once),
        choice(Decision::Session, session, until),
    ];
    // What is written stands beside it on every surface, whole.
    offered.extend(always.map(|_| choice(Decision::Always, "Always", "from now on")));
    offered.push(choice(Decision::Abort, "Abort", "nothing runs"));
    offered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Digest;
    use crate::workflow::samples;
    use serde_json::json;

    #[test]
    fn what_is_not_known_yet_cannot_be_accepted() {
        let offered = |contents: &str| {
            let change = json!({
                "part": "package", "content": Digest::of(["x"]), "lines": ["+ version 2.0.0"], "contents": contents,
            });
            let dependency = serde_json::from_value(json!({
                "name": "x", "version": "2.0.0", "install": "npx x", "integrity": null, "change": change,
            }));
            let workflow = samples::workflow(Ask::Integrity {
                dependency: dependency.unwrap(),
            });
            let offered = choices(&workflow, None).into_iter();
            offered.map(|choice| choice.label).collect::<Vec<_>>()
        };
        assert_eq!(offered("awaited"), ["Continue", "Abort"]);
        assert_eq!(offered("whole"), ["Accept", "Abort"]);
    }

    #[test]
    fn a_use_that_its_client_wants_to_be_asked_each_time_offers_nothing_that_lasts() {
        let offered = |reach| {
            let workflow = samples::workflow(Ask::Use { reach });
            let always = AlwaysRule::of(&workflow);
            let offered = choices(&workflow, always.as_ref());
            offered
                .into_iter()
                .map(|choice| choice.decision)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            offered(UseReach::Lasting),
            [
                Decision::Once,
                Decision::Session,
                Decision::Always,
                Decision::Abort
            ]
        );
        assert_eq!(offered(UseReach::OnceOnly), [Decision::Once, Decision::Abort]);
    }
}
