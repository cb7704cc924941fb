//! What happens to the screen, and what it wants done, as data.

use ratatui::layout::Size;

use super::keys::Command;
use crate::card::{Card, Said};
use crate::workflow::WorkflowId;

/// What happened.
#[derive(Debug, Clone)]
pub enum Message {
    /// A person pressed a key.
    Command(Command),
    /// A person pasted a text.
    Paste(String),
    /// The terminal has another size.
    Resized(Size),
    /// Time passed.
    Tick,
    /// All cards were read.
    Snapshot {
        /// What waits, the oldest first.
        pending: Vec<Card>,
        /// What does not wait any more, the newest first.
        recent: Vec<Card>,
    },
    /// These cards changed, the newest change last.
    Changed(Vec<Card>),
    /// An answer was recorded, or it was not.
    Recorded {
        /// The card that was answered.
        id: WorkflowId,
        /// The card as it is now, or why the answer does not count.
        outcome: Result<Box<Card>, String>,
    },
    /// The store cannot be read.
    Trouble(String),
}

/// What is to be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Records what the person said to a card.
    Say {
        /// The card.
        id: WorkflowId,
        /// What they said.
        said: Said,
    },
    /// Calls the person.
    Ring {
        /// What for, in one line.
        title: String,
    },
    /// Leaves the screen.
    Quit,
}
