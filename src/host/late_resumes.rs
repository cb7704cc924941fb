//! Resumes runs whose answer came while no process drove them; the work of `pml serve`.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::driver::drive;
use super::error::RunError;
use super::hosted_run::{Beginning, Control, HostedRun};
use super::hosting::{Hosting, left_sessions};
use super::record::{RunId, RunRecord, RunState};
use super::resumption::Resumption;
use super::run_lines::run_lines;
use crate::config::LateAnswers;
use crate::proxy::{Desk, Refusal, Urgency, now};
use crate::report;

/// How often runs are looked at although no ask changed: a process that drove one may have been killed after its answer.
const LOOK: Duration = Duration::from_secs(5);

/// Why a run is over that was never answered.
const UNANSWERED: &str = "nobody answered in time what it asked";

/// Gives a run what its programs need before its agent is started; what it returns goes with the run. It blocks.
pub type Equipment = Arc<dyn Fn(&mut HostedRun) -> Box<dyn Send> + Send + Sync>;

/// Resumes runs until it is told to end; then what it drives is parked where it can be.
pub struct LateResumes {
    hosting: Hosting,
    desk: Desk,
    equipment: Equipment,
    /// The runs that this process drives.
    driven: Arc<Mutex<HashSet<RunId>>>,
    /// The lost runs without asks that were looked through.
    seen: Mutex<HashSet<RunId>>,
    tasks: TaskTracker,
    ending: CancellationToken,
}

impl LateResumes {
    /// Names what is watched; looks at nothing yet.
    #[must_use]
    pub fn new(hosting: Hosting, desk: Desk, equipment: Equipment, ending: CancellationToken) -> Self {
        Self {
            hosting,
            desk,
            equipment,
            driven: Arc::default(),
            seen: Mutex::default(),
            tasks: TaskTracker::new(),
            ending,
        }
    }

    /// Looks after runs until the end.
    pub async fn run(self) -> Result<(), Refusal> {
        let mut revisions = self.desk.revisions().await?;
        loop {
            revisions.borrow_and_update();
            self.look().await;
            tokio::select! {
                changed = revisions.changed() => if changed.is_err() { break },
                () = tokio::time::sleep(LOOK) => {}
                () = self.ending.cancelled() => break,
            }
        }
        self.tasks.close();
        self.tasks.wait().await;
        Ok(())
    }

    async fn look(&self) {
        let runs = self.hosting.runs().clone();
        let listed = tokio::task::spawn_blocking(move || runs.list())
            .await
            .unwrap_or_default();
        let is_kept = |id: &RunId| listed.iter().any(|run| run.id == *id);
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(is_kept);
        self.adopt_sessions(&listed).await;
        let waits = |run: &RunRecord| matches!(run.state, RunState::Parked { .. } | RunState::Lost);
        for mut record in listed.into_iter().filter(waits) {
            if self.lock().contains(&record.id) {
                continue;
            }
            if record.asks.is_empty() && self.first_seen(&record.id) {
                self.adopt(&mut record).await;
            }
            match self.hosting.resumption(&self.desk, &record).await {
                Resumption::Goes(_) if has_rested(&record) => self.resume(record.id).await,
                Resumption::InVain => self.note(record.id, Resumption::in_vain()).await,
                // Without an answer the agent would be woken for nothing, and cost something.
                Resumption::Expired => {
                    let hosting = self.hosting.clone();
                    let ended = tokio::task::spawn_blocking(move || hosting.give_up(&record.id, UNANSWERED));
                    if let Ok(Err(error)) = ended.await {
                        tracing::debug!("{}", report::render_hinted(&error));
                    }
                }
                Resumption::Goes(_) | Resumption::Waits | Resumption::Not => {}
            }
        }
    }

    /// Makes runs of sessions that are none and whose questions were answered since, where the user wants that.
    async fn adopt_sessions(&self, runs: &[RunRecord]) {
        let hosting = self.hosting.clone();
        let wanted = tokio::task::spawn_blocking(move || hosting.late_answers()).await;
        if !matches!(wanted, Ok(LateAnswers::Resume)) {
            return;
        }
        let kept = self.desk.recent(usize::MAX).await.unwrap_or_default();
        for left in left_sessions(&kept, runs) {
            if let Err(error) = self.hosting.adopt_session(&self.desk, left).await {
                tracing::debug!("{}", report::render_hinted(&error));
            }
        }
    }

    /// Tells whether a run without asks is looked at for the first time since it was lost; looking at all of its asks costs a
    /// read of the whole store.
    fn first_seen(&self, id: &RunId) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(id.clone())
    }

    /// Adds to a run what it asked when its host was killed.
    async fn adopt(&self, record: &mut RunRecord) {
        self.hosting.adopt_asks(&self.desk, record).await;
        if record.asks.is_empty() {
            return;
        }
        let (hosting, id, asks) = (self.hosting.clone(), record.id.clone(), record.asks.clone());
        let kept = tokio::task::spawn_blocking(move || hosting.keep_asks(&id, &asks)).await;
        if let Ok(Err(error)) = kept {
            tracing::debug!("{}", report::render_hinted(&error));
        }
    }

    /// Writes down why a run is not resumed, for those who look at their runs.
    async fn note(&self, id: RunId, trouble: String) {
        let hosting = self.hosting.clone();
        let _ = tokio::task::spawn_blocking(move || hosting.note_trouble(&id, &trouble)).await;
    }

    async fn resume(&self, id: RunId) {
        let (hosting, wanted) = (self.hosting.clone(), id.clone());
        let taken = tokio::task::spawn_blocking(move || hosting.take_over(&wanted)).await;
        let mut run = match taken {
            Ok(Ok(run)) => run,
            // Another process is faster.
            Ok(Err(RunError::Driven { .. })) | Err(_) => return,
            // The next look tries again.
            Ok(Err(error)) => {
                let trouble = report::render_hinted(&error);
                tracing::debug!("run {id} cannot be resumed: {trouble}");
                self.note(id, trouble).await;
                return;
            }
        };
        // What was read before the right to drive it was taken may be old.
        let Resumption::Goes(beginning) = self.hosting.resumption(&self.desk, &run.record).await else {
            return;
        };
        let equipment = Arc::clone(&self.equipment);
        let equipping = tokio::task::spawn_blocking(move || {
            let equipped = equipment(&mut run);
            (run, equipped)
        });
        let Ok((run, equipped)) = equipping.await else {
            return;
        };
        tracing::info!("run {id} goes on after an answer");
        self.lock().insert(id.clone());
        // It may be lost once more.
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id);
        let (driven, ending, hosting) = (
            Arc::clone(&self.driven),
            self.ending.clone(),
            self.hosting.clone(),
        );
        self.tasks.spawn(async move {
            if let Err(error) = follow(run, beginning, ending).await {
                let trouble = report::render_hinted(&error);
                tracing::warn!("run {id} ended: {trouble}");
                let (hosting, id) = (hosting, id.clone());
                let noted = tokio::task::spawn_blocking(move || hosting.note_trouble(&id, &trouble));
                let _ = noted.await;
            }
            let _ = tokio::task::spawn_blocking(move || drop(equipped)).await;
            driven.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<RunId>> {
        self.driven.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether a run that was resumed in vain may be tried again.
fn has_rested(record: &RunRecord) -> bool {
    let since = now().millis().saturating_sub(record.changed_at);
    u128::try_from(since).is_ok_and(|since| since >= record.rest().as_millis())
}

/// Drives a run that nothing shows; its log does.
async fn follow(run: HostedRun, beginning: Beginning, ending: CancellationToken) -> Result<(), RunError> {
    let proxy = run.proxy.clone();
    let (controls, received) = mpsc::channel(1);
    let (surface, mut lines) = run_lines();
    let driving = drive(run, beginning, received, surface);
    let unseen = async {
        let mut told = false;
        loop {
            tokio::select! {
                line = lines.recv() => if line.is_none() { return },
                () = ending.cancelled(), if !told => {
                    told = true;
                    let _ = controls.send(Control::HostEnds).await;
                }
            }
        }
    };
    let (end, ()) = tokio::join!(driving, unseen);
    proxy.close(Urgency::Gentle).await;
    end.map(drop)
}
