//! Prepares runs for this process: finds the agent, takes the right to drive a run, and reads its project's rules.

mod left_session;

use std::path::PathBuf;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::claude::{self, Opening, RUN_VARIABLE, SettingSources};
use super::error::RunError;
use super::hosted_run::{Beginning, HostedRun};
use super::machine::Input;
use super::message::Message;
use super::project_settings::ProjectSettings;
use super::record::{KeptAsk, RunId, RunOutcome, RunRecord, RunState};
use super::resumption::{KeptSession, Resumption, resumption, told_so_far};
use super::runs::{RunLock, Runs};
use super::transcript;
use crate::config::{self, Environment, Files, Locations, RunSettings};
use crate::protocol::Shown;
use crate::proxy::{Desk, Proxy, Refusal, Workflow, now};
use crate::workflow::{State, WorkflowError};
pub(super) use left_session::left_sessions;

/// How much of what a person wanted is shown in lists.
const TITLE: usize = 200;

/// How often, and how far apart, it is looked whether a session is still open whose host is gone.
const LOOKS: usize = 40;
/// See [`LOOKS`].
const LOOK_TIME: Duration = Duration::from_millis(50);

/// Prepares runs with the environment of this process.
#[derive(Debug, Clone)]
pub struct Hosting {
    environment: Environment,
    locations: Locations,
    runs: Runs,
    /// The program of pml, which is the server of every agent.
    pml: PathBuf,
}

/// A run that a person wants.
#[derive(Debug, Clone)]
pub struct WantedRun {
    /// What the agent is to do.
    pub prompt: String,
    /// The directory that it works in.
    pub directory: PathBuf,
    /// The configuration that was named.
    pub config: Option<PathBuf>,
    /// How long it waits for a person, where that was said.
    pub patience: Option<Duration>,
    /// Arguments for the agent itself.
    pub agent_arguments: Vec<String>,
}

impl Hosting {
    /// Names the places; opens and reads nothing yet. `pml` is the program that agents start as their server.
    #[must_use]
    pub fn new(environment: Environment, locations: Locations, pml: PathBuf) -> Self {
        Self {
            runs: Runs::new(locations.state()),
            environment,
            locations,
            pml,
        }
    }

    /// Returns where runs are kept.
    #[must_use]
    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Begins a run, if its agent is there and another one may be under way. It blocks.
    pub fn begin(&self, wanted: &WantedRun) -> Result<HostedRun, RunError> {
        let around = self.surroundings(&wanted.directory, wanted.config.as_ref());
        let program = claude::find(&self.environment, &around.settings)?;
        self.check_room(&around.settings, None)?;
        let patience = wanted.patience.unwrap_or(around.settings.patience);
        let forgotten = self.runs.make_room();
        let (record, lock) = self.runs.create(|id| RunRecord {
            config: wanted.config.clone(),
            title: title(&wanted.prompt),
            prompt: wanted.prompt.clone(),
            agent_arguments: wanted.agent_arguments.clone(),
            ..RunRecord::new(id, wanted.directory.clone(), patience, now())
        })?;
        Ok(HostedRun {
            forgotten,
            ..self.hosted(record, lock, program, around)
        })
    }

    /// Takes a run over that no process drives, unless its session is open elsewhere. It blocks.
    pub fn take_over(&self, id: &RunId) -> Result<HostedRun, RunError> {
        let record = self.runs.read(id)?;
        let around = self.surroundings(&record.directory, record.config.as_ref());
        let program = claude::find(&self.environment, &around.settings)?;
        let lock = self.runs.claim(&record)?;
        // What another process wrote before it let go.
        let mut record = self.runs.read_claimed(id)?;
        // The agent of a process that was killed a moment ago ends a little after it.
        for _ in 0..LOOKS {
            if claude::process_with_session(&self.environment, &record).is_none() {
                break;
            }
            std::thread::sleep(LOOK_TIME);
        }
        self.check_free(&record, &around.settings)?;
        self.runs.forget_stops(id);
        if record.state == RunState::Lost {
            transcript::reconcile(&mut record);
            self.runs.write(&record)?;
        }
        Ok(self.hosted(record, lock, program, around))
    }

    /// Prepares a run once more that this process has the right to drive. It blocks.
    pub fn hosted_again(&self, record: RunRecord, lock: RunLock) -> Result<HostedRun, RunError> {
        let around = self.surroundings(&record.directory, record.config.as_ref());
        let program = claude::find(&self.environment, &around.settings)?;
        self.check_free(&record, &around.settings)?;
        self.runs.forget_stops(&record.id);
        Ok(self.hosted(record, lock, program, around))
    }

    /// Writes down why a run could not be resumed, for a person to read, unless a process drives it meanwhile. It blocks.
    pub fn note_trouble(&self, id: &RunId, trouble: &str) {
        let Ok(record) = self.runs.read(id) else { return };
        if record.trouble.as_deref() == Some(trouble) {
            return;
        }
        let Ok(_lock) = self.runs.claim(&record) else {
            return;
        };
        if let Ok(mut record) = self.runs.read_claimed(id) {
            record.trouble = Some(trouble.to_owned());
            // It is told where it cannot be written, too.
            let _ = self.runs.write(&record);
        }
    }

    /// Ends a run for which no answer can come any more, unless a process drives it meanwhile. It blocks.
    pub fn give_up(&self, id: &RunId, why: &str) -> Result<(), RunError> {
        let _lock = self.runs.claim(&self.runs.read(id)?)?;
        let mut record = self.runs.read_claimed(id)?;
        if matches!(record.state, RunState::Ended { .. }) {
            return Ok(());
        }
        record.asks.clear();
        record.trouble = Some(why.to_owned());
        record.changed_at = now().millis();
        record.state = RunState::Ended {
            outcome: RunOutcome::Failed,
        };
        self.runs.write(&record)
    }

    /// Adds to a lost run what it asked in the moment in which its host was killed: that stands in the store and not in its
    /// record.
    pub async fn adopt_asks(&self, desk: &Desk, record: &mut RunRecord) {
        if record.state != RunState::Lost {
            return;
        }
        let known: Vec<_> = record.asks.iter().chain(&record.answered).collect();
        let is_orphan = |workflow: &Workflow| {
            let waits = matches!(workflow.state, State::Pending | State::Answered { .. });
            let is_known = || known.iter().any(|ask| ask.workflow == workflow.id);
            waits && workflow.origin.client.run.as_deref() == Some(record.id.as_str()) && !is_known()
        };
        let kept = desk.recent(usize::MAX).await.unwrap_or_default();
        let orphans: Vec<KeptAsk> = kept
            .iter()
            .filter(|one| is_orphan(one))
            .map(KeptAsk::orphan)
            .collect();
        record.asks.extend(orphans);
    }

    /// Writes down what a lost run asked, unless a process drives it meanwhile. It blocks.
    pub fn keep_asks(&self, id: &RunId, asks: &[KeptAsk]) -> Result<(), RunError> {
        let _lock = self.runs.claim(&self.runs.read(id)?)?;
        let mut record = self.runs.read_claimed(id)?;
        if record.state == RunState::Lost && record.asks.is_empty() {
            record.asks = asks.to_vec();
            self.runs.write(&record)?;
        }
        Ok(())
    }

    /// Decides how a run goes on that no process drives.
    pub async fn resumption(&self, desk: &Desk, record: &RunRecord) -> Resumption {
        let Some(asks) = asks_of(desk, record).await else {
            // A store that cannot be read now says nothing: it is asked again.
            return Resumption::Waits;
        };
        resumption(record, &asks, session_of(record).await)
    }

    /// Begins a run anew with what a person says, who need not answer what it asked. What was answered is told first.
    pub async fn told(&self, desk: &Desk, record: &RunRecord, message: Message, input: Input) -> Beginning {
        let asks = asks_of(desk, record).await.unwrap_or_default();
        let answered = match record.state {
            RunState::Lost => told_so_far(record, &asks, session_of(record).await),
            _ => None,
        };
        let mut beginning = answered.unwrap_or(Beginning {
            opening: Opening::Resume,
            messages: Vec::new(),
            input,
            told: Vec::new(),
        });
        beginning.input = input;
        beginning.messages.push(message);
        beginning
    }

    /// Checks that the session of a run is open nowhere else, and that another run may be under way.
    fn check_free(&self, record: &RunRecord, settings: &RunSettings) -> Result<(), RunError> {
        if let Some(pid) = claude::process_with_session(&self.environment, record) {
            return Err(RunError::SessionOpen {
                id: record.id.to_string(),
                agent: claude::NAME,
                pid,
            });
        }
        self.check_room(settings, Some(&record.id))
    }

    /// Checks that another run may be under way; `own` is not counted, whose record may say that it is driven.
    fn check_room(&self, settings: &RunSettings, own: Option<&RunId>) -> Result<(), RunError> {
        let driven = |run: &RunRecord| run.state.is_driven() && own != Some(&run.id);
        let running = self.runs.list().iter().filter(|run| driven(run)).count();
        if running >= settings.most {
            return Err(RunError::TooMany {
                running,
                most: settings.most,
            });
        }
        Ok(())
    }

    fn surroundings(&self, directory: &PathBuf, config: Option<&PathBuf>) -> Surroundings {
        let environment = self.in_directory(directory, None);
        let files = config::find(config.map(PathBuf::as_path), &environment, &self.locations);
        let found = ProjectSettings::read(directory, &self.environment);
        let (settings, accepted) = match config::read(&files) {
            Ok(config) => (config.run.clone(), config.project.unaccepted().is_none()),
            // The rules refuse every call then, and say why.
            Err(_) => (RunSettings::default(), false),
        };
        let (sources, notes) = if accepted && found.counts(&files.accepted) {
            (SettingSources::All, Vec::new())
        } else {
            (SettingSources::User, left_out(&found))
        };
        Surroundings {
            files,
            settings,
            sources,
            notes,
        }
    }

    fn in_directory(&self, directory: &PathBuf, record: Option<&RunRecord>) -> Environment {
        let marks = record.map(|record| {
            [
                (RUN_VARIABLE.into(), record.id.as_str().into()),
                ("CLAUDE_CODE_SESSION_ID".into(), record.session.to_string().into()),
            ]
        });
        let own = self
            .environment
            .variables()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let own = own.filter(|(name, _)| name != "CLAUDE_PROJECT_DIR");
        Environment::new(own.chain(marks.into_iter().flatten()), directory)
    }

    fn hosted(&self, record: RunRecord, lock: RunLock, program: PathBuf, around: Surroundings) -> HostedRun {
        let Surroundings {
            files,
            sources,
            notes,
            ..
        } = around;
        let environment = self.in_directory(&record.directory, Some(&record));
        let environment = match files.project.parent() {
            Some(project) => environment.in_project(project),
            None => environment,
        };
        let proxy = Proxy::new(environment, &self.locations, files, TaskTracker::new());
        proxy.declare(claude::declared());
        HostedRun {
            record,
            lock,
            runs: self.runs.clone(),
            environment: self.environment.clone(),
            proxy,
            program,
            pml: self.pml.clone(),
            sources,
            notes,
            forgotten: Vec::new(),
        }
    }
}

/// What counts in the directory of a run.
struct Surroundings {
    files: Files,
    settings: RunSettings,
    sources: SettingSources,
    notes: Vec<String>,
}

/// Says that the agent does not obey what the project brings for it, and how it would.
fn left_out(found: &ProjectSettings) -> Vec<String> {
    match found {
        ProjectSettings::Absent => {
            vec!["this project is not accepted: the agent obeys your own settings only; to accept it: pml trust".to_owned()]
        }
        ProjectSettings::Found(found) => vec![format!(
            "the settings of this project in `{}` are left out, as you have not accepted them; to read and accept them: pml trust",
            Shown::path(&found.folder)
        )],
        ProjectSettings::Unclear { folder, reason } => vec![format!(
            "the settings of this project are left out: `{}` {reason}, so it cannot be accepted",
            Shown::path(folder)
        )],
    }
}

/// Reads the asks of a run; `None` where the store cannot be read. One that it has forgotten is left out.
async fn asks_of(desk: &Desk, record: &RunRecord) -> Option<Vec<Workflow>> {
    let mut asks = Vec::new();
    for kept in &record.asks {
        match desk.find(kept.workflow).await {
            Ok(workflow) => asks.push(workflow),
            Err(Refusal::Workflow(WorkflowError::Unknown { .. })) => {}
            Err(refusal) => {
                tracing::warn!("{}", crate::report::render_hinted(&refusal));
                return None;
            }
        }
    }
    Some(asks)
}

async fn session_of(record: &RunRecord) -> KeptSession {
    let transcript = record.transcript.clone();
    let missing = tokio::task::spawn_blocking(move || transcript.is_some_and(|path| !path.exists()));
    match missing.await {
        Ok(true) => KeptSession::Missing,
        Ok(false) | Err(_) => KeptSession::Written,
    }
}

/// Returns the beginning of what a person wanted, in one line.
fn title(prompt: &str) -> String {
    let line = Shown::line(prompt.trim().lines().next().unwrap_or_default()).to_string();
    line.chars().take(TITLE).collect()
}
