//! A database of advisories on the loopback interface that speaks as OSV does, also as none should.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// How the questions about packages are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As OSV does.
    Honest,
    /// One id on each page.
    Paged,
    /// Every page promises another.
    EndlessPages,
    /// HTTP 500.
    Failing,
    /// What is no JSON.
    Garbage,
    /// A body that does not end.
    Endless,
    /// One answer less than there were questions.
    OneMissing,
    /// An id that leads elsewhere in an address.
    StrangeId,
    /// A redirect to another place.
    Elsewhere,
}

#[derive(Default)]
struct Shared {
    known: HashMap<String, Vec<String>>,
    records: HashMap<String, Value>,
    /// The questions of each request.
    batches: Vec<Value>,
    /// Every request: its line, its headers and its body.
    requests: Vec<String>,
    manner: Option<Manner>,
}

/// A database; it ends with the process.
pub(crate) struct OsvServer {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

impl OsvServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Mutex<Shared>>::default();
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || answer(stream, &shared));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers further questions in this manner.
    pub(crate) fn behave(&self, manner: Manner) {
        self.shared.lock().unwrap().manner = Some(manner);
    }

    /// Publishes an advisory about `ecosystem/name@version`; its record is `more`.
    pub(crate) fn advise(&self, package: &str, id: &str, more: &Value) {
        let mut record = more.clone();
        record["id"] = id.into();
        let mut shared = self.shared.lock().unwrap();
        shared
            .known
            .entry(package.to_owned())
            .or_default()
            .push(id.to_owned());
        shared.records.insert(id.to_owned(), record);
    }

    /// Takes everything about a package back.
    pub(crate) fn clear(&self, package: &str) {
        self.shared.lock().unwrap().known.remove(package);
    }

    /// The questions of each request so far.
    pub(crate) fn batches(&self) -> Vec<Value> {
        self.shared.lock().unwrap().batches.clone()
    }

    /// Every request so far, whole.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.lock().unwrap().requests.clone()
    }
}

fn answer(stream: TcpStream, shared: &Mutex<Shared>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut head = String::new();
        loop {
            let before = head.len();
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
            if head[before..].trim().is_empty() {
                break;
            }
        }
        let length = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map_or(0, |(_, value)| value.trim().parse().unwrap());
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body = String::from_utf8(body).unwrap();
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let sent = {
            let mut shared = shared.lock().unwrap();
            shared.requests.push(format!("{head}{body}"));
            if path == "/v1/querybatch" {
                shared.answer_batch(&body)
            } else {
                let record = path
                    .strip_prefix("/v1/vulns/")
                    .and_then(|id| shared.records.get(id));
                record.map_or(Reply::Status("404 Not Found"), |record| {
                    Reply::Body(record.to_string())
                })
            }
        };
        let written = match sent {
            Reply::Status(status) => write!(
                stream,
                "HTTP/1.1 {status}\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n"
            ),
            Reply::Body(text) => write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
                text.len()
            ),
            Reply::Endless => {
                let mut written = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{{\"results\":["
                );
                while written.is_ok() {
                    written = stream.write_all(&[b' '; 8192]);
                }
                return;
            }
        };
        if written.is_err() {
            return;
        }
    }
}

enum Reply {
    Status(&'static str),
    Body(String),
    Endless,
}

impl Shared {
    fn answer_batch(&mut self, body: &str) -> Reply {
        let request: Value = serde_json::from_str(body).unwrap();
        self.batches.push(request["queries"].clone());
        let manner = self.manner.unwrap_or(Manner::Honest);
        let queries = request["queries"].as_array().unwrap();
        let mut results: Vec<Value> = queries
            .iter()
            .map(|query| self.answer_one(query, manner))
            .collect();
        match manner {
            Manner::Failing => return Reply::Status("500 Internal Server Error"),
            Manner::Elsewhere => return Reply::Status("307 Temporary Redirect"),
            Manner::Garbage => return Reply::Body("<html>\u{1b}[2J</html>".to_owned()),
            Manner::Endless => return Reply::Endless,
            Manner::OneMissing => drop(results.pop()),
            Manner::StrangeId => results[0] = json!({ "vulns": [{ "id": "../../admin" }] }),
            Manner::Honest | Manner::Paged | Manner::EndlessPages => {}
        }
        Reply::Body(json!({ "results": results }).to_string())
    }

    fn answer_one(&self, query: &Value, manner: Manner) -> Value {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let package = format!(
            "{}/{}@{}",
            text(&query["package"]["ecosystem"]),
            text(&query["package"]["name"]),
            text(&query["version"])
        );
        let ids = self.known.get(&package).cloned().unwrap_or_default();
        let vulns = |ids: &[String]| -> Vec<Value> {
            let described = |id: &String| json!({ "id": id, "modified": self.records[id]["modified"] });
            ids.iter().map(described).collect()
        };
        match manner {
            Manner::Paged if !ids.is_empty() => {
                let at: usize = query["page_token"]
                    .as_str()
                    .map_or(0, |token| token.parse().unwrap());
                let mut answer = json!({ "vulns": vulns(&ids[at..=at]) });
                if at + 1 < ids.len() {
                    answer["next_page_token"] = (at + 1).to_string().into();
                }
                answer
            }
            Manner::EndlessPages => json!({ "vulns": [], "next_page_token": "more" }),
            _ if ids.is_empty() => json!({}),
            _ => json!({ "vulns": vulns(&ids) }),
        }
    }
}
