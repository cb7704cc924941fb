//! An agent on the official Python client asks, a person answers on the page in real Chromium, and the result arrives:
//! at once, across a restart of `pml serve`, and across a restart of the agent with its `pml stdio`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::browser::{Server, decide, opened, real_browser};
use crate::support::browser::{Browser, Look};
use crate::support::sdk::{self, Python};
use crate::support::world::{World, asks, json_of, texts};
use crate::support::{DEADLINE, eventually, have, pml};

/// What a busy machine needs at most for a step between three processes and a browser; reaching it is a failure.
const SOON: Duration = Duration::from_mins(1);

/// An agent on the official Python client, which starts its own `pml stdio`; killed when it is dropped.
struct Agent {
    process: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    /// Results that were not waited for yet.
    aside: Vec<Value>,
    next: u64,
}

impl Agent {
    fn start(world: &World, line: Python, mode: &str) -> Self {
        let mut process = world
            .program(&sdk::python(line))
            .arg(sdk::script("agent.py"))
            .arg(mode)
            .arg(pml())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        let stdin = process.stdin.take().unwrap();
        let mut agent = Self {
            process,
            stdin,
            lines,
            aside: Vec::new(),
            next: 0,
        };
        agent.take(&Value::Null);
        agent
    }

    /// Calls a tool without waiting for its result.
    fn send(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.next += 1;
        let line = json!({ "id": self.next, "tool": tool, "arguments": arguments });
        writeln!(self.stdin, "{line}").unwrap();
        self.next
    }

    /// Waits for the result of a call.
    fn result(&mut self, id: u64) -> Value {
        self.take(&json!(id))
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.send(tool, arguments);
        self.result(id)
    }

    fn take(&mut self, id: &Value) -> Value {
        loop {
            if let Some(place) = self.aside.iter().position(|result| result["id"] == *id) {
                return self.aside.remove(place)["result"].take();
            }
            let line = self.lines.recv_timeout(SOON);
            self.aside.push(line.expect("the agent says nothing more"));
        }
    }

    /// Kills it, and waits until the `pml stdio` that it started has noticed.
    fn kill(self, world: &World) {
        let started = || {
            let running = world.running();
            running.iter().any(|process| process.contains("pml stdio"))
        };
        assert!(started());
        drop(self);
        eventually("its `pml stdio` is gone", DEADLINE, || !started());
    }

    /// Whether the call still waits.
    fn waits(&mut self, id: u64) -> bool {
        self.aside.extend(self.lines.try_iter());
        self.aside.iter().all(|result| result["id"] != id)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A world in which only a person decides; `mode` says whether a question holds its call.
fn world(mode: &str) -> World {
    let world = World::new();
    world.configure(&json!({
        "askUser": { "mode": mode, "timeoutSeconds": 900 },
        "approvals": { "by": "human", "ttlSeconds": 900 },
        "mcpServers": { "fake": world.fake(&[]) },
    }));
    world
}

fn which(database: &str) -> Value {
    json!({
        "question": format!("Which {database}?"),
        "options": [{ "label": "PostgreSQL" }, { "label": "SQLite" }],
    })
}

/// Waits until the store holds an ask of this kind that waits, and returns the card of it on the page.
fn card(world: &World, kind: &str) -> String {
    let mut code = String::new();
    eventually(kind, SOON, || {
        let pending = json_of(&world.run(&["pending", "--json"]))["pending"].clone();
        let pending = pending.as_array().unwrap();
        let found = pending.iter().find(|ask| ask["kind"] == kind);
        found.is_some_and(|ask| {
            ask["code"].as_str().unwrap().clone_into(&mut code);
            true
        })
    });
    by_code(&code)
}

fn by_code(code: &str) -> String {
    format!("#waiting article[data-code={code}][data-state=pending]")
}

/// Answers a question on the page.
fn answer(browser: &Browser, card: &str, label: &str) {
    browser.click(&format!("{card} [data-label={label}]"));
    browser.click(&format!("{card} [data-send]"));
}

/// The arguments that the fake server was called with.
fn echoed(result: &Value) -> Value {
    let text = texts(result)[0];
    let echoed: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{result}"));
    echoed["arguments"].clone()
}

/// The id by which a call is continued, which stands in the result that asks.
fn workflow_id(asked: &Value) -> Value {
    let structured = &asked["structuredContent"];
    assert!(asks(structured), "{asked}");
    structured["approval_context"]["workflow_id"].clone()
}

/// Asks for the status until it tells late answers: for two seconds they are left to the call that asked.
fn late_answers(agent: &mut Agent) -> Value {
    let mut late = Value::Null;
    eventually("the status tells a late answer", SOON, || {
        late = agent.call("pml_status", &json!({}))["structuredContent"]["answered"].clone();
        late != json!([])
    });
    late
}

fn there() -> bool {
    real_browser() && have(&["uv"])
}

#[test]
fn what_the_python_client_asks_is_answered_in_the_browser_and_arrives() {
    if !there() {
        return;
    }
    for (line, mode) in [(Python::One, "session"), (Python::Two, "2026-07-28")] {
        let world = world("blocking");
        let (_server, browser) = opened(&world, Look::Light);
        let mut agent = Agent::start(&world, line, mode);

        let question = agent.send("ask_user", &which("database"));
        answer(&browser, &card(&world, "questions"), "SQLite");
        let answered = agent.result(question);
        assert_eq!(texts(&answered), ["User selected: SQLite"], "{mode}");
        assert_eq!(answered["structuredContent"]["by"], "web");

        let asked = agent.call("fake__echo", &json!({ "by": mode }));
        let wait = json!({ "workflow_id": workflow_id(&asked), "wait_seconds": 50 });
        let call = agent.send("pml_continue", &wait);
        let card = card(&world, "install");
        browser.wait_for_element(&card);
        assert!(agent.waits(call), "nobody has decided yet");
        decide(&browser, &card, "once");
        assert_eq!(echoed(&agent.result(call)), json!({ "by": mode }));
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn a_server_that_is_restarted_between_question_and_answer_loses_nothing() {
    if !there() {
        return;
    }
    let world = world("blocking");
    let (server, browser) = opened(&world, Look::Light);
    let mut agent = Agent::start(&world, Python::Two, "legacy");
    let question = agent.send("ask_user", &which("database"));
    let asked = agent.call("fake__echo", &json!({ "across": "a restart" }));
    let wait = json!({ "workflow_id": workflow_id(&asked), "wait_seconds": 50 });
    let call = agent.send("pml_continue", &wait);
    let (database, install) = (card(&world, "questions"), card(&world, "install"));
    browser.wait_for_element(&database);
    browser.wait_for_element(&install);

    let port = server.port();
    drop(server);
    browser.wait_for_element("[data-connected=false]");
    let server = Server::start_on(&world, port);
    assert!(agent.waits(question) && agent.waits(call));
    // What opens the page was made anew with the server.
    browser.goto(&server.url);
    answer(&browser, &database, "PostgreSQL");
    assert_eq!(
        texts(&agent.result(question)),
        ["User selected: PostgreSQL"],
        "the call that asked before the restart gets it"
    );
    browser.wait_for_element(&install);
    decide(&browser, &install, "once");
    assert_eq!(echoed(&agent.result(call)), json!({ "across": "a restart" }));
}

#[test]
fn an_agent_that_is_restarted_between_question_and_answer_gets_it_once() {
    if !there() {
        return;
    }
    let world = world("suspend");
    let (_server, browser) = opened(&world, Look::Light);
    let mut agent = Agent::start(&world, Python::Two, "2026-07-28");
    let code = |asked: &Value| {
        let asked = &asked["structuredContent"];
        assert_eq!(asked["status"], "pending", "{asked}");
        asked["code"].as_str().unwrap().to_owned()
    };
    let repeated = code(&agent.call("ask_user", &which("database")));
    let told = code(&agent.call("ask_user", &which("cache")));
    workflow_id(&agent.call("fake__echo", &json!({ "across": "a restart" })));
    let install = card(&world, "install");

    agent.kill(&world);
    // The page says before the answer what will become of it.
    browser.reload();
    let gone = browser.text(&by_code(&repeated));
    assert!(gone.contains("The agent is gone; your answer is kept"), "{gone}");
    answer(&browser, &by_code(&repeated), "SQLite");
    answer(&browser, &by_code(&told), "PostgreSQL");
    browser.wait_for_element(&install);
    decide(&browser, &install, "once");

    let mut agent = Agent::start(&world, Python::Two, "2026-07-28");
    // For two seconds an answer is left to the call that asked.
    let mut answered = Value::Null;
    eventually("the repeated question gets its answer", SOON, || {
        answered = agent.call("ask_user", &which("database"));
        answered["structuredContent"]["status"] == "answered"
    });
    assert_eq!(texts(&answered), ["User selected: SQLite"]);
    let late = late_answers(&mut agent);
    assert_eq!(late.as_array().unwrap().len(), 1, "{late}");
    assert_eq!(
        (&late[0]["code"], &late[0]["answers"]),
        (&json!(told), &json!({ "Which cache?": ["PostgreSQL"] }))
    );
    let ran = agent.call("fake__echo", &json!({ "across": "a restart" }));
    assert_eq!(echoed(&ran), json!({ "across": "a restart" }));

    // Each answer was delivered once: the same questions are new ones now.
    let status = agent.call("pml_status", &json!({}));
    assert_eq!(status["structuredContent"]["answered"], json!([]), "{status}");
    for question in ["database", "cache"] {
        code(&agent.call("ask_user", &which(question)));
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_question_whose_agent_died_while_it_waited_is_answered_to_the_next_one() {
    if !there() {
        return;
    }
    let world = world("blocking");
    let (_server, browser) = opened(&world, Look::Phone);
    let mut agent = Agent::start(&world, Python::One, "session");
    agent.send("ask_user", &which("database"));
    let database = card(&world, "questions");
    browser.wait_for_element(&database);
    agent.kill(&world);
    answer(&browser, &database, "SQLite");
    let mut agent = Agent::start(&world, Python::One, "session");
    let late = late_answers(&mut agent);
    assert_eq!(late.as_array().unwrap().len(), 1, "{late}");
    assert_eq!(late[0]["answers"], json!({ "Which database?": ["SQLite"] }));
    let status = agent.call("pml_status", &json!({}));
    assert_eq!(status["structuredContent"]["answered"], json!([]), "{status}");
}
