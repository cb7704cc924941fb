//! A plain HTTP client: what is sent is exactly what a test says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::DEADLINE;

/// A request that is about to be sent.
pub(crate) struct Request {
    port: u16,
    method: String,
    path: String,
    version: &'static str,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(port: u16, method: &str, path: &str) -> Self {
        Self {
            port,
            method: method.to_owned(),
            path: path.to_owned(),
            version: "HTTP/1.1",
            headers: vec![("Host".to_owned(), format!("127.0.0.1:{port}"))],
            body: Vec::new(),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Names another host, or none.
    pub(crate) fn host(mut self, host: Option<&str>) -> Self {
        self.headers.retain(|(name, _)| name != "Host");
        match host {
            Some(host) => self.header("Host", host),
            None => self,
        }
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.header("Content-Type", "application/json")
            .body(body.to_string().into_bytes())
    }

    pub(crate) fn body(mut self, body: Vec<u8>) -> Self {
        self.body = body;
        self
    }

    fn write(&self, stream: &mut TcpStream) {
        let length =
            (!self.body.is_empty()).then(|| ("Content-Length".to_owned(), self.body.len().to_string()));
        let close = (self.version == "HTTP/1.1").then(|| ("Connection".to_owned(), "close".to_owned()));
        let headers = self.headers.iter().chain(&length).chain(&close);
        let lines: Vec<String> = headers
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let head = format!(
            "{} {} {}\r\n{}\r\n",
            self.method,
            self.path,
            self.version,
            lines.concat()
        );
        // A server may refuse before it has read everything.
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&self.body);
    }

    pub(crate) fn send(self) -> Reply {
        let mut stream = connect(self.port);
        self.write(&mut stream);
        Reply::read(stream)
    }

    /// Opens a stream of events; by HTTP/1.0, so that it comes as it is.
    pub(crate) fn events(mut self) -> Events {
        self.version = "HTTP/1.0";
        let mut stream = connect(self.port);
        self.write(&mut stream);
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.contains(" 200 "), "{line}");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Events { reader }
    }
}

pub(crate) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// Sends bytes as they are and returns what came back until the connection was closed.
pub(crate) fn raw(port: u16, bytes: &[u8]) -> String {
    let mut stream = connect(port);
    let _ = stream.write_all(bytes);
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    String::from_utf8_lossy(&reply).into_owned()
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no head in `{text}`"));
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        });
        Self {
            status,
            headers: headers.collect(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

/// A stream of events.
pub(crate) struct Events {
    reader: BufReader<TcpStream>,
}

/// One event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Events {
    /// Waits for the next event; `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let (mut id, mut name, mut data) = (0, String::new(), Value::Null);
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", value)) => id = value.parse().unwrap(),
                Some(("event", value)) => value.clone_into(&mut name),
                Some(("data", value)) => data = serde_json::from_str(value).unwrap(),
                None if line == "\n" && !name.is_empty() => return Some(Event { id, name, data }),
                Some(_) | None => {}
            }
        }
    }

    /// Waits for the first line, which says nothing: from then on nothing is missed.
    pub(crate) fn opened(mut self) -> Self {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        assert!(line.starts_with(':'), "{line}");
        self
    }
}
