//! The thread that owns the database: it runs jobs, sweeps at deadlines and wakes the waiting calls.
//!
//! It must never touch the async runtime. A failure here stays here: a sweep that fails is logged and tried again; a
//! look for answers that fails wakes every waiting call, which then reads the store itself and gets the error.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use tokio::sync::{oneshot, watch};

use super::deadlines::Deadlines;
use super::store::HeldArguments;
use super::{
    Clock, Moment, Place, State, Store, StoreChanges, Timestamp, Traces, Workflow, WorkflowError, WorkflowId,
    history_record,
};
use crate::history::History;

/// Who waits in this process, by workflow; a sender without receivers is a waiter that left.
pub(super) type Waiters = DashMap<WorkflowId, watch::Sender<Option<Workflow>>>;

/// One operation on the store, or on the reason why there is none.
pub(super) type Job = Box<dyn FnOnce(Result<&mut dyn Store, WorkflowError>, Timestamp) + Send>;

/// How often the keeper looks for answers from other processes while a call waits: an answer must reach a waiting
/// call within 200 ms, also on a busy machine, and a look where nothing changed only reads a counter.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// How often the keeper looks for changes while a surface shows what waits: a person sees a new ask within a quarter of a
/// second, the way through a server and a browser included.
const SHOW_EVERY: Duration = Duration::from_millis(50);

/// A sweep that failed is not urgent: no call runs because a row is not yet marked.
const SWEEP_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// Another process that reads the log is done within milliseconds.
const SHORTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The running thread: ends when `jobs` is dropped, and drops the other end of `ended` then.
pub(super) struct Thread {
    pub(super) jobs: mpsc::Sender<Job>,
    pub(super) ended: oneshot::Receiver<()>,
}

/// What the thread holds.
pub(super) struct Keeper {
    place: Place,
    clock: Clock,
    waiters: Arc<Waiters>,
    jobs: mpsc::Receiver<Job>,
    store: Option<Box<dyn Store>>,
    deadlines: Deadlines,
    /// When a sweep that failed, or a log that was in use, is tried again.
    again_at: Option<Instant>,
    log: Log,
    /// Whether an unfinished ask has arguments.
    held: HeldArguments,
    /// Tells the newest revision to those who show asks.
    surfaces: watch::Sender<u64>,
    /// Where it is recorded that an ask expired.
    history: Option<History>,
    /// Dropped with the thread, which is how its end is seen.
    _end: oneshot::Sender<()>,
}

/// What SQLite's log may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Log {
    /// Nothing that was erased.
    Clean,
    /// Arguments that were erased since.
    Erased,
}

/// Why the thread looks around.
#[derive(Clone, Copy)]
enum Occasion {
    /// A job ran, so this process may have changed something.
    Job,
    /// Time passed.
    Time,
}

/// Whether a call waits for an answer that another process may give.
#[derive(Clone, Copy)]
enum Attention {
    /// A call waits for an answer.
    Watching,
    /// A surface shows what waits.
    Showing,
    Idle,
}

impl Keeper {
    /// Starts the thread; the database is opened by its first job.
    pub(super) fn start(
        place: Place,
        clock: Clock,
        waiters: Arc<Waiters>,
        surfaces: watch::Sender<u64>,
        history: Option<History>,
    ) -> io::Result<Thread> {
        let (sender, jobs) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let keeper = Self {
            place,
            clock,
            waiters,
            jobs,
            store: None,
            deadlines: Deadlines::default(),
            again_at: None,
            log: Log::Clean,
            held: HeldArguments::None,
            surfaces,
            history,
            _end: end,
        };
        std::thread::Builder::new()
            .name("pml-workflows".to_owned())
            .spawn(move || keeper.keep())?;
        Ok(Thread { jobs: sender, ended })
    }

    fn keep(mut self) {
        loop {
            let occasion = match self.next_job() {
                Ok(job) => {
                    let now = (self.clock)();
                    // What is over by either clock is over for the job too.
                    self.sweep_if_due(now);
                    let clock = Arc::clone(&self.clock);
                    let store = self.open();
                    job(store, clock().wall);
                    Occasion::Job
                }
                Err(RecvTimeoutError::Timeout) => Occasion::Time,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            self.look_around(occasion);
        }
    }

    fn next_job(&self) -> Result<Job, RecvTimeoutError> {
        let attention = match &self.store {
            Some(_) if !self.waiters.is_empty() => Attention::Watching,
            Some(_) if self.surfaces.receiver_count() > 0 => Attention::Showing,
            _ => Attention::Idle,
        };
        let now = (self.clock)();
        let again = self.again_at.map(|at| at.saturating_duration_since(now.steady));
        match pause(attention, again.or_else(|| self.deadlines.next(now))) {
            Some(pause) => self.jobs.recv_timeout(pause),
            None => self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// Returns the store, opening it if there is none; what dead processes left behind is swept first.
    fn open(&mut self) -> Result<&mut dyn Store, WorkflowError> {
        if self.store.is_none() {
            let store = self.place.open()?;
            // Opening may wait for other processes, which go on asking meanwhile.
            let now = (self.clock)();
            // Most commands only look or answer: they do not wait for their turn to write what is no news.
            let needs_sweep = store.needs_sweep(now.wall)?;
            self.store = Some(store);
            if needs_sweep {
                self.sweep(now);
            }
        }
        match &mut self.store {
            Some(store) => Ok(&mut **store),
            None => Err(WorkflowError::Stopped {
                path: self.place.path().to_owned(),
            }),
        }
    }

    fn look_around(&mut self, occasion: Occasion) {
        self.waiters.retain(|_, moved| moved.receiver_count() > 0);
        let now = (self.clock)();
        let occasion = self.sweep_if_due(now).unwrap_or(occasion);
        if let Err(error) = self.notice_changes(occasion, now) {
            warn(&error, "cannot look for answers");
            self.waiters.clear();
        }
        self.shorten_log(now);
    }

    /// Empties the log once the store holds no arguments: it has what was erased with the last ones.
    fn shorten_log(&mut self, now: Moment) {
        let waits = self.again_at.is_some_and(|at| now.steady < at);
        let Some(store) = &self.store else { return };
        if self.log == Log::Clean || self.held == HeldArguments::Held || waits {
            return;
        }
        self.again_at = None;
        match store.erase_traces() {
            Ok(Traces::Erased) => self.log = Log::Clean,
            Ok(Traces::InUse) => self.again_at = now.steady.checked_add(SHORTEN_AGAIN_AFTER),
            Err(error) => {
                warn(&error, "cannot shorten the log");
                self.log = Log::Clean;
            }
        }
    }

    fn sweep_if_due(&mut self, now: Moment) -> Option<Occasion> {
        let waits = self.again_at.is_some_and(|at| now.steady < at);
        (self.deadlines.due(now) && !waits).then(|| self.sweep(now))
    }

    /// Sweeps; what changed by it counts as a job of this process.
    fn sweep(&mut self, now: Moment) -> Occasion {
        let overdue = self.deadlines.overdue(now);
        match self.store.as_mut().map(|store| store.sweep(now.wall, &overdue)) {
            Some(Ok(swept)) => {
                self.again_at = None;
                if let Some(history) = &self.history {
                    history.note_now(&history_record::swept(&swept));
                }
                if !swept.expired.is_empty() {
                    // They were live until now, also where this process has not known them.
                    self.log = Log::Erased;
                }
                Occasion::Job
            }
            Some(Err(error)) => {
                warn(&error, "cannot sweep; trying again later");
                self.again_at = now.steady.checked_add(SWEEP_AGAIN_AFTER);
                Occasion::Time
            }
            None => Occasion::Time,
        }
    }

    /// Wakes those whose workflow is no longer pending, and learns the deadlines.
    fn notice_changes(&mut self, occasion: Occasion, now: Moment) -> Result<(), WorkflowError> {
        let Some(store) = &mut self.store else {
            return Ok(());
        };
        let changed_elsewhere = store.changes()? == StoreChanges::ByOthers;
        if matches!(occasion, Occasion::Time) && !changed_elsewhere {
            return Ok(());
        }
        let waited_for: Vec<WorkflowId> = self.waiters.iter().map(|waiter| *waiter.key()).collect();
        for id in waited_for {
            let workflow = store.find(id);
            if matches!(&workflow, Ok(workflow) if workflow.state == State::Pending) {
                continue;
            }
            // Without a workflow to send, dropping the sender lets the waiters ask for themselves.
            if let (Some((_, moved)), Ok(workflow)) = (self.waiters.remove(&id), workflow) {
                moved.send_replace(Some(workflow));
            }
        }
        let unfinished = store.unfinished()?;
        if self.held == HeldArguments::Held {
            self.log = Log::Erased;
        }
        self.held = if unfinished.iter().any(|ask| ask.arguments == HeldArguments::Held) {
            HeldArguments::Held
        } else {
            HeldArguments::None
        };
        self.deadlines.learn(&unfinished, now);
        if self.surfaces.receiver_count() > 0 {
            let latest = store.latest_revision()?;
            // A look of a surface is a job as well: told without a change, it would look again for ever.
            self.surfaces
                .send_if_modified(|known| std::mem::replace(known, latest) != latest);
        }
        if changed_elsewhere {
            // What could not be swept before may be now.
            self.again_at = None;
        }
        Ok(())
    }
}

impl Drop for Keeper {
    /// Lets the waiters go however the thread ends; they ask again, which starts another.
    fn drop(&mut self) {
        self.waiters.clear();
    }
}

/// Returns how long the thread may sleep; nothing means until there is a job.
fn pause(attention: Attention, until_sweep: Option<Duration>) -> Option<Duration> {
    // A deadline that is already past still costs a moment, so that nothing here can spin.
    let until_sweep = until_sweep.map(|rest| rest.max(Duration::from_millis(1)));
    let until_look = match attention {
        Attention::Watching => Some(LOOK_EVERY),
        Attention::Showing => Some(SHOW_EVERY),
        Attention::Idle => None,
    };
    until_sweep.into_iter().chain(until_look).min()
}

fn warn(error: &WorkflowError, what: &str) {
    let error = crate::report::render_hinted(error);
    tracing::warn!(target: "pml::workflow", %error, "{what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_keeper_sleeps_until_there_is_something_to_do() {
        let after = |millis| Some(Duration::from_millis(millis));
        assert_eq!(pause(Attention::Idle, None), None);
        assert_eq!(pause(Attention::Idle, after(300_000)), after(300_000));
        assert_eq!(pause(Attention::Idle, after(0)), after(1));
        assert_eq!(pause(Attention::Watching, None), after(25));
        assert_eq!(pause(Attention::Showing, None), after(50));
        assert_eq!(pause(Attention::Watching, after(300_000)), after(25));
        assert_eq!(pause(Attention::Watching, after(20)), after(20));
    }
}
