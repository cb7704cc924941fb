//! The notice: a card as one person is shown it on a channel.

use super::press::Nonce;
use crate::card::{Card, Choice};

/// A card as one person is shown it on a channel.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    /// The card; its texts are escaped.
    pub card: Card,
    /// Ties what is pressed to this message: one for each message.
    pub nonce: Nonce,
    /// Where it stands.
    pub standing: Standing,
    /// The page of the inbox on this machine, for what does not fit.
    pub inbox: Option<String>,
}

/// Where a notice stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It can be answered here.
    Open {
        /// The decisions that this person may take here; none where questions are asked.
        choices: Vec<Choice>,
    },
    /// It cannot be answered any more: what became of it, in a line for the place of the buttons.
    Closed(String),
}
