//! A web server on the loopback interface that does what a test tells it to, and remembers what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// By their names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    /// `null` where there is none.
    pub(crate) body: Value,
    /// The body as it was written.
    pub(crate) text: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The JSON-RPC method of the body; empty where there is none.
    pub(crate) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// What is answered.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// A status, headers and a body.
    Whole(u16, Vec<(&'static str, String)>, String),
    /// A stream of events, as they are written; then the connection closes.
    Events(String),
    /// A stream of events that stays open.
    Open(String),
    /// A status and a body that never ends.
    Endless(u16),
    /// Nothing: the connection is closed.
    Gone,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self::Whole(status, Vec::new(), String::new())
    }

    /// The result of the request in `body`.
    pub(crate) fn result(request: &Request, result: &Value) -> Self {
        let body = json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": result });
        Self::Whole(
            200,
            vec![("content-type", "application/json".to_owned())],
            body.to_string(),
        )
    }

    pub(crate) fn with(self, name: &'static str, value: impl Into<String>) -> Self {
        match self {
            Self::Whole(status, mut headers, body) => {
                headers.push((name, value.into()));
                Self::Whole(status, headers, body)
            }
            stream => stream,
        }
    }
}

/// Writes a message as one event.
pub(crate) fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// A web server; it ends with the process.
pub(crate) struct Web {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Request>>>,
}

impl Web {
    pub(crate) fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<Request>>>::default();
        let (noted, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
                std::thread::spawn(move || serve(&stream, &noted, &*answer));
            }
        });
        Self { address, asked }
    }

    /// A small MCP server, but for what `special` answers.
    pub(crate) fn mcp(special: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static) -> Self {
        Self::start(move |request| special(request).unwrap_or_else(|| mcp(request)))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }

    /// The JSON-RPC methods that were posted so far, and the HTTP methods of what was not.
    pub(crate) fn methods(&self) -> Vec<String> {
        let name = |request: &Request| match request.rpc() {
            "" => request.method.clone(),
            rpc => rpc.to_owned(),
        };
        self.asked().iter().map(name).collect()
    }
}

/// Answers as a server with one session and one tool, `echo`, which returns its arguments.
fn mcp(request: &Request) -> Answer {
    match (request.method.as_str(), request.rpc()) {
        ("POST", "initialize") => {
            let result = json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "web", "version": "1" },
            });
            Answer::result(request, &result).with("mcp-session-id", "session-1")
        }
        ("POST", "tools/list") => {
            let echo = json!({ "name": "echo", "inputSchema": { "type": "object" } });
            Answer::result(request, &json!({ "tools": [echo] }))
        }
        ("POST", "tools/call") => {
            let text = request.body["params"]["arguments"].to_string();
            Answer::result(request, &json!({ "content": [{ "type": "text", "text": text }] }))
        }
        ("POST", _) => Answer::status(202),
        ("DELETE", _) => Answer::status(200),
        _ => Answer::status(405),
    }
}

fn serve(stream: &TcpStream, asked: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> Answer) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = read(&mut reader) {
        asked.lock().unwrap().push(request.clone());
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let written = match answer(&request) {
            Answer::Whole(status, headers, body) => {
                let headers: Vec<String> = headers
                    .iter()
                    .map(|(name, value)| format!("{name}: {value}\r\n"))
                    .collect();
                let headers = headers.concat();
                let length = body.len();
                write!(
                    writer,
                    "HTTP/1.1 {status} Told\r\n{headers}content-length: {length}\r\n\r\n{body}"
                )
            }
            Answer::Events(events) => {
                let _ = write!(writer, "{head}{events}");
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return;
            }
            Answer::Open(events) => {
                let _ = write!(writer, "{head}{events}");
                // Open until the other side goes.
                let _ = reader.read(&mut [0; 1]);
                return;
            }
            Answer::Endless(status) => {
                let _ = write!(writer, "HTTP/1.1 {status} Told\r\nconnection: close\r\n\r\n");
                // Until the other side has enough.
                while writer.write_all(&[b' '; 4096]).is_ok() {}
                return;
            }
            Answer::Gone => {
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return;
            }
        };
        if written.is_err() {
            return;
        }
    }
}

/// Reads the next request of a connection; `None` once it is closed.
pub(crate) fn read(reader: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        method,
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        text: String::from_utf8_lossy(&body).into_owned(),
    })
}
