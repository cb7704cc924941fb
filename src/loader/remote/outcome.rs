//! What became of a line that was carried to the server.

use bytes::Bytes;

use crate::loader::session::EndReason;

/// What became of one line.
pub(super) enum LineOutcome {
    /// It arrived.
    Delivered,
    /// The request of this id has its answer.
    Answered(String),
    /// The first request was refused as servers of 2024-11-05 do, which have another transport.
    NeedsSse { first: Bytes, refused: EndReason },
    /// The connection is over.
    ConnectionEnded(EndReason),
}
