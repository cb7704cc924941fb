//! Lines of a peer, as they come.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::protocol::{Line, LineDecoder};

/// Room asked for before each read: a pipe holds 64 KiB, more would never come at once.
const READ_AHEAD: usize = 64 * 1024;

/// Reads lines from a peer.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    decoder: LineDecoder,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads from `source` lines of at most `limit` bytes.
    pub fn new(source: R, limit: usize) -> Self {
        Self {
            source,
            decoder: LineDecoder::new(limit),
            ended: false,
        }
    }

    /// Returns the next line; `None` when the peer has closed its end. Cancel safe.
    pub async fn next_line(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.decoder.next_line() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(self.decoder.last_line());
            }
            let buffer = self.decoder.buffer();
            if buffer.capacity() - buffer.len() < READ_AHEAD / 8 {
                buffer.reserve(READ_AHEAD);
            }
            self.ended = self.source.read_buf(buffer).await? == 0;
        }
    }
}
