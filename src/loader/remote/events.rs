//! Server-sent events: bytes in, the data of events out. Pure.
//!
//! The data of an event is a JSON text here (or the address of an endpoint), so the line breaks between its `data`
//! lines become spaces: that is what they mean in JSON, and a session reads one message per line. An event over the
//! limit is thrown away as it arrives. What stands after the last blank line is no event.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};

/// Enough of an overlong message to find its `id`, which stands before the payload in every known implementation.
const HEAD_KEPT: usize = 1024;

/// What a stream said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// A message.
    Message(Bytes),
    /// Where messages are to be posted, in the transport of 2024-11-05.
    Endpoint(String),
    /// A message over the limit, of which this is the head: enough to find its `id`.
    TooLong(Bytes),
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
    /// The rest of the current line is thrown away.
    discarding: bool,
    at_start: bool,
    name: Name,
    data: Data,
    last_id: Option<String>,
    retry: Option<Duration>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Name {
    #[default]
    Message,
    Endpoint,
    /// No event of MCP.
    Other,
}

/// The `data` lines of the event that is being read.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    /// One line, which lies where it was read.
    Line(Bytes),
    /// Several lines, joined.
    Joined(BytesMut),
    TooLong(Bytes),
}

impl EventDecoder {
    /// Builds a decoder for events of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            limit,
            after_return: false,
            discarding: false,
            at_start: true,
            name: Name::Message,
            data: Data::None,
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
    pub(super) fn next_event(&mut self) -> Option<Event> {
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
                self.discard_overlong();
                return None;
            };
            let end = self.scanned + offset;
            self.scanned = 0;
            self.after_return = self.buffer[end] == b'\r';
            let mut line = self.buffer.split_to(end + 1).freeze();
            line.truncate(end);
            if std::mem::take(&mut self.discarding) {
                continue;
            }
            if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
                line.advance(3);
            }
            return Some(line);
        }
    }

    fn discard_overlong(&mut self) {
        // Some room for the name of the field; what is over the limit exactly is seen when the line is whole.
        if self.buffer.len() > self.limit.saturating_add(16) {
            // Comments may be as long as they like: they end in nothing.
            if !self.discarding && !self.buffer.starts_with(b":") {
                let colon = memchr::memchr(b':', &self.buffer).map_or(0, |colon| colon + 1);
                self.data = Data::TooLong(head_of(&self.buffer[colon..]));
            }
            self.discarding = true;
        }
        if self.discarding {
            self.buffer.clear();
            self.scanned = 0;
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
                    b"message" | b"" => Name::Message,
                    b"endpoint" => Name::Endpoint,
                    _ => Name::Other,
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
            // A comment, or a field of somebody else's.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<Event> {
        let data = match std::mem::take(&mut self.data) {
            Data::None => Bytes::new(),
            Data::Line(line) => line,
            Data::Joined(lines) => lines.freeze(),
            Data::TooLong(head) => {
                self.name = Name::Message;
                return Some(Event::TooLong(head));
            }
        };
        match std::mem::take(&mut self.name) {
            _ if data.is_empty() => None,
            Name::Message => Some(Event::Message(data)),
            Name::Endpoint => Some(Event::Endpoint(String::from_utf8_lossy(&data).into_owned())),
            Name::Other => None,
        }
    }
}

impl Data {
    fn with(self, line: Bytes, limit: usize) -> Self {
        let mut joined = match self {
            Self::None if line.len() <= limit => return Self::Line(line),
            Self::None => return Self::TooLong(head_of(&line)),
            Self::TooLong(head) => return Self::TooLong(head),
            Self::Line(first) => BytesMut::from(first),
            Self::Joined(joined) => joined,
        };
        if joined.len() + 1 + line.len() > limit {
            return Self::TooLong(head_of(&joined));
        }
        joined.extend_from_slice(b" ");
        joined.extend_from_slice(&line);
        Self::Joined(joined)
    }
}

fn head_of(data: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&data[..data.len().min(HEAD_KEPT)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(chunks: &[&[u8]], limit: usize) -> (Vec<Event>, EventDecoder) {
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

    fn message(text: &str) -> Event {
        Event::Message(Bytes::copy_from_slice(text.as_bytes()))
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
                Event::Endpoint("/messages?id=1".to_owned())
            ]
        );
        assert_eq!(decoder.last_id(), Some("7"));
        assert_eq!(decoder.retry(), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn an_overlong_event_costs_only_itself() {
        let long = "x".repeat(500);
        let endless = format!("data: {long}\n\ndata: ok\n\n");
        let half = "y".repeat(60);
        let several = format!("data: {half}\ndata: {half}\n\ndata: ok\n\n");
        for (stream, start) in [(endless, "xxx"), (several, "yyy")] {
            let chunks: Vec<&[u8]> = stream.as_bytes().chunks(50).collect();
            let (events, _) = decode(&chunks, 100);
            let [Event::TooLong(head), after] = &events[..] else {
                panic!("{events:?}")
            };
            assert!(head.trim_ascii_start().starts_with(start.as_bytes()), "{head:?}");
            assert_eq!(after, &message("ok"));
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
            // How much of an overlong message was kept depends on how it came.
            let shape = |events: Vec<Event>| events.into_iter().map(|event| match event {
                Event::TooLong(_) => None,
                event => Some(event),
            }).collect::<Vec<_>>();
            prop_assert_eq!(shape(decode(&[bytes], limit).0), shape(decode(&chunks, limit).0));
        }

        #[test]
        fn any_bytes_are_borne(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&[&bytes], 20);
        }
    }
}
