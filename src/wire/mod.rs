//! One reader and one bounded writer per peer: the client on one side, each dependency on the other.
//!
//! This module knows bytes and lines, not their meaning. Memory is bounded by back-pressure: a task that writes to a
//! slow peer waits for room and meanwhile reads nothing from its own peer; nothing is dropped and nothing piles up.

mod batch;
mod outbox;
mod reader;
mod width;

pub use batch::{Frame, FramePart};
pub use outbox::{DrainPolicy, Outbox, PeerGone};
pub use reader::LineReader;
pub use width::widen;
