//! Opening a dependency: its process, its conversation, its tools.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::process::{self, Exit, LaunchLine, Process, SpawnError};
use super::restart::GivenUpError;
use super::{
    Client, Ended, InstallError, Installed, Known, KnownTool, Plan, PlanSource, Reply, Resolved, Session,
    Unasked, Urgency, variables,
};
use crate::config::Environment;
use crate::protocol::{DependencyName, Shown};
use crate::report::Hint;

/// The newest version that is opened by `initialize`; every server known today accepts it first.
const PROTOCOL_VERSION: &str = "2025-11-25";

/// More pages than any server has tools for: a cursor that never ends must end here.
const PAGE_LIMIT: usize = 200;

/// Says why a dependency does not run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its package could not be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// Its process could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It died too often.
    #[error(transparent)]
    GivenUp(#[from] GivenUpError),
    /// It ended before it was ready.
    #[error("it {}{}", .0.reason, wrote(&.0.stderr))]
    Ended(Arc<Ended>),
    /// It did not get ready in time.
    #[error("it was not ready within {} seconds{}", .after.as_secs(), wrote(.stderr))]
    NotReady {
        /// Its `startTimeoutSeconds`.
        after: Duration,
        /// What it wrote meanwhile.
        stderr: String,
    },
    /// It answered a request of pml's with an error or with something unreadable.
    #[error("it does not answer `{method}` as MCP requires: {reason}")]
    Handshake {
        /// What was asked.
        method: &'static str,
        /// What it said, escaped.
        reason: String,
    },
    /// What is installed is not what a person was shown.
    #[error("`{dependency}` has changed: {expected} was approved, {found} is installed")]
    Changed {
        /// The dependency.
        dependency: DependencyName,
        /// The integrity that was shown.
        expected: String,
        /// The integrity that is installed.
        found: String,
    },
    /// pml is going.
    #[error("pml is shutting down")]
    Closing,
}

fn wrote(stderr: &str) -> String {
    if stderr.trim().is_empty() {
        String::new()
    } else {
        format!("; the last lines it wrote:\n{}", Shown::block(stderr.trim_end()))
    }
}

impl Hint for LoadError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Install(error) => error.hint(),
            Self::Spawn(error) => error.hint(),
            Self::GivenUp(error) => error.hint(),
            Self::NotReady { .. } => {
                Some("raise \"startTimeoutSeconds\" of this server in .pml.json".to_owned())
            }
            Self::Changed { dependency, .. } => Some(format!(
                "to start over with a new approval: pml uninstall {dependency}"
            )),
            Self::Ended(_) | Self::Handshake { .. } | Self::Closing => None,
        }
    }
}

/// What opening needs that does not change.
pub(super) struct Settings {
    pub(super) environment: Environment,
    /// Ends every process at once, also those that are not ready yet.
    pub(super) at_once: CancellationToken,
    /// The client that dependencies talk to, once there is one.
    pub(super) client: OnceLock<Weak<dyn Client>>,
}

type OnChange = Box<dyn Fn(Started) + Send + Sync>;

/// One opening.
pub(super) struct Opening<'a> {
    pub(super) plan: &'a Arc<Plan>,
    pub(super) installed: Option<Installed>,
    pub(super) line_limit: usize,
    pub(super) start_timeout: Duration,
    pub(super) tasks: &'a TaskTracker,
    /// Called when the dependency says that its tools changed.
    pub(super) on_change: OnChange,
}

/// A dependency that runs and has shown its tools.
#[derive(Clone)]
pub struct Started {
    /// The conversation with it.
    pub session: Session,
    /// Its exact version and integrity; `None` for a plain command.
    pub resolved: Option<Resolved>,
    /// What it has shown, the latest first-hand knowledge there is.
    known: Arc<Mutex<Arc<Known>>>,
    process: Arc<Keeper>,
}

/// How a dependency went.
#[derive(Debug, Clone)]
pub(super) struct Gone {
    pub(super) reason: String,
    pub(super) asked_for: bool,
}

/// The strings on a process that runs in a task of its own.
struct Keeper {
    urgent: CancellationToken,
    asked: AtomicBool,
    exit: watch::Receiver<Option<Exit>>,
}

impl fmt::Debug for Started {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Started")
            .field("resolved", &self.resolved)
            .finish_non_exhaustive()
    }
}

impl Started {
    /// Returns its tools as it listed them last.
    #[must_use]
    pub fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks it for its tools again.
    pub(super) async fn relearn(&self) -> Result<Arc<Known>, LoadError> {
        let known = Arc::new(Known::new(self.resolved.as_ref(), tools(&self.session).await?));
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&known);
        Ok(known)
    }

    /// Asks it to go: by the end of its stdin, or by a signal as well.
    pub(super) fn stop(&self, urgency: Urgency) {
        self.process.asked.store(true, Ordering::Relaxed);
        self.session.close();
        if urgency == Urgency::AtOnce {
            self.process.urgent.cancel();
        }
    }

    /// Waits until it is gone.
    pub(super) async fn gone(&self) -> Gone {
        let reason = exit_of(self.process.exit.clone()).await.to_string();
        Gone {
            reason,
            asked_for: self.process.asked.load(Ordering::Relaxed),
        }
    }
}

async fn exit_of(mut exit: watch::Receiver<Option<Exit>>) -> Exit {
    match exit.wait_for(Option::is_some).await {
        Ok(exit) => exit.clone().unwrap_or(Exit::Unsupervised),
        Err(_dropped) => Exit::Unsupervised,
    }
}

/// Starts the process, opens the conversation and learns the tools.
pub(super) async fn open(settings: &Settings, opening: Opening<'_>) -> Result<Started, LoadError> {
    let Opening {
        plan,
        installed,
        line_limit,
        start_timeout,
        tasks,
        on_change,
    } = opening;
    let line = launch_line(plan, installed.as_ref(), &settings.environment);
    let supervisor = process::supervisor().map_err(|cause| SpawnError::Supervisor {
        name: plan.dependency().clone(),
        supervisor: PathBuf::from("pml"),
        cause,
    })?;
    let (process, pipes) = process::spawn(plan.dependency(), &line, &supervisor)?;
    let stderr = process.stderr();
    let (urgent, exit) = watch_over(process, settings.at_once.child_token(), tasks);
    let resolved = installed.map(|installed| installed.resolved);
    let (ended_exit, ended_stderr) = (exit.clone(), stderr.clone());
    let ending = async move {
        let reason = exit_of(ended_exit).await.to_string();
        Ended {
            reason,
            stderr: ended_stderr.tail(),
        }
    };
    // The conversation exists only after it is opened, but it can speak from its first line on.
    let (told, changes) = watch::channel(());
    let session = Session::open(
        plan.dependency().clone(),
        (pipes.stdout, pipes.stdin),
        line_limit,
        tasks,
        settings.client.get().cloned(),
        move |Unasked::ToolsChanged| {
            let _ = told.send(());
        },
        ending,
    );
    let keeper = Keeper {
        urgent,
        asked: AtomicBool::new(false),
        exit,
    };
    // Closes the process on every way out but the last.
    let guard = CloseOnDrop(Some(session.clone()));
    let tools = match tokio::time::timeout(start_timeout, handshake(&session)).await {
        Ok(tools) => tools?,
        Err(_elapsed) => {
            return Err(LoadError::NotReady {
                after: start_timeout,
                stderr: stderr.tail(),
            });
        }
    };
    guard.disarm();
    let known = Arc::new(Mutex::new(Arc::new(Known::new(resolved.as_ref(), tools))));
    let started = Started {
        session,
        resolved,
        known,
        process: Arc::new(keeper),
    };
    follow_changes(changes, started.clone(), on_change, tasks);
    Ok(started)
}

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

fn follow_changes(
    mut changes: watch::Receiver<()>,
    started: Started,
    on_change: OnChange,
    tasks: &TaskTracker,
) {
    tasks.spawn(async move {
        while changes.changed().await.is_ok() {
            on_change(started.clone());
        }
    });
}

/// Waits for the end of a process in a task of its own, which also signals it when it must go at once.
fn watch_over(
    mut process: Process,
    urgent: CancellationToken,
    tasks: &TaskTracker,
) -> (CancellationToken, watch::Receiver<Option<Exit>>) {
    let (tell, exit) = watch::channel(None);
    let hurry = urgent.clone();
    tasks.spawn(async move {
        let exited = tokio::select! {
            exited = process.exited() => Some(exited),
            () = hurry.cancelled() => None,
        };
        let exited = match exited {
            Some(exited) => exited,
            None => process.stop(Urgency::AtOnce).await,
        };
        tell.send_replace(Some(exited));
    });
    (urgent, exit)
}

fn launch_line(plan: &Plan, installed: Option<&Installed>, environment: &Environment) -> LaunchLine {
    let (program, leading) = match (plan.source(), installed) {
        (_, Some(installed)) => (installed.program.clone(), installed.leading.clone()),
        (PlanSource::Command { program }, None) => (program.clone(), Vec::new()),
        // A package is always installed before it is opened.
        (PlanSource::Package(package), None) => (PathBuf::from(package.name()), Vec::new()),
    };
    LaunchLine {
        program,
        arguments: leading
            .into_iter()
            .chain(plan.arguments().iter().map(Into::into))
            .collect(),
        variables: variables::variables(environment, plan.variables()),
        directory: plan.directory().to_owned(),
    }
}

async fn handshake(session: &Session) -> Result<Vec<KnownTool>, LoadError> {
    #[derive(Deserialize)]
    struct Opened {
        #[serde(default)]
        capabilities: serde_json::Map<String, serde_json::Value>,
    }
    let params = json!({
        "protocolVersion": PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": { "name": "pml", "title": "pml", "version": env!("CARGO_PKG_VERSION") },
    });
    let opened: Opened = ask(session, "initialize", &params.to_string()).await?;
    session.notify("notifications/initialized", None);
    if opened.capabilities.contains_key("tools") {
        tools(session).await
    } else {
        Ok(Vec::new())
    }
}

/// Lists the tools of a dependency, page by page; a definition without a name is left out.
async fn tools(session: &Session) -> Result<Vec<KnownTool>, LoadError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        tools: Vec<Box<RawValue>>,
        next_cursor: Option<String>,
    }
    let mut tools = Vec::new();
    let mut params = json!({});
    for _ in 0..PAGE_LIMIT {
        let page: Page = ask(session, "tools/list", &params.to_string()).await?;
        tools.extend(
            page.tools
                .into_iter()
                .filter_map(|definition| KnownTool::try_from(definition).ok()),
        );
        match page.next_cursor {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return Ok(tools),
        }
    }
    Err(LoadError::Handshake {
        method: "tools/list",
        reason: format!("its list does not end within {PAGE_LIMIT} pages"),
    })
}

async fn ask<T: for<'de> Deserialize<'de>>(
    session: &Session,
    method: &'static str,
    params: &str,
) -> Result<T, LoadError> {
    let failed = |reason: String| LoadError::Handshake { method, reason };
    match session.request(method, params).await {
        Reply::Result(raw) => serde_json::from_slice(&raw).map_err(|error| failed(error.to_string())),
        Reply::Error(raw) => {
            let text = String::from_utf8_lossy(&raw[..raw.len().min(2000)]).into_owned();
            Err(failed(Shown::line(&text).to_string()))
        }
        Reply::Unusable(reason) => Err(failed(reason)),
        Reply::Ended(ended) => Err(LoadError::Ended(ended)),
    }
}
