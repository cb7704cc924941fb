//! The way out to a peer: frames queue up to a budget of bytes, one task writes them.
//!
//! Small parts are gathered into one write, large ones are written from where they lie. A frame is written whole
//! or not at all: only the writer task touches the sink.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::TaskTracker;

/// How many bytes may wait for a peer before its writers wait too: a few large results, not a flood.
const BUDGET: usize = 8 * 1024 * 1024;

/// Parts up to this size are cheaper to copy than to write on their own.
const GATHERED: usize = 4 * 1024;

/// How much is handed to one system call: what a pipe can take, several times over.
const BATCH: usize = 256 * 1024;

/// The peer has gone; nothing can be sent to it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer is gone")]
pub struct PeerGone;

/// One message on its way out, without its line break.
#[derive(Debug, Default)]
pub struct Frame {
    parts: Vec<Bytes>,
    length: usize,
}

impl Frame {
    /// Appends a part.
    pub fn push(&mut self, part: impl Into<Bytes>) {
        let part = part.into();
        self.length += part.len();
        self.parts.push(part);
    }

    /// Appends parts in their order.
    pub fn extend(&mut self, parts: impl IntoIterator<Item = Bytes>) {
        for part in parts {
            self.push(part);
        }
    }
}

impl<T: Into<Bytes>> From<T> for Frame {
    fn from(part: T) -> Self {
        let mut frame = Self::default();
        frame.push(part);
        frame
    }
}

/// A queue towards one peer; clones share it.
#[derive(Debug, Clone)]
pub struct Outbox {
    frames: mpsc::UnboundedSender<(Frame, u32)>,
    budget: Arc<Semaphore>,
}

impl Outbox {
    /// Starts the task that writes to `sink`; it ends when every clone of the outbox is gone or the peer is.
    pub fn open<W: AsyncWrite + Unpin + Send + 'static>(sink: W, tasks: &TaskTracker) -> Self {
        let (frames, waiting) = mpsc::unbounded_channel();
        let budget = Arc::new(Semaphore::new(BUDGET));
        tasks.spawn(write_all(sink, waiting, Arc::clone(&budget)));
        Self { frames, budget }
    }

    /// Queues a frame, waiting for room where there is none.
    pub async fn send(&self, frame: impl Into<Frame>) -> Result<(), PeerGone> {
        let frame = frame.into();
        let cost = cost(&frame);
        let permit = self.budget.acquire_many(cost).await.map_err(|_closed| PeerGone)?;
        permit.forget();
        self.frames.send((frame, cost)).map_err(|_closed| PeerGone)
    }

    /// Waits until there is room, or until the peer is gone.
    pub async fn room(&self) {
        if self.budget.available_permits() > 0 {
            return;
        }
        let _ = self.budget.acquire().await;
    }

    /// Tells how many bytes wait for the peer.
    #[must_use]
    pub fn queued(&self) -> usize {
        BUDGET.saturating_sub(self.budget.available_permits())
    }

    /// Queues a frame at once, whatever the budget: for the short farewells of whoever cannot wait.
    pub fn send_now(&self, frame: impl Into<Frame>) -> Result<(), PeerGone> {
        self.frames.send((frame.into(), 0)).map_err(|_closed| PeerGone)
    }
}

/// A frame larger than the whole budget takes all of it: it waits until it is alone, then goes.
fn cost(frame: &Frame) -> u32 {
    u32::try_from((frame.length + 1).min(BUDGET)).unwrap_or(u32::MAX)
}

async fn write_all<W: AsyncWrite + Unpin>(
    mut sink: W,
    mut waiting: mpsc::UnboundedReceiver<(Frame, u32)>,
    budget: Arc<Semaphore>,
) {
    let mut batch = Batch::default();
    while let Some((frame, cost)) = waiting.recv().await {
        let mut paid = cost as usize;
        batch.add(frame);
        while batch.length < BATCH {
            let Ok((frame, cost)) = waiting.try_recv() else {
                break;
            };
            paid += cost as usize;
            batch.add(frame);
        }
        if batch.write(&mut sink).await.is_err() {
            // Nobody reads any more: who waits for room is told so.
            budget.close();
            return;
        }
        budget.add_permits(paid);
    }
    let _ = sink.shutdown().await;
}

#[derive(Default)]
struct Batch {
    parts: VecDeque<Bytes>,
    gathered: BytesMut,
    length: usize,
}

impl Batch {
    fn add(&mut self, frame: Frame) {
        self.length += frame.length + 1;
        for part in frame.parts {
            if part.len() <= GATHERED {
                self.gathered.extend_from_slice(&part);
            } else {
                self.close_gathered();
                self.parts.push_back(part);
            }
        }
        self.gathered.extend_from_slice(b"\n");
    }

    fn close_gathered(&mut self) {
        if !self.gathered.is_empty() {
            self.parts.push_back(self.gathered.split().freeze());
        }
    }

    async fn write<W: AsyncWrite + Unpin>(&mut self, sink: &mut W) -> std::io::Result<()> {
        self.close_gathered();
        self.length = 0;
        while !self.parts.is_empty() {
            let slices: Vec<IoSlice<'_>> = self
                .parts
                .iter()
                .take(64)
                .map(|part| IoSlice::new(part))
                .collect();
            let mut written = sink.write_vectored(&slices).await?;
            if written == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            while let Some(part) = self.parts.front_mut() {
                if written < part.len() {
                    part.advance(written);
                    break;
                }
                written -= part.len();
                self.parts.pop_front();
            }
        }
        sink.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn frames_arrive_whole_and_in_order_through_a_narrow_pipe() {
        let (near, mut far) = tokio::io::duplex(100);
        let tasks = TaskTracker::new();
        let outbox = Outbox::open(near, &tasks);
        let large = "x".repeat(10_000);
        let sender = tokio::spawn({
            let large = large.clone();
            async move {
                for number in 0..50 {
                    let mut frame = Frame::from(format!("{number}:"));
                    frame.push(large.clone());
                    outbox.send(frame).await.unwrap();
                }
            }
        });
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        sender.await.unwrap();
        let lines: Vec<String> = (0..50).map(|number| format!("{number}:{large}\n")).collect();
        let expected = lines.concat();
        assert!(
            text == expected,
            "{} bytes instead of {}",
            text.len(),
            expected.len()
        );
    }

    #[tokio::test]
    async fn a_writer_to_a_stalled_peer_waits_and_learns_when_it_goes() {
        let (near, far) = tokio::io::duplex(10);
        let outbox = Outbox::open(near, &TaskTracker::new());
        let chunk = Bytes::from(vec![b'x'; BUDGET / 2]);
        outbox.send(chunk.clone()).await.unwrap();
        let third = async {
            outbox.send(chunk.clone()).await?;
            outbox.send(chunk.clone()).await
        };
        tokio::pin!(third);
        assert!(futures_pending(&mut third).await, "the budget does not hold");
        drop(far);
        assert_eq!(third.await, Err(PeerGone));
    }

    async fn futures_pending<F: Future + Unpin>(future: &mut F) -> bool {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        std::future::poll_fn(|waker| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(waker).is_pending())
        })
        .await
    }
}
