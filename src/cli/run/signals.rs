//! The signals of a run, heard from its beginning to its end, also while nothing else is waited for.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// The person breaks off (Ctrl-C).
    Interrupt,
    /// This process is to end: it is told so, or its terminal is gone.
    End,
    /// The terminal has another size, or this process is in its foreground again.
    Redraw,
}

/// The signals of this process.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    resized: Signal,
    continued: Signal,
}

impl Signals {
    /// Begins to listen.
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            resized: signal(SignalKind::window_change())?,
            continued: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Heard {
        tokio::select! {
            _ = self.interrupt.recv() => Heard::Interrupt,
            _ = self.terminate.recv() => Heard::End,
            _ = self.hangup.recv() => Heard::End,
            _ = self.resized.recv() => Heard::Redraw,
            _ = self.continued.recv() => Heard::Redraw,
        }
    }
}
