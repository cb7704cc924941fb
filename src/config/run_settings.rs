//! How `pml run` hosts an agent; from the user's own file.

use std::path::PathBuf;
use std::time::Duration;

/// How long a run waits for a person before its agent is put aside, where nothing else is said: a waiting agent holds about
/// 200 MB, and its prompt cache is warm for some minutes.
const PATIENCE: Duration = Duration::from_mins(10);

/// How many runs may be under way at once: each is an agent with servers of its own.
const MOST: usize = 4;

/// How `pml run` hosts an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSettings {
    /// The program of the agent, where the user names one.
    pub claude: Option<PathBuf>,
    /// How long a run waits for a person before its agent is put aside; zero for ever.
    pub patience: Duration,
    /// How many runs may be under way at once.
    pub most: usize,
    /// What becomes of an answer to a session that is no run and has ended.
    pub late_answers: LateAnswers,
}

/// What becomes of an answer to a question of a session that was begun without pml and has ended since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LateAnswers {
    /// It is kept until the agent comes for it.
    #[default]
    Keep,
    /// The session goes on with it as a run.
    Resume,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            claude: None,
            patience: PATIENCE,
            most: MOST,
            late_answers: LateAnswers::Keep,
        }
    }
}
