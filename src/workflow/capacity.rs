//! Limits how many asks may wait at once: of one conversation, of one project, and in all.
//!
//! A model that loops fills only its own share: the other conversations of its project can still ask, and so can
//! every other project.

use std::fmt;

/// A limit on how many asks may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// Of one conversation of a client.
    Conversation,
    /// Of one project, in all its conversations.
    Project,
    /// Of the user, in all projects.
    Total,
}

/// How many asks wait already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaitingAsks {
    /// Of the conversation that asks.
    pub(super) conversation: usize,
    /// Of its project.
    pub(super) project: usize,
    /// In all projects.
    pub(super) total: usize,
}

impl Cap {
    /// Returns how many asks may wait.
    #[must_use]
    pub fn limit(self) -> usize {
        match self {
            // Clients send at most some tens of calls at a time; a person will not read a hundred asks.
            Self::Conversation => 100,
            // Three conversations that loop: a fourth of the project is stopped, other projects are not.
            Self::Project => 300,
            // Bounds the file on disk and what `pml pending` lists.
            Self::Total => 1_000,
        }
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Conversation => "calls of this conversation",
            Self::Project => "calls of this project",
            Self::Total => "calls in all projects",
        })
    }
}

impl WaitingAsks {
    /// Returns the limit that another ask would exceed, the narrowest one: it says most about what to do.
    pub(super) fn exceeded(self) -> Option<Cap> {
        let caps = [
            (Cap::Conversation, self.conversation),
            (Cap::Project, self.project),
            (Cap::Total, self.total),
        ];
        caps.into_iter()
            .find(|(cap, waiting)| *waiting >= cap.limit())
            .map(|(cap, _)| cap)
    }
}
