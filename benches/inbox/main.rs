//! How long an ask takes to a page, and an answer to its agent, each through processes of their own.
//!
//! `cargo bench --bench inbox`. An agent asks by `pml stdio`, a page follows the events of `pml serve` and answers there:
//! from the request of the agent to the event at the page, and from the answer of the page to the result at the agent.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures, and starts the processes that it measures"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Enough for the 99th of a hundred to be two of them.
const ROUNDS: usize = 200;

/// What both ways may take in 99 of 100 cases.
const BAR: Duration = Duration::from_millis(250);

/// How long a round waits for the next one.
const PAUSE: Duration = Duration::from_millis(150);

fn main() -> std::process::ExitCode {
    let home = tempfile::tempdir().expect("a home");
    let project = home.path().join("project");
    std::fs::create_dir(&project).expect("a project");
    let config = json!({ "askUser": { "mode": "blocking", "timeoutSeconds": 900 } });
    std::fs::write(project.join(".pml.json"), config.to_string()).expect("a configuration");
    let mut server = pml(home.path(), &project, &["serve", "--json"]);
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("its stdout"))
        .read_line(&mut line)
        .expect("where it listens");
    let said: Value = serde_json::from_str(&line).expect("one line of JSON");
    let port = said["port"].as_u64().expect("its port");
    let token = home.path().join(".local/state/pml/serve.token");
    let token = std::fs::read_to_string(token)
        .expect("its token")
        .trim()
        .to_owned();
    let page = Page { port, token };
    let mut events = page.events();
    let mut agent = Agent::start(home.path(), &project);
    let (mut shown, mut answered) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let asked_at = Instant::now();
        let id = agent.ask(&format!("Question {round}?"));
        let card = events.pending();
        shown.push(asked_at.elapsed());
        let said_at = Instant::now();
        page.answer(card["id"].as_str().expect("its id"));
        agent.result(id);
        answered.push(said_at.elapsed());
        // A person is slower still; the server bounds how often a script may write.
        std::thread::sleep(PAUSE);
    }
    let _ = server.kill();
    let _ = server.wait();
    let mut all_hold = true;
    println!("| way | median | p99 | bar | |\n|---|---|---|---|---|");
    for (way, times) in [("ask to page", &mut shown), ("answer to agent", &mut answered)] {
        times.sort();
        let (median, p99) = (times[ROUNDS / 2], times[ROUNDS * 99 / 100]);
        let holds = p99 <= BAR;
        all_hold &= holds;
        let verdict = if holds { "holds" } else { "MISSED" };
        println!(
            "| {way} | {:.1} ms | {:.1} ms | {} ms | {verdict} |",
            median.as_secs_f64() * 1e3,
            p99.as_secs_f64() * 1e3,
            BAR.as_millis()
        );
    }
    if all_hold {
        std::process::ExitCode::SUCCESS
    } else {
        std::process::ExitCode::FAILURE
    }
}

fn pml(home: &Path, project: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_pml"))
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(project)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("pml starts")
}

/// A client of MCP over pipes.
struct Agent {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Agent {
    fn start(home: &Path, project: &Path) -> Self {
        let mut process = pml(home, project, &["stdio"]);
        let input = process.stdin.take().expect("its stdin");
        let output = BufReader::new(process.stdout.take().expect("its stdout"));
        let mut agent = Self {
            process,
            input,
            output,
            next: 1,
        };
        let client = json!({ "name": "bench", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let id = agent.send("initialize", &params);
        agent.result(id);
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(agent.input, "{ready}").expect("it reads");
        agent
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.input, "{request}").expect("it reads");
        id
    }

    fn ask(&mut self, question: &str) -> u64 {
        let arguments = json!({ "question": question });
        self.send(
            "tools/call",
            &json!({ "name": "ask_user", "arguments": arguments }),
        )
    }

    fn result(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("a line"), 0, "it ended");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The page, as far as a script can be one.
struct Page {
    port: u64,
    token: String,
}

impl Page {
    fn connect(&self) -> TcpStream {
        TcpStream::connect(format!("127.0.0.1:{}", self.port)).expect("the server listens")
    }

    fn events(&self) -> Events {
        let mut stream = self.connect();
        let (port, token) = (self.port, &self.token);
        write!(
            stream,
            "GET /api/events HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
        .expect("it reads");
        let mut events = Events(BufReader::new(stream));
        // The comment at its beginning says that it listens.
        events.line_that(|line| line.starts_with(':'));
        events
    }

    fn answer(&self, id: &str) {
        let mut stream = self.connect();
        let (port, token) = (self.port, &self.token);
        let body = json!({ "answers": [{ "text": "yes" }] }).to_string();
        write!(
            stream,
            "POST /api/asks/{id}/answer HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .expect("it reads");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it answers");
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    }
}

struct Events(BufReader<TcpStream>);

impl Events {
    fn line_that(&mut self, is_it: impl Fn(&str) -> bool) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.0.read_line(&mut line).expect("a line"),
                0,
                "the stream ended"
            );
            if is_it(&line) {
                return line;
            }
        }
    }

    /// Waits for the next card that waits for an answer.
    fn pending(&mut self) -> Value {
        loop {
            let line = self.line_that(|line| line.starts_with("data: "));
            let card: Value = serde_json::from_str(&line["data: ".len()..]).expect("a card");
            if card["state"] == "pending" {
                return card;
            }
        }
    }
}
