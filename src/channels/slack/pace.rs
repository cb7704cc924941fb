//! The times of a connection: pings, silences, and pauses that grow where it fails.

use std::time::Duration;

/// The times of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// How often a sign of life is asked for.
    pub ping: Duration,
    /// After how long without one the connection is dead.
    pub silence: Duration,
    /// How long Slack has to greet a new connection.
    pub greeting: Duration,
    /// How long a connection is still read after another one took over.
    pub linger: Duration,
    /// The first pause after a failure; each further one is twice as long.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// A connection that lived as long was none that failed.
    pub steady: Duration,
}

impl Pace {
    /// The pace for Slack itself.
    pub(super) const USUAL: Self = Self {
        ping: Duration::from_secs(30),
        silence: Duration::from_mins(1),
        greeting: Duration::from_secs(30),
        linger: Duration::from_secs(1),
        pause: Duration::from_secs(1),
        longest_pause: Duration::from_mins(1),
        steady: Duration::from_secs(30),
    };

    /// Returns how long to wait after a number of failures: half of it is left to chance, so that many clients do not come
    /// back at once.
    pub(super) fn pause_after(&self, failures: u32) -> Duration {
        let doubled = self.pause.saturating_mul(1 << failures.saturating_sub(1).min(10));
        let most = doubled.min(self.longest_pause);
        let [chance, ..] = *uuid::Uuid::new_v4().as_bytes();
        most / 2 + (most / 2).mul_f64(f64::from(chance) / 255.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_are_never_less_than_half() {
        for (failures, most) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (u32::MAX, 60)] {
            let pause = Pace::USUAL.pause_after(failures);
            let most = Duration::from_secs(most);
            assert!(pause >= most / 2 && pause <= most, "{failures}: {pause:?}");
        }
    }
}
