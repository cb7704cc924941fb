//! The one place that reads the wall clock.
//!
//! Deadlines are shared by processes and outlive them, so they are moments of the wall clock, which goes on while
//! the machine sleeps. It can be set back, so a process also keeps them on a clock that cannot.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::config::{Files, Locations};
use crate::history::History;
use crate::loader::ReleaseAge;
use crate::workflow::{Moment, Timestamp};

/// Returns the moment it is now, on both clocks.
#[must_use]
pub fn moment() -> Moment {
    Moment {
        wall: now(),
        steady: Instant::now(),
    }
}

/// Returns the moment it is now.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the wall clock"
)]
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Names how old a version must be before it is fetched; `files` say it.
#[must_use]
pub fn release_age(files: Files) -> ReleaseAge {
    ReleaseAge::new(files, || now().millis())
}

/// Names the history of the user; `files` say whether it is required.
#[must_use]
pub fn history(locations: &Locations, files: Files) -> History {
    History::new(locations, files, || now().millis())
}
