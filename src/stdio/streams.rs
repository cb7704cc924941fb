//! Standard input and output without threads where the system lets us.
//!
//! Shells and Python give their children pipes, Node gives them sockets: both are driven non-blocking on the one
//! runtime thread. A file or a terminal cannot be, and falls back to tokio's own threads.
//!
//! The system tells when the client lets go of the other end of a pipe or a socket, also while nothing is read or
//! written: [`Ends`] listens for that.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, fstat};
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::wire::widen;

/// Where the client's lines come from.
pub type Source = Box<dyn AsyncRead + Unpin + Send>;

/// Where pml's lines go.
pub type Sink = Box<dyn AsyncWrite + Unpin + Send>;

/// The streams of a client, and what can be seen of its ends of them.
pub struct Streams<R = Source, W = Sink> {
    /// Where the client's lines come from.
    pub source: R,
    /// Where pml's lines go.
    pub sink: W,
    /// Whether the client still holds the other ends.
    pub ends: Ends,
}

/// Opens standard input and standard output.
pub fn open() -> io::Result<Streams> {
    let (source_kind, input) = duplicate(&io::stdin())?;
    let (sink_kind, output) = duplicate(&io::stdout())?;
    let ends = Ends {
        source: watched(source_kind, &input)?,
        sink: watched(sink_kind, &output)?,
    };
    let source: Source = match source_kind {
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(input)?),
        FileType::Socket => Box::new(stream(input)?),
        _ => Box::new(tokio::io::stdin()),
    };
    let sink: Sink = match sink_kind {
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(output)?),
        FileType::Socket => Box::new(stream(output)?),
        _ => Box::new(tokio::io::stdout()),
    };
    Ok(Streams { source, sink, ends })
}

impl<R, W> Streams<R, W> {
    /// Takes streams of which only reading and writing show that the client is gone.
    pub fn unwatched(source: R, sink: W) -> Self {
        let ends = Ends {
            source: None,
            sink: None,
        };
        Self { source, sink, ends }
    }
}

/// Sees the client let go of a stream without reading or writing; of a file or a terminal nothing is seen.
#[derive(Debug)]
pub struct Ends {
    source: Option<OwnedFd>,
    sink: Option<OwnedFd>,
}

impl Ends {
    /// Resolves when the client will write nothing more, also where lines of it are still unread.
    pub(super) async fn input_over(&self) {
        until_closed(self.source.as_ref(), Interest::READABLE).await;
    }

    /// Resolves when the client can read nothing more.
    pub(super) async fn output_unread(&self) {
        until_closed(self.sink.as_ref(), Interest::WRITABLE).await;
    }
}

/// Waits for the other end of a stream to be closed; for ever, where that cannot be seen.
async fn until_closed(handle: Option<&OwnedFd>, interest: Interest) {
    // Registered only while it is waited for: each read and write would wake the waiting task otherwise. Whatever can
    // be polled can be registered like a socket; nothing is read from it or written to it here.
    let registered = handle
        .and_then(|handle| handle.try_clone().ok())
        .and_then(|handle| stream(handle).ok());
    let Some(registered) = registered else {
        return std::future::pending().await;
    };
    while let Ok(ready) = registered.ready(interest).await {
        if ready.is_read_closed() || ready.is_write_closed() {
            return;
        }
        // Forgets what is ready now, so that the next change is waited for.
        let _ = registered.try_io(interest, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    }
    std::future::pending::<()>().await;
}

fn watched(kind: FileType, handle: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    match kind {
        FileType::Fifo | FileType::Socket => handle.try_clone().map(Some),
        _ => Ok(None),
    }
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
