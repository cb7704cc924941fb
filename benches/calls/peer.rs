//! The client's end of a conversation with one process, over pipes or sockets.
//!
//! One thread, blocking reads and writes, no parsing beyond the id: the driver shares the processors with what it
//! measures and must not spin.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use memchr::{memchr, memmem};
use serde_json::{Value, json};

/// Larger than the largest answer, so that a line never moves while it is read.
const BUFFER: usize = 4 * 1024 * 1024;

/// How far from the beginning or the end of a line its id may stand.
const NEAR: usize = 64;

/// What lies between the client and the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    /// As shells and Python give them.
    Pipes,
    /// One socket pair per stream, as Node gives them.
    Sockets,
}

impl Link {
    pub(crate) const ALL: [Self; 2] = [Self::Pipes, Self::Sockets];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Pipes => "pipes",
            Self::Sockets => "socket pairs",
        }
    }

    /// Starts `command` and returns it with the ends to write to and to read from.
    fn connect(self, command: &mut Command) -> anyhow::Result<(Child, OwnedFd, OwnedFd)> {
        match self {
            Self::Pipes => {
                let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
                let stdin = child.stdin.take().context("no stdin")?;
                let stdout = child.stdout.take().context("no stdout")?;
                Ok((child, stdin.into(), stdout.into()))
            }
            Self::Sockets => {
                let (near_stdin, far_stdin) = UnixStream::pair()?;
                let (near_stdout, far_stdout) = UnixStream::pair()?;
                command
                    .stdin(OwnedFd::from(far_stdin))
                    .stdout(OwnedFd::from(far_stdout));
                let child = command.spawn()?;
                // The command holds the far ends: they must close here for an end of file to arrive.
                command.stdin(Stdio::null()).stdout(Stdio::null());
                Ok((child, near_stdin.into(), near_stdout.into()))
            }
        }
    }
}

/// A `tools/call` without its ids, ready to be sent many times.
pub(crate) struct Call {
    before: String,
    after: String,
}

impl Call {
    /// The progress token is there because clients such as Claude Code send one with every call.
    pub(crate) fn new(tool: &str, arguments: &str) -> Self {
        Self {
            before: format!(
                r#","method":"tools/call","params":{{"name":"{tool}","_meta":{{"progressToken":"#
            ),
            after: format!("}},\"arguments\":{arguments}}}}}\n"),
        }
    }

    fn write(&self, id: u64, line: &mut Vec<u8>) -> std::io::Result<()> {
        write!(
            line,
            r#"{{"jsonrpc":"2.0","id":{id}{}{id}{}"#,
            self.before, self.after
        )
    }
}

/// A process and the client's ends of its streams. Dropping it ends it.
pub(crate) struct Peer {
    child: Child,
    /// Gone once the conversation is being closed.
    writer: Option<File>,
    reader: File,
    buffer: Vec<u8>,
    /// Where the first line that was not looked at begins, and where what was read ends.
    unread: (usize, usize),
    line: Vec<u8>,
    next_id: u64,
}

impl Peer {
    pub(crate) fn start(mut command: Command, link: Link) -> anyhow::Result<Self> {
        let (child, writer, reader) = link
            .connect(&mut command)
            .with_context(|| format!("cannot start `{}`", command.get_program().to_string_lossy()))?;
        Ok(Self {
            child,
            writer: Some(File::from(writer)),
            reader: File::from(reader),
            buffer: vec![0; BUFFER],
            unread: (0, 0),
            line: Vec::new(),
            next_id: 1,
        })
    }

    /// Its process id.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Opens the conversation as a Legacy client.
    pub(crate) fn open(&mut self) -> anyhow::Result<()> {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1.0.0" },
        });
        self.request("initialize", &params)?;
        self.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
    }

    /// Sends a request and returns its result.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let id = self.take_id();
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(format!("{request}\n").as_bytes())?;
        loop {
            let line = self.next_line()?;
            let mut message: Value = serde_json::from_slice(line)?;
            if message["id"] == id && message.get("method").is_none() {
                ensure!(message.get("result").is_some(), "`{method}` failed: {message}");
                return Ok(message["result"].take());
            }
        }
    }

    /// Sends a request without parameters and returns how long its answer is, unparsed.
    pub(crate) fn measure(&mut self, method: &str) -> anyhow::Result<usize> {
        let id = self.take_id();
        let request = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n");
        self.send(request.as_bytes())?;
        loop {
            let line = self.next_line()?;
            if id_of(line) == Some(id) {
                return Ok(line.len());
            }
        }
    }

    /// Makes one call and looks at its result: `expected` must be in it.
    pub(crate) fn check(&mut self, call: &Call, expected: &str) -> anyhow::Result<()> {
        let id = self.take_id();
        self.line.clear();
        call.write(id, &mut self.line)?;
        self.send_line()?;
        loop {
            let line = self.next_line()?;
            if id_of(line) == Some(id) {
                let found = memmem::find(line, expected.as_bytes()).is_some();
                let start = String::from_utf8_lossy(&line[..line.len().min(300)]);
                ensure!(found, "not the expected answer: {start}");
                return Ok(());
            }
        }
    }

    /// Makes one call and returns how long it took.
    pub(crate) fn call(&mut self, call: &Call) -> anyhow::Result<Duration> {
        let id = self.take_id();
        self.line.clear();
        call.write(id, &mut self.line)?;
        let begin = Instant::now();
        self.send_line()?;
        while id_of(self.next_line()?) != Some(id) {}
        Ok(begin.elapsed())
    }

    /// Makes `count` calls with `window` of them in flight and returns how long all took.
    pub(crate) fn call_many(&mut self, call: &Call, count: u64, window: u64) -> anyhow::Result<Duration> {
        let first = self.next_id;
        let last = first + count;
        let mut open = vec![false; usize::try_from(count)?];
        let mut answered = 0;
        let begin = Instant::now();
        let mut room = window;
        while answered < count {
            self.line.clear();
            while room > 0 && self.next_id < last {
                let id = self.take_id();
                open[usize::try_from(id - first)?] = true;
                call.write(id, &mut self.line)?;
                room -= 1;
            }
            self.send_line()?;
            // One read, then everything that it brought; only then the next write.
            let mut line = Some(self.next_line()?);
            while let Some(answer) = line {
                if let Some(id) = id_of(answer) {
                    let place = usize::try_from(id.checked_sub(first).context("an old id")?)?;
                    ensure!(
                        std::mem::take(open.get_mut(place).context("an unknown id")?),
                        "an id was answered twice"
                    );
                    answered += 1;
                    room += 1;
                }
                line = self.buffered_line();
            }
        }
        Ok(begin.elapsed())
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let writer = self.writer.as_mut().context("closed")?;
        Ok(writer.write_all(bytes)?)
    }

    fn send_line(&mut self) -> anyhow::Result<()> {
        let writer = self.writer.as_mut().context("closed")?;
        Ok(writer.write_all(&self.line)?)
    }

    /// The next line, if it was read already.
    fn buffered_line(&mut self) -> Option<&[u8]> {
        let (start, end) = self.unread;
        let length = memchr(b'\n', &self.buffer[start..end])?;
        self.unread.0 += length + 1;
        Some(&self.buffer[start..start + length])
    }

    /// The next line, reading where needed.
    fn next_line(&mut self) -> anyhow::Result<&[u8]> {
        let (start, end) = self.unread;
        self.buffer.copy_within(start..end, 0);
        let (mut seen, mut filled) = (0, end - start);
        loop {
            if let Some(length) = memchr(b'\n', &self.buffer[seen..filled]) {
                self.unread = (seen + length + 1, filled);
                return Ok(&self.buffer[..seen + length]);
            }
            seen = filled;
            match self.reader.read(&mut self.buffer[filled..])? {
                0 => bail!("it closed its stdout"),
                count => filled += count,
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The end of its input ends it, and what it started.
        drop(self.writer.take());
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The id of an answer; `None` for what is not an answer to a call of ours. Most write it first, Node servers last.
fn id_of(line: &[u8]) -> Option<u64> {
    let mark = br#""id":"#;
    let head = &line[..line.len().min(NEAR)];
    let tail = &line[line.len().saturating_sub(NEAR)..];
    let digits = match memmem::find(head, mark) {
        Some(place) => &head[place + mark.len()..],
        None => &tail[memmem::rfind(tail, mark)? + mark.len()..],
    };
    let digits = &digits[..digits.iter().position(|byte| !byte.is_ascii_digit())?];
    std::str::from_utf8(digits).ok()?.parse().ok()
}
