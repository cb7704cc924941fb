//! What is left alone for a while: messages that failed, and channels whose service wants pml to wait. Pure.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::config::ChannelName;
use crate::workflow::DeliveryKey;

/// How long something is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// This message: others may get through.
    OfMessage(Duration),
    /// The whole channel: its service wants pml to wait.
    OfChannel(Duration),
}

impl Pause {
    /// Returns how long it is.
    pub(super) fn length(self) -> Duration {
        match self {
            Self::OfMessage(length) | Self::OfChannel(length) => length,
        }
    }
}

/// The pauses that last now; they are known to this process alone.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    messages: HashMap<DeliveryKey, MessagePause>,
    channels: HashMap<ChannelName, Instant>,
}

/// A message that failed.
#[derive(Debug)]
struct MessagePause {
    failures: u32,
    until: Instant,
}

impl Pauses {
    /// Begins a pause after a failure.
    pub(super) fn begin(&mut self, key: &DeliveryKey, pause: Pause, now: Instant) {
        let until = now + pause.length();
        if let Pause::OfChannel(_) = pause {
            let held = self.channels.entry(key.channel).or_insert(until);
            *held = until.max(*held);
        }
        let failures = self.failures(key) + 1;
        self.messages
            .insert(key.clone(), MessagePause { failures, until });
    }

    /// Forgets that a message failed.
    pub(super) fn end(&mut self, key: &DeliveryKey) {
        self.messages.remove(key);
    }

    /// Forgets everything of a channel that is opened anew.
    pub(super) fn end_channel(&mut self, channel: ChannelName) {
        self.channels.remove(&channel);
        self.messages.retain(|key, _| key.channel != channel);
    }

    /// Keeps the messages that are still to be told.
    pub(super) fn retain(&mut self, kept: impl Fn(&DeliveryKey) -> bool) {
        self.messages.retain(|key, _| kept(key));
    }

    /// Returns how often a message failed since it last got through.
    pub(super) fn failures(&self, key: &DeliveryKey) -> u32 {
        self.messages.get(key).map_or(0, |paused| paused.failures)
    }

    /// Returns how long a message is still left alone, by itself or with its channel.
    pub(super) fn left(&self, key: &DeliveryKey, now: Instant) -> Option<Duration> {
        let own = self.messages.get(key).map(|paused| paused.until);
        let until = own.max(self.channels.get(&key.channel).copied())?;
        until.checked_duration_since(now).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::samples::question;
    use ChannelName::{Slack, Telegram};

    #[test]
    fn a_message_pauses_alone_and_a_service_that_is_too_fast_for_pauses_its_channel() {
        let key = |channel, person: &str| DeliveryKey {
            workflow: question().id,
            channel,
            person: person.to_owned(),
        };
        let (one, other, elsewhere) = (key(Slack, "U1"), key(Slack, "U2"), key(Telegram, "1"));
        let (now, seconds) = (Instant::now(), Duration::from_secs);
        let mut pauses = Pauses::default();
        pauses.begin(&one, Pause::OfMessage(seconds(2)), now);
        assert_eq!(pauses.left(&one, now), Some(seconds(2)));
        assert_eq!(pauses.left(&other, now), None);
        pauses.begin(&one, Pause::OfChannel(seconds(30)), now);
        assert_eq!((pauses.failures(&one), pauses.failures(&other)), (2, 0));
        for key in [&one, &other] {
            assert_eq!(pauses.left(key, now + seconds(10)), Some(seconds(20)));
            assert_eq!(pauses.left(key, now + seconds(30)), None);
        }
        assert_eq!(pauses.left(&elsewhere, now), None);
        pauses.end(&one);
        assert_eq!(
            (pauses.failures(&one), pauses.left(&one, now)),
            (0, Some(seconds(30)))
        );
        pauses.end_channel(Slack);
        assert_eq!(pauses.left(&one, now), None);
    }
}
