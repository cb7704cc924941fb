//! An MCP server over HTTP on the loopback interface, for tests of the loader.
//!
//! It keeps a session per `initialize`, records what each session sent and says unasked what a test wants it to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

/// Longer than anything here takes.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);

/// A running server; its clones are the same.
#[derive(Clone)]
pub(super) struct LoopbackServer {
    address: std::net::SocketAddr,
    state: Arc<Mutex<LoopbackState>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct LoopbackState {
    /// Every message, with its session.
    received: Vec<(String, Value)>,
    /// The open streams of sessions.
    streams: HashMap<String, mpsc::UnboundedSender<String>>,
    opened: usize,
    /// What the only tool is called.
    tool: String,
    /// What every request is answered with instead, byte for byte, before its connection is closed.
    instead: Option<RawAnswer>,
    /// The only method that is answered so; every one where it is none.
    only: Option<&'static str>,
}

impl LoopbackState {
    fn instead_of(&self, method: Option<&str>) -> Option<RawAnswer> {
        let applies = self.only.is_none() || self.only == method;
        self.instead.clone().filter(|_| applies)
    }
}

/// An answer that is no MCP.
#[derive(Clone)]
pub(super) struct RawAnswer {
    pub(super) text: String,
    pub(super) closed_by: ClosedBy,
}

/// How a connection ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ClosedBy {
    EndOfStream,
    Reset,
}

impl LoopbackServer {
    pub(super) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::default(),
            changed: Arc::default(),
        };
        server.state.lock().unwrap().tool = "first".to_owned();
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        server
    }

    /// Returns its host and port.
    pub(super) fn address(&self) -> std::net::SocketAddr {
        self.address
    }

    /// Renames the only tool; what a session was told before stays so until it is told of a change.
    pub(super) fn rename_tool(&self, name: &str) {
        self.state.lock().unwrap().tool = name.to_owned();
    }

    /// Answers every further request with this.
    pub(super) fn answer_with(&self, head: &str, closed_by: ClosedBy) {
        self.state.lock().unwrap().instead = Some(RawAnswer {
            text: head.to_owned(),
            closed_by,
        });
    }

    /// Answers every further request of one method with this.
    pub(super) fn answer_instead_of(&self, method: &'static str, head: &str) {
        self.state.lock().unwrap().only = Some(method);
        self.answer_with(head, ClosedBy::EndOfStream);
    }

    /// Returns what the sessions sent as `method`: each session with the parameters.
    pub(super) fn received(&self, method: &str) -> Vec<(String, Value)> {
        let state = self.state.lock().unwrap();
        let received = state
            .received
            .iter()
            .filter(|(_, message)| message["method"] == method);
        received
            .map(|(session, message)| (session.clone(), message["params"].clone()))
            .collect()
    }

    /// Sends a message on the stream of a session, once that is open.
    pub(super) async fn say(&self, session: &str, message: &Value) {
        let opened = async {
            loop {
                let changed = self.changed.notified();
                if let Some(stream) = self.state.lock().unwrap().streams.get(session) {
                    return stream.send(format!("data: {message}\n\n")).unwrap();
                }
                changed.await;
            }
        };
        tokio::time::timeout(DEADLINE, opened).await.unwrap();
    }

    async fn serve(self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let mut request = String::new();
        let (mut length, mut session) = (0, String::new());
        stream.read_line(&mut request).await.unwrap_or_default();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or_default() == 0 || line.trim().is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or_default();
            match name {
                "content-length" => length = value.trim().parse().unwrap(),
                "mcp-session-id" => value.trim().clone_into(&mut session),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).await.is_err() {
            return;
        }
        match request.split(' ').next() {
            Some("GET") => self.stream(stream, session).await,
            Some("POST") => self.answer(stream, session, &body).await,
            _ => drop(
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
                    .await,
            ),
        }
    }

    /// Holds a stream open and writes what is said on it.
    async fn stream(self, mut stream: BufReader<TcpStream>, session: String) {
        let instead = self.state.lock().unwrap().instead_of(None);
        if let Some(raw) = instead {
            return drop(stream.write_all(raw.text.as_bytes()).await);
        }
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: open\n\n";
        let _ = stream.write_all(head.as_bytes()).await;
        self.state.lock().unwrap().streams.insert(session, sender);
        self.changed.notify_waiters();
        while let Some(event) = receiver.recv().await {
            if stream.write_all(event.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    async fn answer(self, mut stream: BufReader<TcpStream>, mut session: String, body: &[u8]) {
        let message: Value = serde_json::from_slice(body).unwrap();
        let (answer, closed_by) = {
            let mut state = self.state.lock().unwrap();
            if message["method"] == "initialize" {
                state.opened += 1;
                session = format!("s{}", state.opened);
            }
            state.received.push((session.clone(), message.clone()));
            match state.instead_of(message["method"].as_str()) {
                Some(raw) => (raw.text, raw.closed_by),
                None => (result(&message, &session, &state.tool), ClosedBy::EndOfStream),
            }
        };
        self.changed.notify_waiters();
        let _ = stream.write_all(answer.as_bytes()).await;
        if closed_by == ClosedBy::Reset {
            let _ = stream.flush().await;
            let _ = stream.get_ref().set_zero_linger();
        }
    }
}

/// Answers a message as an MCP server does.
fn result(message: &Value, session: &str, tool: &str) -> String {
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "loopback", "version": "1" },
        }),
        Some("tools/list") => json!({ "tools": [{ "name": tool, "inputSchema": { "type": "object" } }] }),
        Some(_) if message.get("id").is_some() => json!({}),
        _ => return "HTTP/1.1 202 Accepted\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned(),
    };
    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\nmcp-session-id: {session}\r\n\r\n{body}"
    )
}
