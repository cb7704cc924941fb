//! One reader and one bounded writer per peer: the client on one side, each dependency on the other.
//!
//! Knows bytes and lines, nothing of what they say. Memory is bounded by back-pressure: who writes to a slow peer
//! waits for room, and whoever it reads from waits in turn; nothing is dropped and nothing piles up.

mod batch;
mod outbox;
mod reader;
mod width;

pub use batch::{Frame, Part};
pub use outbox::{Outbox, Patience, PeerGone};
pub use reader::LineReader;
pub use width::widen;
