//! Why a handshake failed.

use std::sync::Arc;

use super::end_reason::EndReason;
use super::ending::Ended;

/// Says why a server could not be introduced to its client, or asked for a list.
#[derive(Debug, thiserror::Error)]
pub(in crate::loader) enum HandshakeError {
    /// The conversation ended.
    #[error("it {0}")]
    Ended(Arc<Ended>),
    /// The server answered with an error or with something unreadable.
    #[error(transparent)]
    Refused(HandshakeRefusal),
}

/// Says that a server answered a request of pml's with an error or with something unreadable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it does not answer `{method}` as MCP requires: {reason}")]
pub struct HandshakeRefusal {
    /// What was asked.
    pub method: &'static str,
    /// What it said, escaped.
    pub reason: String,
    /// Why the transport answered in its place, if that did.
    pub cause: Option<EndReason>,
}
