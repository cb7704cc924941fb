//! Server-sent events: bytes in, the data of events out. Pure.
//!
//! The data of an event is a JSON text here (or the address of an endpoint), so the line breaks between its `data`
//! lines become spaces: that is what they mean in JSON, and a session reads one message per line. An event over the
//! limit is thrown away as it arrives. What stands after the last blank line is no event.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};

use crate::protocol::{MessageSkim, Remains};

/// What a stream said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamEvent {
    /// A message.
    Message(Bytes),
    /// Where messages are to be posted, in the transport of 2024-11-05.
    Endpoint(String),
    /// A message over the limit, of which this is left.
    TooLong(Remains),
}

/// Cuts a stream of bytes into events.
#[derive(Debug)]
pub(super) struct EventDecoder {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line break.
    scanned: usize,
    limit: usize,
    /// The last line ended in a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    /// What the current line was when it got too long; the rest of it is thrown away.
    discarding: Option<Discarded>,
    at_start: bool,
    name: EventName,
    data: EventData,
    last_id: Option<String>,
    retry: Option<Duration>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EventName {
    #[default]
    Message,
    Endpoint,
    /// No event of MCP.
    Other,
}

/// A line that is too long to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Discarded {
    EventData,
    /// A comment or another field: it may be as long as it likes, nothing is lost with it.
    Other,
}

/// The `data` lines of the event that is being read.
#[derive(Debug, Default)]
enum EventData {
    #[default]
    None,
    /// One line, which lies where it was read.
    Line(Bytes),
    /// Several lines, joined.
    Joined(BytesMut),
    /// More than is kept.
    TooLong(MessageSkim),
}

impl EventDecoder {
    /// Builds a decoder for events of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            after_return: false,
            discarding: None,
            at_start: true,
            name: EventName::Message,
            data: EventData::None,
            last_id: None,
            retry: None,
        }
    }

    /// Takes the next bytes of the stream.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the id by which a broken stream can be taken up again.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Returns how long the server wants a client to wait before it takes a stream up again.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the next complete event, if there is one.
    pub(super) fn next_event(&mut self) -> Option<StreamEvent> {
        loop {
            let line = self.next_line()?;
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Some(event);
                }
            } else {
                self.field(&line);
            }
        }
    }

    fn next_line(&mut self) -> Option<Bytes> {
        loop {
            if self.after_return && !self.buffer.is_empty() {
                self.after_return = false;
                if self.buffer[0] == b'\n' {
                    self.buffer.advance(1);
                    self.scanned = 0;
                }
            }
            let Some(offset) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                self.discard_report_overlong();
                return None;
            };
            let end = self.scanned + offset;
            self.scanned = 0;
            self.after_return = self.buffer[end] == b'\r';
            let mut line = self.buffer.split_to(end + 1).freeze();
            line.truncate(end);
            if let Some(discarded) = self.discarding.take() {
                self.discard(discarded, &line);
                continue;
            }
            if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
                line.advance(3);
            }
            return Some(line);
        }
    }

    fn discard_report_overlong(&mut self) {
        // Some room for the name of the field; what is over the limit exactly is seen when the line is whole.
        if self.discarding.is_none() && self.buffer.len() > self.limit.saturating_add(16) {
            self.discarding = Some(if self.buffer.starts_with(b"data:") {
                self.buffer.advance(b"data:".len());
                self.data = std::mem::take(&mut self.data).overflow();
                Discarded::EventData
            } else {
                Discarded::Other
            });
        }
        if let Some(discarded) = self.discarding {
            let passed = self.buffer.split();
            self.discard(discarded, &passed);
            self.scanned = 0;
        }
    }

    fn discard(&mut self, discarded: Discarded, passed: &[u8]) {
        if let (Discarded::EventData, EventData::TooLong(skim)) = (discarded, &mut self.data) {
            skim.pass(passed);
        }
    }

    fn field(&mut self, line: &Bytes) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let value = line.slice(colon + 1..);
                let value = if value.starts_with(b" ") {
                    value.slice(1..)
                } else {
                    value
                };
                (&line[..colon], value)
            }
            None => (&line[..], Bytes::new()),
        };
        match name {
            b"data" => self.data = std::mem::take(&mut self.data).with(value, self.limit),
            b"event" => {
                self.name = match &value[..] {
                    b"message" | b"" => EventName::Message,
                    b"endpoint" => EventName::Endpoint,
                    _ => EventName::Other,
                }
            }
            b"id" => {
                if let Ok(id) = std::str::from_utf8(&value)
                    && !id.contains('\0')
                {
                    self.last_id = Some(id.to_owned()).filter(|id| !id.is_empty());
                }
            }
            b"retry" => {
                let number = std::str::from_utf8(&value)
                    .ok()
                    .and_then(|text| text.parse().ok());
                self.retry = number.map(Duration::from_millis).or(self.retry);
            }
            // A comment, or a field that MCP does not use.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<StreamEvent> {
        let data = match std::mem::take(&mut self.data) {
            EventData::None => Bytes::new(),
            EventData::Line(line) => line,
            EventData::Joined(lines) => lines.freeze(),
            EventData::TooLong(skim) => {
                self.name = EventName::Message;
                return Some(StreamEvent::TooLong(skim.remains()));
            }
        };
        match std::mem::take(&mut self.name) {
            _ if data.is_empty() => None,
            EventName::Message => Some(StreamEvent::Message(data)),
            EventName::Endpoint => Some(StreamEvent::Endpoint(String::from_utf8_lossy(&data).into_owned())),
            EventName::Other => None,
        }
    }
}

impl EventData {
    fn with(self, line: Bytes, limit: usize) -> Self {
        let length = match &self {
            Self::None => line.len(),
            Self::Line(first) => first.len() + 1 + line.len(),
            Self::Joined(joined) => joined.len() + 1 + line.len(),
            Self::TooLong(_) => usize::MAX,
        };
        if length > limit {
            let mut data = self.overflow();
            if let Self::TooLong(skim) = &mut data {
                skim.pass(&line);
            }
            return data;
        }
        let mut joined = match self {
            Self::None | Self::TooLong(_) => return Self::Line(line),
            Self::Line(first) => BytesMut::from(first),
            Self::Joined(joined) => joined,
        };
        joined.extend_from_slice(b" ");
        joined.extend_from_slice(&line);
        Self::Joined(joined)
    }

    /// Turns into what is skimmed only, up to the next line.
    fn overflow(self) -> Self {
        let mut skim = MessageSkim::default();
        match self {
            Self::None => {}
            Self::Line(line) => skim.pass(&line),
            Self::Joined(joined) => skim.pass(&joined),
            Self::TooLong(before) => skim = before,
        }
        skim.pass(b" ");
        Self::TooLong(skim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::growth::{InputShape, assert_linear};
    use proptest::prelude::*;

    #[test]
    fn reading_events_is_linear() {
        let shapes: [InputShape; 8] = [
            ("one long line", |size| format!("data: {}\n\n", "x".repeat(size))),
            ("many lines of data", |size| "data: x\n".repeat(size / 8)),
            ("many empty lines of data", |size| "data\r".repeat(size / 5)),
            ("blank lines", |size| "\r\n".repeat(size / 2)),
            ("comments", |size| ":\n".repeat(size / 2)),
            ("ids", |size| "id: 12345678\n".repeat(size / 13)),
            ("a long id", |size| format!("id: {}\n\n", "9".repeat(size))),
            ("a field without an end", |size| "d".repeat(size)),
        ];
        for (shape, stream) in shapes {
            for (limit, piece) in [(1 << 30, 61), (64, 61), (1 << 30, 8192)] {
                assert_linear(&format!("{shape}, {limit}, {piece}"), stream, |stream| {
                    let pieces: Vec<&[u8]> = stream.as_bytes().chunks(piece).collect();
                    decode(&pieces, limit);
                });
            }
        }
    }

    fn decode(chunks: &[&[u8]], limit: usize) -> (Vec<StreamEvent>, EventDecoder) {
        let mut decoder = EventDecoder::new(limit);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk);
            while let Some(event) = decoder.next_event() {
                events.push(event);
            }
        }
        (events, decoder)
    }

    fn message(text: &str) -> StreamEvent {
        StreamEvent::Message(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn fields_comments_names_and_every_line_break_are_understood() {
        let stream = b"\xef\xbb\xbf: hello\n\nevent: message\nid: 7\nretry: 1500\ndata: {\"a\":1}\n\n\
            data:{\r\ndata: }\r\n\r\nevent: ping\rdata: x\r\rdata\n\nevent: endpoint\ndata: /messages?id=1\n\ndata: never ended";
        let (events, decoder) = decode(&[stream], 100);
        assert_eq!(
            events,
            [
                message(r#"{"a":1}"#),
                message("{ }"),
                StreamEvent::Endpoint("/messages?id=1".to_owned())
            ]
        );
        assert_eq!(decoder.last_id(), Some("7"));
        assert_eq!(decoder.retry(), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn an_overlong_event_costs_only_itself() {
        let long = format!(r#"{{"result":"{}","id":7}}"#, "x".repeat(500));
        let endless = format!("data: {long}\n\ndata: ok\n\n");
        let (half, comment) = ("0,".repeat(30), "c".repeat(500));
        let several = format!(
            "data: {{\"result\":[\ndata: {half}\ndata: {half}\n:{comment}\ndata: 0],\"id\":7}}\n\ndata: ok\n\n"
        );
        for stream in [endless, several] {
            for size in [1, 50, 1000] {
                let chunks: Vec<&[u8]> = stream.as_bytes().chunks(size).collect();
                let (events, _) = decode(&chunks, 100);
                let answer = Remains::Answer("7".to_owned());
                assert_eq!(events, [StreamEvent::TooLong(answer), message("ok")], "{size}");
            }
        }
    }

    #[test]
    fn an_endless_line_does_not_grow_the_buffer() {
        let mut decoder = EventDecoder::new(1000);
        for _ in 0..1000 {
            decoder.push(&[b'x'; 1000]);
            assert_eq!(decoder.next_event(), None);
        }
        assert!(
            decoder.buffer.capacity() < 16_000,
            "{}",
            decoder.buffer.capacity()
        );
    }

    proptest! {
        #[test]
        fn where_the_reads_end_does_not_matter(
            text in "((data|id|event|:)(: ?[a-c]{0,9})?(\r\n|\n|\r){1,2}){0,8}",
            cuts in proptest::collection::vec(0usize..100, 0..6), limit in 1usize..8,
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
            prop_assert_eq!(decode(&[bytes], limit).0, decode(&chunks, limit).0);
        }

        #[test]
        fn any_bytes_are_borne(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&[&bytes], 20);
        }
    }
}
