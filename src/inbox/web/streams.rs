//! The tokens of streams: the right of a process to put questions to the person, for as long as it lives.
//!
//! Each is a file of its own in the state directory, written by `pml serve token` and read by the server, so that a
//! token outlives a restart of the server and not its process.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::ServeError;
use crate::card::Presence;
use crate::disk;
use crate::proxy::{AskingProgram, presence_of, process_name};
use crate::workflow::{Asker, AskingClient, ProcessName};

/// A token, which is a capability: a program that holds it asks in the name of its process.
pub type StreamToken = Uuid;

/// The tokens of the user.
#[derive(Debug, Clone)]
pub struct StreamTokens {
    directory: PathBuf,
}

/// What is kept of a token.
#[derive(Debug, Serialize, Deserialize)]
struct KeptStream {
    process: ProcessName,
    /// The conversation that its questions belong to; not the token, which no ask shows.
    asker: Asker,
    project: PathBuf,
    config: PathBuf,
}

impl StreamTokens {
    /// Names the directory of the tokens below the state directory; creates nothing.
    #[must_use]
    pub fn new(state: &Path) -> Self {
        Self {
            directory: state.join("streams"),
        }
    }

    /// Makes a token for a process, and forgets those of processes that are gone. It blocks.
    pub fn make(&self, pid: u32, project: &Path, config: &Path) -> Result<StreamToken, ServeError> {
        let process = process_name(pid).ok_or(ServeError::NoProcess { pid })?;
        disk::create_private_directory(&self.directory)
            .and_then(|()| disk::restrict(&self.directory, 0o700))
            .map_err(ServeError::file("prepare", &self.directory))?;
        self.sweep();
        let kept = KeptStream {
            process,
            asker: Asker::random(),
            project: project.to_owned(),
            config: config.to_owned(),
        };
        let token = Uuid::new_v4();
        let path = self.path(token);
        let text = serde_json::to_vec(&kept).map_err(io::Error::from);
        text.and_then(|text| disk::write_new(&path, &text))
            .map_err(ServeError::file("write", &path))?;
        Ok(token)
    }

    /// Takes the right of a token away before its process ends. It blocks.
    pub fn forget(&self, token: StreamToken) {
        let _ = disk::remove_file(&self.path(token));
    }

    /// Returns the program that a token stands for while its process lives. It blocks.
    pub(super) fn living(&self, token: StreamToken) -> Option<AskingProgram> {
        let kept = std::fs::read(self.path(token)).ok()?;
        let kept: KeptStream = serde_json::from_slice(&kept).ok()?;
        match presence_of(Some(kept.process)) {
            Presence::Gone => None,
            Presence::Running => Some(AskingProgram {
                asker: kept.asker,
                project: kept.project,
                config: kept.config,
                client: AskingClient {
                    name: Some(format!("stream {}", &token.to_string()[..8])),
                    process: Some(kept.process),
                    ..AskingClient::default()
                },
            }),
        }
    }

    fn path(&self, token: StreamToken) -> PathBuf {
        self.directory.join(format!("{}.json", token.as_hyphenated()))
    }

    /// Removes the tokens of processes that are gone.
    fn sweep(&self) {
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.path();
            let token = name.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            if token.is_some_and(|token| self.living(token).is_none()) {
                let _ = std::fs::remove_file(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_token_lives_with_its_process_and_is_readable_for_its_user_alone() {
        let state = tempfile::tempdir().unwrap();
        let tokens = StreamTokens::new(state.path());
        let token = tokens
            .make(std::process::id(), Path::new("/p"), Path::new("/p/.pml.json"))
            .unwrap();
        let found = tokens.living(token).unwrap();
        assert_eq!(found.project, Path::new("/p"));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&tokens.path(token)), mode(&tokens.directory)),
            (0o600, 0o700)
        );
        assert!(tokens.living(Uuid::new_v4()).is_none());
        // A process with the same number that was started at another time is another one.
        let text = std::fs::read_to_string(tokens.path(token)).unwrap();
        let mut kept: serde_json::Value = serde_json::from_str(&text).unwrap();
        kept["process"]["started"] = 1.into();
        disk::replace(&tokens.path(token), kept.to_string().as_bytes()).unwrap();
        assert!(tokens.living(token).is_none());
        tokens
            .make(std::process::id(), Path::new("/p"), Path::new("/p/.pml.json"))
            .unwrap();
        assert!(!tokens.path(token).exists());
    }
}
