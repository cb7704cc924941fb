//! Where a package was built, as far as an attestation proves it, and how that differs from one version to the next.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::protocol::Shown;

/// The repository and the workflow that built a package.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// The repository, such as `github.com/owner/name`.
    pub repository: String,
    /// The number that its host gave the repository, where the attestation names it: one that is made anew under an old
    /// name has another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_id: Option<String>,
    /// The workflow in it that built the package, with the ref it ran at.
    pub workflow: String,
    /// The commit it was built from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl Provenance {
    /// Tells whether both name a repository alike; the hosts of repositories do not tell the case of letters apart.
    fn is_same_name(&self, other: &Self) -> bool {
        self.repository.eq_ignore_ascii_case(&other.repository)
    }

    /// Tells whether both are of repositories with other numbers; the oldest attestations name none.
    fn is_other_id(&self, other: &Self) -> bool {
        let both = self.repository_id.as_ref().zip(other.repository_id.as_ref());
        both.is_some_and(|(one, two)| one != two)
    }

    /// Returns the file of the workflow: every version is built at another ref.
    fn workflow_file(&self) -> &str {
        let (file, _ref) = self.workflow.split_once('@').unwrap_or((&self.workflow, ""));
        file
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.repository, self.workflow)
    }
}

/// What was found out about where a version was built.
///
/// In a file it is the provenance itself, `null` where there is none, and `{"unknown": "…"}` where it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<WrittenFinding>", into = "Option<WrittenFinding>")]
pub enum ProvenanceFinding {
    /// An attestation proves it.
    Proven(Provenance),
    /// The registry has no attestation of it.
    Absent,
    /// The registry was not asked, or did not answer: there may be one.
    Unknown {
        /// Why it is not known, in words that stand by themselves.
        reason: String,
    },
}

/// A finding as it stands in a file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenFinding {
    Proven(Provenance),
    Unknown { unknown: String },
}

impl ProvenanceFinding {
    /// Returns what is proven.
    #[must_use]
    pub fn proven(&self) -> Option<&Provenance> {
        match self {
            Self::Proven(provenance) => Some(provenance),
            Self::Absent | Self::Unknown { .. } => None,
        }
    }

    /// Tells whether there is none.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        *self == Self::Absent
    }

    /// Tells whether it is not known: asking again may find it out.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }

    /// Returns the finding of a file that names none.
    #[must_use]
    pub(super) fn absent() -> Self {
        Self::Absent
    }
}

impl Default for ProvenanceFinding {
    /// Nothing was asked.
    fn default() -> Self {
        Self::Unknown {
            reason: "the registry was not asked for it".to_owned(),
        }
    }
}

impl From<Option<WrittenFinding>> for ProvenanceFinding {
    fn from(written: Option<WrittenFinding>) -> Self {
        match written {
            Some(WrittenFinding::Proven(provenance)) => Self::Proven(provenance),
            Some(WrittenFinding::Unknown { unknown }) => Self::Unknown { reason: unknown },
            None => Self::Absent,
        }
    }
}

impl From<ProvenanceFinding> for Option<WrittenFinding> {
    fn from(finding: ProvenanceFinding) -> Self {
        match finding {
            ProvenanceFinding::Proven(provenance) => Some(WrittenFinding::Proven(provenance)),
            ProvenanceFinding::Absent => None,
            ProvenanceFinding::Unknown { reason } => Some(WrittenFinding::Unknown { unknown: reason }),
        }
    }
}

/// How the provenance of a version differs from that of the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProvenanceChange {
    /// The same workflow of the same repository built both, or nothing was proven before and nothing is now.
    Same,
    /// The one before had none that was known.
    Gained {
        /// What built this one.
        now: Provenance,
    },
    /// This one has none: it may have been published by hand, with a stolen token.
    Lost {
        /// What built the one before.
        before: Provenance,
    },
    /// It is not known whether this one has any.
    Unknown {
        /// What built the one before.
        before: Provenance,
        /// Why it is not known.
        reason: String,
    },
    /// Another repository built this one.
    OtherRepository {
        /// What built the one before.
        before: Provenance,
        /// What built this one.
        now: Provenance,
    },
    /// A repository of the same name with another number built this one: the one before is gone, or was moved away.
    NewRepository {
        /// What built the one before.
        before: Provenance,
        /// What built this one.
        now: Provenance,
    },
    /// Another workflow of the same repository built this one.
    OtherWorkflow {
        /// What built the one before.
        before: Provenance,
        /// What built this one.
        now: Provenance,
    },
}

impl ProvenanceChange {
    /// Compares what was found out about the version before with what was about this one.
    #[must_use]
    pub fn of(before: &ProvenanceFinding, now: &ProvenanceFinding) -> Self {
        use ProvenanceFinding::{Absent, Proven, Unknown};
        match (before, now) {
            (Absent | Unknown { .. }, Absent | Unknown { .. }) => Self::Same,
            (Absent | Unknown { .. }, Proven(now)) => Self::Gained { now: now.clone() },
            (Proven(before), Absent) => Self::Lost {
                before: before.clone(),
            },
            (Proven(before), Unknown { reason }) => Self::Unknown {
                before: before.clone(),
                reason: reason.clone(),
            },
            (Proven(before), Proven(now)) => {
                let (before, now) = (before.clone(), now.clone());
                if !before.is_same_name(&now) {
                    Self::OtherRepository { before, now }
                } else if before.is_other_id(&now) {
                    Self::NewRepository { before, now }
                } else if before.workflow_file() != now.workflow_file() {
                    Self::OtherWorkflow { before, now }
                } else {
                    Self::Same
                }
            }
        }
    }

    /// Tells whether a person must agree to it: less is proven than before, or something else.
    #[must_use]
    pub fn asks(&self) -> bool {
        match self {
            Self::Same | Self::Gained { .. } => false,
            Self::Lost { .. }
            | Self::Unknown { .. }
            | Self::OtherRepository { .. }
            | Self::NewRepository { .. }
            | Self::OtherWorkflow { .. } => true,
        }
    }
}

impl fmt::Display for ProvenanceChange {
    /// Writes it as one line; what comes from outside is escaped.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let built = |provenance: &Provenance| Shown::line(&provenance.repository).to_string();
        let workflow = |provenance: &Provenance| Shown::line(&provenance.workflow).to_string();
        let number = |provenance: &Provenance| {
            let number = provenance.repository_id.as_deref();
            Shown::line(number.unwrap_or_default()).to_string()
        };
        match self {
            Self::Same => formatter.write_str("the provenance is that of the version before"),
            Self::Gained { now } => write!(
                formatter,
                "this version was built by {}; the one before had no provenance",
                built(now)
            ),
            Self::Lost { before } => write!(
                formatter,
                "this version has no provenance; the one before was built by {}",
                built(before)
            ),
            Self::Unknown { before, reason } => write!(
                formatter,
                "it is not known where this version was built ({}); the one before was built by {}",
                Shown::line(reason),
                built(before)
            ),
            Self::OtherRepository { before, now } => write!(
                formatter,
                "this version was built by {}; the one before by {}",
                built(now),
                built(before)
            ),
            Self::NewRepository { before, now } => write!(
                formatter,
                "this version was built by a new repository of the name {} (number {}); the one before by number {}",
                built(now),
                number(now),
                number(before)
            ),
            Self::OtherWorkflow { before, now } => write!(
                formatter,
                "this version was built by another workflow of {}: {}; the one before by {}",
                built(now),
                workflow(now),
                workflow(before)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(repository: &str, workflow: &str) -> ProvenanceFinding {
        ProvenanceFinding::Proven(Provenance {
            repository: repository.to_owned(),
            repository_id: None,
            workflow: workflow.to_owned(),
            commit: None,
        })
    }

    fn numbered(repository: &str, number: &str) -> ProvenanceFinding {
        let ProvenanceFinding::Proven(built) = built(repository, "release.yml@refs/tags/v1") else {
            unreachable!()
        };
        ProvenanceFinding::Proven(Provenance {
            repository_id: Some(number.to_owned()),
            ..built
        })
    }

    #[test]
    fn a_repository_that_was_renamed_or_made_anew_asks() {
        let before = numbered("github.com/a/b", "1");
        assert_eq!(
            ProvenanceChange::of(&before, &numbered("github.com/A/b", "1")),
            ProvenanceChange::Same
        );
        let renamed = "this version was built by github.com/a/c; the one before by github.com/a/b";
        assert_eq!(
            change(&before, &numbered("github.com/a/c", "1")),
            (true, renamed.to_owned())
        );
        let anew = "this version was built by a new repository of the name github.com/a/b (number 2); the one before by number 1";
        assert_eq!(
            change(&before, &numbered("github.com/a/b", "2")),
            (true, anew.to_owned())
        );
        // The oldest attestations name none.
        let older = built("github.com/a/b", "release.yml@refs/tags/v1");
        assert_eq!(ProvenanceChange::of(&older, &before), ProvenanceChange::Same);
        assert_eq!(ProvenanceChange::of(&before, &older), ProvenanceChange::Same);
    }

    fn unknown() -> ProvenanceFinding {
        ProvenanceFinding::Unknown {
            reason: "the registry answered 500".to_owned(),
        }
    }

    const ABSENT: ProvenanceFinding = ProvenanceFinding::Absent;

    fn change(before: &ProvenanceFinding, now: &ProvenanceFinding) -> (bool, String) {
        let change = ProvenanceChange::of(before, now);
        (change.asks(), change.to_string())
    }

    #[test]
    fn whatever_proves_less_or_something_else_asks_and_says_so() {
        let before = built("github.com/a/b", "release.yml@refs/tags/v1");
        for (now, said) in [
            (
                ABSENT,
                "this version has no provenance; the one before was built by github.com/a/b",
            ),
            (
                unknown(),
                "it is not known where this version was built (the registry answered 500); the one before was built by github.com/a/b",
            ),
            (
                built("github.com/evil/b", "release.yml@refs/tags/v2"),
                "this version was built by github.com/evil/b; the one before by github.com/a/b",
            ),
            (
                built("github.com/a/b", "test.yml@refs/heads/x"),
                "this version was built by another workflow of github.com/a/b: test.yml@refs/heads/x; the one before by release.yml@refs/tags/v1",
            ),
        ] {
            assert_eq!(change(&before, &now), (true, said.to_owned()));
        }
    }

    #[test]
    fn the_same_builder_at_another_ref_and_a_first_provenance_ask_nothing() {
        let before = built("github.com/a/b", "release.yml@refs/tags/v1");
        let next = built("github.com/A/B", "release.yml@refs/tags/v2");
        assert_eq!(ProvenanceChange::of(&before, &next), ProvenanceChange::Same);
        for nothing in [ABSENT, unknown()] {
            assert_eq!(
                change(&nothing, &next),
                (
                    false,
                    "this version was built by github.com/A/B; the one before had no provenance".to_owned()
                )
            );
            for still in [ABSENT, unknown()] {
                assert_eq!(ProvenanceChange::of(&nothing, &still), ProvenanceChange::Same);
            }
        }
    }

    #[test]
    fn what_an_attestation_says_is_escaped() {
        let before = built("github.com/a/\u{202e}b", "x");
        let (_, said) = change(&before, &ABSENT);
        assert!(said.ends_with("github.com/a/\\u{202e}b"), "{said}");
    }

    #[test]
    fn a_finding_comes_back_from_a_file() {
        let proven = built("github.com/a/b", "x@y");
        for (finding, text) in [
            (proven, r#"{"repository":"github.com/a/b","workflow":"x@y"}"#),
            (ABSENT, "null"),
            (unknown(), r#"{"unknown":"the registry answered 500"}"#),
        ] {
            assert_eq!(serde_json::to_string(&finding).unwrap(), text);
            assert_eq!(serde_json::from_str::<ProvenanceFinding>(text).unwrap(), finding);
        }
    }

    #[test]
    fn only_what_is_proven_names_a_builder() {
        let proven = built("github.com/a/b", "release.yml@refs/tags/v1");
        let findings = [proven, ProvenanceFinding::Absent, unknown()];
        let named = findings
            .each_ref()
            .map(|finding| finding.proven().map(ToString::to_string));
        let builder = "github.com/a/b (release.yml@refs/tags/v1)".to_owned();
        assert_eq!(named, [Some(builder), None, None]);
        assert_eq!(
            findings.map(|finding| (finding.is_absent(), finding.is_unknown())),
            [(false, false), (true, false), (false, true)]
        );
    }
}
