//! The process of a supervisor, seen from pml: how it is started, what it lives by, how it is told to end.
//!
//! pml never kills a supervisor, because the supervisor is what kills the program and everything below it.

use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::ExitStatus;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::launch_line::LaunchLine;

/// A pipe whose end tells a supervisor that pml is gone, before the supervisor is started.
#[derive(Debug)]
pub(super) struct LifeLine {
    watched: io::PipeReader,
    held: io::PipeWriter,
}

impl LifeLine {
    /// Opens the pipe.
    pub(super) fn open() -> io::Result<Self> {
        let (watched, held) = io::pipe()?;
        // Inherited by its number. Another process that is started at this moment may inherit it too: that harms nothing,
        // because only the other end keeps a supervisor alive, and no process inherits that.
        fcntl_setfd(&watched, FdFlags::empty())?;
        Ok(Self { watched, held })
    }

    /// Returns the command that runs a program under a supervisor; what it reads and writes is the caller's choice.
    #[expect(clippy::disallowed_methods, reason = "the one place that starts a supervisor")]
    pub(super) fn command(&self, supervisor: &Path, line: &LaunchLine) -> Command {
        let mut command = Command::new(supervisor);
        command
            .arg0("pml")
            .args(["supervise", "--life", &self.watched.as_raw_fd().to_string(), "--"])
            .arg(&line.program)
            .args(&line.arguments)
            .env_clear()
            .envs(&line.variables)
            .current_dir(&line.directory)
            // Clients kill pml by its group: the supervisor must outlive that to do its work.
            .process_group(0)
            .kill_on_drop(false);
        command
    }

    /// Returns the end whose closing ends the supervisor, once that is started.
    pub(super) fn held(self) -> io::PipeWriter {
        self.held
    }
}

/// A supervisor that runs. Dropping it tells it to end everything, without waiting for that.
#[derive(Debug)]
pub(super) struct SupervisorProcess(Child);

impl SupervisorProcess {
    /// Follows a supervisor that was started.
    pub(super) fn new(child: Child) -> Self {
        Self(child)
    }

    /// Waits until it and everything it started is gone. May be dropped and called again.
    pub(super) async fn exited(&mut self) -> io::Result<ExitStatus> {
        self.0.wait().await
    }

    /// Tells it to end everything. A process that was waited for has no id any more, so the signal cannot reach a
    /// stranger.
    pub(super) fn terminate(&self) {
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(supervisor) = id.and_then(Pid::from_raw) {
            let _ = kill_process(supervisor, Signal::TERM);
        }
    }
}

impl Drop for SupervisorProcess {
    fn drop(&mut self) {
        self.terminate();
    }
}
