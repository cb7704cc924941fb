//! The file that tells the programs of a run how to put questions to its person over HTTP: `ASK_USER_CONFIG`.
//!
//! It is there while the run is, for this user alone. pml itself does not need it: inside a run its questions go to the store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::Locations;
use crate::disk;
use crate::host::HostedRun;
use crate::inbox::web::{OnlyServer, ServeError, StreamToken, StreamTokens};
use crate::proxy::process_name;

/// Names the file to the programs of a run.
const VARIABLE: &str = "ASK_USER_CONFIG";

/// A file whose process was killed is removed once it is this old.
const STALE: Duration = Duration::from_hours(1);

/// The file of a run and the right that it gives; both go with it.
#[derive(Debug)]
pub(in crate::cli) struct QuestionHostFile {
    path: PathBuf,
    tokens: StreamTokens,
    token: StreamToken,
}

impl QuestionHostFile {
    /// Writes the file of a run and names it to its programs; `None` where no `pml serve` runs that would take their
    /// questions. It blocks.
    pub(in crate::cli) fn put(locations: &Locations, run: &mut HostedRun) -> anyhow::Result<Option<Self>> {
        let state = locations.state();
        let running = match OnlyServer::find(state) {
            Ok(running) => running,
            Err(ServeError::NotRunning) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let directory = state.join("ask-user");
        disk::create_private_directory(&directory)?;
        sweep(&directory);
        let pid = std::process::id();
        let tokens = StreamTokens::new(state);
        let token = tokens.make(pid, &run.record.directory, run.proxy.file())?;
        let path = directory.join(format!("{pid}.{token}.json"));
        let settings = running.question_settings(token).to_string();
        let file = Self { path, tokens, token };
        disk::write_new(&file.path, settings.as_bytes())?;
        run.environment = run.environment.clone().with(VARIABLE, &file.path);
        Ok(Some(file))
    }
}

impl Drop for QuestionHostFile {
    fn drop(&mut self) {
        let _ = disk::remove_file(&self.path);
        self.tokens.forget(self.token);
    }
}

/// Removes what processes left that were killed.
fn sweep(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.split('.').next()?.parse().ok());
        let age = entry.metadata().and_then(|found| found.modified()).ok();
        let is_old = age.is_some_and(|at| at.elapsed().is_ok_and(|age| age > STALE));
        if is_old && pid.is_none_or(|pid| process_name(pid).is_none()) {
            let _ = disk::remove_file(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};
    use std::time::SystemTime;

    #[test]
    fn only_old_files_of_processes_that_are_gone_are_swept() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, age: Duration| {
            let path = directory.path().join(name);
            disk::write_new(&path, b"{}").unwrap();
            let modified = SystemTime::UNIX_EPOCH + Duration::from_hours(24);
            if age > STALE {
                let times = FileTimes::new().set_modified(modified);
                File::options()
                    .write(true)
                    .open(&path)
                    .unwrap()
                    .set_times(times)
                    .unwrap();
            }
            path
        };
        let alive = format!("{}.a.json", std::process::id());
        let kept = [write(&alive, STALE * 2), write("4194304.b.json", Duration::ZERO)];
        let gone = write("4194304.c.json", STALE * 2);
        sweep(directory.path());
        assert!(kept.iter().all(|path| path.exists()) && !gone.exists());
    }
}
