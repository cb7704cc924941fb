//! The last step before the server: a process that asks to die with its supervisor and then becomes the server.
//!
//! The supervisor kills everything in order, unless it is itself killed by SIGKILL. For that case the kernel is
//! asked to kill the server when its parent dies; only the process itself can ask, hence this step in between,
//! which costs one `exec`. The signal comes when the *thread* that started the process ends, so the supervisor
//! starts the server from its main thread. What the server started is not reached this way.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::error::SuperviseError;

/// Becomes `program`, which dies with the process `supervisor`; returns only when that fails.
#[expect(clippy::disallowed_methods, reason = "the one place that turns into a server")]
pub fn launch(
    supervisor: i32,
    program: &OsStr,
    arguments: &[OsString],
) -> Result<Infallible, SuperviseError> {
    let name = || program.to_string_lossy().into_owned();
    die_with(supervisor).map_err(|cause| SuperviseError::Setup {
        program: name(),
        cause,
    })?;
    let cause = Command::new(program).args(arguments).exec();
    Err(match cause.kind() {
        io::ErrorKind::NotFound => SuperviseError::NotFound { program: name() },
        _ => SuperviseError::NotExecutable {
            program: name(),
            cause,
        },
    })
}

#[cfg(target_os = "linux")]
fn die_with(supervisor: i32) -> io::Result<()> {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL))?;
    // One that died before the request will never cause the signal.
    if getppid() != Pid::from_raw(supervisor) {
        return Err(io::Error::other("it is gone already"));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature everywhere")]
fn die_with(_supervisor: i32) -> io::Result<()> {
    Ok(())
}
