//! Standard input and output without threads where the system lets us.
//!
//! Shells and Python give their children pipes, Node gives them sockets: both are driven non-blocking on the one
//! runtime thread. A file or a terminal cannot be, and falls back to tokio's own threads.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, fstat};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::wire::widen;

/// Where the client's lines come from.
pub type Source = Box<dyn AsyncRead + Unpin + Send>;

/// Where pml's lines go.
pub type Sink = Box<dyn AsyncWrite + Unpin + Send>;

/// Opens standard input.
pub fn source() -> io::Result<Source> {
    let (kind, handle) = duplicate(&io::stdin())?;
    Ok(match kind {
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(handle)?),
        FileType::Socket => Box::new(stream(handle)?),
        _ => Box::new(tokio::io::stdin()),
    })
}

/// Opens standard output.
pub fn sink() -> io::Result<Sink> {
    let (kind, handle) = duplicate(&io::stdout())?;
    Ok(match kind {
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(handle)?),
        FileType::Socket => Box::new(stream(handle)?),
        _ => Box::new(tokio::io::stdout()),
    })
}

fn duplicate(stream: &impl AsFd) -> io::Result<(FileType, OwnedFd)> {
    let handle = stream.as_fd().try_clone_to_owned()?;
    widen(&handle);
    let kind = FileType::from_raw_mode(fstat(&handle)?.st_mode);
    Ok((kind, handle))
}

fn stream(handle: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(handle);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
