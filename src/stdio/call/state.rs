//! Where a call stands between the client that waits for it and the server that works on it.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::deadline::Deadline;
use super::progress::ProgressReport;
use crate::proxy::{Arguments, Failure, Inquiry};
use crate::stdio::ask::answer_collection::AnswerCollection;
use crate::stdio::client::in_flight::UnderWay;

/// Where a call stands.
pub(super) enum CallState {
    /// The dependency works on it, and the client waits; only then its time runs.
    Open(
        Open,
        #[expect(dead_code, reason = "what counts is when it is dropped")] Option<Deadline>,
    ),
    /// The dependency waits for an answer that the client brings with its next request.
    Parked(Parked),
    /// The client is being asked for what the dependency requires.
    Collecting(Collecting),
    /// The client was told in a result what the dependency wants to know.
    Relayed(Relayed),
    /// It was answered, or nobody wants an answer any more.
    Ended,
}

/// A call that a client waits for.
pub(super) struct Open {
    pub(super) under_way: UnderWay,
    /// The raw token under which the client wants to hear of progress.
    pub(super) token: Option<String>,
    pub(super) report: ProgressReport,
    /// The id of the request on the dependency's side.
    pub(super) downstream: u64,
    pub(super) rounds: u32,
}

/// A call that waits for its client to come back.
pub(super) struct Parked {
    /// Where it is kept.
    pub(super) place: Uuid,
    pub(super) inquiries: Vec<(String, Arc<Inquiry>)>,
    pub(super) downstream: u64,
    pub(super) rounds: u32,
    /// What came meanwhile.
    pub(super) end: Option<CallEnd>,
}

impl Parked {
    /// Returns how many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        let reply = match &self.end {
            Some(CallEnd::Replied(line)) => line.len(),
            Some(CallEnd::Failed(_)) | None => 0,
        };
        self.asked() + reply
    }

    /// Returns how many bytes of questions it holds.
    pub(super) fn asked(&self) -> usize {
        self.inquiries.iter().map(|(_, inquiry)| weight(inquiry)).sum()
    }
}

/// Returns how many bytes a question holds.
pub(super) fn weight(inquiry: &Inquiry) -> usize {
    inquiry.id.len() + inquiry.method.len() + inquiry.params.as_ref().map_or(0, Bytes::len)
}

/// Returns how many bytes suspended arguments hold.
pub(super) fn held(arguments: Option<&Arguments>) -> usize {
    match arguments {
        Some(Arguments::Json(text)) => text.len(),
        Some(Arguments::Absent | Arguments::Erased) | None => 0,
    }
}

/// The end of a call that came while nobody waited for it.
pub(super) enum CallEnd {
    Replied(Bytes),
    Failed(Failure),
}

/// A call whose client is being asked.
pub(super) struct Collecting {
    pub(super) open: Open,
    /// What it is asked, and what it answered.
    pub(super) collection: AnswerCollection,
    /// The dependency's own state, raw.
    pub(super) state: Option<String>,
}

/// A call whose questions were told to a client in a result.
pub(super) struct Relayed {
    /// The dependency's names of its questions.
    pub(super) keys: Vec<String>,
    /// The dependency's own state, raw.
    pub(super) state: Option<String>,
    pub(super) rounds: u32,
}

impl Relayed {
    /// Returns how many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(String::len).sum();
        keys + self.state.as_ref().map_or(0, String::len)
    }
}
