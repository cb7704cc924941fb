//! Decides when a stream that broke off is taken up again, and how often. Pure.
//!
//! A server names the pause and the id, so both are its word: without bounds `retry: 0` and ever new ids would make one
//! call send as many requests as the machine can.

use std::time::Duration;

use reqwest::header::HeaderValue;

/// The pause where the server names none.
const USUAL_PAUSE: Duration = Duration::from_secs(1);

/// The shortest pause, also where the server names a shorter one: a person does not notice it, a server is not flooded by it.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);

/// What pauses grow to while no message comes: an answer is late by no more than this.
const LONGEST_GROWN_PAUSE: Duration = Duration::from_secs(10);

/// The longest pause that a server may name: a call that waits for the answer must not wait for ever.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How often it is tried without a new id: a server that comes back is back within this.
const TRIES_IN_PLACE: u32 = 5;

/// How often one answer is taken up in all: hours of waiting where no message comes, minutes of a stream that breaks
/// after each message.
const TRIES_IN_ALL: u32 = 1000;

/// What a stream brought before it broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brought {
    Messages,
    Nothing,
}

/// Counts how often the stream of one answer was taken up.
#[derive(Debug, Default)]
pub(super) struct Resumption {
    last_id: Option<String>,
    /// Since there was a new id.
    in_place: u32,
    /// Since there was a message.
    silent: u32,
    in_all: u32,
}

impl Resumption {
    /// Returns the id to go on from and the pause before that; `None` where the answer is given up.
    pub(super) fn next(
        &mut self,
        id: Option<&str>,
        wanted: Option<Duration>,
        brought: Brought,
    ) -> Option<(HeaderValue, Duration)> {
        if id.is_some() && id != self.last_id.as_deref() {
            self.last_id = id.map(str::to_owned);
            self.in_place = 0;
        }
        if brought == Brought::Messages {
            self.silent = 0;
        }
        if self.in_place >= TRIES_IN_PLACE || self.in_all >= TRIES_IN_ALL {
            return None;
        }
        let id = HeaderValue::from_str(self.last_id.as_deref()?).ok()?;
        let wanted = wanted.unwrap_or(USUAL_PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        // Sixteen doublings are over every bound.
        let grown = SHORTEST_PAUSE * (1 << self.silent.min(16));
        self.in_place += 1;
        self.silent += 1;
        self.in_all += 1;
        Some((id, wanted.max(grown.min(LONGEST_GROWN_PAUSE))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes up a stream whose ids are ever new; returns the pauses.
    fn pauses(wanted: Option<Duration>, brought: Brought) -> Vec<Duration> {
        let mut resumption = Resumption::default();
        let mut number = 0;
        std::iter::from_fn(|| {
            number += 1;
            let taken = resumption.next(Some(&number.to_string()), wanted, brought)?;
            assert_eq!(taken.0, number.to_string());
            Some(taken.1)
        })
        .collect()
    }

    #[test]
    fn ever_new_ids_and_no_pause_are_few_requests_all_the_same() {
        let silent = pauses(Some(Duration::ZERO), Brought::Nothing);
        let first: Vec<u128> = silent.iter().take(7).map(Duration::as_millis).collect();
        assert_eq!(first, [250, 500, 1000, 2000, 4000, 8000, 10_000]);
        assert_eq!(silent.len(), TRIES_IN_ALL as usize);
        let busy = pauses(Some(Duration::ZERO), Brought::Messages);
        assert_eq!(busy.len(), TRIES_IN_ALL as usize);
        assert!(busy.iter().all(|pause| *pause == SHORTEST_PAUSE));
    }

    #[test]
    fn a_pause_that_a_server_names_is_kept_within_reason() {
        let minute = pauses(Some(Duration::from_millis(u64::MAX)), Brought::Nothing);
        assert!(minute.iter().all(|pause| *pause == LONGEST_PAUSE));
        assert_eq!(pauses(None, Brought::Messages)[0], USUAL_PAUSE);
    }

    #[test]
    fn a_stream_without_a_new_id_is_tried_a_few_times_and_one_without_any_never() {
        let mut resumption = Resumption::default();
        let mut next = |id| resumption.next(id, None, Brought::Nothing).map(|(id, _)| id);
        assert_eq!(next(None), None);
        for _ in 0..TRIES_IN_PLACE {
            assert_eq!(next(Some("a")).unwrap(), "a");
        }
        assert_eq!(next(None), None);
        assert_eq!(next(Some("b")).unwrap(), "b");
    }
}
