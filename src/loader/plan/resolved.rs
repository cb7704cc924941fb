//! What a package was resolved to: the exact version and the content that belongs to it.

use serde::{Deserialize, Serialize};

use crate::pins::{ProvenanceFinding, PublishedAt};
use crate::protocol::approval::ShownProvenance;
use crate::protocol::{Digest, Shown};

/// The exact version of a package, and what its content must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The exact version.
    pub version: String,
    /// `sha512-…` of an npm package, `sha256-…` of a PyPI package; `None` if the registry did not say.
    pub integrity: Option<String>,
    /// The digest of everything that is installed with it; `None` before its first installation.
    pub lock: Option<Digest>,
    /// How the registry had withdrawn the version when it was asked, in words that follow "this version".
    pub withdrawn: Option<String>,
    /// When the registry says that the version was published.
    pub published: Option<PublishedAt>,
    /// Where the version was built, as far as that is known.
    pub provenance: ProvenanceFinding,
    /// The newer version that the spec would mean if it were not too young.
    pub left_out: Option<NewerVersion>,
}

/// A version that was too young when a spec was resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewerVersion {
    /// The version.
    pub version: String,
    /// When the registry says that it was published.
    pub published: PublishedAt,
}

impl NewerVersion {
    /// Says in words that the version is left out.
    #[must_use]
    pub fn notice(&self, now_unix_ms: i64) -> String {
        format!(
            "the newer version {} was published {} and is left out",
            Shown::line(&self.version),
            self.published.ago(now_unix_ms)
        )
    }
}

impl Resolved {
    /// Names a version of which nothing else is known.
    #[must_use]
    pub fn version(version: &str) -> Self {
        Self {
            version: version.to_owned(),
            integrity: None,
            lock: None,
            withdrawn: None,
            published: None,
            provenance: ProvenanceFinding::default(),
            left_out: None,
        }
    }

    /// Returns what a person is shown of where it was built; nothing where the registry was not asked.
    #[must_use]
    pub fn shown_provenance(&self) -> Option<ShownProvenance> {
        let shown = |text: &str| Shown::line(text).to_string();
        match &self.provenance {
            ProvenanceFinding::Proven(provenance) => Some(ShownProvenance::Proven {
                repository: shown(&provenance.repository),
                workflow: shown(&provenance.workflow),
                commit: provenance.commit.as_deref().map(shown),
            }),
            ProvenanceFinding::Absent => None,
            unasked if *unasked == ProvenanceFinding::default() => None,
            ProvenanceFinding::Unknown { reason } => Some(ShownProvenance::Unknown {
                unknown: shown(reason),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::Provenance;

    fn shown(provenance: ProvenanceFinding) -> Option<String> {
        let resolved = Resolved {
            provenance,
            ..Resolved::version("1.0.0")
        };
        resolved.shown_provenance().map(|shown| shown.to_string())
    }

    #[test]
    fn where_a_version_was_built_is_shown_escaped_and_only_where_something_is_known_of_it() {
        let hostile = Provenance {
            repository: "github.com/a/\u{202e}b".to_owned(),
            repository_id: None,
            workflow: "x\u{1b}[2J@refs/tags/v1".to_owned(),
            commit: None,
        };
        assert_eq!(
            shown(ProvenanceFinding::Proven(hostile)).unwrap(),
            "github.com/a/\\u{202e}b (x\\u{1b}[2J@refs/tags/v1)"
        );
        let reason = "the registry answered 500\n".to_owned();
        assert_eq!(
            shown(ProvenanceFinding::Unknown { reason }).unwrap(),
            "unknown: the registry answered 500\\n"
        );
        assert_eq!(shown(ProvenanceFinding::Absent), None);
        assert_eq!(shown(ProvenanceFinding::default()), None);
    }
}
