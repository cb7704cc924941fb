//! The batch of outgoing messages: small parts are copied into one buffer, large ones are written without a copy.

use std::io::IoSlice;

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// Parts up to this size are cheaper to copy than to write on their own.
pub(super) const GATHERED: usize = 4 * 1024;

/// How much of a buffer is kept after a burst: dozens of usual messages, and little enough to hold for every peer.
const KEPT: usize = 16 * 1024;

/// How many pieces are handed to one system call: a pipe takes no more bytes than this many usual ones.
const PIECES: usize = 64;

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
pub enum FramePart<'a> {
    /// Bytes that are copied.
    Copy(&'a [u8]),
    /// Bytes that are shared where they are many.
    Share(Bytes),
}

/// Whole frames in their order: one buffer, and the large parts that stand between its bytes.
#[derive(Debug, Default)]
pub(super) struct Batch {
    gathered: Vec<u8>,
    /// Each with the place in `gathered` that it stands before.
    shared: Vec<(usize, Bytes)>,
    pub(super) length: usize,
    /// How much of `gathered` is written.
    gathered_written: usize,
    /// How many of `shared` are written; the one behind them is cut to what is left of it.
    shared_written: usize,
}

impl Batch {
    pub(super) fn add_frame(&mut self, frame: Frame) {
        for part in frame.parts {
            self.share(part);
        }
        self.copy(b"\n");
    }

    pub(super) fn add_parts<'p>(&mut self, parts: impl IntoIterator<Item = FramePart<'p>>) {
        for part in parts {
            match part {
                FramePart::Copy(bytes) => self.copy(bytes),
                FramePart::Share(bytes) => self.share(bytes),
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

    /// Writes all of it; `written` is told of each piece.
    pub(super) async fn write<W: AsyncWrite + Unpin>(
        &mut self,
        sink: &mut W,
        written: impl Fn(usize),
    ) -> std::io::Result<()> {
        let mut left = self.length;
        while left > 0 {
            let mut pieces = [IoSlice::new(&[]); PIECES];
            let count = self.pieces(&mut pieces);
            let length = sink.write_vectored(&pieces[..count]).await?;
            if length == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            self.advance(length);
            left -= length;
            written(length);
        }
        sink.flush().await
    }

    /// Makes the batch empty; what a burst needed is given back.
    pub(super) fn clear(&mut self) {
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

    #[test]
    fn a_burst_gives_its_memory_back_and_a_usual_buffer_stays() {
        let mut batch = Batch::default();
        batch.add_parts([FramePart::Copy(&[b'x'; KEPT / 2])]);
        let usual = batch.gathered.capacity();
        batch.clear();
        assert_eq!(batch.gathered.capacity(), usual);
        for _ in 0..1000 {
            batch.add_parts([
                FramePart::Copy(&[b'x'; KEPT]),
                FramePart::Share(vec![b'y'; KEPT].into()),
            ]);
        }
        batch.clear();
        let kept = (batch.gathered.capacity(), batch.shared.capacity(), batch.length);
        assert_eq!(kept, (KEPT, PIECES, 0));
    }
}
