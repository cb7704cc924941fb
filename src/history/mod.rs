//! The history: what was asked, answered, granted, installed, started and refused, in files that show a change of them.
//!
//! One history for each user, lines of JSON in parts (`part-00000001.jsonl`, …), for the user alone. Each line holds the
//! SHA-256 of the line before it, so that a line which is removed, edited or moved shows: see [`chain`](self::chain).
//! There is no key: a process of the same user that writes everything anew is not found out.
//!
//! Shapes and digests, never values: no arguments, no variables, no reasons and no answers in words stand here.
//!
//! A record of an installation or a start is written *before* it happens, and without it neither happens
//! ([`History::require`]). Everything else is recorded once it counts, and a failure is logged ([`History::note`]).

mod chain;
mod error;
mod handle;
mod parts;
mod record;
mod refusals;
#[cfg(test)]
mod tests;
mod verification;
mod writer;

pub use chain::{Link, hash};
pub use error::HistoryError;
pub use handle::{Clock, History};
pub use parts::{PART_BYTES, PARTS, TOTAL_BYTES};
pub use record::{
    AnswerShape, ChangedContent, Ended, LapseReason, MaliciousOutcome, Record, RuleChange, Sandbox, Text,
};
pub use verification::{Fault, Head, Verdict, Verifier};
pub use writer::{Pruned, append, prune, verify};
