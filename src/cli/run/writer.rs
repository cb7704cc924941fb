//! Writes what is shown on a thread of its own: a reader that stops (Ctrl-S, a pager) or goes away stops nothing else.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// How many bytes may wait for a slow reader; what comes then waits, or is left out.
const WAITING: usize = 4 * 1024 * 1024;

/// The outputs of this process.
#[derive(Debug)]
pub(super) struct Writer {
    texts: mpsc::UnboundedSender<Text>,
    backlog: Arc<Backlog>,
    broken: CancellationToken,
}

#[derive(Debug)]
enum Text {
    /// For stdout, as it is.
    Out(String),
    /// For stderr; colours are taken out where it shows none.
    Err(String),
}

/// What was not written yet.
#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    written: Notify,
}

impl Writer {
    /// Starts the thread; it ends with its writer, once everything is written.
    pub(super) fn start() -> Self {
        let (texts, mut received) = mpsc::unbounded_channel();
        let backlog = Arc::<Backlog>::default();
        let broken = CancellationToken::new();
        let (counted, stdout_broken) = (Arc::clone(&backlog), broken.clone());
        std::thread::spawn(move || {
            while let Some(text) = received.blocking_recv() {
                let length = match text {
                    Text::Out(text) => {
                        let mut out = std::io::stdout().lock();
                        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
                            stdout_broken.cancel();
                        }
                        text.len()
                    }
                    Text::Err(text) => {
                        let _ = anstream::stderr().write_all(text.as_bytes());
                        text.len()
                    }
                };
                counted.bytes.fetch_sub(length, Ordering::AcqRel);
                counted.written.notify_waiters();
            }
        });
        Self {
            texts,
            backlog,
            broken,
        }
    }

    /// Writes to stdout, as it is.
    pub(super) fn out(&self, text: String) {
        self.write(text.len(), Text::Out(text));
    }

    /// Writes to stderr.
    pub(super) fn err(&self, text: String) {
        self.write(text.len(), Text::Err(text));
    }

    fn write(&self, length: usize, text: Text) {
        self.backlog.bytes.fetch_add(length, Ordering::AcqRel);
        // The thread lives as long as this.
        let _ = self.texts.send(text);
    }

    /// Tells whether more may be written now.
    pub(super) fn has_room(&self) -> bool {
        self.backlog.bytes.load(Ordering::Acquire) < WAITING
    }

    /// Waits until more may be written.
    pub(super) async fn room(&self) {
        self.below(WAITING).await;
    }

    /// Waits until everything is written.
    pub(super) async fn flushed(&self) {
        self.below(1).await;
    }

    async fn below(&self, limit: usize) {
        loop {
            let written = self.backlog.written.notified();
            tokio::pin!(written);
            // Listened for before it is looked at: what is written in between counts.
            written.as_mut().enable();
            if self.backlog.bytes.load(Ordering::Acquire) < limit {
                return;
            }
            written.await;
        }
    }

    /// Waits until stdout takes nothing any more.
    pub(super) async fn broken(&self) {
        self.broken.cancelled().await;
    }
}
