//! What a server wrote to stderr: the end of it is kept, every line is logged.
//!
//! The end is what explains a death. A server may write without measure or without line breaks, so both what is
//! kept and what is logged of one line are bounded; what is read is always drained, because a full pipe would
//! stop the server. The values a server was given in confidence are replaced by their names.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::protocol::{DependencyName, Secrets, Shown};

/// How many bytes are kept: a long stack trace, and still little enough for an error that a model reads.
const KEPT_BYTES: usize = 8 * 1024;

/// How many lines of them are told: more would push the error itself out of sight.
const TOLD_LINES: usize = 40;

/// How much of one line is logged: an endless line must not become an endless log record.
const LOGGED_BYTES: usize = 2 * 1024;

/// How much more is kept until secrets are hidden: half a secret at a cut would not be found. No line of a key, however
/// it is encoded, is longer.
const MARGIN: usize = 16 * 1024;

/// How much is read at once: the size of a pipe's buffer.
const READ_BYTES: usize = 64 * 1024;

/// The end of a server's stderr; clones see the same text.
#[derive(Debug, Clone, Default)]
pub struct Stderr {
    ring: Arc<Mutex<TailBuffer>>,
    secrets: Arc<Secrets>,
}

impl Stderr {
    /// Begins with nothing; what comes is told without these secrets.
    #[must_use]
    pub fn hiding(secrets: Secrets) -> Self {
        Self {
            ring: Arc::default(),
            secrets: Arc::new(secrets),
        }
    }

    /// Returns the last lines without secrets, with everything that could deceive a reader written out.
    #[must_use]
    pub fn tail(&self) -> String {
        self.ring().tail(&self.secrets)
    }

    /// Reads until the end, keeps the last of it and logs each line at debug level.
    pub(in crate::loader) async fn follow(self, name: DependencyName, mut pipe: impl AsyncRead + Unpin) {
        let mut lines = Lines::default();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let read = match pipe.read(&mut buffer).await {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) => {
                    tracing::debug!(dependency = name.as_str(), %error, "stderr cannot be read");
                    break;
                }
            };
            self.ring().push(&buffer[..read]);
            lines.push(&buffer[..read], |line| self.log(&name, line));
        }
        lines.finish(|line| self.log(&name, line));
    }

    fn log(&self, name: &DependencyName, line: &[u8]) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let line = String::from_utf8_lossy(line);
        let line = self.secrets.hide(&line);
        let line = &line[..line.floor_char_boundary(LOGGED_BYTES)];
        tracing::debug!(dependency = name.as_str(), "stderr: {}", Shown::line(line));
    }

    fn ring(&self) -> MutexGuard<'_, TailBuffer> {
        // A push cannot leave a ring half done: what a panicking thread left is fit to be read.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
struct TailBuffer {
    bytes: VecDeque<u8>,
    /// Whether something before `bytes` was dropped.
    cut: bool,
}

impl TailBuffer {
    fn push(&mut self, bytes: &[u8]) {
        let room = KEPT_BYTES + MARGIN;
        let kept = &bytes[bytes.len().saturating_sub(room)..];
        let surplus = (self.bytes.len() + kept.len()).saturating_sub(room);
        self.cut |= surplus > 0 || kept.len() < bytes.len();
        self.bytes.drain(..surplus);
        self.bytes.extend(kept);
    }

    fn tail(&self, secrets: &Secrets) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        let text = secrets.hide(text.trim_end());
        let begin = text.ceil_char_boundary(text.len().saturating_sub(KEPT_BYTES));
        let cut = self.cut || begin > 0;
        let text = &text[begin..];
        // The first line may have lost its beginning: it is told only when there is no other.
        let whole = match text.split_once('\n') {
            Some((_, rest)) if cut => rest,
            _ => text,
        };
        let lines: Vec<&str> = whole.lines().collect();
        let told = lines[lines.len().saturating_sub(TOLD_LINES)..].join("\n");
        let dropped = cut || lines.len() > TOLD_LINES;
        format!("{}{}", if dropped { "…\n" } else { "" }, Shown::block(&told))
    }
}

/// Cuts a stream into lines of bounded length.
#[derive(Debug, Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.begin(&rest[..end]);
            self.finish(&mut line);
            rest = &rest[end + 1..];
        }
        self.begin(rest);
    }

    /// Takes the last line, which had no line break.
    fn finish(&mut self, mut line: impl FnMut(&[u8])) {
        if !self.begun.trim_ascii().is_empty() {
            line(self.begun.trim_ascii_end());
        }
        self.begun.clear();
    }

    fn begin(&mut self, bytes: &[u8]) {
        let room = (LOGGED_BYTES + MARGIN).saturating_sub(self.begun.len());
        self.begun.extend(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tail(pushed: &[&[u8]]) -> String {
        let mut ring = TailBuffer::default();
        for bytes in pushed {
            ring.push(bytes);
        }
        ring.tail(&Secrets::default())
    }

    #[test]
    fn short_output_is_told_whole() {
        assert_eq!(tail(&[b"one\r\ntw", b"o\n\n"]), "one\ntwo");
        assert_eq!(tail(&[]), "");
    }

    #[test]
    fn long_output_loses_its_beginning_and_says_so() {
        let text: Vec<String> = (0..10_000).map(|line| format!("line {line}\n")).collect();
        let told = tail(&[text.concat().as_bytes()]);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[40]), (41, "…", "line 9999"));
    }

    #[test]
    fn a_line_that_lost_its_beginning_is_not_told_when_there_is_another() {
        let told = tail(&[&[b'x'; KEPT_BYTES], b"\nthe cause\n"]);
        assert_eq!(told, "…\nthe cause");
    }

    #[test]
    fn an_endless_line_is_bounded() {
        let mut ring = TailBuffer::default();
        let read = vec![b'x'; READ_BYTES];
        for _ in 0..1_000 {
            ring.push(&read);
        }
        assert_eq!(ring.bytes.len(), KEPT_BYTES + MARGIN);
        assert_eq!(
            ring.tail(&Secrets::default()),
            format!("…\n{}", "x".repeat(KEPT_BYTES))
        );
    }

    #[test]
    fn a_secret_at_the_cut_is_not_told_by_half() {
        let stderr = Stderr::hiding(Secrets::new([("TOKEN", "abcdefghijklmnop")]));
        let rest = "x".repeat(KEPT_BYTES - 8);
        stderr.ring().push(format!("abcdefghijklmnop{rest}").as_bytes());
        assert_eq!(stderr.tail(), format!("[TOKEN]{rest}"));
    }

    #[test]
    fn what_is_not_text_or_could_deceive_is_written_out_and_secrets_are_named() {
        let stderr = Stderr::hiding(Secrets::new([("TOKEN", "abcdefgh")]));
        stderr.ring().push(b"a\xffb\x1b[2Jc\nbad token abcdefgh\n");
        assert_eq!(stderr.tail(), "a\u{fffd}b\\u{1b}[2Jc\nbad token [TOKEN]");
    }

    #[test]
    fn a_character_across_two_reads_stays_whole() {
        assert_eq!(tail(&["é".as_bytes()[..1].as_ref(), &"é".as_bytes()[1..]]), "é");
    }

    #[test]
    fn logged_lines_are_cut_and_blank_ones_left_out() {
        let mut lines = Lines::default();
        let mut logged = Vec::new();
        let long = vec![b'x'; 2 * (LOGGED_BYTES + MARGIN)];
        for bytes in [b"on".as_ref(), b"e\r\n\n \ntwo\n", &long, b"\nlast"] {
            lines.push(bytes, |line| logged.push(line.to_vec()));
        }
        lines.finish(|line| logged.push(line.to_vec()));
        assert_eq!(
            logged,
            [
                b"one".to_vec(),
                b"two".to_vec(),
                vec![b'x'; LOGGED_BYTES + MARGIN],
                b"last".to_vec()
            ]
        );
    }

    proptest! {
        #[test]
        fn the_ring_holds_the_end_however_it_was_cut(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3_000), 0..12)
        ) {
            let mut ring = TailBuffer::default();
            for chunk in &chunks {
                ring.push(chunk);
            }
            let all = chunks.concat();
            let end = &all[all.len().saturating_sub(KEPT_BYTES + MARGIN)..];
            prop_assert_eq!(ring.bytes.iter().copied().collect::<Vec<u8>>(), end);
            prop_assert_eq!(ring.cut, all.len() > KEPT_BYTES + MARGIN);
        }
    }
}
