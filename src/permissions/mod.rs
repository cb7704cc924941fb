//! Rules to verdicts, the one writer of `.pml.json`, and what a person has approved.
//!
//! The decision is pure; only [`writer`] and [`approved`] touch the disk, both through `disk`. Knows nothing of
//! workflows or loading.

pub mod approved;
mod edit;
mod forecast;
mod policy;
pub mod writer;

pub use approved::Approved;
pub use edit::{Change, EditError, apply, servers};
pub use forecast::{Because, Forecast, Happens};
pub use policy::{AskKind, CONNECT, Decision, Policy, RESOURCES, ServerVerdict, Verdict, by_strength};
