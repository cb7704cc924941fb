//! What a service sends to the public path of `pml serve`, and what it is answered: plain data between the server and the
//! channel, which do not know each other.

use std::fmt;

/// A request of a service; everything in it is from outside.
#[derive(Clone, PartialEq, Eq)]
pub enum HookRequest {
    /// The service checks that the address is the user's: the names and values of the query, decoded.
    Verification(Vec<(String, String)>),
    /// The service delivers something.
    Delivery {
        /// The signature beside it, `X-Hub-Signature-256`.
        signature: Option<String>,
        /// The bytes that are signed.
        body: Vec<u8>,
    },
}

impl fmt::Debug for HookRequest {
    /// Shows no word of it: a query holds the word by which the address is verified.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verification(_) => formatter.write_str("Verification"),
            Self::Delivery { body, .. } => write!(formatter, "Delivery({} bytes)", body.len()),
        }
    }
}

/// What a service is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookReply {
    /// The challenge of a verification, as it came.
    Challenge(String),
    /// What was delivered is received; it is decided about later.
    Received,
    /// It is not signed by the service, or does not know the word.
    Refused,
    /// There is more waiting than is kept; the service delivers it again.
    Busy,
    /// No channel takes such requests.
    Missing,
}
