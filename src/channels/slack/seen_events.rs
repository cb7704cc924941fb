//! The events that were handed on: Slack delivers one again where it saw no acknowledgement.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How many events are remembered: Slack repeats those of the last minutes.
const EVENTS: usize = 256;

/// The events that were handed on already.
#[derive(Debug, Default)]
pub(super) struct SeenEvents(Mutex<VecDeque<String>>);

impl SeenEvents {
    /// Takes note of an event; tells whether it is new.
    pub(super) fn is_first(&self, event: String) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contains(&event) {
            return false;
        }
        if seen.len() == EVENTS {
            seen.pop_front();
        }
        seen.push_back(event);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_new_once_and_few_are_remembered() {
        let seen = SeenEvents::default();
        assert!(seen.is_first("Ev1".to_owned()));
        assert!(!seen.is_first("Ev1".to_owned()));
        for number in 0..2 * EVENTS {
            assert!(seen.is_first(format!("E{number}")));
        }
        assert_eq!(seen.0.lock().unwrap().len(), EVENTS);
    }
}
