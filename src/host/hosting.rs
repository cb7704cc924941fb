//! Prepares runs for this process: finds the agent, takes the right to drive a run, and reads its project's rules.

use std::path::PathBuf;
use std::time::Duration;

use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::claude::{self, RUN_VARIABLE, SettingSources};
use super::error::RunError;
use super::hosted_run::HostedRun;
use super::record::{RunId, RunRecord, RunState};
use super::resumption::{KeptSession, Resumption, resumption};
use super::runs::{RunLock, Runs};
use super::transcript;
use crate::config::{self, Environment, Files, Locations, RunSettings};
use crate::protocol::Shown;
use crate::proxy::{Desk, Proxy, now};

/// How much of what a person wanted is shown in lists.
const TITLE: usize = 200;

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
        let (files, settings, sources) = self.surroundings(&wanted.directory, wanted.config.as_ref());
        let program = claude::find(&self.environment, &settings)?;
        self.check_room(&settings)?;
        let created_at = now().millis();
        let patience = wanted.patience.unwrap_or(settings.patience);
        let (record, lock) = self.runs.create(|id| RunRecord {
            id,
            session: Uuid::new_v4(),
            directory: wanted.directory.clone(),
            config: wanted.config.clone(),
            title: title(&wanted.prompt),
            prompt: wanted.prompt.clone(),
            created_at,
            changed_at: created_at,
            state: RunState::Starting,
            process: None,
            asks: Vec::new(),
            answered: Vec::new(),
            put_off: None,
            transcript: None,
            model: None,
            cost: None,
            agent_arguments: wanted.agent_arguments.clone(),
            patience_seconds: patience.as_secs(),
        })?;
        Ok(self.hosted(record, lock, program, files, sources))
    }

    /// Takes a run over that no process drives, unless its session is open elsewhere. It blocks.
    pub fn take_over(&self, id: &RunId) -> Result<HostedRun, RunError> {
        let record = self.runs.read(id)?;
        let (files, settings, sources) = self.surroundings(&record.directory, record.config.as_ref());
        let program = claude::find(&self.environment, &settings)?;
        let lock = self.runs.claim(&record)?;
        // What another process wrote before it let go.
        let mut record = self.runs.read_claimed(id)?;
        if let Some(pid) = claude::process_with_session(&self.environment, &record) {
            return Err(RunError::SessionOpen {
                id: id.to_string(),
                agent: "Claude Code",
                pid,
            });
        }
        self.check_room(&settings)?;
        if record.state == RunState::Lost {
            transcript::reconcile(&mut record);
            self.runs.write(&record)?;
        }
        Ok(self.hosted(record, lock, program, files, sources))
    }

    /// Prepares a run once more that this process has the right to drive. It blocks.
    pub fn hosted_again(&self, record: RunRecord, lock: RunLock) -> Result<HostedRun, RunError> {
        let (files, settings, sources) = self.surroundings(&record.directory, record.config.as_ref());
        let program = claude::find(&self.environment, &settings)?;
        Ok(self.hosted(record, lock, program, files, sources))
    }

    /// Decides how a run goes on that no process drives.
    pub async fn resumption(&self, desk: &Desk, record: &RunRecord) -> Resumption {
        let mut asks = Vec::new();
        for kept in &record.asks {
            // One that the store has forgotten is so old that no answer can come.
            if let Ok(workflow) = desk.find(kept.workflow).await {
                asks.push(workflow);
            }
        }
        let transcript = record.transcript.clone();
        let missing =
            tokio::task::spawn_blocking(move || transcript.is_some_and(|path| !path.exists())).await;
        let session = match missing {
            Ok(true) => KeptSession::Missing,
            Ok(false) | Err(_) => KeptSession::Written,
        };
        resumption(record, &asks, session)
    }

    fn check_room(&self, settings: &RunSettings) -> Result<(), RunError> {
        let driven = |run: &RunRecord| run.state.is_driven();
        let running = self.runs.list().iter().filter(|run| driven(run)).count();
        if running >= settings.most {
            return Err(RunError::TooMany {
                running,
                most: settings.most,
            });
        }
        Ok(())
    }

    fn surroundings(
        &self,
        directory: &PathBuf,
        config: Option<&PathBuf>,
    ) -> (Files, RunSettings, SettingSources) {
        let environment = self.in_directory(directory, None);
        let files = config::find(config.map(PathBuf::as_path), &environment, &self.locations);
        match config::read(&files) {
            Ok(config) => {
                let sources = match config.project.unaccepted() {
                    Some(_) => SettingSources::User,
                    None => SettingSources::All,
                };
                (files, config.run, sources)
            }
            // The rules refuse every call then, and say why.
            Err(_) => (files, RunSettings::default(), SettingSources::User),
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

    fn hosted(
        &self,
        record: RunRecord,
        lock: RunLock,
        program: PathBuf,
        files: Files,
        sources: SettingSources,
    ) -> HostedRun {
        let environment = self.in_directory(&record.directory, Some(&record));
        let environment = match files.project.parent() {
            Some(project) => environment.in_project(project),
            None => environment,
        };
        let proxy = Proxy::new(environment, &self.locations, files, TaskTracker::new());
        HostedRun {
            record,
            lock,
            runs: self.runs.clone(),
            environment: self.environment.clone(),
            proxy,
            program,
            pml: self.pml.clone(),
            sources,
        }
    }
}

/// Returns the beginning of what a person wanted, in one line.
fn title(prompt: &str) -> String {
    let line = Shown::line(prompt.trim().lines().next().unwrap_or_default()).to_string();
    line.chars().take(TITLE).collect()
}
