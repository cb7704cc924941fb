//! The server that misbehaves on demand does what its head says: other tests stand on it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::fake_server;

/// A conversation with one fake server.
struct Fake {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Fake {
    fn start(options: &[&str]) -> Self {
        let mut child = Command::new(fake_server())
            .args(options)
            .env_clear()
            .env("GIVEN", "yes")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    fn send(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn message(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn call(&mut self, params: &Value) {
        self.send(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string(),
        );
    }

    /// Calls a tool and returns the text of the next message, which is its answer.
    fn answer(&mut self, tool: &str, arguments: &Value) -> String {
        self.call(&json!({ "name": tool, "arguments": arguments }));
        self.message()["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn tools(&mut self) -> Vec<String> {
        self.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
        let tools = self.message()["result"]["tools"].clone();
        let names = tools
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    /// Closes stdin; returns the exit code and what stderr held.
    fn end(self) -> (Option<i32>, String) {
        drop(self.stdin);
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn its_tools_do_what_they_say() {
    let mut fake = Fake::start(&[]);
    fake.send(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo", "arguments":{"n":1.0}}}"#,
    );
    let echoed = fake.message()["result"]["content"][0]["text"].clone();
    assert_eq!(echoed, r#"{"name":"echo", "arguments":{"n":1.0}}"#);
    assert_eq!(fake.answer("environment", &json!({})), r#"{"GIVEN":"yes"}"#);
    assert_eq!(fake.answer("closed", &json!({ "a": "x" })), "closed");
    assert_eq!(fake.answer("closed", &json!({ "b": 1 })), "unknown argument b");
    assert_eq!(fake.answer("structured", &json!({})), r#"{"answer":42}"#);
    assert_eq!(fake.answer("complain", &json!({ "text": "ouch" })), "complained");

    fake.call(&json!({ "name": "say", "arguments": { "line": "anything" } }));
    assert_eq!(fake.line(), "anything");
    assert_eq!(fake.message()["result"]["content"][0]["text"], "said");

    fake.call(&json!({ "name": "progress", "arguments": { "steps": 2 }, "_meta": { "progressToken": "t" } }));
    let steps = [fake.message(), fake.message()].map(|step| step["params"]["progress"].clone());
    assert_eq!(steps, [json!(1), json!(2)]);
    assert_eq!(fake.message()["id"], 1);

    assert!(!fake.tools().contains(&"grown".to_owned()));
    fake.call(&json!({ "name": "grow" }));
    assert_eq!(fake.message()["method"], "notifications/tools/list_changed");
    assert_eq!(fake.message()["id"], 1);
    assert!(fake.tools().contains(&"grown".to_owned()));
    assert_eq!(fake.answer("grown", &json!({})), "grown");
    assert_eq!(fake.end(), (Some(0), "ouch\n".to_owned()));
}

#[test]
fn a_waiting_call_delays_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("go");
    let mut fake = Fake::start(&[]);
    fake.call(&json!({ "name": "hang" }));
    fake.call(&json!({ "name": "wait", "arguments": { "file": file } }));
    assert_eq!(fake.answer("closed", &json!({})), "closed");
    std::fs::write(&file, "").unwrap();
    assert_eq!(fake.message()["result"]["content"][0]["text"], "waited");
}

#[test]
fn its_options_shape_its_life() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| {
        directory
            .path()
            .join(name)
            .into_os_string()
            .into_string()
            .unwrap()
    };
    let (started, record) = (path("started"), path("record"));
    let options = [
        "--started",
        &started,
        "--record",
        &record,
        "--banner",
        "--odd-tools",
        "--crash-on-call",
        "2",
    ];
    for _ in 0..2 {
        let mut fake = Fake::start(&options);
        assert_eq!(fake.line(), "Welcome to the fake server! Listening on stdio...");
        let doubles = fake.tools().iter().filter(|name| *name == "double").count();
        assert_eq!(doubles, 2);
        assert_eq!(fake.answer("closed", &json!({})), "closed");
        fake.call(&json!({ "name": "closed" }));
        assert_eq!(
            fake.end(),
            (
                Some(3),
                "fake server: something terrible happened\n  at the very end\n".to_owned()
            )
        );
    }
    let lines = |path: &str| std::fs::read_to_string(path).unwrap().lines().count();
    assert_eq!((lines(&started), lines(&record)), (2, 6));
    assert_eq!(
        Fake::start(&["--exit-at-once", "9"]).end(),
        (Some(9), "fake server: cannot go on\n".to_owned())
    );
    let mut silent = Fake::start(&["--silent"]);
    silent.send(r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}"#);
    assert_eq!(silent.end(), (Some(0), String::new()));
    let mut modern = Fake::start(&["--refuse-initialize"]);
    modern.send(r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}"#);
    assert_eq!(modern.message()["error"]["code"], -32022);
}

#[test]
fn it_speaks_the_modern_era_and_offers_more_than_tools() {
    let options = [
        "--offers",
        "new",
        "--modern",
        "--fail",
        "prompts/list",
        "--exit-on",
        "initialize",
    ];
    let mut fake = Fake::start(&options);
    let ask = |fake: &mut Fake, method: &str, mut params: Value| {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        fake.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string());
        fake.message()
    };
    let discovered = ask(&mut fake, "server/discover", json!({}))["result"].clone();
    assert_eq!(
        (&discovered["resultType"], &discovered["supportedVersions"]),
        (&json!("complete"), &json!(["2026-07-28"]))
    );
    assert_eq!(ask(&mut fake, "prompts/list", json!({}))["error"]["code"], -32603);
    let page = ask(&mut fake, "resources/list", json!({}))["result"].clone();
    assert_eq!(
        (&page["resources"][0]["uri"], &page["nextCursor"]),
        (&json!("shared://one"), &json!("2"))
    );
    let page = ask(&mut fake, "resources/list", json!({ "cursor": "2" }))["result"].clone();
    assert_eq!(
        (&page["resources"][0]["uri"], &page["nextCursor"]),
        (&json!("new://own"), &Value::Null)
    );
    let listening = ask(&mut fake, "subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(listening["method"], "notifications/subscriptions/acknowledged");
    fake.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    assert_eq!(fake.message()["error"]["code"], -32602, "the envelope is missing");
    fake.send(r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}"#);
    assert_eq!(fake.end(), (Some(4), String::new()));
}
