//! Relays one question at a time and polls for its answer until it comes, fails for good, or time is up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};

use super::RelayError;
use super::answer::Polled;
use super::host::Host;
use super::settings::HostSettings;
use crate::config::{AskUserSettings, AskUserTools, ConfigError, Environment};
use crate::protocol::question::{Question, QuestionAnswer};

/// The variable that names the file of the host.
const VARIABLE: &str = "ASK_USER_CONFIG";

/// How often the host is asked for an answer; the contract allows no less.
const POLL: Duration = Duration::from_secs(2);

/// The longest that one request may take: a host of this machine is fast, or stuck.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// What the last poll before the deadline may still take: the host hands an answer out once.
const LAST_REQUEST: Duration = Duration::from_secs(2);

/// The way to the host that shows the questions of this conversation, if there is one.
pub struct Relay {
    file: Option<PathBuf>,
    /// A host holds one question a conversation: a second one would take its place, and its answer.
    turn: Mutex<LastQuestion>,
}

/// What became of the question before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastQuestion {
    /// Its answer was taken, or there was none.
    Settled,
    /// Nothing waits for it any more, but the host may still get an answer to it.
    LeftOpen,
}

impl Relay {
    /// Looks in the environment for the file of a host; the file itself is read for each question.
    #[must_use]
    pub fn of(environment: &Environment) -> Self {
        let file = environment.variable(VARIABLE);
        Self {
            file: file.map(|file| environment.working_directory().join(file)),
            turn: Mutex::new(LastQuestion::Settled),
        }
    }

    /// Tells whether a host shows the questions of this conversation.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.file.is_some()
    }

    /// Puts a question to a person by way of the host and returns their answer.
    ///
    /// Questions take turns. Dropped before its end, because its call was cancelled, it polls no more.
    pub async fn ask(
        &self,
        question: &Question,
        settings: impl Fn() -> Result<AskUserSettings, Arc<ConfigError>>,
    ) -> Result<QuestionAnswer, RelayError> {
        let mut last = self.turn.lock().await;
        let host = self.host().await?;
        let settled = settings().map_err(RelayError::Settings)?;
        let patience = settled
            .timeout
            .map_or(host.timeout(), |bound| bound.min(host.timeout()));
        if *last == LastQuestion::LeftOpen {
            // An answer to the question before must not be taken for one to this.
            let _ = host.poll(question, None, REQUEST_LIMIT).await;
        }
        *last = LastQuestion::LeftOpen;
        let wanted = || match settings() {
            Ok(settings) if settings.tools == AskUserTools::Off => Err(RelayError::SwitchedOff),
            // A file that is being edited ends nothing.
            Ok(_) | Err(_) => Ok(()),
        };
        let answer = exchange(&host, question, patience, wanted).await?;
        *last = LastQuestion::Settled;
        Ok(answer)
    }

    async fn host(&self) -> Result<Host, RelayError> {
        let path = self.file.clone().unwrap_or_default();
        let missing = RelayError::NoFile { path: path.clone() };
        let reading = tokio::task::spawn_blocking(move || HostSettings::read(&path)).await;
        let settings = reading.unwrap_or(Err(missing))?;
        let addresses = Host::addresses(&settings).await?;
        Host::at(settings, addresses).await
    }
}

/// Gives the host a question and polls for its answer.
async fn exchange(
    host: &Host,
    question: &Question,
    patience: Duration,
    wanted: impl Fn() -> Result<(), RelayError>,
) -> Result<QuestionAnswer, RelayError> {
    wanted()?;
    let deadline = Instant::now() + patience;
    let id = host.relay(question, REQUEST_LIMIT.min(patience)).await?;
    let mut polls = interval_at(Instant::now() + POLL, POLL);
    // A slow host is not asked in bursts.
    polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        if timeout_at(deadline, polls.tick()).await.is_err() {
            return Err(RelayError::TimedOut);
        }
        wanted()?;
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = left.clamp(LAST_REQUEST, REQUEST_LIMIT);
        match host.poll(question, id.as_ref(), limit).await {
            Ok(Polled::Answered(answer)) => return Ok(answer),
            Ok(Polled::Waiting) => {}
            Err(error) if is_passing(&error) => tracing::debug!("a poll for an answer failed: {error}"),
            Err(error) => return Err(error),
        }
    }
}

/// Tells whether a later poll may do better.
fn is_passing(error: &RelayError) -> bool {
    match error {
        RelayError::Unreachable { .. } => true,
        RelayError::Status(status) => status.is_server_error() || matches!(status.as_u16(), 408 | 429),
        _ => false,
    }
}
