//! Wherever the reads end, the same lines come out, and what is kept stays within the limit.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use pml_fuzz::protocol::{Line, LineDecoder, Remains};

fuzz_target!(|input: &[u8]| {
    let [limit, cuts, bytes @ ..] = input else { return };
    let (sizes, bytes) = bytes.split_at(usize::from(*cuts).min(bytes.len()));
    let limit = usize::from(*limit);
    assert_eq!(decode(&[bytes], limit), decode(&chunks(bytes, sizes), limit));
});

/// Cuts `bytes` into chunks of the given sizes; the last one is what is left.
fn chunks<'a>(mut bytes: &'a [u8], sizes: &[u8]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    for size in sizes {
        let (chunk, rest) = bytes.split_at(usize::from(*size).min(bytes.len()));
        chunks.push(chunk);
        bytes = rest;
    }
    chunks.push(bytes);
    chunks
}

fn decode(chunks: &[&[u8]], limit: usize) -> Vec<Line> {
    let mut decoder = LineDecoder::new(limit);
    let mut lines = Vec::new();
    for chunk in chunks {
        decoder.buffer().extend_from_slice(chunk);
        lines.extend(std::iter::from_fn(|| decoder.next_line()));
        within(decoder.buffer(), limit, chunk.len());
    }
    lines.extend(decoder.last_line());
    for line in &lines {
        match line {
            Line::Whole(line) => assert!(line.len() <= limit && !line.contains(&b'\n')),
            // The id of an overlong message may be longer than the limit, but not longer than any id.
            Line::TooLong(Remains::Request(id) | Remains::Answer(id) | Remains::Either(id)) => {
                assert!(id.len() <= 1024);
            }
            Line::TooLong(Remains::Notification | Remains::Nothing) => {}
        }
    }
    lines
}

/// The line that has begun is all that is kept, with the break that may end it or the mark that may begin it.
fn within(buffer: &BytesMut, limit: usize, chunk: usize) {
    assert!(
        buffer.len() <= (limit + 1).max(2),
        "{} bytes are kept",
        buffer.len()
    );
    let room = 2 * (limit + 1 + chunk) + 1024;
    assert!(buffer.capacity() <= room, "{} bytes are held", buffer.capacity());
}
