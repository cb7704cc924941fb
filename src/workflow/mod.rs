//! The state machine of a suspended call, and its store.
//!
//! [`Workflows`] is the async front: cheap to clone, free of side effects until its first use, and failing closed
//! when the database cannot be opened. It must not know permissions or the loader: what is suspended is data.
//!
//! The non-obvious thing: one thread owns the database (SQLite blocks), and that thread also sweeps and watches
//! for answers from other processes. It sleeps until the next deadline (on two clocks: see `deadlines`), and looks for
//! answers every 25 ms only while a call waits for one; an idle pml does not wake up.

mod approvals;
mod asking_client;
mod capacity;
mod deadlines;
mod deliveries;
mod delivery;
mod digests;
mod error;
mod history_record;
mod identity;
mod keeper;
mod last_check;
mod lifecycle;
mod lifetime;
mod machine;
mod place;
mod provenance;
mod record;
mod sqlite;
mod store;
mod summary;

pub use crate::protocol::continuation::Scope;
pub use approvals::{Approvals, ApprovedLaunch, FoundContent};
pub use asking_client::{AskingClient, ProcessName};
pub use capacity::Cap;
pub use deadlines::Moment;
pub use delivery::{
    ChannelReport, ChannelState, Delivery, DeliveryKey, DeliveryState, ShownStanding, kept_error,
};
pub use error::{DatabaseFault, WorkflowError};
pub use identity::{Asker, Code, NotACode, Timestamp, WorkflowId};
pub use last_check::LastCheck;
pub use lifetime::Lifetime;
pub use machine::{Answer, Event, Phase, State, TransitionError, transition};
pub use place::Place;
pub use provenance::{NoSuchRoad, Provenance, Road};
pub use record::{
    Arguments, Ask, AskAttendance, CreationReport, NewWorkflow, Origin, SuspendedCall, Suspension,
    SweepReport, ToolExpectation, UseReach, Workflow,
};
pub use store::{ChangedWorkflows, RecordedAnswer, Store, StoreChanges, Traces, is_left_by_its_owner};

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};

use crate::history::{History, Record};
use crate::protocol::{Digest, LaunchApproval};
use keeper::{Job, Keeper, Thread, Waiters};

/// Tells the time on both clocks; given to [`Workflows::new`], so that tests own it.
pub type Clock = Arc<dyn Fn() -> Moment + Send + Sync>;

/// The workflows of the user, as the rest of pml uses them.
#[derive(Clone)]
pub struct Workflows {
    shared: Arc<Shared>,
}

struct Shared {
    place: Place,
    clock: Clock,
    /// Who waits in this process for a state to leave `Pending`.
    waiters: Arc<Waiters>,
    /// Tells the newest revision to those who show asks.
    surfaces: watch::Sender<u64>,
    /// The approvals as they were read last.
    approvals: Mutex<Option<Arc<Approvals>>>,
    /// The thread that owns the database; started by the first use.
    thread: Mutex<Option<Thread>>,
    /// Where asks, answers and lapses are recorded.
    history: Option<History>,
}

impl std::fmt::Debug for Workflows {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Workflows")
            .field("place", &self.shared.place)
            .finish_non_exhaustive()
    }
}

impl Workflows {
    /// Describes where workflows are kept; touches nothing yet.
    #[must_use]
    pub fn new(place: Place, clock: Clock) -> Self {
        Self::open(place, clock, None)
    }

    /// Describes where workflows are kept, and where asks, answers and lapses are recorded as well; touches nothing yet.
    #[must_use]
    pub fn with_history(place: Place, clock: Clock, history: History) -> Self {
        Self::open(place, clock, Some(history))
    }

    fn open(place: Place, clock: Clock, history: Option<History>) -> Self {
        let shared = Shared {
            place,
            clock,
            waiters: Arc::default(),
            surfaces: watch::Sender::new(0),
            approvals: Mutex::default(),
            thread: Mutex::new(None),
            history,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Suspends a call, or returns the workflow that asks or has answered the very same; see [`Store::create`].
    pub async fn create(&self, new: NewWorkflow) -> Result<Suspension, WorkflowError> {
        let CreationReport { suspension, expired } =
            self.run(move |store, now| store.create(new, now)).await?;
        self.note(expired.as_ref().and_then(history_record::lapsed)).await;
        if let Suspension::New(workflow) = &suspension {
            self.note(Some(history_record::asked(workflow))).await;
        }
        Ok(suspension)
    }

    /// Moves a workflow by one event.
    ///
    /// Await a `Take` to its end: a caller that leaves early may have taken a call that never runs.
    pub async fn apply(&self, id: WorkflowId, event: Event) -> Result<Workflow, WorkflowError> {
        let moved = self.run(move |store, now| store.apply(id, event, now)).await?;
        self.note(history_record::lapsed(&moved)).await;
        Ok(moved)
    }

    /// Answers a workflow and, if that is an approval, takes its call, all at once; see [`Store::answer_and_take`].
    ///
    /// The call may run exactly if this returns a workflow in the state `Taken`. Await it to its end.
    pub async fn answer_and_take(
        &self,
        id: WorkflowId,
        expected: ToolExpectation,
        given: RecordedAnswer,
    ) -> Result<Workflow, WorkflowError> {
        let taken = self
            .run(move |store, now| store.answer_and_take(id, &expected, given, now))
            .await?;
        // An answer that was there before was recorded by whoever brought it.
        if history_record::is_new(&taken) {
            self.note(history_record::answered(&taken)).await;
        }
        Ok(taken)
    }

    /// Records an answer and what it approves, both or neither.
    pub async fn answer(&self, id: WorkflowId, given: RecordedAnswer) -> Result<Workflow, WorkflowError> {
        let answered = self.run(move |store, now| store.answer(id, given, now)).await?;
        self.note(history_record::answered(&answered)).await;
        Ok(answered)
    }

    fn note(&self, record: Option<Record>) -> impl Future<Output = ()> + Send + use<'_> {
        let noted = self.shared.history.as_ref().zip(record);
        let noted = noted.map(|(history, record)| history.note(record));
        async move {
            if let Some(noted) = noted {
                noted.await;
            }
        }
    }

    /// Returns the approvals if none changed since they were read; costs a look at one file.
    #[must_use]
    pub fn known_approvals(&self) -> Option<Arc<Approvals>> {
        let place = &self.shared.place;
        let mut known = self.known();
        if let Some(approvals) = &*known
            && approvals.are_current(place)
        {
            return Some(Arc::clone(approvals));
        }
        let none = Arc::new(place.without_approvals()?);
        *known = Some(Arc::clone(&none));
        Some(none)
    }

    /// Returns the approvals as they are now; reads them again if this or another process changed one.
    pub async fn approvals(&self) -> Result<Arc<Approvals>, WorkflowError> {
        if let Some(known) = self.known_approvals() {
            return Ok(known);
        }
        let approvals = Arc::new(self.run(|store, _| store.approvals()).await?);
        *self.known() = Some(Arc::clone(&approvals));
        Ok(approvals)
    }

    /// Completes an approval that still stands, and returns what it is then; `None` if it was taken back meanwhile.
    pub async fn complete_approval(
        &self,
        launch: Digest,
        found: FoundContent,
    ) -> Result<Option<LaunchApproval>, WorkflowError> {
        self.run(move |store, _| store.complete_approval(&launch, &found))
            .await
    }

    /// Returns the file that changes whenever an approval does; `None` where no other process can change one.
    #[must_use]
    pub fn approvals_mark(&self) -> Option<PathBuf> {
        self.shared.place.approvals_mark()
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<Approvals>>> {
        self.shared
            .approvals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note that no call waits for the answer to a workflow any more.
    pub async fn leave_unattended(&self, id: WorkflowId) -> Result<(), WorkflowError> {
        self.run(move |store, _| store.leave_unattended(id)).await
    }

    /// Erases what the store may still hold of erased arguments; see [`Store::erase_traces`].
    pub async fn erase_traces(&self) -> Result<Traces, WorkflowError> {
        self.run(|store, _| store.erase_traces()).await
    }

    /// Finds a workflow by its id.
    pub async fn find(&self, id: WorkflowId) -> Result<Workflow, WorkflowError> {
        self.run(move |store, _| store.find(id)).await
    }

    /// Finds the one workflow a person means by a code or by the beginning of an id.
    pub async fn find_by_code_or_prefix(&self, text: &str) -> Result<Workflow, WorkflowError> {
        let text = text.to_owned();
        self.run(move |store, _| store.find_by_code_or_prefix(&text))
            .await
    }

    /// Lists what waits for an answer, the oldest first.
    pub async fn pending(&self) -> Result<Vec<Workflow>, WorkflowError> {
        self.run(|store, now| store.pending(now)).await
    }

    /// Lists every workflow that is still kept, the newest first.
    pub async fn recent(&self, limit: usize) -> Result<Vec<Workflow>, WorkflowError> {
        self.run(move |store, _| store.recent(limit)).await
    }

    /// Lists the workflows that changed after a revision; see [`Store::changed_since`].
    pub async fn changed_since(&self, revision: u64) -> Result<ChangedWorkflows, WorkflowError> {
        self.run(move |store, _| store.changed_since(revision)).await
    }

    /// Returns the revision of the newest change of any workflow.
    pub async fn latest_revision(&self) -> Result<u64, WorkflowError> {
        self.run(|store, _| store.latest_revision()).await
    }

    /// Returns the newest revision, and tells each newer one for as long as the receiver is kept.
    pub async fn revisions(&self) -> Result<watch::Receiver<u64>, WorkflowError> {
        // Subscribed before the look, so that no change falls between the two.
        let receiver = self.shared.surfaces.subscribe();
        let latest = self.latest_revision().await?;
        self.shared.surfaces.send_if_modified(|known| {
            let newer = latest > *known;
            *known = latest.max(*known);
            newer
        });
        Ok(receiver)
    }

    /// Waits until this or another process has moved a workflow out of `Pending`.
    pub async fn wait(&self, id: WorkflowId) -> Result<Workflow, WorkflowError> {
        loop {
            // Subscribed before the first look, so that no answer falls between the two.
            let mut moved = self
                .shared
                .waiters
                .entry(id)
                .or_insert_with(|| watch::Sender::new(None))
                .subscribe();
            let workflow = self.find(id).await?;
            if workflow.state != State::Pending {
                return Ok(workflow);
            }
            let seen = moved.wait_for(Option::is_some).await.map(|seen| seen.clone());
            if let Ok(Some(workflow)) = seen {
                return Ok(workflow);
            }
            // The keeper let go of the waiters because it could not look: ask again to learn why.
        }
    }

    /// Lets the thread finish what it was given and close the database; a later use opens it again.
    pub async fn close(&self) {
        let thread = self
            .shared
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(Thread { jobs, ended }) = thread {
            drop(jobs);
            // The thread never sends: its end drops the sender.
            let _ = ended.await;
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut dyn Store, Timestamp) -> Result<T, WorkflowError> + Send + 'static,
    ) -> Result<T, WorkflowError> {
        let (reply, outcome) = oneshot::channel();
        self.send(Box::new(move |store, now| {
            // The caller may have been cancelled; the result is in the database all the same.
            let _ = reply.send(store.and_then(|store| operation(store, now)));
        }))?;
        outcome.await.unwrap_or_else(|_| Err(self.stopped()))
    }

    fn send(&self, job: Job) -> Result<(), WorkflowError> {
        let mut slot = self.shared.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = match slot.take() {
            Some(thread) => thread,
            None => self.start()?,
        };
        // A thread that is gone stays out of the slot, so that the next use starts another.
        thread.jobs.send(job).map_err(|_| self.stopped())?;
        *slot = Some(thread);
        Ok(())
    }

    fn start(&self) -> Result<Thread, WorkflowError> {
        let Shared {
            place,
            clock,
            waiters,
            surfaces,
            history,
            ..
        } = &*self.shared;
        Keeper::start(
            place.clone(),
            Arc::clone(clock),
            Arc::clone(waiters),
            surfaces.clone(),
            history.clone(),
        )
        .map_err(|source| WorkflowError::Thread {
            path: place.path().to_owned(),
            source,
        })
    }

    /// Says that the store of this process does not go on.
    #[must_use]
    pub fn stopped(&self) -> WorkflowError {
        WorkflowError::Stopped {
            path: self.shared.place.path().to_owned(),
        }
    }
}

impl Place {
    /// Opens the store, creating it and bringing it up to date where needed.
    pub fn open(&self) -> Result<Box<dyn Store>, WorkflowError> {
        Ok(Box::new(sqlite::SqliteStore::open(self.clone())?))
    }
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
