//! The life of a conversation: it opens, reads until somebody ends it, and leaves nothing behind.

use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::TaskTracker;

use crate::footprint;
use crate::protocol::Line;
use crate::proxy::{Proxy, Urgency};
use crate::stdio::client::in_flight::Requests;
use crate::stdio::client::link::Link;
use crate::stdio::conversation::Conversation;
use crate::stdio::conversation::client_project::{self, Opened};
use crate::stdio::streams::{Ends, Streams};
use crate::wire::{DrainPolicy, LineReader, Outbox};

/// How long answers under way may still take when the client has closed its end.
const LAST_ANSWERS: Duration = Duration::from_millis(300);

/// How long a client that has closed its end may leave the rest unread. Clients ask a server to go by a signal two
/// seconds after they closed its input; this is before that.
const UNREAD: Duration = Duration::from_millis(1500);

/// How long a client says nothing until pml takes itself for idle: as long as the runtime keeps threads without work,
/// whose code is released with the rest.
const IDLE: Duration = Duration::from_secs(10);

/// Why the conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// The client closed its end.
    EndOfInput,
    /// The client reads nothing more: no answer can reach it.
    ClientGone,
    /// A signal asked pml to go.
    Signal,
}

/// Serves one client until it closes its end or `signal` resolves; then everything that was started is ended.
pub async fn serve(
    proxy: Proxy,
    Streams { source, sink, ends }: Streams<
        impl AsyncRead + Unpin + Send,
        impl AsyncWrite + Unpin + Send + 'static,
    >,
    tasks: TaskTracker,
    signal: impl Future<Output = ()>,
) -> Shutdown {
    // The writer is tracked apart: it must outlive everything that may still write.
    let writing = TaskTracker::new();
    let outbox = Outbox::open(sink, DrainPolicy::UntilItStalls, &writing);
    let link = Link::new(outbox.clone(), tasks.clone());
    let mut reader = LineReader::new(source, proxy.line_limit());
    tokio::pin!(signal);
    let opened = tokio::select! {
        opened = client_project::open(&proxy, &link, &mut reader) => Ok(opened),
        () = &mut signal => Err(Shutdown::Signal),
        () = outbox.gone() => Err(Shutdown::ClientGone),
        () = ends.output_unread() => Err(Shutdown::ClientGone),
    };
    let (Opened { proxy, held }, ended) = match opened {
        Ok(opened) => (opened, None),
        Err(ended) => (Opened::at_once(&proxy), Some(ended)),
    };
    let conversation = Conversation::new(proxy.clone(), link);
    let announcing = tasks.spawn(conversation.subscriptions().clone().announce_lists());
    let reading = async {
        if let Some(ended) = ended {
            return ended;
        }
        // The first answer tells what servers offer, in the reader's own turn.
        proxy.read_ahead().await;
        for (line, batch) in held {
            conversation.receive(line, batch);
        }
        while let Ok(Some(line)) = next_line(&mut reader).await {
            conversation.receive(line, reader.batch());
            // Who does not read its answers is not read from either.
            if outbox.is_crowded() {
                tokio::select! {
                    // A client that has read everything is not given up.
                    biased;
                    () = outbox.room() => {}
                    () = until_given_up(&ends, &outbox) => return Shutdown::ClientGone,
                }
            }
        }
        Shutdown::EndOfInput
    };
    let shutdown = tokio::select! {
        shutdown = reading => shutdown,
        () = &mut signal => Shutdown::Signal,
        () = outbox.gone() => Shutdown::ClientGone,
        () = ends.output_unread() => Shutdown::ClientGone,
    };
    announcing.abort();
    let requests = conversation.requests().clone();
    if shutdown == Shutdown::EndOfInput {
        let _ = tokio::time::timeout(LAST_ANSWERS, until_empty(&requests)).await;
    }
    requests.cancel_all();
    // Each cancelled request is dropped in this turn, and withdraws what it asked.
    tokio::task::yield_now().await;
    let urgency = match shutdown {
        Shutdown::EndOfInput if requests.is_empty() => Urgency::Gentle,
        Shutdown::EndOfInput | Shutdown::ClientGone | Shutdown::Signal => Urgency::AtOnce,
    };
    proxy.close(urgency).await;
    tasks.close();
    // What is still under way was cancelled and holds the outbox only until it notices.
    let _ = tokio::time::timeout(Duration::from_millis(50), tasks.wait()).await;
    if shutdown == Shutdown::EndOfInput {
        // Whoever closed its end may still read; whoever wants pml to go says so.
        tokio::select! {
            () = until_written(&outbox) => {}
            () = signal => {}
        }
    }
    drop((conversation, outbox));
    writing.close();
    let _ = tokio::time::timeout(Duration::from_millis(50), writing.wait()).await;
    shutdown
}

/// Waits for the next line; while none comes the process makes itself small.
async fn next_line<R: AsyncRead + Unpin>(reader: &mut LineReader<R>) -> io::Result<Option<Line>> {
    let mut line = pin!(reader.next_line());
    // Only a line that is waited for starts the clock.
    if let Ok(line) = tokio::time::timeout(IDLE, &mut line).await {
        return line;
    }
    footprint::release_program_text();
    line.await
}

/// Waits until the client has closed its end and reads nothing of what is queued for it.
///
/// The end of its input stands behind lines that are not read while it does not read: it would never be met.
async fn until_given_up(ends: &Ends, outbox: &Outbox) {
    ends.input_over().await;
    until_written(outbox).await;
}

/// Waits until everything is written, or until the client has read nothing for a while.
async fn until_written(outbox: &Outbox) {
    let mut taken = outbox.taken();
    let mut read_at = Instant::now();
    // Rare: only where a client closes its end before it has read everything.
    while outbox.queued() > 0 && read_at.elapsed() < UNREAD {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let now = outbox.taken();
        if now > taken {
            read_at = Instant::now();
        }
        taken = now;
    }
}

async fn until_empty(requests: &Requests) {
    // Rare and short: only between the end of input and the last answer.
    while !requests.is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
