//! The record of one event: who decided what about which thing, as names and digests.

use std::path::Path;

use serde::Serialize;

use crate::protocol::approval::ChangedPart;
use crate::protocol::{Digest, Shown};

/// The longest text of a record, in characters: the longest pattern is 512, most paths are shorter. It bounds a line to
/// some kilobytes.
const TEXT_LIMIT: usize = 512;

/// A text of a record: escaped, on one line and bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Text(String);

impl Text {
    /// Escapes a text and cuts what is too long, marked by `…`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        // No more is escaped than is kept.
        let start: String = text.chars().take(TEXT_LIMIT + 1).collect();
        let shown = Shown::line(&start).to_string();
        if shown.chars().count() <= TEXT_LIMIT {
            return Self(shown);
        }
        let kept = shown.chars().take(TEXT_LIMIT - 1);
        Self(kept.chain(['…']).collect())
    }

    /// Names a file.
    #[must_use]
    pub fn path(path: &Path) -> Self {
        Self::of(&path.to_string_lossy())
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Record {
    /// A person was asked.
    Ask {
        /// The id of the ask.
        id: Text,
        /// What was asked: `dependency_install`, `project_trust` and so on.
        kind: &'static str,
        /// The tool whose call waits.
        tool: Text,
        /// What an answer is bound to.
        launch: Digest,
        /// The directory of the project.
        project: Text,
        /// What the asking client calls itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        client: Option<Text>,
        /// What would be accepted, where something changed.
        #[serde(flatten)]
        change: Option<ChangedContent>,
    },
    /// An answer was recorded.
    Answer {
        /// The id of the ask.
        id: Text,
        /// What was asked.
        kind: &'static str,
        /// The tool whose call waited.
        tool: Text,
        /// What the answer is bound to.
        launch: Digest,
        /// What was accepted or refused, where something changed.
        #[serde(flatten)]
        change: Option<ChangedContent>,
        /// What it was.
        answer: AnswerShape,
        /// The road, and who came on it.
        by: Text,
    },
    /// An ask ended unused: it had no answer, or no call took the one it had.
    Lapse {
        /// The id of the ask.
        id: Text,
        /// Why.
        why: LapseReason,
    },
    /// A configuration file was changed by pml.
    Rule {
        /// The file.
        file: Text,
        /// The change.
        change: RuleChange,
        /// The road, and who came on it.
        by: Text,
    },
    /// A project's file was accepted.
    Trust {
        /// The file.
        file: Text,
        /// Its path and its text.
        content: Digest,
        /// The road, and who came on it.
        by: Text,
    },
    /// A project's file is no longer accepted.
    Untrust {
        /// The file.
        file: Text,
        /// The road, and who came on it.
        by: Text,
    },
    /// A person accepted what a server is, outside of any ask: by a command that showed it to them.
    Accept {
        /// The server.
        server: Text,
        /// What of it: `server` for its package and its tools, `scripts` for its install scripts.
        of: &'static str,
        /// Exactly what was accepted.
        content: Digest,
        /// The road, and who came on it.
        by: Text,
    },
    /// What was approved and accepted of a server was forgotten.
    Forget {
        /// The server.
        server: Text,
        /// How many approvals were taken back.
        approvals: usize,
        /// Whether its next use is a first one: what was accepted of its package, tools and scripts is forgotten as well.
        accepted: bool,
        /// The road, and who came on it.
        by: Text,
    },
    /// A package is about to be fetched.
    Fetch {
        /// The server that needs it.
        server: Text,
        /// The package with its exact version.
        package: Text,
        /// Whether its install scripts run.
        scripts: &'static str,
        /// The digest of the install scripts that were accepted: no other script runs.
        #[serde(rename = "acceptedScripts", skip_serializing_if = "Option::is_none")]
        accepted_scripts: Option<Digest>,
    },
    /// A fetched package is about to be put into the store.
    Install {
        /// The server that needs it.
        server: Text,
        /// The package with its exact version.
        package: Text,
        /// The integrity of the package.
        integrity: Text,
        /// The digest of everything that it depends on.
        lock: Digest,
    },
    /// A package was taken out of the store.
    Removed {
        /// The package with its exact version.
        package: Text,
    },
    /// A server is about to be started or connected to.
    Start {
        /// The server.
        server: Text,
        /// What it is launched as.
        launch: Digest,
        /// Its package with its exact version.
        #[serde(skip_serializing_if = "Option::is_none")]
        package: Option<Text>,
        /// The integrity of the package.
        #[serde(skip_serializing_if = "Option::is_none")]
        integrity: Option<Text>,
        /// The digest of everything that the package depends on.
        #[serde(skip_serializing_if = "Option::is_none")]
        lock: Option<Digest>,
        /// The sandbox in force.
        sandbox: Sandbox,
    },
    /// A server is gone, or did not get ready.
    Exit {
        /// The server.
        server: Text,
        /// What it was launched as.
        launch: Digest,
        /// How it ended.
        end: Ended,
        /// Whether pml asked it to go.
        asked: bool,
    },
    /// A rule refused a call.
    Refusal {
        /// The tool.
        tool: Text,
        /// The pattern of the rule.
        rule: Text,
        /// How many refusals before this one were not recorded, because there were too many at a time.
        #[serde(skip_serializing_if = "is_zero")]
        unrecorded: u64,
    },
    /// A server was refused or stopped because something of it is known to be malicious.
    Malicious {
        /// The server.
        server: Text,
        /// The package that is malicious.
        package: Text,
        /// The id of the advisory that says so.
        advisory: Text,
        /// What came of it.
        outcome: MaliciousOutcome,
        /// How many refusals before this one were not recorded, because there were too many at a time.
        #[serde(skip_serializing_if = "is_zero")]
        unrecorded: u64,
    },
}

/// What a person is asked to accept of a server that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedContent {
    /// Which part of it changed. Not written as `part`: the chain reads a number there.
    pub of: ChangedPart,
    /// Exactly what would be accepted.
    pub content: Digest,
}

/// Why an ask ended unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LapseReason {
    /// Its time was over.
    Expired,
    /// What asked took it back.
    Withdrawn,
}

/// What came of a server of which something is malicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MaliciousOutcome {
    /// It was not installed, or not started.
    Refused,
    /// It ran, and was stopped.
    Stopped,
}

/// The shape of an answer: never its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerShape {
    /// Approved for this call, or for the server as it was shown.
    Once,
    /// Approved until the asking process ends.
    Session,
    /// Approved, and a rule was written.
    Always,
    /// Refused.
    Refuse,
    /// A question was answered.
    Answers,
}

/// One change of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleChange {
    /// A pattern went into the allow list.
    Allow(Text),
    /// A pattern went into the deny list.
    Deny(Text),
    /// A pattern went into the ask list.
    Ask(Text),
    /// A pattern was taken out of every list.
    Forget(Text),
    /// A server was declared.
    Declare(Text),
    /// A server was taken out.
    Remove(Text),
    /// A person was let in to a channel.
    Pair(Text),
    /// A person was taken out of a channel.
    Unpair(Text),
}

/// The sandbox in which a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// None: it may do whatever the user may.
    None,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It exited with this code.
    Code(u8),
    /// It was ended by this signal.
    Signal(u8),
    /// It could not be started.
    NotStarted,
    /// It did not get ready: it was silent, or refused to be opened.
    NotReady,
    /// Its supervisor was killed.
    Unsupervised,
    /// The connection to it is over.
    Disconnected,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
