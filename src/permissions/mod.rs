//! Rules to verdicts, the one writer of `.pml.json`, and what a person has approved.
//!
//! The decision is pure; only [`writer`] and [`approved`] touch the disk. Knows nothing of workflows or loading.

mod policy;

pub use policy::{AskKind, Decision, Policy, Verdict};
