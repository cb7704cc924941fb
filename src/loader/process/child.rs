//! The process of a running dependency, seen from pml: started, followed, stopped.
//!
//! What pml starts is the supervisor (see [`super::supervisor`]), which starts the server. The one thing to know:
//! pml never kills the supervisor, because the supervisor is what kills the server and everything below it.
//! Closing the server's stdin, a SIGTERM to the supervisor or the death of pml each lead to the same end.
//!
//! If a supervisor is killed by SIGKILL from outside, the kernel kills the server (Linux). What the server had started
//! sees the end of stdin once the [`Pipes`] are dropped; what ignores that too is out of pml's reach.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncWrite;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinHandle;

use super::launch_line::LaunchLine;
use super::stderr::Stderr;
use super::supervisor::CANNOT_START;
use super::supervisor_process::{LifeLine, SupervisorProcess};
use crate::config::VariablesFileError;
use crate::protocol::{DependencyName, Shown, shell};
use crate::report::Hint;
use crate::wire::widen;

/// How long a gentle stop waits before it becomes an urgent one: the supervisor's own graces and some slack. It is
/// needed only where the caller still holds the server's stdin.
const GENTLE_LIMIT: Duration = Duration::from_millis(800);

/// How long the rest of stderr is waited for once the process is gone: it is in the pipe already, unless something
/// that escaped holds the pipe open.
const STDERR_LIMIT: Duration = Duration::from_millis(100);

/// Says why a dependency could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// Its working directory is missing.
    #[error("cannot start `{name}`: its working directory `{}` does not exist", Shown::path(.directory))]
    Directory {
        /// The dependency.
        name: DependencyName,
        /// The directory.
        directory: PathBuf,
    },
    /// Its program is found only inside the project.
    #[error(
        "cannot start `{name}`: `{program}` is on the PATH only inside the project, as `{}`",
        Shown::path(found)
    )]
    InProject {
        /// The dependency.
        name: DependencyName,
        /// The program as declared, escaped.
        program: String,
        /// Where it was found.
        found: PathBuf,
    },
    /// Its file of variables cannot be used.
    #[error("cannot start `{name}`: its `envFile` cannot be used")]
    VariablesFile {
        /// The dependency.
        name: DependencyName,
        /// Why.
        #[source]
        source: VariablesFileError,
    },
    /// The supervisor did not start.
    #[error("cannot start `{name}`: its supervisor `{}` did not start", Shown::path(.supervisor))]
    Supervisor {
        /// The dependency.
        name: DependencyName,
        /// The program that was to supervise it.
        supervisor: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl Hint for SpawnError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Directory { directory, .. } => {
                Some(format!("to create it: mkdir -p {}", shell::path(directory)))
            }
            Self::InProject { .. } => {
                Some("to run the project's own program, write its path as the \"command\"".to_owned())
            }
            Self::VariablesFile { source, .. } => source.hint(),
            Self::Supervisor { .. } => None,
        }
    }
}

/// How a dependency ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(u8),
    /// It was ended by this signal.
    Signal(u8),
    /// It never ran: the program is missing or cannot be executed. Holds the reason, fit to be shown.
    NotStarted(String),
    /// Its supervisor was killed from outside.
    Unsupervised,
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exited with code {code}"),
            Self::Signal(signal) => write!(formatter, "was ended by signal {signal}"),
            Self::NotStarted(reason) => write!(formatter, "could not be started: {reason}"),
            Self::Unsupervised => formatter.write_str("lost its supervisor"),
        }
    }
}

/// How a dependency is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// End of file first, then SIGTERM, then SIGKILL: 0.6 s at most. The caller has dropped [`Pipes::stdin`].
    Gentle,
    /// SIGTERM now, SIGKILL 150 ms later: pml itself was told to end.
    AtOnce,
}

/// The conversation with a server: both ends do not block.
#[derive(Debug)]
pub struct Pipes {
    /// Where requests go. Dropping it tells the server to end.
    pub stdin: Stdin,
    /// Where answers come from.
    pub stdout: ChildStdout,
}

/// The way to a server, and the line of life of its supervisor: both end together. They are two pipes, because what
/// the supervisor holds open would hide that the server has closed its end.
#[derive(Debug)]
pub struct Stdin {
    server: ChildStdin,
    _life: io::PipeWriter,
}

impl AsyncWrite for Stdin {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.server).poll_write(task, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.server).poll_write_vectored(task, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.server.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.server).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.server).poll_shutdown(task)
    }
}

/// A running dependency. Dropping it stops it at once, without waiting for its end.
#[derive(Debug)]
pub struct Process {
    name: DependencyName,
    supervisor: SupervisorProcess,
    stderr: Stderr,
    /// Reads stderr to its end; taken when that was awaited.
    reader: Option<JoinHandle<()>>,
    /// Set once the process is gone.
    exit: Option<Exit>,
}

/// Starts a dependency under a supervisor, from within the runtime; takes about as long as a `fork`.
///
/// A program that is missing shows as [`Exit::NotStarted`], because only the supervisor looks for it.
pub fn spawn(
    name: &DependencyName,
    line: &LaunchLine,
    supervisor: &Path,
) -> Result<(Process, Pipes), SpawnError> {
    if !line.directory.is_dir() {
        return Err(SpawnError::Directory {
            name: name.clone(),
            directory: line.directory.clone(),
        });
    }
    let failed = |cause| SpawnError::Supervisor {
        name: name.clone(),
        supervisor: supervisor.to_owned(),
        cause,
    };
    let pipe = LifeLine::open().map_err(failed)?;
    let mut child = pipe
        .command(supervisor, line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (Some(stdin), Some(stdout), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(failed(io::Error::other("its pipes are missing")));
    };
    widen(&stdin);
    widen(&stdout);
    let stdin = Stdin {
        server: stdin,
        _life: pipe.held(),
    };
    let stderr = Stderr::hiding(line.secrets.clone());
    let reader = tokio::spawn(stderr.clone().follow(name.clone(), errors));
    tracing::debug!(dependency = name.as_str(), supervisor = child.id(), "started");
    let process = Process {
        name: name.clone(),
        supervisor: SupervisorProcess::new(child),
        stderr,
        reader: Some(reader),
        exit: None,
    };
    Ok((process, Pipes { stdin, stdout }))
}

impl Process {
    /// Returns the end of what it wrote to stderr, which stays readable after the process is gone.
    #[must_use]
    pub fn stderr(&self) -> Stderr {
        self.stderr.clone()
    }

    /// Waits until it and everything it started is gone. May be dropped and called again.
    pub async fn exited(&mut self) -> Exit {
        if let Some(exit) = &self.exit {
            return exit.clone();
        }
        let status = self.supervisor.exited().await;
        if let Some(reader) = &mut self.reader {
            if tokio::time::timeout(STDERR_LIMIT, &mut *reader).await.is_err() {
                reader.abort();
            }
            self.reader = None;
        }
        let exit = status.map_or(Exit::Unsupervised, |status| self.exit_of(status));
        tracing::debug!(dependency = self.name.as_str(), %exit, "gone");
        self.exit = Some(exit.clone());
        exit
    }

    /// Stops it and waits for its end.
    pub async fn stop(mut self, urgency: Urgency) -> Exit {
        if urgency == Urgency::Gentle
            && let Ok(exit) = tokio::time::timeout(GENTLE_LIMIT, self.exited()).await
        {
            return exit;
        }
        self.supervisor.terminate();
        self.exited().await
    }

    fn exit_of(&self, status: ExitStatus) -> Exit {
        match (status.code(), status.signal()) {
            (Some(code), _) => exit_of(code, &self.stderr.tail()),
            // Once it listens, SIGTERM does not end a supervisor: nothing had been started yet.
            (None, Some(signal)) if signal == Signal::TERM.as_raw() => Exit::Signal(15),
            (None, signal) => {
                let dependency = self.name.as_str();
                tracing::warn!(dependency, signal, "the supervisor was killed");
                Exit::Unsupervised
            }
        }
    }
}

/// Reads how a supervisor ended that has written nothing.
pub(super) fn exit_of_status(status: ExitStatus) -> Exit {
    match status.code() {
        Some(code) => exit_of(code, ""),
        None => Exit::Unsupervised,
    }
}

/// Reads the supervisor's exit code; `tail` holds its one line when nothing could be started.
fn exit_of(code: i32, tail: &str) -> Exit {
    // 64 signals exist.
    match u8::try_from(code).unwrap_or(u8::MAX) {
        126 | 127 if let Some(reason) = not_started(tail) => Exit::NotStarted(reason),
        code @ 129..=192 => Exit::Signal(code - 128),
        code => Exit::Code(code),
    }
}

fn not_started(tail: &str) -> Option<String> {
    let reason = tail.lines().last()?.strip_prefix(CANNOT_START)?;
    Some(Shown::line(reason).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_codes_signals_and_what_never_ran_apart() {
        let line = format!("{CANNOT_START}`x`: there is no such program");
        assert_eq!(
            [
                exit_of(0, ""),
                exit_of(1, &line),
                exit_of(127, "sh: x: not found"),
                exit_of(127, &line),
                exit_of(126, &format!("warning\n{line}")),
                exit_of(137, ""),
                exit_of(255, ""),
            ],
            [
                Exit::Code(0),
                Exit::Code(1),
                Exit::Code(127),
                Exit::NotStarted("`x`: there is no such program".to_owned()),
                Exit::NotStarted("`x`: there is no such program".to_owned()),
                Exit::Signal(9),
                Exit::Code(255),
            ]
        );
    }
}
