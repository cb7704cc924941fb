//! What a supervisor lives by: a stream whose other end pml holds.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use tokio::sync::oneshot;

/// The stream whose end is the end of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Its stdin, which the supervisor then holds open: for what reads none.
    Stdin,
    /// A pipe that was inherited under this number.
    Inherited(i32),
}

impl Life {
    /// Returns what resolves when the other end is closed. A thread waits for it: what the stream is (a pipe, a socket,
    /// a file) decides whether a reactor could, and no reactor can be told to ignore readable bytes.
    pub(super) fn hung_up(self) -> io::Result<oneshot::Receiver<()>> {
        let (sender, receiver) = oneshot::channel();
        let watched = match self {
            Self::Stdin => None,
            Self::Inherited(number) => Some(inherited(number)?),
        };
        std::thread::spawn(move || {
            match watched {
                None => wait(rustix::stdio::stdin()),
                Some(mut pipe) => {
                    // A pipe that was opened after its other end closed never hangs up, but it is at its end.
                    if !matches!(pipe.read(&mut [0]), Ok(0)) {
                        wait(pipe);
                    }
                }
            }
            let _ = sender.send(());
        });
        Ok(receiver)
    }

    /// Lets go of the server's streams, but for stderr, which holds the one line of the supervisor, and for what it
    /// lives by.
    pub(super) fn release(self) -> io::Result<()> {
        let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&nothing)?;
        if let Self::Inherited(_) = self {
            rustix::stdio::dup2_stdin(&nothing)?;
        }
        Ok(())
    }
}

/// Opens an inherited pipe by its number, without waiting for anybody at its other end.
fn inherited(number: i32) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(format!("/dev/fd/{number}"))
}

fn wait(stream: impl AsFd) {
    // A peer that only shut its sending side down has closed the server's stdin as well.
    #[cfg(target_os = "linux")]
    let wanted = PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    let wanted = PollFlags::empty();
    let mut polled = [PollFd::new(&stream, wanted)];
    while let Ok(0) | Err(rustix::io::Errno::INTR) = poll(&mut polled, None) {}
}
