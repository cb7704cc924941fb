//! The notifier: runs the program that the user chose when something is asked and no surface shows it.
//!
//! Asks of half a second are told together, and only those that still wait then: what a rule or a client answers at once
//! calls nobody. One program runs at a time. What goes wrong with it is logged once and never costs a call anything.
//!
//! The program gets the short environment of a server and the variables by which the user's session is reached. pml was
//! started by an agent's client: the rest of its environment holds the tokens of that client and whatever the project's
//! own files made it set, `PYTHONPATH` and the like included. A notifier that needs more is a script of the user's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::now;
use super::surface::{SurfaceState, surface_state};
use crate::card::Notification;
use crate::config::{Environment, NotifyCommand};
use crate::loader::{ErrandEnd, Exit, LaunchLine, find_users_program, run_errand, search_path, variables};
use crate::protocol::{Secrets, Shown};
use crate::workflow::{State, Workflow, WorkflowId, Workflows};

/// Asks that come together are told together; a person does not notice the wait.
const BATCH: Duration = Duration::from_millis(500);

/// How long the program may take: what shows a notification is done at once, and what sends one waits for a network.
const LIMIT: Duration = Duration::from_secs(10);

/// How many asks are remembered until they are told: as many as a conversation may have waiting.
const REMEMBERED: usize = 100;

/// The variables by which a program finds the session of the user: display, message bus, multiplexer.
const SESSION: [&str; 9] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "TMUX",
    "TMUX_TMPDIR",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CURRENT_DESKTOP",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
];

/// Says why a person was not called.
#[derive(Debug, thiserror::Error)]
enum NotifyError {
    #[error("there is no such program outside the project")]
    NoProgram,
    #[error("it cannot be started")]
    Start(#[from] std::io::Error),
    #[error("it {0}")]
    Failed(Exit),
    #[error("it was stopped after {} seconds", LIMIT.as_secs())]
    Overdue,
}

/// Calls the person; shared by every conversation of a process.
#[derive(Debug)]
pub(super) struct Notifier {
    environment: Environment,
    /// The user's state directory, where open surfaces are seen.
    state: PathBuf,
    workflows: Workflows,
    batch: Mutex<Batch>,
    /// The one task that tells batches, while there are any.
    worker: TaskTracker,
    /// Ends the wait for further asks.
    hurry: Notify,
    /// Whether a failure was logged.
    warned: AtomicBool,
}

/// What is to be told next.
#[derive(Debug, Default)]
struct Batch {
    asks: Vec<WorkflowId>,
    /// As the newest ask found it in the configuration.
    command: Option<NotifyCommand>,
    /// Whether the task runs that tells it.
    state: WorkerState,
}

/// Whether somebody tells the batch.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum WorkerState {
    /// Nothing is to be told.
    #[default]
    Idle,
    /// The task runs, and looks again before it ends.
    Working,
}

impl Notifier {
    /// Names the places; starts nothing.
    #[must_use]
    pub(super) fn new(environment: &Environment, state: &Path, workflows: &Workflows) -> Arc<Self> {
        Arc::new(Self {
            environment: environment.clone(),
            state: state.to_owned(),
            workflows: workflows.clone(),
            batch: Mutex::default(),
            worker: TaskTracker::new(),
            hurry: Notify::new(),
            warned: AtomicBool::new(false),
        })
    }

    /// Returns the user's state directory.
    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    /// Takes note of a new ask; where no program is declared that is all.
    pub(super) fn announce(self: &Arc<Self>, ask: WorkflowId, command: Option<&NotifyCommand>) {
        let Some(command) = command else { return };
        let mut batch = self.lock();
        if batch.asks.len() < REMEMBERED {
            batch.asks.push(ask);
        }
        batch.command = Some(command.clone());
        if batch.state == WorkerState::Idle {
            batch.state = WorkerState::Working;
            let notifier = Arc::clone(self);
            self.worker.spawn(async move { notifier.work().await });
        }
    }

    /// Tells at once what is still to be told, and waits for that: an agent that only asks may be gone within the wait.
    pub(super) async fn close(&self) {
        if self.lock().state == WorkerState::Idle {
            return;
        }
        self.hurry.notify_one();
        self.worker.close();
        self.worker.wait().await;
        // Another conversation of this process may go on to ask.
        self.worker.reopen();
    }

    fn lock(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells batch after batch, until none is left.
    async fn work(&self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(BATCH) => {}
                () = self.hurry.notified() => {}
            }
            let (asks, command) = {
                let mut batch = self.lock();
                (std::mem::take(&mut batch.asks), batch.command.take())
            };
            if let Some(command) = command
                && let Err(error) = self.tell(asks, command.clone()).await
            {
                self.warn(&command, &error);
            }
            let mut batch = self.lock();
            if batch.asks.is_empty() {
                batch.state = WorkerState::Idle;
                return;
            }
        }
    }

    /// Runs the program if something still waits and nothing shows it.
    async fn tell(&self, asks: Vec<WorkflowId>, command: NotifyCommand) -> Result<(), NotifyError> {
        let mut waiting = Vec::new();
        for id in asks {
            // What cannot be read cannot be answered either, and its call says so.
            if let Ok(ask) = self.workflows.find(id).await
                && ask.state == State::Pending
                && ask.is_live_at(now())
            {
                waiting.push(ask);
            }
        }
        let Some(notification) = Notification::of(&waiting) else {
            return Ok(());
        };
        let (state, environment) = (self.state.clone(), self.environment.clone());
        // Locks a file, and looks for the program on the disk.
        let looked = tokio::task::spawn_blocking(move || {
            // Where it cannot be told, a call too many is better than none.
            match surface_state(&state).unwrap_or(SurfaceState::Closed) {
                SurfaceState::Open => Ok(None),
                SurfaceState::Closed => {
                    launch_line(&environment, &command, &notification, &waiting).map(Some)
                }
            }
        });
        let looked = looked.await.map_err(std::io::Error::from)?;
        let Some(line) = looked? else {
            return Ok(());
        };
        match run_errand(&line, LIMIT).await? {
            ErrandEnd::Exited(Exit::Code(0)) => Ok(()),
            ErrandEnd::Exited(exit) => Err(NotifyError::Failed(exit)),
            ErrandEnd::Overdue => Err(NotifyError::Overdue),
        }
    }

    fn warn(&self, command: &NotifyCommand, error: &NotifyError) {
        let program = Shown::line(command.program());
        if self.warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(%program, %error, "the notifier failed again");
        } else {
            tracing::warn!(%program, %error, "the notifier of your configuration failed; further failures are not told");
        }
    }
}

/// Says what is run: the program that is the user's own in every project that asks.
fn launch_line(
    environment: &Environment,
    command: &NotifyCommand,
    notification: &Notification,
    asks: &[Workflow],
) -> Result<LaunchLine, NotifyError> {
    let mut environments = asks
        .iter()
        .map(|ask| environment.clone().in_project(&ask.project));
    let found = |environment: &Environment| find_users_program(command.program(), environment);
    let first = environments.next().ok_or(NotifyError::NoProgram)?;
    let program = found(&first).ok_or(NotifyError::NoProgram)?;
    if !environments.all(|other| found(&other).as_ref() == Some(&program)) {
        return Err(NotifyError::NoProgram);
    }
    let session = SESSION.iter().filter_map(|name| {
        let value = first.variable(name)?.to_str()?;
        Some(((*name).to_owned(), value.to_owned()))
    });
    let session: BTreeMap<String, String> = session.collect();
    let mut variables = variables::variables(&first, &session);
    variables.insert("PATH".into(), search_path(&first));
    let arguments = command.arguments(&notification.title, &notification.body);
    Ok(LaunchLine {
        program,
        arguments: arguments.into_iter().map(Into::into).collect(),
        variables,
        // Not the project, in which files could be found that a program reads.
        directory: PathBuf::from("/"),
        secrets: Secrets::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::workflow::samples;

    fn command(program: &str) -> NotifyCommand {
        let text = format!(r#"{{"notify": ["{program}", "-a", "{{title}}", "{{body}}"]}}"#);
        config::check(Path::new("/user/pml.json"), &text)
            .unwrap()
            .notify
            .unwrap()
    }

    fn line(program: &str, projects: &[&str]) -> Result<LaunchLine, NotifyError> {
        let variables = [
            ("PATH", "/project/bin:/usr/bin:/bin"),
            ("HOME", "/home/user"),
            ("DISPLAY", ":0"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"),
            ("ANTHROPIC_API_KEY", "canary"),
            ("GITHUB_TOKEN", "canary"),
            ("PYTHONPATH", "/project"),
            ("LD_PRELOAD", "/project/x.so"),
        ];
        let environment = Environment::new(variables, "/project");
        let asks: Vec<Workflow> = projects
            .iter()
            .map(|project| Workflow {
                project: (*project).into(),
                ..samples::workflow(samples::new(r#"{"secret": "canary"}"#).ask)
            })
            .collect();
        let notification = Notification::of(&asks).unwrap();
        launch_line(&environment, &command(program), &notification, &asks)
    }

    #[test]
    fn the_program_gets_the_session_of_the_user_and_nothing_of_the_client_or_the_project() {
        let line = line("sh", &["/project"]).unwrap();
        assert!(
            line.program.is_absolute() && line.program.ends_with("sh"),
            "{line:?}"
        );
        assert_eq!(
            line.arguments,
            [
                "-a",
                "pml: an approval waits",
                "aaaaa in project: Install and run serena@0.5.0?"
            ]
        );
        let variables: Vec<_> = line
            .variables
            .iter()
            .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
            .collect();
        assert_eq!(
            variables,
            [
                ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"),
                ("DISPLAY", ":0"),
                ("HOME", "/home/user"),
                ("PATH", "/usr/bin:/bin"),
            ]
        );
        assert_eq!(line.directory, Path::new("/"));
    }

    #[test]
    fn a_program_inside_any_project_that_asks_is_not_run() {
        let refused =
            |program, projects: &[&str]| matches!(line(program, projects), Err(NotifyError::NoProgram));
        assert!(
            refused("/project/notify", &["/elsewhere"]),
            "pml was started there"
        );
        assert!(refused("/other/notify", &["/other"]));
        assert!(refused("/other/notify", &["/elsewhere", "/other"]));
        assert!(refused("no-such-program-anywhere", &["/elsewhere"]));
        assert!(!refused("/other/notify", &["/elsewhere", "/project"]));
    }
}
