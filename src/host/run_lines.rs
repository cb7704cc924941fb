//! The way of lines from a run to the surface that shows them. A surface that is slow makes the run slow: the way is bounded by
//! lines, and by bytes as well, since one line may hold pictures.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::run_line::RunLine;

/// How many lines wait at most.
const LINES: usize = 256;

/// How many bytes wait at most: half of the longest line that an agent may write. A longer one waits alone.
const BYTES: usize = 32 * 1024 * 1024;

/// The end where lines come in.
#[derive(Debug, Clone)]
pub struct RunLineSender {
    lines: mpsc::Sender<(RunLine, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
}

/// The end where lines come out.
#[derive(Debug)]
pub struct RunLineReceiver(mpsc::Receiver<(RunLine, OwnedSemaphorePermit)>);

/// The surface has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurfaceGone;

/// Makes a way for lines.
#[must_use]
pub fn run_lines() -> (RunLineSender, RunLineReceiver) {
    let (lines, received) = mpsc::channel(LINES);
    let room = Arc::new(Semaphore::new(BYTES));
    (RunLineSender { lines, room }, RunLineReceiver(received))
}

impl RunLineSender {
    /// Passes a line on as soon as there is room for it.
    pub async fn send(&self, line: RunLine) -> Result<(), SurfaceGone> {
        let weight = u32::try_from(line.weight().min(BYTES)).unwrap_or(u32::MAX);
        let room = tokio::select! {
            biased;
            () = self.lines.closed() => return Err(SurfaceGone),
            room = Arc::clone(&self.room).acquire_many_owned(weight) => room.map_err(|_| SurfaceGone)?,
        };
        self.lines.send((line, room)).await.map_err(|_| SurfaceGone)
    }
}

impl RunLineReceiver {
    /// Waits for the next line; `None` once the run has said its last.
    pub async fn recv(&mut self) -> Option<RunLine> {
        let (line, _room) = self.0.recv().await?;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::line::AgentLine;
    use crate::host::run_line::OwnLine;
    use futures_util::FutureExt as _;

    fn line(bytes: usize) -> RunLine {
        RunLine::Agent {
            raw: "x".repeat(bytes),
            meaning: Box::new(AgentLine::Other),
        }
    }

    #[test]
    fn what_waits_is_bounded_by_bytes_and_one_line_always_fits() {
        let (sender, mut receiver) = run_lines();
        let sent = |line| sender.send(line).now_or_never();
        assert_eq!(sent(line(BYTES * 2)), Some(Ok(())));
        assert_eq!(sent(line(1)), None, "there is no room beside it");
        assert!(receiver.recv().now_or_never().flatten().is_some());
        assert_eq!(sent(line(BYTES / 2)), Some(Ok(())));
        assert_eq!(sent(line(BYTES / 4)), Some(Ok(())));
        assert_eq!(sent(line(BYTES / 2)), None);
        drop(receiver);
        assert_eq!(sent(line(1)), Some(Err(SurfaceGone)));
    }

    #[test]
    fn what_waits_is_bounded_by_lines() {
        let (sender, _receiver) = run_lines();
        let text = || RunLine::Own(OwnLine::Text { text: String::new() });
        for _ in 0..LINES {
            assert_eq!(sender.send(text()).now_or_never(), Some(Ok(())));
        }
        assert_eq!(sender.send(text()).now_or_never(), None);
    }
}
