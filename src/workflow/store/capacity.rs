//! Limits how many asks may wait at once: of one conversation, of one project, and in all.
//!
//! A model that loops fills only its own share: the other conversations of its project can still ask, and so can
//! every other project.

use std::fmt;

use rusqlite::{Transaction, params};

use super::{Fault, row};
use crate::workflow::lifetime::LIVE;
use crate::workflow::{New, Timestamp, WorkflowError};

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

impl Cap {
    /// The narrowest first: its name says most about what to do.
    const ALL: [Self; 3] = [Self::Conversation, Self::Project, Self::Total];

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

/// Refuses a new ask where as many as may wait do so already.
pub(super) fn check(transaction: &Transaction<'_>, new: &New, now: Timestamp) -> Result<(), Fault> {
    let counted = format!(
        "SELECT count(*) FILTER (WHERE asker = ?2), count(*) FILTER (WHERE project = ?3), count(*)
         FROM workflow WHERE phase <> 'final' AND {LIVE}"
    );
    let parameters = params![
        now.millis(),
        new.origin.asker.to_string(),
        row::path_bytes(&new.project)
    ];
    let waiting: [i64; 3] = transaction.query_row(&counted, parameters, |row| {
        Ok([row.get(0)?, row.get(1)?, row.get(2)?])
    })?;
    for (cap, waiting) in Cap::ALL.into_iter().zip(waiting) {
        if usize::try_from(waiting).unwrap_or(usize::MAX) >= cap.limit() {
            return Err(WorkflowError::Full { cap }.into());
        }
    }
    Ok(())
}
