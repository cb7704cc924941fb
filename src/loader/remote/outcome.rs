//! What became of a line that was carried to the server, and why a connection ends.

use bytes::Bytes;

use super::http::Failure;

/// Why a connection ends that the session did not close.
pub(super) enum End {
    /// The server could not be reached at all.
    Failed(Failure),
    /// An old server closed the stream on which it answers.
    StreamOver,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What became of one line.
pub(super) enum Done {
    /// It arrived.
    Line,
    /// The request of this id has its answer.
    Request(String),
    /// The first request was refused as servers of 2024-11-05 do, which have another transport.
    Old { first: Bytes, refused: Failure },
    /// The connection is over.
    Over(End),
}
