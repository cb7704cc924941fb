//! The supervisor of one server: its own small process between pml and the server.
//!
//! It owns the life and death of everything the server starts and touches none of the bytes: the server inherits
//! stdin, stdout and stderr. What is not obvious:
//!
//! - Its line of life is the read end of a pipe of pml's, polled for a hang-up and never read. The hang-up comes when
//!   pml closes the pipe and just as well when pml is killed by SIGKILL. That pipe is not the server's stdin, which the
//!   supervisor lets go of: otherwise pml could not see that a server has closed it.
//! - As *subreaper* it inherits the orphans of the server, also those that forked twice and left the session. They
//!   are its direct children then, unreaped, so that a signal to one can never hit a stranger with a reused id.
//! - The server stays unreaped until the end for the same reason: its group id remains its own.
//! - It leads a process group apart from pml's, because clients kill pml by group.
//!
//! On other systems than Linux there is no subreaper: what left the server's process group is out of reach.

mod descendants;
mod error;
mod launch;
mod life;
mod phase;
mod program;

pub(in crate::loader) use error::CANNOT_START;
pub use error::SuperviseError;
pub use launch::launch;
pub use life::Life;
pub use program::program;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::descendants::Descendants;
use self::phase::{EndEvent, EndPhase};
use crate::footprint;

/// Runs `program` until it and everything it started is gone; returns its exit code, or 128 + its signal.
pub fn run(life: Life, program: &OsStr, arguments: &[OsString]) -> Result<u8, SuperviseError> {
    let setup = |cause| SuperviseError::Setup {
        program: program.to_string_lossy().into_owned(),
        cause,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(setup)?;
    runtime.block_on(async {
        // Before the server exists, so that no signal falls between. A signal with a handler, unlike an ignored
        // one, is back at its default in the server.
        let mut signals = Signals::listen().map_err(setup)?;
        Descendants::adopt().map_err(|error| setup(error.into()))?;
        let hung_up = life.hung_up().map_err(setup)?;
        let server = start(program, arguments).map_err(setup)?;
        // The server holds the only other copies: when it closes one, pml sees that.
        life.release().map_err(setup)?;
        let descendants = Descendants::of(server);
        // From here on it waits; one such process stands beside each server.
        footprint::release_program_text();
        watch(hung_up, &mut signals, &descendants).await;
        Ok(descendants.kill())
    })
}

/// Starts the server in its own process group, with nothing open but stdin, stdout and stderr.
#[expect(clippy::disallowed_methods, reason = "the one place that starts a server")]
fn start(program: &OsStr, arguments: &[OsString]) -> io::Result<Pid> {
    close_fds::set_fds_cloexec(3, &[]);
    let child = Command::new(program::program()?)
        .arg0("pml")
        .arg("launch")
        .arg(std::process::id().to_string())
        .arg("--")
        .arg(program)
        .args(arguments)
        .process_group(0)
        .spawn()?;
    Ok(Pid::from_child(&child))
}

/// Follows the phases until everything is to be killed or is gone.
async fn watch(mut hung_up: oneshot::Receiver<()>, signals: &mut Signals, descendants: &Descendants) {
    let mut phase = EndPhase::Running;
    let mut deadline = None;
    loop {
        let event = tokio::select! {
            _ = &mut hung_up, if phase == EndPhase::Running => Some(EndEvent::HungUp),
            () = signals.terminate.received() => Some(EndEvent::Asked),
            () = signals.terminal_closed.received() => Some(EndEvent::Asked),
            () = signals.child.received() => descendants.reap(),
            () = until(deadline) => Some(EndEvent::Overdue),
            // Ctrl-C is for pml, which then closes its servers in its own order.
            () = signals.interrupt.received() => None,
            () = signals.quit.received() => None,
        };
        let next = event.map_or(phase, |event| phase.after(event));
        if next == phase {
            continue;
        }
        phase = next;
        deadline = phase.lasts().map(|grace| Instant::now() + grace);
        match phase {
            EndPhase::Terminating(_) => descendants.signal(Signal::TERM),
            EndPhase::Ending => return,
            EndPhase::Running | EndPhase::Closing => {}
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The signals that the supervisor takes note of.
struct Signals {
    terminate: SignalListener,
    terminal_closed: SignalListener,
    interrupt: SignalListener,
    quit: SignalListener,
    child: SignalListener,
}

/// One signal.
struct SignalListener(tokio::signal::unix::Signal);

impl SignalListener {
    fn of(kind: SignalKind) -> io::Result<Self> {
        signal(kind).map(Self)
    }

    async fn received(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: SignalListener::of(SignalKind::terminate())?,
            terminal_closed: SignalListener::of(SignalKind::hangup())?,
            interrupt: SignalListener::of(SignalKind::interrupt())?,
            quit: SignalListener::of(SignalKind::quit())?,
            child: SignalListener::of(SignalKind::child())?,
        })
    }
}
