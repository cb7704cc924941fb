//! The runs of the user, one directory each below the state directory; everything here blocks.
//!
//! | file | what it is | who writes it |
//! |---|---|---|
//! | `run.json` | the record | the process that holds `lock` |
//! | `events`, `events.old` | what happened, numbered (`event_log.rs`) | the same |
//! | `lock` | held by the process that drives the run | |
//! | `inputs/` | one file for each thing that a person says elsewhere (`run_input.rs`) | any process of the user |
//!
//! The lock goes with its process, so a run whose record says that it is driven and whose lock is free was lost.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::RunError;
use super::record::{RunId, RunRecord, RunState};
use crate::disk;
use crate::protocol::Shown;
use crate::proxy::WorkflowId;

/// How many runs are kept. The oldest that are over go first, and one that waits for an answer only where there are too many
/// of those alone.
const KEPT: usize = 200;

/// How often, and how far apart, a lock is tried that another process may hold only to look at it.
const LOOKS: usize = 10;
/// See [`LOOKS`].
const LOOK_TIME: Duration = Duration::from_millis(5);

/// The runs of the user.
#[derive(Debug, Clone)]
pub struct Runs {
    directory: PathBuf,
    /// The locks of sessions, which other programs may share.
    sessions: PathBuf,
}

/// The right to drive a run; it goes with the process.
#[derive(Debug)]
pub struct RunLock {
    _run: File,
    _session: File,
}

impl Runs {
    /// Names the directory of the runs below the state directory; creates nothing.
    #[must_use]
    pub fn new(state: &Path) -> Self {
        Self {
            directory: state.join("runs"),
            sessions: state.join("sessions"),
        }
    }

    pub(super) fn of(&self, id: &RunId) -> PathBuf {
        self.directory.join(id.as_str())
    }

    /// Returns the directory of a run.
    #[must_use]
    pub fn directory(&self, id: &RunId) -> PathBuf {
        self.of(id)
    }

    /// Makes the directory of a run that is new and takes the right to drive it; `make` writes its record.
    pub fn create(&self, make: impl Fn(RunId) -> RunRecord) -> Result<(RunRecord, RunLock), RunError> {
        disk::create_private_directory(&self.directory).map_err(RunError::file("create", &self.directory))?;
        loop {
            let id = RunId::random();
            let directory = self.of(&id);
            match std::fs::create_dir(&directory) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                created => created.map_err(RunError::file("create", &directory))?,
            }
            let record = make(id);
            let lock = self
                .claim(&record)
                .inspect_err(|_| disk::remove_tree(&directory))?;
            self.write(&record)?;
            return Ok((record, lock));
        }
    }

    /// Forgets a run that was made and is not wanted; `lock` is the right to drive it.
    pub(super) fn forget(&self, id: &RunId, lock: RunLock) {
        disk::remove_tree(&self.of(id));
        drop(lock);
    }

    /// Takes the right to drive a run and its session, which no other process may have at the same time.
    pub fn claim(&self, record: &RunRecord) -> Result<RunLock, RunError> {
        disk::create_private_directory(&self.sessions).map_err(RunError::file("create", &self.sessions))?;
        let locked = |path: &Path| {
            let lock = disk::open_lock(path).map_err(RunError::file("open", path))?;
            for _ in 0..LOOKS {
                match lock.try_lock() {
                    Ok(()) => return Ok(lock),
                    // One who only looks whether the run is driven holds it for a moment.
                    Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_TIME),
                    Err(TryLockError::Error(source)) => return Err(RunError::file("lock", path)(source)),
                }
            }
            Err(RunError::Driven {
                id: record.id.to_string(),
            })
        };
        let run = locked(&self.of(&record.id).join("lock"))?;
        let session = locked(&self.session_lock(record))?;
        Ok(RunLock {
            _run: run,
            _session: session,
        })
    }

    /// Tells whether a process drives a run.
    #[must_use]
    pub fn is_driven(&self, id: &RunId) -> bool {
        let lock = File::open(self.of(id).join("lock"));
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Writes the record of a run; only its driver does.
    pub fn write(&self, record: &RunRecord) -> Result<(), RunError> {
        let path = self.of(&record.id).join("run.json");
        let text = serde_json::to_vec_pretty(record).map_err(|source| RunError::Record {
            path: path.clone(),
            source,
        })?;
        disk::replace(&path, &text).map_err(RunError::file("write", &path))
    }

    /// Reads the record of a run; one that is driven by its record and by no process is lost.
    pub fn read(&self, id: &RunId) -> Result<RunRecord, RunError> {
        let path = self.of(id).join("run.json");
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(RunError::Unknown { text: id.to_string() });
            }
            read => read.map_err(RunError::file("read", &path))?,
        };
        let mut record: RunRecord =
            serde_json::from_slice(&bytes).map_err(|source| RunError::Record { path, source })?;
        if record.state.is_driven() && !self.is_driven(id) {
            record.state = RunState::Lost;
        }
        Ok(record)
    }

    /// Reads the record of a run that this process has the right to drive; one that was driven is lost.
    pub fn read_claimed(&self, id: &RunId) -> Result<RunRecord, RunError> {
        let mut record = self.read(id)?;
        if record.state.is_driven() {
            record.state = RunState::Lost;
        }
        Ok(record)
    }

    /// Lists the runs, the newest first; what cannot be read is left out.
    #[must_use]
    pub fn list(&self) -> Vec<RunRecord> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<RunId>().ok());
        let mut runs: Vec<_> = names.filter_map(|id| self.read(&id).ok()).collect();
        runs.sort_by(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)));
        runs
    }

    /// Finds the one run that a person means by its name or the beginning of it.
    pub fn named(&self, text: &str) -> Result<RunRecord, RunError> {
        let typed = text.trim().to_ascii_lowercase();
        let mut found: Vec<_> = self.list();
        found.retain(|run| !typed.is_empty() && run.id.as_str().starts_with(&typed));
        match (found.pop(), found.len()) {
            (Some(run), 0) => Ok(run),
            (None, _) => Err(RunError::Unknown {
                text: Shown::line(text).to_string(),
            }),
            (Some(_), others) => Err(RunError::Ambiguous {
                text: Shown::line(text).to_string(),
                count: others + 1,
            }),
        }
    }

    /// Makes room for one more run: removes runs that no process drives, the oldest first. Returns what they asked and no
    /// person has answered.
    pub(super) fn make_room(&self) -> Vec<WorkflowId> {
        let (over, waiting): (Vec<_>, Vec<_>) = self
            .list()
            .into_iter()
            .partition(|run| matches!(run.state, RunState::Ended { .. }));
        let room = KEPT.saturating_sub(waiting.len());
        let mut asked = Vec::new();
        for run in over.into_iter().skip(room).chain(waiting.into_iter().skip(KEPT)) {
            // One that a process takes over just now is left to it.
            let Ok(_lock) = self.claim(&run) else { continue };
            asked.extend(run.asks.iter().map(|ask| ask.workflow));
            let _ = disk::remove_file(&self.session_lock(&run));
            disk::remove_tree(&self.of(&run.id));
        }
        asked
    }

    fn session_lock(&self, record: &RunRecord) -> PathBuf {
        self.sessions.join(format!("{}.lock", record.session))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::super::record::{KeptAsk, KeptAskKind, RunOutcome};
    use super::*;

    #[test]
    fn runs_that_are_over_go_before_one_that_waits_and_none_that_is_driven_goes() {
        let state = tempfile::tempdir().unwrap();
        let runs = Runs::new(state.path());
        let begin = |number: usize, ends: RunState| {
            let ask = KeptAsk {
                workflow: WorkflowId::new(uuid::Uuid::from_u128(number.try_into().unwrap())),
                call: "t1".to_owned(),
                kind: KeptAskKind::Questions,
            };
            let asks = match ends {
                RunState::Ended { .. } => Vec::new(),
                _ => vec![ask],
            };
            let make = |id| RunRecord {
                id,
                session: uuid::Uuid::new_v4(),
                created_at: number.try_into().unwrap(),
                asks: asks.clone(),
                ..record()
            };
            let (mut record, lock) = runs.create(make).unwrap();
            record.state = ends;
            runs.write(&record).unwrap();
            (record.id, lock)
        };
        let ended = || RunState::Ended {
            outcome: RunOutcome::Done,
        };
        let (driven, _lock) = begin(0, RunState::Running);
        drop(begin(1, RunState::Lost));
        for number in 2..KEPT + 10 {
            drop(begin(number, ended()));
        }
        assert_eq!(runs.make_room(), [], "what waits is kept");
        let kept = runs.list();
        assert_eq!(kept.len(), KEPT);
        assert!(kept.iter().any(|run| run.id == driven));
        assert!(kept.iter().any(|run| run.state == RunState::Lost));
        for number in 0..KEPT {
            drop(begin(1_000 + number, RunState::Lost));
        }
        let asked = runs.make_room();
        // The driven one cannot go, so it is the oldest of those that wait and are not driven.
        assert_eq!(asked, [WorkflowId::new(uuid::Uuid::from_u128(1))]);
        let kept = runs.list();
        assert!(kept.iter().any(|run| run.id == driven));
        assert!(!kept.iter().any(|run| matches!(run.state, RunState::Ended { .. })));
        let locks = std::fs::read_dir(state.path().join("sessions")).unwrap().count();
        assert_eq!(locks, kept.len());
    }
}
