//! Rules to verdicts, and the one writer of `.pml.json`.
//!
//! The decision is pure; only [`writer`] touches the disk, through `disk`. Knows nothing of workflows or loading; what a
//! person approved is kept with the workflows and handed in as data.

mod edit;
mod forecast;
mod policy;
pub mod writer;

pub use edit::{Change, EditError, apply, servers};
pub use forecast::{Because, Forecast, Happens};
pub use policy::{AskKind, CONNECT, Decision, Policy, RESOURCES, ServerVerdict, Verdict, by_strength};
