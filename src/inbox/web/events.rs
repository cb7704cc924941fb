//! Event streams: what changes after a revision, as it changes.
//!
//! A stream holds a receiver of the store's revisions, which goes with it: where no stream is open the store is not
//! looked at. Everything is written by a task that ends with the body of the reply.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWriteExt as _, DuplexStream, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::io::ReaderStream;
use tokio_util::task::AbortOnDropHandle;

use super::app::SharedApp;
use super::connections::{ConnectionHandle, Serving};
use super::reply;
use crate::proxy::ChangedCards;

/// How often something is written where nothing happens: proxies close connections that are silent for a minute.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// How much may wait to be sent; a card is a few kilobytes.
const BUFFER: usize = 64 << 10;

/// How long a client that finds all streams taken should wait.
const STREAM_AGAIN: Duration = Duration::from_secs(5);

/// The writing end of a stream.
pub(super) struct EventWriter {
    app: SharedApp,
    out: DuplexStream,
}

/// Why a stream waits no longer.
pub(super) enum Wake {
    /// What the stream tells of may have changed.
    Changed,
    /// The stream is over.
    Ended,
}

/// The reading end: the body of a reply.
struct EventReader {
    events: DuplexStream,
    _writing: AbortOnDropHandle<()>,
    _serving: Serving,
    _place: OwnedSemaphorePermit,
}

/// Answers with a stream that `write` fills; refuses where too many are open.
pub(super) fn open<F>(
    app: &SharedApp,
    connection: &ConnectionHandle,
    write: impl FnOnce(EventWriter) -> F,
) -> Response
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let Ok(place) = app.streams.clone().try_acquire_owned() else {
        return reply::too_many(STREAM_AGAIN);
    };
    let (events, out) = tokio::io::duplex(BUFFER);
    let writing = write(EventWriter {
        app: app.clone(),
        out,
    });
    let reader = EventReader {
        events,
        // It fails where the reader is gone, which no one needs to hear of.
        _writing: AbortOnDropHandle::new(tokio::spawn(async move { drop(writing.await) })),
        _serving: connection.serve(),
        _place: place,
    };
    let mut reply = Response::new(Body::from_stream(ReaderStream::new(reader)));
    let headers = reply.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The user's own proxy must not collect events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    reply
}

impl EventWriter {
    /// Writes an event with its revision.
    pub(super) async fn event(&mut self, revision: u64, name: &str, data: &impl Serialize) -> io::Result<()> {
        // JSON on one line: a line break would end the field.
        let data = serde_json::to_string(data)?;
        let text = format!("id: {revision}\nevent: {name}\ndata: {data}\n\n");
        self.out.write_all(text.as_bytes()).await
    }

    /// Writes an event that has no number: a reader that comes back gets it again.
    pub(super) async fn unnumbered(&mut self, name: &str, data: &impl Serialize) -> io::Result<()> {
        let data = serde_json::to_string(data)?;
        let text = format!("event: {name}\ndata: {data}\n\n");
        self.out.write_all(text.as_bytes()).await
    }

    /// Writes a line that says nothing, so that the peer sees that the stream is open.
    pub(super) async fn comment(&mut self) -> io::Result<()> {
        self.out.write_all(b": pml\n\n").await
    }

    /// Waits until an ask may have changed, and keeps the stream alive meanwhile.
    pub(super) async fn wait(&mut self, revisions: &mut watch::Receiver<u64>) -> io::Result<Wake> {
        loop {
            tokio::select! {
                changed = revisions.changed() => {
                    return Ok(if changed.is_ok() { Wake::Changed } else { Wake::Ended });
                }
                () = self.app.stopping.cancelled() => return Ok(Wake::Ended),
                () = tokio::time::sleep(HEARTBEAT) => self.out.write_all(b": pml\n\n").await?,
            }
        }
    }

    /// Waits for a while, or until the server goes.
    pub(super) async fn pause(&mut self, length: Duration) -> Wake {
        tokio::select! {
            () = self.app.stopping.cancelled() => Wake::Ended,
            () = tokio::time::sleep(length) => Wake::Changed,
        }
    }
}

/// Returns the revision from which a stream goes on: what the browser saw last, else what the address says.
pub(super) fn begin(headers: &HeaderMap, since: Option<&str>) -> Option<u64> {
    let seen = headers.get("last-event-id").and_then(|seen| seen.to_str().ok());
    // What cannot be read is no revision of ours: the stream begins with `reset`.
    let read = |text: &str| text.trim().parse().unwrap_or(u64::MAX);
    seen.or(since).map(read)
}

/// Writes every card that changes after a revision; without one, after now.
pub(super) async fn follow(app: SharedApp, since: Option<u64>, mut events: EventWriter) -> io::Result<()> {
    let mut revisions = app.desk.revisions().await.map_err(io::Error::other)?;
    let _surface = app.desk.open_surface().await;
    let mut reached = since.unwrap_or(*revisions.borrow());
    events.comment().await?;
    loop {
        let newest = *revisions.borrow_and_update();
        if newest != reached {
            match app.desk.changed_since(reached).await.map_err(io::Error::other)? {
                ChangedCards::These { latest, cards } => {
                    for card in cards {
                        events.event(card.rev, "card", &card).await?;
                    }
                    reached = latest;
                }
                ChangedCards::ReadAnew => {
                    events.event(newest, "reset", &serde_json::json!({})).await?;
                    reached = newest;
                }
            }
        }
        if let Wake::Ended = events.wait(&mut revisions).await? {
            return Ok(());
        }
    }
}

impl AsyncRead for EventReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.events).poll_read(context, buffer)
    }
}
