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
mod launch;
mod life;

pub use launch::launch;
pub use life::Life;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::Instant;

use descendants::Descendants;

/// How long a server may take to end by itself after its stdin closed, and again after SIGTERM: both together
/// leave pml time to be gone within a second of its own end of file.
const GENTLE_GRACE: Duration = Duration::from_millis(300);

/// How long a server may take after SIGTERM when pml was told to end: clients kill pml 400 ms after that.
const URGENT_GRACE: Duration = Duration::from_millis(150);

/// What the one line on stderr starts with when the server could not be started.
pub(crate) const CANNOT_START: &str = "pml supervise: cannot start ";

/// Says why a server could not be supervised.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// The program is not there, or its interpreter is not.
    #[error("{CANNOT_START}`{program}`: there is no such program (or its interpreter is missing)")]
    NotFound {
        /// The program as given.
        program: String,
    },
    /// The program is there but cannot run.
    #[error("{CANNOT_START}`{program}`: {cause}")]
    NotExecutable {
        /// The program as given.
        program: String,
        /// Why; part of the text, because the line is all that reaches pml.
        cause: io::Error,
    },
    /// The supervisor could not be set up.
    #[error("{CANNOT_START}`{program}`: its supervisor failed: {cause}")]
    Setup {
        /// The program as given.
        program: String,
        /// Why; part of the text, because the line is all that reaches pml.
        cause: io::Error,
    },
}

impl SuperviseError {
    /// Returns the exit code that shells give for the same trouble.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } | Self::Setup { .. } => 126,
        }
    }
}

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
        watch(hung_up, &mut signals, &descendants).await;
        Ok(descendants.kill())
    })
}

/// Starts the server in its own process group, with nothing open but stdin, stdout and stderr.
#[expect(clippy::disallowed_methods, reason = "the one place that starts a server")]
fn start(program: &OsStr, arguments: &[OsString]) -> io::Result<Pid> {
    close_fds::set_fds_cloexec(3, &[]);
    let child = Command::new(super::process::supervisor()?)
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

/// Where a server stands on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It serves.
    Running,
    /// It has seen the end of its stdin.
    Closing,
    /// It has been told to end by SIGTERM.
    Terminating(Duration),
    /// Everything is to be killed now.
    Ending,
}

/// What moves a server along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// pml closed the pipe, or is dead.
    HungUp,
    /// pml wants it gone at once.
    Asked,
    /// The server has exited, its descendants have not.
    Exited,
    /// Nothing is left.
    Gone,
    /// The time of the phase is over.
    Overdue,
}

impl Phase {
    /// Returns what follows; this is the whole order of death.
    fn after(self, event: Event) -> Self {
        match (self, event) {
            (_, Event::Gone) | (Self::Terminating(_), Event::Overdue | Event::Asked) => Self::Ending,
            (Self::Running, Event::HungUp) => Self::Closing,
            (Self::Running | Self::Closing, Event::Asked | Event::Exited) => Self::Terminating(URGENT_GRACE),
            (Self::Closing, Event::Overdue) => Self::Terminating(GENTLE_GRACE),
            (phase, _) => phase,
        }
    }

    /// Returns how long the phase lasts, if it ends by itself.
    fn lasts(self) -> Option<Duration> {
        match self {
            Self::Running | Self::Ending => None,
            Self::Closing => Some(GENTLE_GRACE),
            Self::Terminating(grace) => Some(grace),
        }
    }
}

/// Follows the phases until everything is to be killed or is gone.
async fn watch(mut hung_up: oneshot::Receiver<()>, signals: &mut Signals, descendants: &Descendants) {
    let mut phase = Phase::Running;
    let mut deadline = None;
    loop {
        let event = tokio::select! {
            _ = &mut hung_up, if phase == Phase::Running => Some(Event::HungUp),
            () = signals.terminate.received() => Some(Event::Asked),
            () = signals.terminal_closed.received() => Some(Event::Asked),
            () = signals.child.received() => descendants.reap(),
            () = until(deadline) => Some(Event::Overdue),
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
            Phase::Terminating(_) => descendants.signal(Signal::TERM),
            Phase::Ending => return,
            Phase::Running | Phase::Closing => {}
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
    terminate: Listener,
    terminal_closed: Listener,
    interrupt: Listener,
    quit: Listener,
    child: Listener,
}

/// One signal.
struct Listener(tokio::signal::unix::Signal);

impl Listener {
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
            terminate: Listener::of(SignalKind::terminate())?,
            terminal_closed: Listener::of(SignalKind::hangup())?,
            interrupt: Listener::of(SignalKind::interrupt())?,
            quit: Listener::of(SignalKind::quit())?,
            child: Listener::of(SignalKind::child())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: [Phase; 5] = [
        Phase::Running,
        Phase::Closing,
        Phase::Terminating(GENTLE_GRACE),
        Phase::Terminating(URGENT_GRACE),
        Phase::Ending,
    ];
    const EVENTS: [Event; 5] = [
        Event::HungUp,
        Event::Asked,
        Event::Exited,
        Event::Gone,
        Event::Overdue,
    ];

    #[test]
    fn a_closed_pipe_leads_to_the_end_through_both_graces() {
        let closing = Phase::Running.after(Event::HungUp);
        let terminating = closing.after(Event::Overdue);
        assert_eq!(
            [closing, terminating, terminating.after(Event::Overdue)],
            [Phase::Closing, Phase::Terminating(GENTLE_GRACE), Phase::Ending]
        );
    }

    #[test]
    fn being_asked_shortens_every_phase() {
        assert_eq!(
            PHASES.map(|phase| phase.after(Event::Asked)),
            [
                Phase::Terminating(URGENT_GRACE),
                Phase::Terminating(URGENT_GRACE),
                Phase::Ending,
                Phase::Ending,
                Phase::Ending,
            ]
        );
    }

    #[test]
    fn a_server_that_ends_by_itself_takes_its_descendants_along() {
        assert_eq!(
            PHASES.map(|phase| phase.after(Event::Exited)),
            [
                Phase::Terminating(URGENT_GRACE),
                Phase::Terminating(URGENT_GRACE),
                Phase::Terminating(GENTLE_GRACE),
                Phase::Terminating(URGENT_GRACE),
                Phase::Ending,
            ]
        );
    }

    #[test]
    fn nothing_leads_back() {
        let rank = |phase| match phase {
            Phase::Running => 0,
            Phase::Closing => 1,
            Phase::Terminating(_) => 2,
            Phase::Ending => 3,
        };
        for phase in PHASES {
            for event in EVENTS {
                assert!(
                    rank(phase.after(event)) >= rank(phase),
                    "{phase:?} after {event:?}"
                );
            }
            assert_eq!(phase.after(Event::Gone), Phase::Ending);
        }
    }

    #[test]
    fn every_phase_but_running_ends_by_itself() {
        for phase in [Phase::Closing, Phase::Terminating(GENTLE_GRACE)] {
            assert!(phase.lasts().is_some());
            assert_ne!(phase.after(Event::Overdue), phase);
        }
        assert_eq!(Phase::Running.lasts(), None);
    }

    #[test]
    fn the_longest_order_of_death_fits_into_a_second_and_the_urgent_one_into_400_ms() {
        assert!(GENTLE_GRACE * 2 < Duration::from_secs(1));
        assert!(URGENT_GRACE < Duration::from_millis(400));
    }
}
