//! An ntfy on the loopback interface: what is published is kept by topic, and a topic is read as a stream of lines.

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::web::{self, Request};
use crate::serve::http;

#[derive(Default)]
struct Shared {
    messages: Mutex<Vec<Message>>,
    changed: Condvar,
}

/// A message of a topic.
#[derive(Debug, Clone)]
struct Message {
    topic: String,
    at: u64,
    text: String,
    /// What was published, where that was JSON.
    published: Value,
}

/// An ntfy; it ends with the process.
pub(crate) struct FakeNtfy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

impl FakeNtfy {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || shared.serve(&stream));
            }
        });
        Self { address, shared }
    }

    /// What `server` is set to.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was published to a topic as JSON, the oldest first.
    pub(crate) fn notifications(&self, topic: &str) -> Vec<Value> {
        let messages = self.shared.messages.lock().unwrap();
        let of_topic = messages.iter().filter(|message| message.topic == topic);
        let published = of_topic.map(|message| message.published.clone());
        published.filter(|published| !published.is_null()).collect()
    }

    /// Presses the button of a notification, as the app does: it posts the body of the action to its address.
    pub(crate) fn press(&self, notification: &Value, label: &str) {
        let actions = notification["actions"].as_array().unwrap();
        let action = actions
            .iter()
            .find(|action| action["label"] == label)
            .expect(label);
        assert_eq!(
            (&action["action"], &action["method"]),
            (&json!("http"), &json!("POST"))
        );
        let url = action["url"].as_str().unwrap();
        let path = url.strip_prefix(&self.url()).expect(url);
        let body = action["body"].as_str().unwrap().as_bytes().to_vec();
        let posted = http::Request::new(self.address.port(), "POST", path)
            .body(body)
            .send();
        assert_eq!(posted.status, 200, "{posted:?}");
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        if let Some(request) = web::read(&mut reader) {
            let path = request.path.split('?').next().unwrap().to_owned();
            let stream_of = path.strip_prefix('/').and_then(|path| path.strip_suffix("/json"));
            if let ("GET", Some(topic)) = (request.method.as_str(), stream_of) {
                self.tell(stream, topic);
                return;
            }
            self.keep(path.trim_start_matches('/'), &request);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let mut writer = stream;
            let _ = writer.write_all(format!("{head}content-length: 2\r\n\r\n{{}}").as_bytes());
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Keeps what is published: as JSON to the server itself, as a text to a topic.
    fn keep(&self, topic: &str, request: &Request) {
        let (topic, text, published) = match topic {
            "" => {
                let text = |name: &str| request.body[name].as_str().unwrap_or_default().to_owned();
                (text("topic"), text("message"), request.body.clone())
            }
            topic => (topic.to_owned(), request.text.clone(), Value::Null),
        };
        let message = Message {
            topic,
            at: now(),
            text,
            published,
        };
        self.messages.lock().unwrap().push(message);
        self.changed.notify_all();
    }

    /// Writes what a topic has and gets, a line each, until the other side goes.
    fn tell(&self, mut stream: &TcpStream, topic: &str) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\n\r\n";
        let open = json!({ "id": "o", "time": now(), "event": "open", "topic": topic });
        if writeln!(stream, "{head}{open}").is_err() {
            return;
        }
        let mut messages = self.messages.lock().unwrap();
        let mut told = 0;
        loop {
            let lines: Vec<String> = messages[told..]
                .iter()
                .enumerate()
                .filter(|(_, message)| message.topic == topic)
                .map(|(place, Message { at, text, .. })| {
                    let id = format!("m{}", told + place);
                    let line = json!({
                        "id": id, "time": at, "event": "message", "topic": topic, "message": text,
                    });
                    format!("{line}\n")
                })
                .collect();
            told = messages.len();
            if stream.write_all(lines.concat().as_bytes()).is_err() {
                return;
            }
            messages = self.changed.wait(messages).unwrap();
        }
    }
}
