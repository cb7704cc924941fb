//! `pml serve`: the page of the inbox, its API, and the questions of agents that speak HTTP.

mod agents;
mod events;
pub(crate) mod http;
mod kills;
mod one_server;
mod roundtrip;
mod security;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::http::{Reply, Request};
use crate::support::world::{World, state};

/// A `pml serve` of a world; it is ended with the test.
pub(crate) struct Served {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) port: u16,
    /// The address that opens the page once.
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Served {
    pub(crate) fn start(world: &World) -> Self {
        Self::start_with(world, &[])
    }

    pub(crate) fn start_with(world: &World, options: &[&str]) -> Self {
        let mut command = world.command(&["serve", "--json"]);
        command.args(options);
        Self::run(world, command)
    }

    /// Runs a command that serves and tells where by `--json`.
    fn run(world: &World, mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("it told `{line}`"));
        assert_eq!(told["pid"], child.id());
        Self {
            port: u16::try_from(told["port"].as_u64().unwrap()).unwrap(),
            url: told["url"].as_str().unwrap().to_owned(),
            token: std::fs::read_to_string(token_file(world))
                .unwrap()
                .trim()
                .to_owned(),
            child,
            stdout,
        }
    }

    /// A request without any right.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        Request::new(self.port, method, path)
    }

    /// A request of a script.
    pub(crate) fn script(&self, method: &str, path: &str) -> Request {
        self.request(method, path)
            .header("Authorization", &format!("Bearer {}", self.token))
    }

    /// Opens the page as a browser does.
    pub(crate) fn browser(&self) -> Browser {
        let path = self.url.split_once(&self.port.to_string()).unwrap().1;
        let opened = self.request("GET", path).send();
        assert_eq!(
            (opened.status, opened.header("location")),
            (303, Some("/")),
            "{opened:?}"
        );
        let cookie = opened.header("set-cookie").unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let mut browser = Browser {
            port: self.port,
            cookie,
            csrf: String::new(),
        };
        let inbox = browser.request("GET", "/api/inbox").send();
        assert_eq!(inbox.status, 200, "{inbox:?}");
        browser.csrf = inbox.json()["csrf"].as_str().map(str::to_owned).unwrap();
        browser
    }

    /// What waits, as the API tells it.
    pub(crate) fn pending(&self) -> Vec<Value> {
        let inbox = self.script("GET", "/api/inbox").send();
        assert_eq!(inbox.status, 200, "{inbox:?}");
        inbox.json()["pending"].as_array().unwrap().clone()
    }

    /// Waits until an ask waits, and returns its card; there must be no other.
    pub(crate) fn only_ask(&self) -> Value {
        let mut events = self.script("GET", "/api/events?since=0").events();
        while events.next().unwrap().data["state"] != "pending" {}
        let mut pending = self.pending();
        assert_eq!(pending.len(), 1, "{pending:?}");
        pending.remove(0)
    }

    pub(crate) fn answer(&self, card: &Value, said: &Value) -> Reply {
        let path = format!("/api/asks/{}/answer", card["id"].as_str().unwrap());
        self.script("POST", &path).json(said).send()
    }

    /// Sends a signal and returns how it ended and how long that took.
    pub(crate) fn end(&mut self, signal: rustix::process::Signal) -> (ExitStatus, Duration) {
        let begin = Instant::now();
        let id = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
        // It has nothing more to say: the end of its output is its end.
        let mut rest = String::new();
        while self.stdout.read_line(&mut rest).unwrap() > 0 {}
        let status = self.child.wait().unwrap();
        (status, begin.elapsed())
    }

    /// Whether the process still runs.
    pub(crate) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none() && self.script("GET", "/api/inbox").send().status == 200
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A browser that has opened the page.
pub(crate) struct Browser {
    port: u16,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl Browser {
    /// A request of the page.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        Request::new(self.port, method, path)
            .header("Cookie", &self.cookie)
            .header("Sec-Fetch-Site", "same-origin")
            .header(
                "User-Agent",
                "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
            )
    }

    pub(crate) fn answer(&self, card: &Value, said: &Value) -> Reply {
        let path = format!("/api/asks/{}/answer", card["id"].as_str().unwrap());
        let request = self.request("POST", &path).header("X-CSRF-Token", &self.csrf);
        request.json(said).send()
    }
}

fn token_file(world: &World) -> PathBuf {
    state(world).join("serve.token")
}

/// A world whose tools that ask hold their call.
fn blocking() -> World {
    let world = World::new();
    world.configure(&json!({
        "askUser": { "mode": "blocking", "timeoutSeconds": 60 },
        "approvals": { "by": "human" },
        "permissions": { "ask": ["*"] },
        "mcpServers": { "fake": world.fake(&[]) },
    }));
    world
}

/// The arguments of a question with two options.
fn colour() -> Value {
    json!({ "question": "Which colour?", "options": [{ "label": "Red" }, { "label": "Blue" }] })
}
