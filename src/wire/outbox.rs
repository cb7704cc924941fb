//! The way out to a peer: frames queue up to a budget of bytes, one task writes them.
//!
//! Small parts are gathered into one buffer, large ones are written from where they lie. A frame is written whole
//! or not at all: it is queued under a lock, and only the writer task touches the sink. The queue and the writer
//! swap two buffers, so that queuing a small message allocates nothing.

use std::io::IoSlice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

/// How many bytes may wait for a peer before its writers wait too: a few large results, not a flood.
const BUDGET: usize = 8 * 1024 * 1024;

/// Parts up to this size are cheaper to copy than to write on their own.
const GATHERED: usize = 4 * 1024;

/// How much of a buffer is kept after a burst: dozens of usual messages, and little enough to hold for every peer.
const KEPT: usize = 16 * 1024;

/// How many pieces are handed to one system call: a pipe takes no more bytes than this many usual ones.
const PIECES: usize = 64;

/// The peer has gone; nothing can be sent to it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer is gone")]
pub struct PeerGone;

/// One message on its way out, without its line break.
#[derive(Debug, Default)]
pub struct Frame {
    parts: Vec<Bytes>,
}

impl Frame {
    /// Appends a part.
    pub fn push(&mut self, part: impl Into<Bytes>) {
        self.parts.push(part.into());
    }

    /// Appends parts in their order.
    pub fn extend(&mut self, parts: impl IntoIterator<Item = Bytes>) {
        self.parts.extend(parts);
    }
}

impl<T: Into<Bytes>> From<T> for Frame {
    fn from(part: T) -> Self {
        let mut frame = Self::default();
        frame.push(part);
        frame
    }
}

/// One piece of a message that is queued from where it lies.
#[derive(Debug, Clone)]
pub enum Part<'a> {
    /// Bytes that are copied.
    Copy(&'a [u8]),
    /// Bytes that are shared where they are many.
    Share(Bytes),
}

/// A queue towards one peer; clones share it.
#[derive(Debug, Clone)]
pub struct Outbox(Arc<Ending>);

/// Ends the queue when the last clone of the outbox is gone.
#[derive(Debug)]
struct Ending(Arc<Queue>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        if waiting.state == State::Open {
            waiting.state = State::Ending;
        }
        drop(waiting);
        self.0.filled.notify_one();
    }
}

impl Outbox {
    /// Starts the task that writes to `sink`; it ends when every clone of the outbox is gone or the peer is.
    pub fn open<W: AsyncWrite + Unpin + Send + 'static>(sink: W, tasks: &TaskTracker) -> Self {
        let queue = Arc::new(Queue::default());
        tasks.spawn(Writer(Arc::clone(&queue)).write_all(sink));
        Self(Arc::new(Ending(queue)))
    }

    /// Queues a frame, waiting for room where there is none.
    pub async fn send(&self, frame: impl Into<Frame>) -> Result<(), PeerGone> {
        let frame = frame.into();
        loop {
            // Whoever was waiting beside us may have been quicker: there must be room at the moment of queuing.
            if let Some(waiting) = self.0.0.lock_with_room() {
                return self.0.0.fill(waiting, |batch| batch.add_frame(frame));
            }
            self.room().await;
        }
    }

    /// Queues a frame at once, whatever the budget: for the short farewells of whoever cannot wait.
    pub fn send_now(&self, frame: impl Into<Frame>) -> Result<(), PeerGone> {
        let frame = frame.into();
        let queue = &self.0.0;
        queue.fill(queue.lock(), |batch| batch.add_frame(frame))
    }

    /// Queues the parts of one message at once, whatever the budget: for a reader that waits for [`Self::room`]
    /// before it reads on.
    pub fn push<'p>(&self, parts: impl IntoIterator<Item = Part<'p>>) -> Result<(), PeerGone> {
        let queue = &self.0.0;
        queue.fill(queue.lock(), |batch| batch.add_parts(parts))
    }

    /// Tells how many bytes wait for the peer.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.0.0.lock().queued
    }

    /// Waits until less than the budget is queued, or the peer is gone. Cancel safe.
    pub async fn room(&self) {
        let queue = &self.0.0;
        loop {
            if queue.lock_with_room().is_some() {
                return;
            }
            let emptied = queue.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            // Between the look and the waiting the writer may have made room.
            if queue.lock_with_room().is_some() {
                return;
            }
            emptied.await;
        }
    }
}

/// What the outbox and its writer share.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// Something is there for the writer, or nothing more will come.
    filled: Notify,
    /// There is room again, or there is nobody to wait for.
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    batch: Batch,
    /// What was queued and is not yet written, whether in this batch or in the one being written.
    queued: usize,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// Every clone of the outbox is gone: what is queued is still written.
    Ending,
    /// The peer is gone.
    Gone,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the queue if nobody has to wait: less than the budget is queued, or the peer is gone.
    fn lock_with_room(&self) -> Option<MutexGuard<'_, Waiting>> {
        let waiting = self.lock();
        (waiting.queued < BUDGET || waiting.state == State::Gone).then_some(waiting)
    }

    fn fill(
        &self,
        mut waiting: MutexGuard<'_, Waiting>,
        add: impl FnOnce(&mut Batch),
    ) -> Result<(), PeerGone> {
        if waiting.state == State::Gone {
            return Err(PeerGone);
        }
        let before = waiting.batch.length;
        add(&mut waiting.batch);
        let after = waiting.batch.length;
        waiting.queued += after - before;
        drop(waiting);
        // A batch that has begun has already woken the writer.
        if before == 0 {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Swaps the queued batch for an empty one; waits for one, and returns `Ended` when none will come.
    async fn take(&self, empty: &mut Batch) -> Taken {
        loop {
            {
                let mut waiting = self.lock();
                if waiting.batch.length > 0 {
                    std::mem::swap(&mut waiting.batch, empty);
                    return Taken::Batch;
                }
                if waiting.state != State::Open {
                    return Taken::Ended;
                }
            }
            self.filled.notified().await;
        }
    }

    fn written(&self, length: usize) {
        let mut waiting = self.lock();
        let crowded = waiting.queued >= BUDGET;
        waiting.queued -= length;
        if crowded && waiting.queued < BUDGET {
            drop(waiting);
            self.emptied.notify_waiters();
        }
    }

    fn lose_peer(&self) {
        let mut waiting = self.lock();
        waiting.state = State::Gone;
        waiting.batch = Batch::default();
        drop(waiting);
        self.emptied.notify_waiters();
    }
}

enum Taken {
    Batch,
    Ended,
}

/// The other end of the queue. However the writing ends, also by being aborted, nobody waits for it any more.
struct Writer(Arc<Queue>);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.lose_peer();
    }
}

impl Writer {
    async fn write_all<W: AsyncWrite + Unpin>(self, mut sink: W) {
        let mut batch = Batch::default();
        while let Taken::Batch = self.0.take(&mut batch).await {
            if batch.write(&mut sink, &self.0).await.is_err() {
                return;
            }
            batch.clear();
        }
        let _ = sink.shutdown().await;
    }
}

/// Whole frames in their order: one buffer, and the large parts that stand between its bytes.
#[derive(Debug, Default)]
struct Batch {
    gathered: Vec<u8>,
    /// Each with the place in `gathered` that it stands before.
    shared: Vec<(usize, Bytes)>,
    length: usize,
    /// How much of `gathered` is written.
    gathered_written: usize,
    /// How many of `shared` are written; the one behind them is cut to what is left of it.
    shared_written: usize,
}

impl Batch {
    fn add_frame(&mut self, frame: Frame) {
        for part in frame.parts {
            self.share(part);
        }
        self.copy(b"\n");
    }

    fn add_parts<'p>(&mut self, parts: impl IntoIterator<Item = Part<'p>>) {
        for part in parts {
            match part {
                Part::Copy(bytes) => self.copy(bytes),
                Part::Share(bytes) => self.share(bytes),
            }
        }
        self.copy(b"\n");
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        self.gathered.extend_from_slice(bytes);
    }

    fn share(&mut self, bytes: Bytes) {
        if bytes.len() <= GATHERED {
            return self.copy(&bytes);
        }
        self.length += bytes.len();
        self.shared.push((self.gathered.len(), bytes));
    }

    /// Lists what is left to write, as far as one system call takes it.
    fn pieces<'a>(&'a self, pieces: &mut [IoSlice<'a>; PIECES]) -> usize {
        let mut count = 0;
        let mut from = self.gathered_written;
        let mut list = |piece: &'a [u8]| {
            if !piece.is_empty() && count < PIECES {
                pieces[count] = IoSlice::new(piece);
                count += 1;
            }
        };
        // Each large part takes at most two pieces with what stands before it.
        for (place, bytes) in self.shared.iter().skip(self.shared_written).take(PIECES) {
            list(&self.gathered[from..*place]);
            list(bytes);
            from = *place;
        }
        if self.shared.len() - self.shared_written <= PIECES {
            list(&self.gathered[from..]);
        }
        count
    }

    /// Passes over what was written.
    fn advance(&mut self, mut written: usize) {
        while let Some((place, bytes)) = self.shared.get_mut(self.shared_written) {
            let before = written.min(*place - self.gathered_written);
            self.gathered_written += before;
            written -= before;
            if written < bytes.len() {
                bytes.advance(written);
                return;
            }
            written -= bytes.len();
            // Given back at once: a large part may be the last of a large line.
            *bytes = Bytes::new();
            self.shared_written += 1;
        }
        self.gathered_written += written;
    }

    async fn write<W: AsyncWrite + Unpin>(&mut self, sink: &mut W, queue: &Queue) -> std::io::Result<()> {
        let mut left = self.length;
        while left > 0 {
            let mut pieces = [IoSlice::new(&[]); PIECES];
            let count = self.pieces(&mut pieces);
            let written = sink.write_vectored(&pieces[..count]).await?;
            if written == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            self.advance(written);
            left -= written;
            queue.written(written);
        }
        sink.flush().await
    }

    /// Makes the batch empty; what a burst needed is given back.
    fn clear(&mut self) {
        self.gathered.clear();
        self.gathered.shrink_to(KEPT);
        self.shared.clear();
        self.shared.shrink_to(PIECES);
        self.length = 0;
        self.gathered_written = 0;
        self.shared_written = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
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
        // Two of them are over the budget, whatever the pipe has taken.
        let chunk = Bytes::from(vec![b'x'; BUDGET / 2 + 100]);
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

    #[tokio::test]
    async fn a_reader_queues_whatever_the_budget_and_then_waits_for_room() {
        let (near, mut far) = tokio::io::duplex(1000);
        let outbox = Outbox::open(near, &TaskTracker::new());
        let large = Bytes::from(vec![b'x'; BUDGET]);
        outbox.room().await;
        outbox
            .push([Part::Copy(b"1:"), Part::Share(large.clone())])
            .unwrap();
        outbox.push([Part::Share(large.clone())]).unwrap();
        let room = outbox.room();
        tokio::pin!(room);
        assert!(
            futures_pending(&mut room).await,
            "there is room beyond the budget"
        );
        let mut text = vec![0; BUDGET + 100];
        far.read_exact(&mut text).await.unwrap();
        room.await;
        assert!(outbox.0.0.lock().queued < BUDGET);
        outbox.push([Part::Copy(b"more")]).unwrap();
        let room = outbox.room();
        drop(far);
        room.await;
        while outbox.push([]).is_ok() {
            tokio::task::yield_now().await;
        }
        outbox.room().await;
    }

    #[tokio::test]
    async fn many_who_wait_exceed_the_budget_by_one_frame_at_most() {
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        let outbox = Outbox::open(near, &TaskTracker::new());
        let frame = Bytes::from(vec![b'x'; BUDGET / 4]);
        let senders: Vec<_> = (0..40)
            .map(|_| {
                let (outbox, frame) = (outbox.clone(), frame.clone());
                tokio::spawn(async move { outbox.send(frame).await })
            })
            .collect();
        let mut left = 40 * (frame.len() + 1);
        let mut chunk = vec![0; 1024 * 1024];
        while left > 0 {
            left -= far.read(&mut chunk).await.unwrap();
            let queued = outbox.0.0.lock().queued;
            assert!(queued < BUDGET + frame.len() + 1, "{queued} bytes are queued");
        }
        for sender in senders {
            assert_eq!(sender.await.unwrap(), Ok(()));
        }
    }

    #[tokio::test]
    async fn a_writer_that_is_aborted_leaves_nobody_waiting() {
        let (near, _far) = tokio::io::duplex(10);
        let queue = Arc::new(Queue::default());
        let outbox = Outbox(Arc::new(Ending(Arc::clone(&queue))));
        let writing = tokio::spawn(Writer(queue).write_all(near));
        outbox.send_now(vec![b'x'; 2 * BUDGET]).unwrap();
        let send = outbox.send("y");
        tokio::pin!(send);
        assert!(futures_pending(&mut send).await, "the budget does not hold");
        writing.abort();
        assert_eq!(send.await, Err(PeerGone));
    }

    #[test]
    fn a_burst_gives_its_memory_back_and_a_usual_buffer_stays() {
        let mut batch = Batch::default();
        batch.add_parts([Part::Copy(&[b'x'; KEPT / 2])]);
        let usual = batch.gathered.capacity();
        batch.clear();
        assert_eq!(batch.gathered.capacity(), usual);
        for _ in 0..1000 {
            batch.add_parts([Part::Copy(&[b'x'; KEPT]), Part::Share(vec![b'y'; KEPT].into())]);
        }
        batch.clear();
        let kept = (batch.gathered.capacity(), batch.shared.capacity(), batch.length);
        assert_eq!(kept, (KEPT, PIECES, 0));
    }

    /// Takes a few bytes of what it is offered, another number each time.
    struct Narrow {
        taken: Arc<Mutex<Vec<u8>>>,
        widths: std::iter::Cycle<std::vec::IntoIter<usize>>,
    }

    impl AsyncWrite for Narrow {
        fn poll_write(
            self: std::pin::Pin<&mut Self>,
            waker: &mut std::task::Context<'_>,
            bytes: &[u8],
        ) -> std::task::Poll<std::io::Result<usize>> {
            self.poll_write_vectored(waker, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            pieces: &[IoSlice<'_>],
        ) -> std::task::Poll<std::io::Result<usize>> {
            let width = self.widths.next().unwrap();
            let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
            let width = width.min(bytes.len());
            self.taken.lock().unwrap().extend_from_slice(&bytes[..width]);
            std::task::Poll::Ready(Ok(width))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Ok(()))
        }

        fn poll_shutdown(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Ok(()))
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_the_sink_takes_the_bytes_are_those_that_were_queued(
            frames in proptest::collection::vec(proptest::collection::vec((any::<bool>(), 0usize..2), 0..4), 0..120),
            widths in proptest::collection::vec(1usize..20_000, 1..8),
        ) {
            let mut expected = Vec::new();
            let taken = Arc::new(Mutex::new(Vec::new()));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let tasks = TaskTracker::new();
                let sink = Narrow { taken: Arc::clone(&taken), widths: widths.into_iter().cycle() };
                let outbox = Outbox::open(sink, &tasks);
                for (number, frame) in frames.into_iter().enumerate() {
                    let parts = frame.into_iter().map(|(copied, large)| {
                        let text = format!("{number};").repeat(1 + large * GATHERED);
                        expected.extend_from_slice(text.as_bytes());
                        (copied, Bytes::from(text))
                    });
                    let parts: Vec<_> = parts.collect();
                    let parts: Vec<_> = parts.iter().map(|(copied, bytes)| match copied {
                        true => Part::Copy(bytes),
                        false => Part::Share(bytes.clone()),
                    }).collect();
                    expected.push(b'\n');
                    outbox.push(parts).unwrap();
                    if number % 50 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                drop(outbox);
                tasks.close();
                tasks.wait().await;
            });
            prop_assert!(*taken.lock().unwrap() == expected);
        }
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
