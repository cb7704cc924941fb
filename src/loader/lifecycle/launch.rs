//! Opens a server: its process or connection, its handshake in one of the two eras, the lists it offers.
//!
//! The non-obvious thing: a server that was spoken to in one era may refuse the other for the rest of its life, or
//! end. So a second try begins with a new process, but for `initialize`, whose refusal binds no server.

use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::LoadError;
use super::running_server::{ProcessHandle, Started};
use super::transport::{ServerTransport, end_of, open_transport};
use crate::config::Environment;
use crate::loader::catalog::Known;
use crate::loader::install::Installed;
use crate::loader::plan::Plan;
use crate::loader::process::Stderr;
use crate::loader::session::{
    Client, Declared, Ended, HandshakeError, IntroducedSession, Session, Unasked, introduce,
};
use crate::protocol::{Era, ListChanges, ListKind};

/// A server that calls its list changed whenever it is listed would otherwise be asked without end.
const SETTLING: Duration = Duration::from_millis(50);

/// How long a request of a server that is being opened is kept for the call it is opened for. Most servers go on
/// meanwhile and are ready by then; one that waits for the answer would otherwise never be.
const KEEPING: Duration = Duration::from_secs(1);

/// Told of each list that was learned again: its kind, what is known now, what was known before.
type OnChange = Box<dyn Fn(ListKind, Arc<Known>, Arc<Known>) -> ChangeNoted + Send + Sync>;

/// Resolves once a change was taken note of.
type ChangeNoted = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One opening.
pub(super) struct LaunchRequest<'a> {
    pub(super) plan: &'a Arc<Plan>,
    pub(super) installed: Option<Installed>,
    pub(super) line_limit: usize,
    pub(super) start_timeout: Duration,
    pub(super) environment: &'a Environment,
    /// Ends it at once, also while it is not ready yet.
    pub(super) at_once: &'a CancellationToken,
    /// The client that it talks to, if there is one.
    pub(super) client: Option<Weak<dyn Client>>,
    pub(super) tasks: &'a TaskTracker,
    /// The era in which it was opened last; `None` where it never was.
    pub(super) remembered: Option<Era>,
    /// What it is told of the client.
    pub(super) declared: Declared,
    /// Called when the dependency has said that a list changed, and the list was learned again.
    pub(super) on_change: OnChange,
}

/// A process that was started, and the conversation with it; closed when this is dropped.
struct OpenServer {
    session: Session,
    closing: CloseOnDrop,
    process: ProcessHandle,
    stderr: Stderr,
    changes: watch::Receiver<ListChanges>,
}

/// When a dependency must be ready.
#[derive(Clone, Copy)]
struct ReadyBy {
    at: Instant,
    after: Duration,
}

/// Starts the process, opens the conversation and learns what is offered.
pub(super) async fn open(opening: LaunchRequest<'_>) -> Result<Started, LoadError> {
    let deadline = ReadyBy {
        at: Instant::now() + opening.start_timeout,
        after: opening.start_timeout,
    };
    let (live, introduced, mut known) = introduced(&opening, deadline).await?;
    // Before the lists are learned: what changes meanwhile is heard.
    if let Some(capabilities) = &known.capabilities {
        introduced.follow_lists(capabilities);
    }
    live.ready(deadline, introduced.learn(&mut known)).await?;
    let LaunchRequest {
        installed,
        tasks,
        on_change,
        ..
    } = opening;
    let (resolved, notes) = installed
        .map(|installed| (Box::new(installed.resolved), installed.notes))
        .unzip();
    known.version = resolved.as_ref().map(|resolved| resolved.version.clone());
    known.integrity = resolved.as_ref().and_then(|resolved| resolved.integrity.clone());
    live.closing.disarm();
    let started = Started {
        session: live.session,
        resolved,
        notes: Arc::new(Mutex::new(notes.unwrap_or_default())),
        introduced,
        known: Arc::new(Mutex::new(Arc::new(known))),
        changes: live.changes.clone(),
        learned: Arc::default(),
        process: Arc::new(live.process),
    };
    follow_changes(live.changes, started.clone(), on_change, tasks);
    Ok(started)
}

/// Finds the era that a dependency speaks: the declared or remembered one first, `initialize` where none is.
async fn introduced(
    opening: &LaunchRequest<'_>,
    deadline: ReadyBy,
) -> Result<(OpenServer, IntroducedSession, Known), LoadError> {
    let first = opening.remembered.unwrap_or(Era::Legacy);
    let live = spawn(opening)?;
    let failed = match live.introduced(first, opening, deadline).await {
        Ok((introduced, known)) => return Ok((live, introduced, known)),
        Err(failed) => failed,
    };
    let refused = match &failed {
        LoadError::Handshake(_) => true,
        // What died in the era that worked before, died for another reason.
        LoadError::Ended(_) if opening.remembered != Some(Era::Legacy) => false,
        _ => return Err(failed),
    };
    if refused && first == Era::Legacy {
        match live.introduced(Era::Modern, opening, deadline).await {
            Ok((introduced, known)) => return Ok((live, introduced, known)),
            Err(LoadError::Ended(_)) => {}
            Err(_also_refused) => return Err(failed),
        }
    }
    live.leave().await;
    let live = spawn(opening)?;
    let second = match first {
        Era::Legacy => Era::Modern,
        Era::Modern => Era::Legacy,
    };
    // The first era is the one a person expects: what went wrong there is what they can mend.
    match live.introduced(second, opening, deadline).await {
        Ok((introduced, known)) => Ok((live, introduced, known)),
        Err(_also_failed) => Err(failed),
    }
}

fn spawn(opening: &LaunchRequest<'_>) -> Result<OpenServer, LoadError> {
    let (plan, tasks) = (opening.plan, opening.tasks);
    let ServerTransport {
        source,
        sink,
        failures,
        stderr,
        secrets,
        urgent,
        end,
    } = open_transport(
        plan,
        opening.installed.as_ref(),
        opening.line_limit,
        opening.environment,
        opening.at_once.child_token(),
        tasks,
    )?;
    let (ended, ended_stderr) = (end.clone(), stderr.clone());
    let ending = async move {
        let reason = end_of(ended).await;
        Ended {
            reason,
            stderr: ended_stderr.tail(),
        }
    };
    // What was opened is known only after it is opened, but it can speak from its first line on.
    let (told, changes) = watch::channel(ListChanges::default());
    let session = Session::open(
        (plan.dependency().clone(), secrets),
        (source, sink, failures),
        opening.line_limit,
        tasks,
        opening.client.clone(),
        move |Unasked::Changed(kind)| told.send_modify(|changes| changes.count(kind)),
        ending,
    );
    Ok(OpenServer {
        closing: CloseOnDrop(Some(session.clone())),
        session,
        process: ProcessHandle {
            urgent,
            asked: AtomicBool::new(false),
            end,
            stderr: stderr.clone(),
        },
        stderr,
        changes,
    })
}

impl OpenServer {
    async fn introduced(
        &self,
        era: Era,
        opening: &LaunchRequest<'_>,
        deadline: ReadyBy,
    ) -> Result<(IntroducedSession, Known), LoadError> {
        self.ready(deadline, introduce(&self.session, era, &opening.declared))
            .await
    }

    async fn ready<T>(
        &self,
        deadline: ReadyBy,
        getting_ready: impl Future<Output = Result<T, HandshakeError>>,
    ) -> Result<T, LoadError> {
        let getting_ready = async {
            tokio::select! {
                outcome = getting_ready => outcome,
                never = self.session.decline_after(KEEPING.min(deadline.after / 2)) => match never {},
            }
        };
        match tokio::time::timeout_at(deadline.at, getting_ready).await {
            Ok(outcome) => Ok(outcome?),
            Err(_elapsed) => Err(LoadError::NotReady {
                after: deadline.after,
                stderr: self.stderr.tail(),
            }),
        }
    }

    /// Asks it to go and waits until it has: two at a time could get in each other's way.
    async fn leave(self) {
        drop(self.closing);
        self.process.end().await;
    }
}

/// Closes the process on every way out but the last.
struct CloseOnDrop(Option<Session>);

impl CloseOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(session) = &self.0 {
            session.close();
        }
    }
}

/// Learns again what changed, one list after the other: a flood of notifications asks once.
fn follow_changes(
    mut changes: watch::Receiver<ListChanges>,
    started: Started,
    on_change: OnChange,
    tasks: &TaskTracker,
) {
    tasks.spawn(async move {
        // What it said before it was asked for its lists may have come too late for them.
        let mut seen = ListChanges::default();
        loop {
            let now = *changes.borrow_and_update();
            for kind in now.since(seen) {
                match started.relearn(kind).await {
                    Ok((known, before)) => on_change(kind, known, before).await,
                    Err(error) => {
                        let dependency = started.session.dependency();
                        tracing::info!(%dependency, %error, "a changed list could not be learned");
                    }
                }
            }
            seen = now;
            tokio::time::sleep(SETTLING).await;
            if changes.changed().await.is_err() {
                return;
            }
        }
    });
}
