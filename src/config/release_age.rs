//! How long a version of a package must have been published before it is fetched.

use std::fmt;
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);

/// The least age of a version, in whole days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinReleaseAge(Duration);

impl MinReleaseAge {
    /// The setting's name in the user's file.
    pub const KEY: &str = "minReleaseAgeDays";

    /// Takes a duration of whole days.
    #[must_use]
    pub fn of(duration: Duration) -> Self {
        Self(duration)
    }

    /// Returns it as a duration; nothing where every version is fetched.
    #[must_use]
    pub fn duration(self) -> Duration {
        self.0
    }

    /// Returns how many days these are.
    #[must_use]
    pub fn days(self) -> u64 {
        self.0.as_secs() / DAY.as_secs()
    }
}

impl Default for MinReleaseAge {
    fn default() -> Self {
        // Most stolen releases are found and taken back within a day.
        Self(DAY)
    }
}

impl fmt::Display for MinReleaseAge {
    /// Writes it in words.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.days() {
            1 => formatter.write_str("1 day"),
            days => write!(formatter, "{days} days"),
        }
    }
}
