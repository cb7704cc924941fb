//! Watches in debug builds that nothing holds up the runtime thread; the integration tests read what it writes.
//!
//! Everything of `pml stdio` runs on one thread. A single poll that computes for long, waits for a lock or reads a slow
//! disk holds up every other call. The future that the runtime blocks on wants to be polled every few milliseconds; how
//! late that happens is how long one poll took. Time in which the thread could have run but had no processor is not
//! counted: on a busy machine that is the scheduler's doing.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;

use crate::config::Environment;

/// The variable that names the file to which stalls are written.
const VARIABLE: &str = "PML_WATCHDOG";

/// The longest that one poll may compute: a person does not notice it, and no client gives up for it.
const LIMIT: Duration = Duration::from_millis(50);

/// The longest that one poll may sleep. The start of a process sleeps until the child runs its program, for which the
/// child needs a processor: where six busy processes share a core that takes up to a few tenths of a second. A lock that
/// another process holds, or a disk that is slow, is waited for longer.
const BLOCKED_LIMIT: Duration = Duration::from_millis(500);

/// How long a tick is, in which the system counts what a thread computes.
const TICK: Duration = Duration::from_millis(10);

/// How often the thread is looked at; what it did between two looks is counted as one poll.
const BEAT: Duration = Duration::from_millis(5);

/// A watch over the thread that a runtime runs on; clones share it.
#[derive(Clone)]
pub(super) struct Watchdog(Arc<WatchedThread>);

struct WatchedThread {
    /// Where stalls are written.
    log: PathBuf,
    thread: Mutex<ThreadTime>,
}

impl Watchdog {
    /// Returns the watchdog that the environment asks for, over the thread that calls this.
    pub(super) fn wanted_by(environment: &Environment) -> Option<Self> {
        let log = environment.variable(VARIABLE)?.into();
        let thread = Mutex::new(ThreadTime::start());
        Some(Self(Arc::new(WatchedThread { log, thread })))
    }

    /// Has the runtime tell when it begins and ends to wait for events, which is no stall, and look at its timers after
    /// every poll; a beat would else be late by as many polls as come between.
    pub(super) fn prepare(&self, builder: &mut Builder) {
        let (parked, unparked) = (self.clone(), self.clone());
        builder
            .event_interval(1)
            .on_thread_park(move || parked.judge())
            .on_thread_unpark(move || {
                unparked.lap();
            });
    }

    /// Runs the future that the runtime blocks on, and writes down every stall until it ends.
    pub(super) async fn watch<T>(self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            // The beat comes first: work that uses up the budget of its poll would leave it none to be noticed with.
            let done = tokio::select! {
                biased;
                () = tokio::time::sleep(BEAT) => None,
                done = &mut work => Some(done),
            };
            self.judge();
            if let Some(done) = done {
                return done;
            }
        }
    }

    /// Ends a lap, and writes it down if it was too long.
    fn judge(&self) {
        let ThreadInterval { ran, blocked } = self.lap();
        if ran <= LIMIT && blocked <= BLOCKED_LIMIT {
            return;
        }
        let file = File::options().create(true).append(true).open(&self.0.log);
        let line = format!(
            "the runtime thread stalled: it ran for {} ms and was blocked for {} ms\n",
            ran.as_millis(),
            blocked.as_millis()
        );
        // What cannot be written is missed by a test and by nothing else.
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }

    fn lap(&self) -> ThreadInterval {
        self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).lap()
    }
}

/// What a thread did for a while, without what it waited for a processor.
#[derive(Clone, Copy)]
struct ThreadInterval {
    /// It computed, without what the system did for it.
    ran: Duration,
    /// It slept: it waited for a lock, for the disk or for a process.
    blocked: Duration,
}

/// The time that passes for one thread.
struct ThreadTime {
    at: Instant,
    schedule: Schedule,
    /// What the system tells of this thread, where it does: `stat` and `schedstat` below `/proc/thread-self`.
    files: Option<[File; 2]>,
}

/// What the system tells of a thread.
#[derive(Clone, Copy, Default)]
struct Schedule {
    /// It computed, without what the system did for it.
    ran: Duration,
    /// It had a processor, for itself or for the system.
    on_processor: Duration,
    /// It could have run, but had no processor.
    queued: Duration,
}

impl ThreadTime {
    fn start() -> Self {
        let mut time = Self {
            at: Instant::now(),
            schedule: Schedule::default(),
            files: File::open("/proc/thread-self/stat")
                .and_then(|stat| Ok([stat, File::open("/proc/thread-self/schedstat")?]))
                .ok(),
        };
        time.schedule = time.read();
        time
    }

    /// Returns what the thread did since the last lap.
    fn lap(&mut self) -> ThreadInterval {
        let (now, schedule) = (Instant::now(), self.read());
        let passed = now.duration_since(self.at);
        let queued = schedule.queued.saturating_sub(self.schedule.queued);
        let on_processor = schedule.on_processor.saturating_sub(self.schedule.on_processor);
        // The system splits all that a thread ever ran by the ratio of a few ticks: one tick more may move what it did
        // long ago from the system's share to its own.
        let ran = schedule.ran.saturating_sub(self.schedule.ran).min(on_processor);
        (self.at, self.schedule) = (now, schedule);
        let blocked = passed.saturating_sub(queued).saturating_sub(on_processor);
        ThreadInterval { ran, blocked }
    }

    fn read(&self) -> Schedule {
        let Some([stat, schedule]) = &self.files else {
            return Schedule::default();
        };
        let word = |text: &str, place: usize| -> u64 {
            let word = text.split_whitespace().nth(place);
            word.and_then(|word| word.parse().ok()).unwrap_or_default()
        };
        // The name of the thread may hold blanks; it ends at the last parenthesis, and `utime` is the twelfth behind it.
        let stat = text_of(stat);
        let ticks = stat.rsplit_once(')').map_or(0, |(_, rest)| word(rest, 11));
        let schedule = text_of(schedule);
        Schedule {
            ran: TICK * u32::try_from(ticks).unwrap_or(u32::MAX),
            on_processor: Duration::from_nanos(word(&schedule, 0)),
            queued: Duration::from_nanos(word(&schedule, 1)),
        }
    }
}

fn text_of(file: &File) -> String {
    let mut text = [0; 1024];
    let length = file.read_at(&mut text, 0).unwrap_or_default();
    String::from_utf8_lossy(&text[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs work on a watched runtime and returns what was written down.
    fn watched(work: impl Future<Output = ()>) -> String {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("stalls");
        let environment = Environment::new([(VARIABLE, &log)], "/");
        let watchdog = Watchdog::wanted_by(&environment).unwrap();
        let mut builder = Builder::new_current_thread();
        watchdog.prepare(builder.enable_all());
        builder.build().unwrap().block_on(watchdog.watch(work));
        std::fs::read_to_string(log).unwrap_or_default()
    }

    fn wait() {
        std::thread::sleep(BLOCKED_LIMIT * 2);
    }

    /// Keeps the thread busy for so much of its own time.
    fn compute(limit: Duration) {
        let time = ThreadTime::start();
        let begin = time.read().on_processor;
        while time.read().on_processor < begin + limit {
            // Far more work than the look at the time, which the system does.
            std::hint::black_box((0..20_000_u32).fold(0, |sum, number| std::hint::black_box(sum ^ number)));
        }
    }

    #[test]
    fn a_poll_that_waits_or_computes_for_long_is_written_down() {
        let stalls: [(&str, fn()); 2] = [("waits", wait), ("computes", || compute(LIMIT * 3))];
        for (what, stall) in stalls {
            let written = watched(async { stall() });
            assert!(written.contains("stalled"), "it {what} in the main future");
            let written = watched(async {
                // Other work is queued before it and behind it.
                let tasks = (0..100).map(|number| {
                    tokio::spawn(async move {
                        if number == 50 {
                            stall();
                        }
                    })
                });
                for task in tasks.collect::<Vec<_>>() {
                    task.await.unwrap();
                }
            });
            assert!(written.contains("stalled"), "it {what} in a task");
        }
    }

    #[test]
    fn much_work_in_short_polls_is_no_stall() {
        let written = watched(async {
            let tasks = (0..40).map(|_| {
                tokio::spawn(async move {
                    for _ in 0..3 {
                        compute(Duration::from_millis(2));
                        tokio::task::yield_now().await;
                    }
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
            tokio::time::sleep(LIMIT * 2).await;
        });
        assert_eq!(written, "");
    }
}
