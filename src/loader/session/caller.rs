//! The caller of one request, as the session sees it.
//!
//! The reader of the server's lines calls it synchronously, in the order of those lines; it writes straight to the
//! client, and afterwards the reader waits for room there. So nothing overtakes, nothing piles up, and a call needs
//! no task of its own.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use bytes::Bytes;

use super::end_reason::EndReason;
use super::ending::Ended;
use crate::protocol::{Payload, ResponseOutcome};

/// Who waits for the reply to one request.
pub trait Caller: Send + Sync {
    /// Takes the parameters of a progress notification; its token is the id of the request downstream.
    fn progressed(&self, line: &Bytes, params: &Payload<'_>);

    /// Takes the reply, a part of `line`. It is the last thing that comes.
    fn replied(self: Arc<Self>, line: &Bytes, outcome: &ResponseOutcome<'_>);

    /// Takes the reply that the transport made in place of the server, and why. It is the last thing that comes.
    ///
    /// The error object says the same in words; a caller that can do nothing about the reason takes it as any other.
    fn unreached(self: Arc<Self>, line: &Bytes, outcome: &ResponseOutcome<'_>, reason: &EndReason) {
        let _ = reason;
        self.replied(line, outcome);
    }

    /// Is offered a result that is, byte for byte, the one of an earlier reply. Who has to look into it declines, and
    /// gets the reply as any other.
    fn replied_again(&self, result: Bytes) -> OfferResult {
        let _ = result;
        OfferResult::No
    }

    /// Takes note that no reply will come.
    fn failed(&self, failure: Failure);

    /// Is offered a request of the dependency that a client could answer only within one of its calls.
    fn asked(self: Arc<Self>, inquiry: &Arc<Inquiry>) -> OfferResult;
}

/// Why no reply comes.
#[derive(Debug, Clone)]
pub enum Failure {
    /// What came back could not be used; the dependency lives on.
    Unusable(String),
    /// The dependency died.
    Ended(Arc<Ended>),
}

impl Failure {
    /// Returns why the connection ended, if it has.
    #[must_use]
    pub fn end_reason(&self) -> Option<&EndReason> {
        match self {
            Self::Unusable(_) => None,
            Self::Ended(ended) => Some(&ended.reason),
        }
    }
}

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferResult {
    /// It will be answered.
    Yes,
    /// It is for another caller.
    No,
}

/// A request of a dependency to its client.
#[derive(Debug)]
pub struct Inquiry {
    /// Its raw id on the dependency's side.
    pub id: String,
    /// What is wanted.
    pub method: String,
    /// The raw parameters.
    pub params: Option<Bytes>,
}

/// Who waits, by the id of the request. Ids are counted up by pml, so they need no hash that withstands an attacker.
pub(in crate::loader) type Callers = HashMap<u64, Arc<dyn Caller>, BuildHasherDefault<CountingHasher>>;

/// Spreads numbers that count up.
#[derive(Default)]
pub(in crate::loader) struct CountingHasher(u64);

impl Hasher for CountingHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The odd number nearest to 2^64 divided by the golden ratio: neighbours end up far apart.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
