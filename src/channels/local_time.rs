//! The time of day where the person is.

use jiff::tz::TimeZone;

use super::plan::LocalMoment;
use crate::workflow::Timestamp;

/// The time zone of this machine, read once.
#[derive(Debug, Clone)]
pub(super) struct LocalTime(TimeZone);

impl LocalTime {
    /// Reads the zone; blocks. A machine without one is in UTC.
    pub(super) fn of_machine() -> Self {
        Self(TimeZone::system())
    }

    /// Returns a moment with its minute of the day.
    pub(super) fn moment(&self, now: Timestamp) -> LocalMoment {
        let (hour, minute) = self.clock(now);
        LocalMoment {
            now,
            minute: u16::from(hour) * 60 + u16::from(minute),
        }
    }

    /// Writes the time of day: `14:03`.
    pub(super) fn time(&self, at: Timestamp) -> String {
        let (hour, minute) = self.clock(at);
        format!("{hour:02}:{minute:02}")
    }

    fn clock(&self, at: Timestamp) -> (u8, u8) {
        let at = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
        let time = at.to_zoned(self.0.clone()).time();
        (time.hour().unsigned_abs(), time.minute().unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_time_of_day() {
        let zone = LocalTime(TimeZone::fixed(jiff::tz::offset(2)));
        let at = Timestamp::from_millis((12 * 60 + 3) * 60_000);
        assert_eq!(zone.time(at), "14:03");
        assert_eq!(zone.moment(at).minute, 14 * 60 + 3);
    }
}
