//! The outbox of a peer: frames queue up to a budget of bytes, one task writes them.
//!
//! A frame is written whole or not at all: it is queued under a lock, and only the writer task touches the sink. The queue and the writer
//! swap two buffers, so that queuing a small message allocates nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::batch::{Batch, Frame, FramePart};

/// How many bytes may wait for a peer before its writers wait too: a few large results, not a flood.
const BUDGET: usize = 8 * 1024 * 1024;

/// How long a peer that may stall reads nothing of what is left for it before it is given up.
const LAST_FRAMES: Duration = Duration::from_millis(300);

/// The peer has gone; nothing can be sent to it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer is gone")]
pub struct PeerGone;

/// For how long what is left is kept for a peer once the outbox is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainPolicy {
    /// Until it stops reading: another process may never read on, and would never see the end.
    UntilItStalls,
    /// Until it has read everything or is gone: a reader of pml's own that stops is held up by another task.
    UntilItIsGone,
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
        if waiting.state == QueueState::Open {
            waiting.state = QueueState::Ending;
        }
        drop(waiting);
        self.0.filled.notify_one();
        self.0.ending.notify_one();
        self.0.emptied.notify_waiters();
    }
}

impl Outbox {
    /// Starts the task that writes to `sink`; it ends when every clone of the outbox is gone or the peer is.
    pub fn open<W: AsyncWrite + Unpin + Send + 'static>(
        sink: W,
        patience: DrainPolicy,
        tasks: &TaskTracker,
    ) -> Self {
        let queue = Arc::new(Queue::default());
        tasks.spawn(Writer(Arc::clone(&queue)).write_all(sink, patience));
        Self(Arc::new(Ending(queue)))
    }

    /// Queues a frame, waiting for room where there is none.
    pub async fn send(&self, frame: impl Into<Frame>) -> Result<(), PeerGone> {
        let frame = frame.into();
        loop {
            // Another waiting sender may have been quicker: there must be room at the moment of queuing.
            if let Some(waiting) = self.0.0.lock_with_room() {
                return self.0.0.fill(waiting, |batch| batch.add_frame(frame));
            }
            self.room().await;
        }
    }

    /// Queues a frame at once, regardless of the budget: for short last messages of a sender that cannot wait.
    pub fn send_now(&self, frame: impl Into<Frame>) -> Result<(), PeerGone> {
        let frame = frame.into();
        let queue = &self.0.0;
        queue.fill(queue.lock(), |batch| batch.add_frame(frame))
    }

    /// Queues the parts of one message at once, whatever the budget: for a reader that waits for [`Self::room`]
    /// before it reads on.
    pub fn push<'p>(&self, parts: impl IntoIterator<Item = FramePart<'p>>) -> Result<(), PeerGone> {
        let queue = &self.0.0;
        queue.fill(queue.lock(), |batch| batch.add_parts(parts))
    }

    /// Tells how many bytes wait for the peer; none, where it is gone.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.0.0.lock().queued
    }

    /// Tells how many bytes the peer has taken so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.0.0.lock().taken
    }

    /// Resolves when the peer is gone. Does not keep the outbox open.
    pub fn gone(&self) -> impl Future<Output = ()> + Send + use<> {
        let queue = Arc::clone(&self.0.0);
        async move { queue.gone().await }
    }

    /// Tells whether the budget is used up, so that a sender that can wait should.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.0.0.lock_with_room().is_none()
    }

    /// Waits until less than the budget is queued, or the peer is gone. Cancel safe.
    pub async fn room(&self) {
        self.0.0.room().await;
    }

    /// Likewise, for a task that must not keep the outbox open by waiting: its end ends the waiting too.
    pub fn room_or_end(&self) -> impl Future<Output = ()> + Send + use<> {
        let queue = Arc::clone(&self.0.0);
        async move { queue.room().await }
    }
}

/// What the outbox and its writer share.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<QueueContents>,
    /// Something is there for the writer, or nothing more will come.
    filled: Notify,
    /// There is room again, or the peer is gone.
    emptied: Notify,
    /// Every clone of the outbox is gone.
    ending: Notify,
}

#[derive(Debug, Default)]
struct QueueContents {
    batch: Batch,
    /// What was queued and is not yet written, whether in this batch or in the one being written.
    queued: usize,
    /// What was written since the beginning: it grows as long as the peer reads.
    taken: u64,
    state: QueueState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum QueueState {
    #[default]
    Open,
    /// Every clone of the outbox is gone: what is queued is still written.
    Ending,
    /// The peer is gone.
    Gone,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueContents> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the queue if a sender need not wait: less than the budget is queued, or nothing more can be.
    fn lock_with_room(&self) -> Option<MutexGuard<'_, QueueContents>> {
        let waiting = self.lock();
        (waiting.queued < BUDGET || waiting.state != QueueState::Open).then_some(waiting)
    }

    async fn room(&self) {
        loop {
            if self.lock_with_room().is_some() {
                return;
            }
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            // Between the look and the waiting the writer may have made room.
            if self.lock_with_room().is_some() {
                return;
            }
            emptied.await;
        }
    }

    async fn gone(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.lock().state == QueueState::Gone {
                return;
            }
            emptied.await;
        }
    }

    /// Resolves when the peer does not read what was left for it at the end.
    async fn overdue(&self, patience: DrainPolicy) {
        if patience == DrainPolicy::UntilItIsGone {
            return std::future::pending().await;
        }
        self.ending.notified().await;
        let mut left = usize::MAX;
        loop {
            let queued = self.lock().queued;
            if queued == left {
                return;
            }
            left = queued;
            tokio::time::sleep(LAST_FRAMES).await;
        }
    }

    fn fill(
        &self,
        mut waiting: MutexGuard<'_, QueueContents>,
        add: impl FnOnce(&mut Batch),
    ) -> Result<(), PeerGone> {
        if waiting.state == QueueState::Gone {
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
    async fn take(&self, empty: &mut Batch) -> NextWrite {
        loop {
            {
                let mut waiting = self.lock();
                if waiting.batch.length > 0 {
                    std::mem::swap(&mut waiting.batch, empty);
                    return NextWrite::Batch;
                }
                if waiting.state != QueueState::Open {
                    return NextWrite::Ended;
                }
            }
            self.filled.notified().await;
        }
    }

    fn written(&self, length: usize) {
        let mut waiting = self.lock();
        let crowded = waiting.queued >= BUDGET;
        waiting.queued -= length;
        waiting.taken += length as u64;
        if crowded && waiting.queued < BUDGET {
            drop(waiting);
            self.emptied.notify_waiters();
        }
    }

    fn lose_peer(&self) {
        let mut waiting = self.lock();
        waiting.state = QueueState::Gone;
        waiting.batch = Batch::default();
        waiting.queued = 0;
        drop(waiting);
        self.emptied.notify_waiters();
    }
}

enum NextWrite {
    Batch,
    Ended,
}

/// The other end of the queue. However the writing ends, also by being aborted, no sender waits for it any more.
struct Writer(Arc<Queue>);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.lose_peer();
    }
}

impl Writer {
    async fn write_all<W: AsyncWrite + Unpin>(self, mut sink: W, patience: DrainPolicy) {
        let writing = async {
            let mut batch = Batch::default();
            while let NextWrite::Batch = self.0.take(&mut batch).await {
                if batch
                    .write(&mut sink, |length| self.0.written(length))
                    .await
                    .is_err()
                {
                    return;
                }
                batch.clear();
            }
            let _ = sink.shutdown().await;
        };
        tokio::select! {
            biased;
            () = writing => {}
            () = self.0.overdue(patience) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::batch::GATHERED;
    use bytes::Bytes;
    use proptest::prelude::*;
    use std::io::IoSlice;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn a_peer_that_does_not_read_sees_the_end_all_the_same_and_nobody_waits_for_it() {
        let (near, mut far) = tokio::io::duplex(100);
        let tasks = TaskTracker::new();
        let outbox = Outbox::open(near, DrainPolicy::UntilItStalls, &tasks);
        outbox.send_now(vec![b'x'; BUDGET]).unwrap();
        let room = outbox.room_or_end();
        assert!(outbox.is_crowded());
        drop(outbox);
        room.await;
        tasks.close();
        tasks.wait().await;
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest.len(), 100);
    }

    #[tokio::test]
    async fn a_reader_of_our_own_gets_the_rest_whenever_it_reads() {
        let tasks = TaskTracker::new();
        let (near, mut far) = tokio::io::duplex(100);
        let outbox = Outbox::open(near, DrainPolicy::UntilItIsGone, &tasks);
        outbox.send_now(vec![b'x'; 1000]).unwrap();
        drop(outbox);
        // It stalls for longer than another would be waited for.
        let stalled = TaskTracker::new();
        let (near, _far) = tokio::io::duplex(100);
        let outbox = Outbox::open(near, DrainPolicy::UntilItStalls, &stalled);
        outbox.send_now(vec![b'x'; 1000]).unwrap();
        drop(outbox);
        stalled.close();
        stalled.wait().await;
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest.len(), 1001);
        tasks.close();
        tasks.wait().await;
    }

    #[tokio::test]
    async fn frames_arrive_whole_and_in_order_through_a_narrow_pipe() {
        let (near, mut far) = tokio::io::duplex(100);
        let tasks = TaskTracker::new();
        let outbox = Outbox::open(near, DrainPolicy::UntilItStalls, &tasks);
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
        let outbox = Outbox::open(near, DrainPolicy::UntilItStalls, &TaskTracker::new());
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
        let outbox = Outbox::open(near, DrainPolicy::UntilItStalls, &TaskTracker::new());
        let large = Bytes::from(vec![b'x'; BUDGET]);
        outbox.room().await;
        outbox
            .push([FramePart::Copy(b"1:"), FramePart::Share(large.clone())])
            .unwrap();
        outbox.push([FramePart::Share(large.clone())]).unwrap();
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
        outbox.push([FramePart::Copy(b"more")]).unwrap();
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
        let outbox = Outbox::open(near, DrainPolicy::UntilItStalls, &TaskTracker::new());
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
        let writing = tokio::spawn(Writer(queue).write_all(near, DrainPolicy::UntilItStalls));
        outbox.send_now(vec![b'x'; 2 * BUDGET]).unwrap();
        let send = outbox.send("y");
        tokio::pin!(send);
        assert!(futures_pending(&mut send).await, "the budget does not hold");
        writing.abort();
        assert_eq!(send.await, Err(PeerGone));
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
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let tasks = TaskTracker::new();
                let sink = Narrow { taken: Arc::clone(&taken), widths: widths.into_iter().cycle() };
                let outbox = Outbox::open(sink, DrainPolicy::UntilItStalls, &tasks);
                for (number, frame) in frames.into_iter().enumerate() {
                    let parts = frame.into_iter().map(|(copied, large)| {
                        let text = format!("{number};").repeat(1 + large * GATHERED);
                        expected.extend_from_slice(text.as_bytes());
                        (copied, Bytes::from(text))
                    });
                    let parts: Vec<_> = parts.collect();
                    let parts: Vec<_> = parts.iter().map(|(copied, bytes)| match copied {
                        true => FramePart::Copy(bytes),
                        false => FramePart::Share(bytes.clone()),
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
