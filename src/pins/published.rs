//! The moment at which a version was published, and how long ago that is in words.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The moment at which a version was published, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublishedAt(jiff::Timestamp);

/// Says that a text names no moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no date and time such as 2026-08-31T10:11:12Z")]
pub struct NoMoment;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

impl PublishedAt {
    /// Returns the moment that lies this many milliseconds after the beginning of 1970.
    #[must_use]
    pub fn from_unix_ms(milliseconds: i64) -> Option<Self> {
        jiff::Timestamp::from_second(milliseconds.div_euclid(1000))
            .ok()
            .map(Self)
    }

    /// Returns how many seconds have passed since; none where the registry's clock is ahead of this one.
    #[must_use]
    pub fn seconds_ago(self, now_unix_ms: i64) -> i64 {
        (now_unix_ms.div_euclid(1000) - self.0.as_second()).max(0)
    }

    /// Returns how long ago it was in words, in the largest unit that is not zero.
    #[must_use]
    pub fn ago(self, now_unix_ms: i64) -> String {
        let seconds = self.seconds_ago(now_unix_ms);
        let (count, unit) = match seconds {
            ..MINUTE => return "less than a minute ago".to_owned(),
            MINUTE..HOUR => (seconds / MINUTE, "minute"),
            HOUR..DAY => (seconds / HOUR, "hour"),
            _ => (seconds / DAY, "day"),
        };
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {unit}{plural} ago")
    }
}

impl fmt::Display for PublishedAt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

impl FromStr for PublishedAt {
    type Err = NoMoment;

    fn from_str(text: &str) -> Result<Self, NoMoment> {
        let moment: jiff::Timestamp = text.parse().map_err(|_error| NoMoment)?;
        jiff::Timestamp::from_second(moment.as_second())
            .map(Self)
            .map_err(|_error| NoMoment)
    }
}

impl TryFrom<String> for PublishedAt {
    type Error = NoMoment;

    fn try_from(text: String) -> Result<Self, NoMoment> {
        text.parse()
    }
}

impl From<PublishedAt> for String {
    fn from(moment: PublishedAt) -> Self {
        moment.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_comes_back_to_the_second() {
        let moment: PublishedAt = "2026-08-31T10:11:12.345Z".parse().unwrap();
        assert_eq!(moment.to_string(), "2026-08-31T10:11:12Z");
        assert_eq!(moment.to_string().parse(), Ok(moment));
        assert_eq!("2026-08-31T12:11:12+02:00".parse(), Ok(moment));
        assert_eq!("yesterday".parse::<PublishedAt>(), Err(NoMoment));
    }

    #[test]
    fn an_age_is_told_in_its_largest_unit() {
        let moment = PublishedAt::from_unix_ms(1_000_000_000).unwrap();
        let ago = |seconds: i64| moment.ago(1_000_000_000 + seconds * 1000);
        assert_eq!(ago(-5), "less than a minute ago");
        assert_eq!(ago(59), "less than a minute ago");
        assert_eq!(ago(60), "1 minute ago");
        assert_eq!(ago(2 * HOUR + 5), "2 hours ago");
        assert_eq!(ago(DAY), "1 day ago");
        assert_eq!(ago(400 * DAY), "400 days ago");
    }
}
