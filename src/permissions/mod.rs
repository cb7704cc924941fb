//! The permissions: the policy that turns rules into verdicts, and the one writer of `.pml.json`.
//!
//! The policy is pure; only [`writer`] and [`trust`] touch the disk, through `disk`. This module knows neither workflows nor the
//! loader; approvals are kept with the workflows and handed in as data.

mod edit;
mod forecast;
mod history_record;
mod policy;
pub mod trust;
pub mod writer;

pub use edit::{ConfigChange, EditError, LaunchWord, apply, servers};
pub use forecast::{Forecast, ForecastOutcome, ForecastReason, Obstacle, Standing};
pub use history_record::change_records;
pub use policy::{
    AskKind, CONNECT, PROMPTS, Policy, RESOURCES, ReadOnlyTools, Ruling, ServerVerdict, Verdict, by_strength,
};
