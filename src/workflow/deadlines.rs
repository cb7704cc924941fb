//! Remembers when the asks that this process has seen are over, on two clocks.
//!
//! The deadline of an ask is a moment of the wall clock, which a person can set back. So that the ask then does not
//! live longer than was promised, its deadline is also kept on the steady clock, from the moment this process first
//! saw it; whichever clock reaches it first ends it. The wall clock goes on while the machine sleeps, the steady one
//! goes on when the wall clock is set back.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::store::Unfinished;
use super::{Timestamp, WorkflowId};

/// One moment as both clocks show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The clock on the wall, which all processes share and a person can set.
    pub wall: Timestamp,
    /// A clock that never jumps, of this process alone.
    pub steady: Instant,
}

/// The deadlines of the unfinished asks; as many as the store lets wait at most.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    known: HashMap<WorkflowId, WorkflowDeadline>,
    /// The wall clock when it was last looked at; it shows an earlier moment after it was set back.
    seen: Option<Timestamp>,
}

/// When one ask is over.
#[derive(Debug, Clone, Copy)]
struct WorkflowDeadline {
    wall: Timestamp,
    /// Where the end of time is further away than the clock counts, only the wall clock ends it.
    steady: Option<Instant>,
}

impl Deadlines {
    /// Takes over what the store says of the unfinished asks; what it says no more is forgotten.
    pub(super) fn learn(&mut self, unfinished: &[Unfinished], now: Moment) {
        let mut before = std::mem::take(&mut self.known);
        for Unfinished { id, expires_at, .. } in unfinished {
            let (id, wall) = (*id, *expires_at);
            let first = before.remove(&id).and_then(|deadline| deadline.steady);
            let steady = now.steady.checked_add(wall.since(now.wall));
            let steady = first.into_iter().chain(steady).min();
            self.known.insert(id, WorkflowDeadline { wall, steady });
        }
    }

    /// Returns what is over by the steady clock; what is over by the wall clock the store knows itself.
    pub(super) fn overdue(&self, now: Moment) -> Vec<WorkflowId> {
        let over = |deadline: &WorkflowDeadline| deadline.steady.is_some_and(|at| at <= now.steady);
        let known = self.known.iter();
        known
            .filter(|(_, deadline)| over(deadline))
            .map(|(id, _)| *id)
            .collect()
    }

    /// Tells whether a sweep would end anything, or must look because the wall clock was set back.
    pub(super) fn due(&mut self, now: Moment) -> bool {
        let set_back = self
            .seen
            .replace(now.wall)
            .is_some_and(|before| now.wall < before);
        set_back || self.next(now).is_some_and(|rest| rest.is_zero())
    }

    /// Returns how long it is until the next deadline, on the clock that reaches it first.
    pub(super) fn next(&self, now: Moment) -> Option<Duration> {
        let rest = |deadline: &WorkflowDeadline| {
            let by_steady = deadline.steady.map(|at| at.saturating_duration_since(now.steady));
            let by_wall = deadline.wall.since(now.wall);
            by_steady.map_or(by_wall, |by_steady| by_steady.min(by_wall))
        };
        self.known.values().map(rest).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::HeldArguments;
    use super::*;

    const FIVE_MINUTES: Duration = Duration::from_mins(5);
    const MINUTE: Duration = Duration::from_mins(1);
    const HOUR: Duration = Duration::from_hours(1);

    fn ask() -> WorkflowId {
        WorkflowId::new(uuid::Uuid::new_v4())
    }

    fn asks(asks: &[(WorkflowId, Timestamp)]) -> Vec<Unfinished> {
        let asks = asks.iter().map(|(id, expires_at)| Unfinished {
            id: *id,
            expires_at: *expires_at,
            arguments: HeldArguments::None,
        });
        asks.collect()
    }

    fn noon() -> Moment {
        Moment {
            wall: super::super::samples::NOON,
            steady: Instant::now(),
        }
    }

    fn later(now: Moment, by: Duration) -> Moment {
        Moment {
            wall: now.wall.plus(by),
            steady: now.steady + by,
        }
    }

    #[test]
    fn both_clocks_end_an_ask_and_the_first_one_counts() {
        let (mut deadlines, id, now) = (Deadlines::default(), ask(), noon());
        deadlines.learn(&asks(&[(id, now.wall.plus(FIVE_MINUTES))]), now);
        assert_eq!(deadlines.next(now), Some(FIVE_MINUTES));
        assert!(!deadlines.due(now));
        let end = later(now, FIVE_MINUTES);
        let (only_wall, only_steady) = (
            Moment {
                steady: now.steady,
                ..end
            },
            Moment {
                wall: now.wall,
                ..end
            },
        );
        assert!(deadlines.due(end) && deadlines.due(only_wall));
        assert_eq!(deadlines.overdue(only_wall), []);
        assert!(deadlines.due(only_steady));
        assert_eq!(deadlines.overdue(only_steady), [id]);
    }

    #[test]
    fn a_clock_that_was_set_back_asks_for_a_look_at_once_and_moves_no_deadline() {
        let (mut deadlines, id, now) = (Deadlines::default(), ask(), noon());
        let unfinished = asks(&[(id, now.wall.plus(FIVE_MINUTES))]);
        deadlines.learn(&unfinished, now);
        assert!(!deadlines.due(now));
        let mut back = later(now, MINUTE);
        back.wall = now.wall.minus(HOUR);
        assert!(deadlines.due(back));
        assert!(!deadlines.due(back), "one look is enough");
        deadlines.learn(&unfinished, back);
        assert_eq!(deadlines.next(back), Some(MINUTE * 4));
    }

    #[test]
    fn what_is_finished_is_forgotten_and_a_deadline_drawn_nearer_counts() {
        let (mut deadlines, id, now) = (Deadlines::default(), ask(), noon());
        deadlines.learn(&asks(&[(ask(), now.wall), (id, now.wall.plus(HOUR))]), now);
        deadlines.learn(&asks(&[(id, now.wall.plus(MINUTE))]), now);
        assert_eq!(deadlines.next(now), Some(MINUTE));
        deadlines.learn(&[], now);
        assert!(deadlines.next(now).is_none() && !deadlines.due(now));
    }

    #[test]
    fn the_end_of_time_is_left_to_the_wall_clock() {
        let (mut deadlines, now) = (Deadlines::default(), noon());
        deadlines.learn(&asks(&[(ask(), Timestamp::from_millis(i64::MAX))]), now);
        assert_eq!(deadlines.overdue(later(now, HOUR)), []);
    }
}
