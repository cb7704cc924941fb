//! When a dependency that died may be started again. Pure: the time and the chance are given.
//!
//! Nothing restarts by itself: the next call asks here. The wait doubles from 1 to 16 s over five tries; then the
//! dependency rests for five minutes, after which a single try is allowed at a time. Five minutes of running
//! forget every death.

use std::time::{Duration, Instant};

use crate::protocol::DependencyName;
use crate::report::Hint;

/// How often a dependency is started again before it rests.
pub const TRIES: u32 = 5;

/// The first wait; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// How long a dependency must run for its deaths to be forgotten, and rest when its tries are used up.
pub const STABLE: Duration = Duration::from_mins(5);

/// The deaths of one dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restart {
    /// Deaths since it was last stable.
    deaths: u32,
    /// When it was started, while it runs.
    started_at: Option<Instant>,
    /// Not to be started before this.
    held_until: Option<Instant>,
}

/// Whether a dependency may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartPermission {
    /// At once.
    Now,
    /// After waiting this long; the call waits.
    After(Duration),
    /// Not by this call: it died too often.
    GivenUp(GivenUp),
}

/// How often a dependency died and how long it rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenUp {
    /// Deaths since it was last stable.
    pub deaths: u32,
    /// How long until it may be tried again.
    pub again_in: Duration,
}

/// Chance that spreads the restarts of several pml processes: a fraction of a quarter of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Jitter(pub u8);

impl Jitter {
    fn of(self, wait: Duration) -> Duration {
        wait / 4 * u32::from(self.0) / u32::from(u8::MAX)
    }
}

impl Restart {
    /// Takes note of a start.
    pub fn started(&mut self, now: Instant) {
        self.started_at = Some(now);
        self.held_until = None;
    }

    /// Takes note of a death: an exit that pml did not ask for, or a start that failed.
    pub fn died(&mut self, now: Instant, jitter: Jitter) {
        let ran = self.started_at.take().map_or(Duration::ZERO, |started_at| {
            now.saturating_duration_since(started_at)
        });
        if ran >= STABLE {
            self.deaths = 0;
        }
        self.deaths = self.deaths.saturating_add(1);
        let wait = match self.deaths {
            deaths @ 1..=TRIES => FIRST_WAIT * 2_u32.pow(deaths - 1),
            _ => STABLE,
        };
        self.held_until = now.checked_add(wait + jitter.of(wait));
    }

    /// Takes note of a stop that was asked for: it is no death.
    pub fn stopped(&mut self, now: Instant) {
        let ran = self
            .started_at
            .take()
            .map(|started_at| now.saturating_duration_since(started_at));
        if ran.is_some_and(|ran| ran >= STABLE) {
            self.deaths = 0;
        }
    }

    /// Forgets every death: what was broken may have been mended, for example because its declaration changed.
    pub fn forget(&mut self) {
        self.deaths = 0;
        self.held_until = None;
    }

    /// Tells whether it may be started.
    #[must_use]
    pub fn may_start(&self, now: Instant) -> StartPermission {
        let wait = self
            .held_until
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        if wait.is_zero() {
            StartPermission::Now
        } else if self.deaths <= TRIES {
            StartPermission::After(wait)
        } else {
            StartPermission::GivenUp(GivenUp {
                deaths: self.deaths,
                again_in: wait,
            })
        }
    }
}

/// Says that a dependency died too often.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` died {} times and is not started again for {}",
    .given_up.deaths,
    rounded(.given_up.again_in)
)]
pub struct GivenUpError {
    /// The dependency.
    pub name: DependencyName,
    /// How often and how long.
    pub given_up: GivenUp,
}

impl Hint for GivenUpError {
    fn hint(&self) -> Option<String> {
        Some(format!(
            "mend the entry `{}` of `mcpServers` in .pml.json (a change is tried at once), or call again in {}",
            self.name.as_str(),
            rounded(self.given_up.again_in)
        ))
    }
}

/// Writes a wait as a person would, rounded up so that waiting that long is enough.
fn rounded(wait: Duration) -> String {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    match seconds {
        0..=99 => format!("{seconds} s"),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Starts and dies at once until `deaths` are reached; returns the time of the last death.
    fn crash(restart: &mut Restart, mut now: Instant, deaths: u32) -> Instant {
        for death in 0..deaths {
            if death > 0 {
                now = restart.held_until.unwrap();
            }
            restart.started(now);
            restart.died(now, Jitter(0));
        }
        now
    }

    #[test]
    fn the_first_start_waits_for_nothing() {
        assert_eq!(Restart::default().may_start(Instant::now()), StartPermission::Now);
    }

    #[test]
    fn the_wait_doubles_over_five_tries_and_then_it_rests() {
        let begin = Instant::now();
        let waits = [1, 2, 3, 4, 5, 6, 7].map(|deaths| {
            let mut restart = Restart::default();
            let died_at = crash(&mut restart, begin, deaths);
            restart.may_start(died_at)
        });
        let after = |seconds| StartPermission::After(SECOND * seconds);
        let given_up = |deaths| {
            StartPermission::GivenUp(GivenUp {
                deaths,
                again_in: STABLE,
            })
        };
        assert_eq!(
            waits,
            [
                after(1),
                after(2),
                after(4),
                after(8),
                after(16),
                given_up(6),
                given_up(7)
            ]
        );
    }

    #[test]
    fn a_wait_runs_out() {
        let mut restart = Restart::default();
        let died_at = crash(&mut restart, Instant::now(), 3);
        assert_eq!(
            [0, 1, 3, 4, 5].map(|seconds| restart.may_start(died_at + SECOND * seconds)),
            [
                StartPermission::After(SECOND * 4),
                StartPermission::After(SECOND * 3),
                StartPermission::After(SECOND),
                StartPermission::Now,
                StartPermission::Now
            ]
        );
    }

    #[test]
    fn after_its_rest_a_single_try_is_allowed() {
        let mut restart = Restart::default();
        let died_at = crash(&mut restart, Instant::now(), TRIES + 1);
        let rested_at = died_at + STABLE;
        assert_eq!(restart.may_start(rested_at), StartPermission::Now);
        restart.started(rested_at);
        restart.died(rested_at, Jitter(0));
        assert_eq!(
            restart.may_start(rested_at),
            StartPermission::GivenUp(GivenUp {
                deaths: TRIES + 2,
                again_in: STABLE
            })
        );
    }

    #[test]
    fn five_stable_minutes_forget_the_deaths() {
        let deaths_after = |ran: Duration| {
            let mut restart = Restart::default();
            let now = crash(&mut restart, Instant::now(), 4) + SECOND * 8;
            restart.started(now);
            restart.died(now + ran, Jitter(0));
            restart.may_start(now + ran)
        };
        assert_eq!(
            deaths_after(STABLE.saturating_sub(SECOND)),
            StartPermission::After(SECOND * 16)
        );
        assert_eq!(deaths_after(STABLE), StartPermission::After(SECOND));
    }

    #[test]
    fn a_stop_that_was_asked_for_is_no_death_and_mends_nothing() {
        let mut restart = Restart::default();
        let now = crash(&mut restart, Instant::now(), 2) + SECOND * 2;
        restart.started(now);
        restart.stopped(now + SECOND);
        assert_eq!(restart.may_start(now + SECOND), StartPermission::Now);
        restart.started(now + SECOND);
        restart.died(now + SECOND, Jitter(0));
        assert_eq!(
            restart.may_start(now + SECOND),
            StartPermission::After(SECOND * 4)
        );
    }

    #[test]
    fn what_was_mended_may_start_at_once() {
        let mut restart = Restart::default();
        let died_at = crash(&mut restart, Instant::now(), 9);
        restart.forget();
        assert_eq!(restart.may_start(died_at), StartPermission::Now);
    }

    #[test]
    fn the_refusal_says_what_to_do() {
        let error = GivenUpError {
            name: "serena".parse().unwrap(),
            given_up: GivenUp {
                deaths: 6,
                again_in: Duration::from_millis(299_001),
            },
        };
        assert_eq!(
            crate::report::render_hinted(&error),
            "`serena` died 6 times and is not started again for 5 min\n\n\
             hint: mend the entry `serena` of `mcpServers` in .pml.json (a change is tried at once), \
             or call again in 5 min"
        );
    }

    /// What can happen to a dependency, and how many milliseconds later.
    #[derive(Debug, Clone, Copy)]
    enum Happening {
        Call,
        Death,
        Stop,
    }

    fn happenings() -> impl Strategy<Value = Vec<(Happening, u64, u8)>> {
        let happening = prop_oneof![
            4 => Just(Happening::Call),
            3 => Just(Happening::Death),
            1 => Just(Happening::Stop),
        ];
        prop::collection::vec((happening, 0_u64..400_000, any::<u8>()), 0..80)
    }

    proptest! {
        #[test]
        fn whatever_happens_a_dependency_may_start_again_and_never_too_often(script in happenings()) {
            let begin = Instant::now();
            let mut now = begin;
            let mut restart = Restart::default();
            let mut running = false;
            let mut last_death = None;
            for (happening, later, jitter) in script {
                now += Duration::from_millis(later);
                match happening {
                    Happening::Call if !running => {
                        let wait = match restart.may_start(now) {
                            StartPermission::Now => Duration::ZERO,
                            StartPermission::After(wait) => {
                                prop_assert!(wait <= SECOND * 20);
                                wait
                            }
                            StartPermission::GivenUp(GivenUp { deaths, again_in }) => {
                                prop_assert!(deaths > TRIES);
                                prop_assert!(again_in <= STABLE + STABLE / 4);
                                again_in
                            }
                        };
                        now += wait;
                        prop_assert_eq!(restart.may_start(now), StartPermission::Now);
                        if let Some(died_at) = last_death {
                            prop_assert!(now.duration_since(died_at) >= FIRST_WAIT);
                        }
                        restart.started(now);
                        running = true;
                    }
                    Happening::Death if running => {
                        restart.died(now, Jitter(jitter));
                        prop_assert!(restart.may_start(now) != StartPermission::Now);
                        last_death = Some(now);
                        running = false;
                    }
                    Happening::Stop if running => {
                        restart.stopped(now);
                        running = false;
                    }
                    Happening::Call | Happening::Death | Happening::Stop => {}
                }
            }
        }
    }
}
