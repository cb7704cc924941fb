//! One server for each user: the lock that it holds, and the files that tell where it listens and open it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::ServeError;
use super::secret::Secret;
use super::streams::StreamToken;
use crate::disk;

/// How long a server that was just started may take until it tells where it listens.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often that is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The right to be the server of this user; it goes with the process.
#[derive(Debug)]
pub struct OnlyServer {
    files: ServerFiles,
    _lock: File,
}

/// Who is the server of this user.
#[derive(Debug)]
pub enum Claim {
    /// This process.
    Own(OnlyServer),
    /// Another one.
    Other(RunningServer),
}

/// A server that runs, as the second one finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningServer {
    /// Where it listens.
    pub url: String,
    /// Its port.
    pub port: u16,
    /// Its process.
    pub pid: u32,
    /// The command that it runs; one before this was told is `pml serve`.
    #[serde(default)]
    pub command: ServerCommand,
}

/// The command that serves the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerCommand {
    /// `pml serve`, which connects the channels and resumes answered runs as well.
    #[default]
    Serve,
    /// `pml run --web`: the page alone, for as long as its run lasts.
    Run,
}

impl RunningServer {
    /// Writes what a program needs to put questions over HTTP.
    #[must_use]
    pub fn question_settings(&self, token: StreamToken) -> Value {
        json!({
            "apiUrl": self.url.trim_end_matches('/'),
            "streamToken": token,
            "userId": 0,
            "projectId": 0,
            "csrfToken": "",
            "timeout": 300,
        })
    }
}

#[derive(Debug, Clone)]
struct ServerFiles {
    state: PathBuf,
}

impl ServerFiles {
    fn lock(&self) -> PathBuf {
        self.state.join("serve.lock")
    }

    fn address(&self) -> PathBuf {
        self.state.join("serve.json")
    }

    fn token(&self) -> PathBuf {
        self.state.join("serve.token")
    }

    fn running(&self) -> Option<RunningServer> {
        serde_json::from_slice(&std::fs::read(self.address()).ok()?).ok()
    }

    fn remove(&self) -> io::Result<()> {
        for path in [self.address(), self.token()] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

impl OnlyServer {
    /// Takes the right to be the server, or finds the one that is. It blocks.
    pub fn claim(state: &Path) -> Result<Claim, ServeError> {
        let files = ServerFiles {
            state: state.to_owned(),
        };
        disk::create_private_directory(state)
            .and_then(|()| disk::restrict(state, 0o700))
            .map_err(ServeError::file("prepare", state))?;
        let path = files.lock();
        let lock = disk::open_lock(&path).map_err(ServeError::file("open", &path))?;
        let began = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => {
                    // What a killed server left tells of nothing any more.
                    files.remove().map_err(ServeError::file("prepare", state))?;
                    return Ok(Claim::Own(Self { files, _lock: lock }));
                }
                Err(TryLockError::Error(source)) => return Err(ServeError::file("lock", &path)(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            if let Some(running) = files.running() {
                return Ok(Claim::Other(running));
            }
            if began.elapsed() > PATIENCE {
                return Err(ServeError::Silent { lock: path });
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Finds the server that runs, without becoming one. It blocks.
    pub fn find(state: &Path) -> Result<RunningServer, ServeError> {
        match Self::claim(state)? {
            Claim::Own(_) => Err(ServeError::NotRunning),
            Claim::Other(running) => Ok(running),
        }
    }

    /// Tells where the server listens and what opens it, to this user alone. It blocks.
    pub(super) fn announce(&self, running: &RunningServer, token: &Secret) -> Result<(), ServeError> {
        let path = self.files.token();
        let text = format!("{}\n", token.text());
        disk::replace(&path, text.as_bytes()).map_err(ServeError::file("write", &path))?;
        let path = self.files.address();
        let text = serde_json::to_vec(running).map_err(io::Error::from);
        text.and_then(|text| disk::replace(&path, &text))
            .map_err(ServeError::file("write", &path))
    }
}

impl Drop for OnlyServer {
    fn drop(&mut self) {
        // The next server removes what cannot be removed now.
        let _ = self.files.remove();
    }
}

/// Reads the token of the server that runs. It blocks.
pub(super) fn token(state: &Path) -> Result<String, ServeError> {
    let path = ServerFiles {
        state: state.to_owned(),
    }
    .token();
    let text = std::fs::read_to_string(&path).map_err(ServeError::file("read", &path))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_second_server_finds_the_first_until_that_is_gone() {
        let state = tempfile::tempdir().unwrap();
        let Claim::Own(own) = OnlyServer::claim(state.path()).unwrap() else {
            panic!("nobody else is there")
        };
        let running = RunningServer {
            url: "http://127.0.0.1:1/".to_owned(),
            port: 1,
            pid: 2,
            command: ServerCommand::Run,
        };
        let secret = Secret::random();
        own.announce(&running, &secret).unwrap();
        assert_eq!(OnlyServer::find(state.path()).unwrap(), running);
        assert!(secret.is(&token(state.path()).unwrap()));
        let mode = own.files.token().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(own);
        assert!(matches!(
            OnlyServer::find(state.path()),
            Err(ServeError::NotRunning)
        ));
        assert!(token(state.path()).is_err());
    }
}
