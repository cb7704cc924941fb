//! Bounded lines: bytes in, one JSON text per line out.
//!
//! The decoder does no IO: a reader fills its buffer, it hands out lines as slices of that buffer without copying.
//! Without a cap a peer that never sends a newline would make the buffer grow until memory is gone; a line over
//! the limit is thrown away as it arrives, and skimmed for its id so that the waiting request gets an error.

use bytes::{Buf as _, Bytes, BytesMut};

use super::{MessageSkim, Remains};

/// Longer than what a peer sends in one go, so a buffer has grown for it; and little enough to be copied.
const LARGE: usize = 128 * 1024;

/// What a peer sent up to a newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line within the limit, without its line break.
    Whole(Bytes),
    /// A line over the limit; this is all that is left of it.
    TooLong(Remains),
}

/// Cuts a stream of bytes into lines.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    scanned: usize,
    limit: usize,
    /// What was seen of the overlong line that is being thrown away.
    discarding: Option<MessageSkim>,
    start: Start,
}

/// Whether a byte order mark may still come: some Windows programs put one in front of the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Ahead,
    Passed,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl LineDecoder {
    /// Builds a decoder for lines of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            discarding: None,
            start: Start::Ahead,
        }
    }

    /// Returns the buffer to read into.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Returns the next complete line, if there is one; blank lines are passed over.
    pub fn next_line(&mut self) -> Option<Line> {
        if self.start == Start::Ahead {
            self.pass_byte_order_mark();
            if self.start == Start::Ahead {
                return None;
            }
        }
        loop {
            let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                self.discard_overlong();
                return None;
            };
            let end = self.scanned + offset;
            let line = self.buffer.split_to(end + 1);
            self.scanned = 0;
            self.leave_large_buffer(line.len());
            if let Some(line) = self.finish(line.freeze().slice(..end)) {
                return Some(line);
            }
        }
    }

    /// Returns what stands after the last newline when the stream has ended.
    pub fn last_line(&mut self) -> Option<Line> {
        let rest = self.buffer.split().freeze();
        self.scanned = 0;
        self.finish(rest)
    }

    fn finish(&mut self, line: Bytes) -> Option<Line> {
        if let Some(mut skim) = self.discarding.take() {
            skim.pass(&line);
            return Some(Line::TooLong(skim.remains()));
        }
        let mut line = line;
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        if line.len() > self.limit {
            return Some(Line::TooLong(Remains::of(&line)));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            None
        } else {
            Some(Line::Whole(line))
        }
    }

    fn discard_overlong(&mut self) {
        // One byte of grace: the limit is without the line break, which may be `\r\n`.
        if self.discarding.is_none() && self.buffer.len() > self.limit + 1 {
            self.discarding = Some(MessageSkim::default());
        }
        if let Some(skim) = &mut self.discarding {
            skim.pass(&self.buffer);
            self.buffer.clear();
            self.scanned = 0;
        }
    }

    /// A buffer that grew for a long line would be used again for ever: what came behind the line moves out of it.
    fn leave_large_buffer(&mut self, line: usize) {
        if line > LARGE && self.buffer.len() <= LARGE {
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
    }

    /// Before the line is measured: a mark that came in a read of its own must not count for its length.
    fn pass_byte_order_mark(&mut self) {
        if self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.advance(BYTE_ORDER_MARK.len());
            self.start = Start::Passed;
        } else if !BYTE_ORDER_MARK.starts_with(&self.buffer) {
            self.start = Start::Passed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(chunks: &[&[u8]], limit: usize) -> Vec<Line> {
        let mut decoder = LineDecoder::new(limit);
        let mut lines = Vec::new();
        for chunk in chunks {
            decoder.buffer().extend_from_slice(chunk);
            while let Some(line) = decoder.next_line() {
                lines.push(line);
            }
        }
        lines.extend(decoder.last_line());
        lines
    }

    fn whole(text: &str) -> Line {
        Line::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn lines_end_with_any_break_and_blank_ones_vanish() {
        let lines = decode(&[b"\xef\xbb\xbf{}\r\n\n  \n[1", b"]\n", b"last"], 100);
        assert_eq!(lines, [whole("{}"), whole("[1]"), whole("last")]);
    }

    #[test]
    fn an_overlong_line_costs_only_itself_and_tells_who_waits_for_it() {
        let lines = decode(&[b"0123456789", b"abcdef", b"\nok\n"], 8);
        assert_eq!(lines, [Line::TooLong(Remains::Nothing), whole("ok")]);
        let answer = br#"{"result":[0,0,0,0,0],"id":12}"#;
        for size in [1, 7, answer.len()] {
            let chunks: Vec<&[u8]> = answer.chunks(size).collect();
            let lines = decode(&chunks, 8);
            assert_eq!(lines, [Line::TooLong(Remains::Answer("12".to_owned()))], "{size}");
        }
    }

    #[test]
    fn an_endless_line_does_not_grow_the_buffer() {
        let mut decoder = LineDecoder::new(1000);
        for _ in 0..1000 {
            decoder.buffer().extend_from_slice(&[b'x'; 1000]);
            assert_eq!(decoder.next_line(), None);
        }
        assert!(
            decoder.buffer().capacity() < 16_000,
            "{}",
            decoder.buffer().capacity()
        );
    }

    proptest! {
        #[test]
        fn where_the_reads_end_does_not_matter(
            text in "\u{feff}?(\\{\"id\":1,)?[a-c \r\n]{0,60}", cuts in proptest::collection::vec(0usize..60, 0..6), limit in 0usize..12,
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            let at_once = decode(&[bytes], limit);
            let in_pieces = decode(&chunks, limit);
            prop_assert_eq!(at_once, in_pieces);
        }
    }
}
