//! The reader of a peer's lines.

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
    batch: u64,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads from `source` lines of at most `limit` bytes.
    pub fn new(source: R, limit: usize) -> Self {
        Self {
            source,
            decoder: LineDecoder::new(limit),
            ended: false,
            batch: 0,
        }
    }

    /// Returns a number that changes with every read from the source: lines with the same one came together.
    #[must_use]
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// Returns the next line; `None` when the peer has closed its end. Cancel safe.
    pub async fn next_line(&mut self) -> std::io::Result<Option<Line>> {
        // Lines that were read ahead cost no wait, and a peer that floods would keep the thread for megabytes of them.
        tokio::task::coop::consume_budget().await;
        loop {
            if let Some(line) = self.decoder.next_line() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(self.decoder.last_line());
            }
            let buffer = self.decoder.buffer();
            if buffer.capacity() - buffer.len() < READ_AHEAD / 8 {
                // A long line is likely to be longer still: growing by as much as there is copies it seldom.
                buffer.reserve(buffer.len().max(READ_AHEAD));
            }
            self.ended = self.source.read_buf(buffer).await? == 0;
            self.batch += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    async fn next(reader: &mut LineReader<tokio::io::DuplexStream>) -> Vec<u8> {
        match reader.next_line().await.unwrap() {
            Some(Line::Whole(line)) => line.to_vec(),
            other => panic!("no line: {other:?}"),
        }
    }

    #[tokio::test]
    async fn lines_that_came_together_have_the_same_number() {
        let (near, mut far) = tokio::io::duplex(1000);
        let mut reader = LineReader::new(near, 1000);
        far.write_all(b"a\nb\nc").await.unwrap();
        let first = (next(&mut reader).await, reader.batch());
        assert_eq!(
            (next(&mut reader).await, reader.batch()),
            (b"b".to_vec(), first.1)
        );
        far.write_all(b"d\n").await.unwrap();
        assert_eq!(next(&mut reader).await, b"cd");
        assert_ne!(reader.batch(), first.1);
    }

    #[tokio::test]
    async fn a_large_line_does_not_leave_a_large_buffer() {
        let (near, mut far) = tokio::io::duplex(READ_AHEAD);
        let mut reader = LineReader::new(near, 8 * 1024 * 1024);
        let writer = tokio::spawn(async move {
            far.write_all(&vec![b'x'; 4 * 1024 * 1024]).await.unwrap();
            far.write_all(b"\nsmall\n").await.unwrap();
            for _ in 0..10_000 {
                far.write_all(b"small\n").await.unwrap();
            }
        });
        assert_eq!(next(&mut reader).await.len(), 4 * 1024 * 1024);
        while let Some(line) = reader.next_line().await.unwrap() {
            assert_eq!(line, Line::Whole("small".into()));
            let capacity = reader.decoder.buffer().capacity();
            assert!(capacity <= 4 * READ_AHEAD, "{capacity} bytes are held");
        }
        writer.await.unwrap();
    }
}
