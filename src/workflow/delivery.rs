//! Deliveries: what was sent of an ask to a person on a channel, and how each channel stands. Plain data.
//!
//! No argument of a call, no text of a question and no token is kept here. A delivery is marked as being sent *before* its
//! channel is told to send it: after a crash it may have arrived or not, it is never sent twice, and a press on it
//! counts, because its nonce was kept first.

use serde_json::Value;

use super::{ProcessName, Timestamp, WorkflowId};
use crate::config::ChannelName;

/// The longest error that is kept; it stands in a line that people read.
const ERROR_LIMIT: usize = 300;

/// Names a delivery: there is one for each ask, channel and person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryKey {
    /// The ask.
    pub workflow: WorkflowId,
    /// The channel.
    pub channel: ChannelName,
    /// The opaque id by which the service names the person.
    pub person: String,
}

/// What was sent of an ask to a person on a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Its name.
    pub key: DeliveryKey,
    /// Where it stands.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it failed, or why the last attempt did.
    pub error: Option<String>,
    /// Ties a press to its message.
    pub nonce: String,
    /// Where the message stands, as its channel writes it.
    pub message: Option<Value>,
    /// The revision of the ask that the message shows.
    pub revision: u64,
    /// How the ask stands in the message.
    pub standing: ShownStanding,
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It is to be sent.
    Queued,
    /// The service is being told; whether it arrived is not known yet.
    Sending,
    /// It arrived.
    Sent,
    /// It was given up, or its channel cannot show it.
    Failed,
    /// It says how the ask ended, and is never touched again.
    Closed,
}

impl DeliveryState {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Queued,
        Self::Sending,
        Self::Sent,
        Self::Failed,
        Self::Closed,
    ];

    /// Returns the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Closed => "closed",
        }
    }
}

/// How an ask stands in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownStanding {
    /// It can be answered there.
    Open,
    /// It is answered, and the agent has not taken the answer yet.
    Answered,
    /// It is over.
    Over,
}

impl ShownStanding {
    /// Every standing.
    pub const ALL: [Self; 3] = [Self::Open, Self::Answered, Self::Over];

    /// Returns the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered => "answered",
            Self::Over => "over",
        }
    }
}

/// How a channel stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelReport {
    /// The channel.
    pub channel: ChannelName,
    /// Its connection.
    pub state: ChannelState,
    /// What went wrong last; no token.
    pub error: Option<String>,
    /// The process that holds the connection.
    pub process: ProcessName,
    /// When this was said.
    pub reported_at: Timestamp,
}

/// The connection of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelState {
    /// It is being made, for the first time or again.
    Connecting,
    /// Something came over it.
    Connected,
    /// It cannot be made.
    Failed,
}

impl ChannelState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Connecting, Self::Connected, Self::Failed];

    /// Returns the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Failed => "failed",
        }
    }
}

/// Shortens an error to what is kept of it, escaped.
#[must_use]
pub fn kept_error(error: &str) -> String {
    let shown = crate::protocol::Shown::line(error).to_string();
    match shown.char_indices().nth(ERROR_LIMIT) {
        Some((at, _)) => format!("{}…", &shown[..at]),
        None => shown,
    }
}
