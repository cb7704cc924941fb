//! The connections of the server: bounded in number, and in how long they may say nothing.
//!
//! A peer that opens connections and sends nothing, or sends a request byte by byte, keeps nobody else out: the head of a
//! request must come in time, and where there are too many connections the one that has waited longest without a
//! request is closed for the newcomer.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// How many connections may be open: a page uses one to six, and many processes may open no more than 256 files.
const CONNECTIONS: usize = 128;

/// How long the head of the first request may take.
const FIRST_HEAD: Duration = Duration::from_secs(10);

/// How long a connection may wait for its next request, its head included.
const NEXT_HEAD: Duration = Duration::from_mins(1);

/// How long a peer may read nothing of what is written to it.
const STUCK: Duration = Duration::from_secs(30);

/// How long to wait after the system could not open another connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Accepts connections, within their bounds.
pub(super) struct BoundedListener {
    listener: TcpListener,
    open: Arc<OpenConnections>,
}

impl BoundedListener {
    /// Bounds the connections of a listener.
    pub(super) fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            open: Arc::default(),
        }
    }
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // An event is a few lines, and a person waits for it.
                    let _ = stream.set_nodelay(true);
                    return (OpenConnections::add(&self.open, stream), address);
                }
                // Out of file descriptors, mostly: connections that end make room.
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The connections that are open, the oldest first.
#[derive(Default)]
struct OpenConnections {
    handles: Mutex<BTreeMap<u64, ConnectionHandle>>,
}

impl OpenConnections {
    fn add(open: &Arc<Self>, stream: TcpStream) -> Connection {
        let handle = ConnectionHandle(Arc::new(ConnectionState {
            serving: AtomicUsize::new(0),
            deadline: Mutex::new(Instant::now() + FIRST_HEAD),
            closing: CancellationToken::new(),
        }));
        let mut handles = open.handles();
        let number = handles.last_key_value().map_or(0, |(last, _)| last + 1);
        handles.insert(number, handle.clone());
        if handles.len() > CONNECTIONS {
            // Where every other one is being answered, it is the newcomer itself.
            let idle = handles.iter().find(|(_, handle)| handle.is_idle());
            if let Some((idle, handle)) = idle.map(|(number, handle)| (*number, handle.clone())) {
                handle.0.closing.cancel();
                handles.remove(&idle);
            }
        }
        drop(handles);
        Connection {
            stream,
            number,
            open: Arc::clone(open),
            closing: Box::pin(handle.0.closing.clone().cancelled_owned()),
            silent: Box::pin(tokio::time::sleep(FIRST_HEAD)),
            stuck: None,
            handle,
        }
    }

    fn handles(&self) -> MutexGuard<'_, BTreeMap<u64, ConnectionHandle>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the requests of a connection know of it.
#[derive(Clone)]
pub(super) struct ConnectionHandle(Arc<ConnectionState>);

struct ConnectionState {
    /// How many of its requests are being answered.
    serving: AtomicUsize,
    /// When the head of its next request must be there.
    deadline: Mutex<Instant>,
    /// Says that it must make room for another one.
    closing: CancellationToken,
}

impl ConnectionHandle {
    /// Keeps the connection open for as long as the returned guard lives.
    pub(super) fn serve(&self) -> Serving {
        self.0.serving.fetch_add(1, Ordering::Relaxed);
        Serving(self.clone())
    }

    fn is_idle(&self) -> bool {
        self.0.serving.load(Ordering::Relaxed) == 0
    }

    fn deadline(&self) -> MutexGuard<'_, Instant> {
        self.0.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connected<IncomingStream<'_, BoundedListener>> for ConnectionHandle {
    fn connect_info(stream: IncomingStream<'_, BoundedListener>) -> Self {
        stream.io().handle.clone()
    }
}

/// A request that is being answered.
pub(super) struct Serving(ConnectionHandle);

impl Drop for Serving {
    fn drop(&mut self) {
        *self.0.deadline() = Instant::now() + NEXT_HEAD;
        self.0.0.serving.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that ends when it says nothing for too long.
pub(super) struct Connection {
    stream: TcpStream,
    number: u64,
    open: Arc<OpenConnections>,
    handle: ConnectionHandle,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Ends when the head of a request is late.
    silent: Pin<Box<Sleep>>,
    /// Ends when the peer reads nothing; there while something waits to be written.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    /// Tells whether a connection without a request has to end.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        if !self.handle.is_idle() {
            return false;
        }
        if self.closing.as_mut().poll(context).is_ready() {
            return true;
        }
        let deadline = *self.handle.deadline();
        if self.silent.deadline() != deadline {
            self.silent.as_mut().reset(deadline);
        }
        self.silent.as_mut().poll(context).is_ready()
    }

    /// Passes on how much was written, or fails where the peer has read nothing for too long.
    fn written<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let stuck = self
            .stuck
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(STUCK)));
        stuck.as_mut().poll(context).map(|()| Err(late()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.handles().remove(&self.number);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Also where bytes keep coming: one a second makes no request.
        if self.is_over(context) {
            return Poll::Ready(Err(late()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.written(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

fn late() -> io::Error {
    io::ErrorKind::TimedOut.into()
}
