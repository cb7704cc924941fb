//! The conversation with one running server: requests and replies, what the server asks, the handshake and its lists.
//!
//! Knows lines and messages; nothing of processes or addresses.

mod caller;
mod client_info;
mod connection;
mod end_reason;
mod ending;
mod error;
mod handshake;
mod lists;
mod reader;
mod repeated_reply;
mod reply;
mod request_failures;
mod server_messages;
mod server_requests;

pub use caller::{Caller, Failure, Inquiry, OfferResult};
pub use client_info::Declared;
pub use connection::{Client, Session, Unasked};
pub use end_reason::{EndReason, UnreachableCause, Violation};
pub use ending::Ended;
pub(in crate::loader) use ending::LastLines;
pub(in crate::loader) use error::HandshakeError;
pub use error::HandshakeRefusal;
pub(in crate::loader) use handshake::{IntroducedSession, introduce};
pub(in crate::loader) use lists::LIST_PATIENCE;
pub use reply::Reply;
pub(in crate::loader) use request_failures::RequestFailures;
