//! How long Telegram is left alone after a failure. Pure but for the waiting.

use std::time::Duration;

use tokio::time::Instant;

use crate::channels::channel::ChannelError;

/// Another program reads the same bot: that one is not driven away, so pml looks again seldom.
const CONTESTED: Duration = Duration::from_secs(30);

/// The longest pause after a failure that may pass.
const LONGEST: Duration = Duration::from_mins(1);

/// The longest pause while another program reads the bot.
const LONGEST_CONTESTED: Duration = Duration::from_mins(5);

/// What is wrong with a token is mended by a person.
const REFUSED: Duration = Duration::from_mins(1);

/// Counts failures in a row.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    until: Option<Instant>,
}

impl Backoff {
    /// Takes note of how a poll ended.
    pub(super) fn note(&mut self, result: &Result<(), ChannelError>) {
        match result {
            Ok(()) => *self = Self::default(),
            Err(error) => {
                self.until = Some(Instant::now() + pause(error, self.failures));
                self.failures = self.failures.saturating_add(1);
            }
        }
    }

    /// Waits until the next poll may begin.
    pub(super) async fn wait(&self) {
        if let Some(until) = self.until {
            tokio::time::sleep_until(until).await;
        }
    }
}

/// Returns the pause after a failure that followed `failures` others.
fn pause(error: &ChannelError, failures: u32) -> Duration {
    let doubled = |first: Duration, longest: Duration| {
        let factor = 1_u32.checked_shl(failures.min(16)).unwrap_or(u32::MAX);
        first.saturating_mul(factor).min(longest)
    };
    match error {
        ChannelError::Contested { .. } => doubled(CONTESTED, LONGEST_CONTESTED),
        ChannelError::TooFast { after, .. } => *after,
        ChannelError::Refused { .. } => REFUSED,
        ChannelError::Unreachable { .. } | ChannelError::Unreadable { .. } => {
            doubled(Duration::from_secs(1), LONGEST)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: &str = "Telegram";

    #[test]
    fn another_reader_of_the_bot_is_left_at_least_thirty_seconds() {
        let contested = ChannelError::Contested { channel: CHANNEL };
        let pauses: Vec<u64> = (0..40)
            .map(|failures| pause(&contested, failures).as_secs())
            .collect();
        assert_eq!(pauses[..5], [30, 60, 120, 240, 300]);
        assert!(pauses.iter().all(|pause| (30..=300).contains(pause)));
    }

    #[test]
    fn telegram_says_how_long_it_wants_to_be_left_alone() {
        let after = Duration::from_secs(17);
        let slow = ChannelError::TooFast {
            channel: CHANNEL,
            after,
        };
        assert_eq!(pause(&slow, 9), after);
    }

    #[test]
    fn what_may_pass_is_tried_again_soon_and_then_seldom() {
        let away = ChannelError::Unreachable {
            channel: CHANNEL,
            reason: String::new(),
        };
        let pauses: Vec<u64> = (0..9).map(|failures| pause(&away, failures).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }
}
