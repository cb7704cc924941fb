//! What a person says to a run from elsewhere: one file each, taken by the process that drives the run. It blocks.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::RunError;
use super::message::Message;
use super::record::RunId;
use super::runs::Runs;
use crate::disk;

/// How many things that a person said may wait for a run.
const INPUTS: usize = 100;

/// How many are taken at once: each may hold pictures.
const AT_ONCE: usize = 4;

/// How long what was said to a run waits for a process that drives it.
const KEPT: Duration = Duration::from_hours(24);

/// The ending of a file that waits, and of one that is being taken.
const WAITS: &str = "json";
/// See [`WAITS`].
const TAKEN: &str = "taken";

/// What a person says to a run from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum RunInput {
    /// A line for the agent.
    Message(Message),
    /// The agent is to break off what it does.
    Interrupt,
    /// The run is to end.
    Stop,
}

impl Runs {
    fn inputs(&self, id: &RunId) -> PathBuf {
        self.of(id).join("inputs")
    }

    /// Leaves something that a person said for the process that drives a run; refused where none does.
    pub fn put_input(&self, id: &RunId, input: &RunInput) -> Result<(), RunError> {
        if !self.read(id)?.state.is_driven() {
            return Err(RunError::NotDriven { id: id.to_string() });
        }
        self.keep_input(id, input)
    }

    /// Keeps something that a person said for the next process that drives a run.
    pub(super) fn keep_input(&self, id: &RunId, input: &RunInput) -> Result<(), RunError> {
        let directory = self.inputs(id);
        disk::create_private_directory(&directory).map_err(RunError::file("create", &directory))?;
        let waiting = std::fs::read_dir(&directory).map_err(RunError::file("read", &directory))?;
        if waiting.count() >= INPUTS {
            let full = io::Error::new(ErrorKind::StorageFull, "too much waits for the run already");
            return Err(RunError::file("write into", &directory)(full));
        }
        let path = directory.join(file_name());
        let text = serde_json::to_vec(input)
            .map_err(io::Error::from)
            .map_err(RunError::file("write", &path))?;
        disk::replace(&path, &text).map_err(RunError::file("write", &path))
    }

    /// Takes what persons said to a run, in the order they said it, some of it at a time; what cannot be read is dropped.
    #[must_use]
    pub fn take_inputs(&self, id: &RunId) -> Vec<RunInput> {
        let taken = waiting_in(&self.inputs(id)).into_iter().take(AT_ONCE);
        taken.filter_map(|path| take(&path)).collect()
    }

    /// Forgets that a run was to be interrupted or stopped: that was said to a process which is gone. What was said to the
    /// agent stays.
    pub(super) fn forget_stops(&self, id: &RunId) {
        for path in waiting_in(&self.inputs(id)) {
            let input = std::fs::read(&path).ok();
            let input = input.and_then(|bytes| serde_json::from_slice::<RunInput>(&bytes).ok());
            if !matches!(input, Some(RunInput::Message(_))) {
                let _ = disk::remove_file(&path);
            }
        }
    }
}

fn waiting_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == WAITS));
    paths.sort();
    paths
}

/// Takes one thing, which one process does: whichever gives its file another name.
fn take(path: &Path) -> Option<RunInput> {
    let taken = path.with_extension(TAKEN);
    disk::rename(path, &taken).ok()?;
    let age = std::fs::metadata(&taken).and_then(|found| found.modified());
    let age = age.ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
    let bytes = std::fs::read(&taken);
    let _ = disk::remove_file(&taken);
    let input = serde_json::from_slice(&bytes.ok()?).ok()?;
    (age < KEPT).then_some(input)
}

/// Names a file so that those of one process sort in the order they were made, and those of several nearly so.
fn file_name() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static MADE: AtomicU64 = AtomicU64::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    let now = crate::proxy::now().millis();
    format!("{now:016}-{made:08}-{}.{WAITS}", uuid::Uuid::new_v4().simple())
}

#[cfg(test)]
mod tests {
    use super::super::message::Priority;
    use super::super::record::tests::record;
    use super::super::record::{RunRecord, RunState};
    use super::*;

    fn said(text: &str) -> RunInput {
        RunInput::Message(Message {
            uuid: text.to_owned(),
            text: text.to_owned(),
            images: Vec::new(),
            priority: Priority::Next,
        })
    }

    #[test]
    fn a_run_that_no_process_drives_hears_nothing_and_forgets_that_it_was_to_stop() {
        let state = tempfile::tempdir().unwrap();
        let runs = Runs::new(state.path());
        let (mut run, lock) = runs.create(|id| RunRecord { id, ..record() }).unwrap();
        for input in [said("one"), RunInput::Stop, RunInput::Interrupt, said("two")] {
            runs.put_input(&run.id, &input).unwrap();
        }
        run.state = RunState::Lost;
        runs.write(&run).unwrap();
        drop(lock);
        let refused = runs.put_input(&run.id, &RunInput::Stop);
        assert!(matches!(refused, Err(RunError::NotDriven { .. })), "{refused:?}");
        runs.forget_stops(&run.id);
        assert_eq!(runs.take_inputs(&run.id), [said("one"), said("two")]);
        assert_eq!(runs.take_inputs(&run.id), []);
    }

    #[test]
    fn what_was_said_once_is_taken_once_by_however_many_look() {
        let state = tempfile::tempdir().unwrap();
        let runs = Runs::new(state.path());
        let (run, _lock) = runs.create(|id| RunRecord { id, ..record() }).unwrap();
        let texts: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
        for text in &texts {
            runs.put_input(&run.id, &said(text)).unwrap();
        }
        let taken: Vec<RunInput> = std::thread::scope(|scope| {
            let look = || {
                let looks = std::iter::repeat_with(|| runs.take_inputs(&run.id));
                looks.take(40).flatten().collect::<Vec<_>>()
            };
            let lookers: Vec<_> = (0..4).map(|_| scope.spawn(look)).collect();
            lookers
                .into_iter()
                .flat_map(|looker| looker.join().unwrap())
                .collect()
        });
        let mut heard: Vec<String> = taken
            .into_iter()
            .map(|input| match input {
                RunInput::Message(message) => message.text,
                other => panic!("{other:?}"),
            })
            .collect();
        heard.sort();
        assert_eq!(heard, texts);
    }
}
