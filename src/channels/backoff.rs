//! How long is waited before something is tried again: twice as long each time, with some chance in it. Pure.

use std::time::Duration;

/// The first wait.
const FIRST: Duration = Duration::from_secs(1);

/// The longest wait that is pml's own choice.
const LONGEST: Duration = Duration::from_mins(1);

/// The longest wait that a service is granted: a wrong header must not silence a channel for days.
const LONGEST_WANTED: Duration = Duration::from_mins(15);

/// Returns how long to wait after the `failures`-th failure in a row; `random` spreads what fails together.
pub(super) fn wait(failures: u32, random: u32) -> Duration {
    let doubled = FIRST * 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
    let whole = doubled.min(LONGEST);
    // Between half of it and all of it.
    whole / 2 + whole / 2 * (random % 1_000) / 1_000
}

/// Returns how long to wait where a service said so.
pub(super) fn wanted(after: Duration) -> Duration {
    after.clamp(FIRST, LONGEST_WANTED)
}

/// Draws a number for [`wait`].
pub(super) fn chance() -> u32 {
    uuid::Uuid::new_v4().as_fields().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_minute_and_are_never_shorter_than_half() {
        let shortest: Vec<u64> = (1..10)
            .map(|failures| u64::try_from(wait(failures, 0).as_millis()).unwrap())
            .collect();
        assert_eq!(
            shortest,
            [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]
        );
        for failures in [0, 1, 5, u32::MAX] {
            let (least, most) = (wait(failures, 0), wait(failures, 999));
            assert!(least < most && most <= LONGEST && most <= least * 2, "{failures}");
        }
    }

    #[test]
    fn a_service_is_waited_for_as_it_wants_within_bounds() {
        for (asked, granted) in [(0, 1), (30, 30), (86_400, 900)] {
            assert_eq!(wanted(Duration::from_secs(asked)), Duration::from_secs(granted));
        }
    }
}
