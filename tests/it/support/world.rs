//! A hermetic home and project, and a client that speaks to the real binary over pipes.

mod dying;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::stalls::{Stalls, WATCHDOG, Watch};
use super::{MARK, mark, pml};

/// Installing a real package on a busy machine takes a while; reaching this is a failure.
const PATIENCE: Duration = Duration::from_mins(2);

/// A home, a project in it, and nothing of the machine but where programs are and how to reach the network.
pub(crate) struct World {
    home: tempfile::TempDir,
    variables: RefCell<HashMap<String, String>>,
    mark: String,
    stalls: Stalls,
    watch: Cell<Watch>,
}

impl World {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("project")).unwrap();
        let mark = mark();
        let world = Self {
            home,
            variables: RefCell::default(),
            stalls: Stalls::of(&mark),
            watch: Cell::new(Watch::On),
            mark,
        };
        for name in [
            "PATH",
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "NODE_EXTRA_CA_CERTS",
            "HTTPS_PROXY",
            "HTTP_PROXY",
            "NO_PROXY",
        ] {
            if let Ok(value) = std::env::var(name) {
                world.set(name, &value);
            }
        }
        world
    }

    /// A world with one server `fake`, the one that misbehaves on demand, started with `options`.
    pub(crate) fn with_fake(permissions: &Value, options: &[&str]) -> Self {
        let world = Self::new();
        world
            .configure(&json!({ "permissions": permissions, "mcpServers": { "fake": world.fake(options) } }));
        world
    }

    /// The entry of a fake server that is started with `options`; it carries the mark of this world.
    pub(crate) fn fake(&self, options: &[&str]) -> Value {
        json!({ "command": super::fake_server(), "args": options, "env": { MARK: self.mark } })
    }

    /// Writes `.pml.json`.
    pub(crate) fn configure(&self, config: &Value) {
        self.write(".pml.json", &serde_json::to_string_pretty(config).unwrap());
    }

    /// Sets a variable of everything that is started here.
    pub(crate) fn set(&self, name: &str, value: &str) {
        self.variables
            .borrow_mut()
            .insert(name.to_owned(), value.to_owned());
    }

    /// Says whether something that holds up a `pml stdio` of this world fails the test.
    pub(crate) fn watch(&self, watch: Watch) {
        self.watch.set(watch);
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.home.path().join("project")
    }

    /// A path in the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The mark of everything that is started here.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// What the history says of one kind of event.
    pub(crate) fn recorded(&self, event: &str) -> Vec<Value> {
        let directory = self.home().join(".local/state/pml/history");
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let texts = entries.map(|entry| std::fs::read_to_string(entry.path()).unwrap_or_default());
        let lines = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
        let records = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        records.filter(|record| record["event"] == event).collect()
    }

    /// The marks of everything that was started here and still runs, pml itself included.
    pub(crate) fn running(&self) -> Vec<String> {
        super::marked(&self.mark)
    }

    pub(crate) fn assert_no_survivor(&self, told: &str) {
        super::assert_no_survivor(&self.mark, told);
    }

    /// A `pml` command in the project.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(pml());
        command.args(arguments);
        command
    }

    /// Any program in the project.
    pub(crate) fn program(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(&*self.variables.borrow())
            .env("HOME", self.home())
            .env("PML_LOG", "error")
            .env(MARK, &self.mark)
            .current_dir(self.project());
        if self.watch.get() == Watch::On {
            command.env(WATCHDOG, self.stalls.path());
        }
        command
    }

    /// Runs a `pml` command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// What `pml check` says of a call: the decision, how it asks, and why; `pml list` says the same.
    pub(crate) fn foretold(&self, tool: &str) -> (String, Option<String>, String) {
        let checked = self.run(&["check", "--json", tool]);
        let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
        let listed = json_of(&self.run(&["list", "--json"]));
        let servers = listed["servers"].as_array().unwrap().iter();
        let tools = servers.flat_map(|server| server["tools"].as_array().into_iter().flatten());
        for listed in tools.filter(|listed| listed["tool"] == checked["tool"]) {
            for member in ["decision", "asks", "reason", "outlook"] {
                assert_eq!(listed[member], checked[member], "{member}");
            }
        }
        let text = |member: &str| checked[member].as_str().map(str::to_owned);
        (text("decision").unwrap(), text("asks"), text("reason").unwrap())
    }

    /// Asserts that `pml check` and `pml list` say that a call asks about what changed, for this reason.
    pub(crate) fn assert_foretells_change(&self, tool: &str, reason: &str) {
        let expected = ("ask".to_owned(), Some("change".to_owned()), reason.to_owned());
        assert_eq!(self.foretold(tool), expected);
    }

    /// Approves what has waited longest, in a terminal.
    pub(crate) fn approve_oldest(&self) {
        let pending = json_of(&self.run(&["pending", "--json"]));
        let approved = self.run(&["approve", pending["pending"][0]["code"].as_str().unwrap()]);
        assert!(approved.status.success(), "{approved:?}");
    }

    /// Starts `pml stdio`.
    pub(crate) fn client(&self) -> Client {
        Client::start(self.command(&["stdio"]))
    }

    /// Starts `pml stdio` and opens the conversation as a Legacy client.
    pub(crate) fn legacy(&self) -> Client {
        let mut client = self.client();
        client.initialize("2025-06-18");
        client
    }

    /// Lists every file below the home but those of the project, for "nothing was installed".
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.home().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path() == self.project() {
                    continue;
                }
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    files.push(entry.path().strip_prefix(self.home()).unwrap().to_owned());
                }
            }
        }
        files.sort();
        files
    }
}

/// A client on the pipes of a `pml stdio`.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
    /// What came that was not the answer somebody waited for.
    pub(crate) aside: Vec<Value>,
}

impl Client {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            next_id: 1,
            aside: Vec::new(),
        }
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let result = self.request("initialize", &params)["result"].clone();
        self.notify("notifications/initialized", &json!({}));
        result
    }

    /// Opens the conversation as a Legacy client that can show forms.
    pub(crate) fn initialize_with_forms(&mut self) {
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} }, "clientInfo": client,
        });
        self.request("initialize", &params);
        self.notify("notifications/initialized", &json!({}));
    }

    /// Answers a request of the server.
    pub(crate) fn reply(&mut self, request: &Value, result: &Value) {
        self.raw(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string());
    }

    /// Writes a line as it is.
    pub(crate) fn raw(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.raw(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.raw(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// Returns the next line.
    pub(crate) fn line(&mut self) -> String {
        self.lines
            .recv_timeout(PATIENCE)
            .expect("pml closed its stdout or says nothing")
    }

    /// Waits for the answer to a request; whatever else comes is kept aside.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        if let Some(place) = self.aside.iter().position(|message| message["id"] == id) {
            return self.aside.remove(place);
        }
        loop {
            let line = self.line();
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            if message["id"] == id {
                return message;
            }
            self.aside.push(message);
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a tool and returns its result; panics on a JSON-RPC error.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Continues a workflow on `tool`.
    pub(crate) fn proceed(&mut self, tool: &str, asked: &Value, decision: &Value) -> Value {
        let mut continuation = decision.clone();
        continuation["workflow_id"] = asked["approval_context"]["workflow_id"].clone();
        self.call(tool, &json!({ "continue_workflow": continuation }))
    }

    /// Calls a tool and, where that asks, agrees on the road that counts; returns the first result and the last.
    pub(crate) fn call_agreeing(&mut self, world: &World, tool: &str, arguments: &Value) -> (Value, Value) {
        let first = self.call(tool, arguments);
        let last = if !asks(&first) {
            first.clone()
        } else if first["approval_context"]["type"] == "integrity" {
            // The word of a model does not accept what changed.
            world.approve_oldest();
            self.call(tool, arguments)
        } else {
            self.proceed(tool, &first, &json!({ "approved": true }))
        };
        (first, last)
    }

    /// Waits until a notification of `method` has come.
    pub(crate) fn notified(&mut self, method: &str) -> Value {
        loop {
            if let Some(place) = self.aside.iter().position(|message| message["method"] == method) {
                return self.aside.remove(place);
            }
            let line = self.line();
            self.aside.push(serde_json::from_str(&line).unwrap());
        }
    }

    /// The names of the listed tools.
    pub(crate) fn tools(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("{listed}"));
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Closes the client's end and waits for pml to go.
    pub(crate) fn close(mut self) -> ExitStatus {
        drop(self.stdin.take());
        self.ended(Duration::from_secs(10))
    }

    /// Drops the client's end without waiting; the lines that still come can be read.
    pub(crate) fn end_input(&mut self) {
        drop(self.stdin.take());
    }

    /// The process of pml.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Waits for pml to go.
    pub(crate) fn ended(&mut self, within: Duration) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < within, "pml does not go within {within:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// What a finished command wrote to stdout.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What a finished command wrote to stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The JSON a command printed, which must have gone well.
pub(crate) fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The texts of a result, one per block.
pub(crate) fn texts(result: &Value) -> Vec<&str> {
    result["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect()
}

/// Whether a result asks for approval.
pub(crate) fn asks(result: &Value) -> bool {
    result["approval_required"] == true
}

/// The directory of the user's database.
pub(crate) fn state(world: &World) -> PathBuf {
    world.home().join(".local/state/pml")
}

/// Keeps every other process from writing in the database, until it is dropped.
pub(crate) fn hold_database(world: &World) -> rusqlite::Connection {
    let held = rusqlite::Connection::open(state(world).join("workflows.db")).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    held
}

/// The file by which the processes that write in the database queue: each has it open while it waits or writes.
pub(crate) fn turns(world: &World) -> PathBuf {
    state(world).join("workflows.db-turns")
}

/// Returns what a person approved, as the database keeps it; nothing where there is none.
pub(crate) fn approvals(world: &World) -> Vec<Value> {
    let file = state(world).join("workflows.db");
    if !file.exists() {
        return Vec::new();
    }
    let store = rusqlite::Connection::open(file).unwrap();
    let mut records = store
        .prepare("SELECT record FROM approval ORDER BY launch")
        .unwrap();
    let records = records.query_map([], |row| row.get::<_, String>(0)).unwrap();
    records
        .map(|record| serde_json::from_str(&record.unwrap()).unwrap())
        .collect()
}

/// Changes the record of every approval behind the back of pml, as an older one would have written it.
pub(crate) fn rewrite_approvals(world: &World, change: impl Fn(&mut Value)) {
    let store = rusqlite::Connection::open(state(world).join("workflows.db")).unwrap();
    for mut record in approvals(world) {
        let before = record.to_string();
        change(&mut record);
        let changed = store.execute(
            "UPDATE approval SET record = ?2 WHERE json(record) = json(?1)",
            [before, record.to_string()],
        );
        assert_eq!(changed.unwrap(), 1);
    }
}

/// Forgets every approval behind the back of pml.
pub(crate) fn forget_approvals(world: &World) {
    let store = rusqlite::Connection::open(state(world).join("workflows.db")).unwrap();
    store.execute("DELETE FROM approval", []).unwrap();
}

/// Lets every pending workflow expire, and returns how many milliseconds the last of them would have lived.
pub(crate) fn expire_workflows(world: &World) -> i64 {
    let store = rusqlite::Connection::open(world.home().join(".local/state/pml/workflows.db")).unwrap();
    let life = store
        .query_row("SELECT max(expires_at - created_at) FROM workflow", [], |row| {
            row.get(0)
        })
        .unwrap();
    store
        .execute("UPDATE workflow SET expires_at = created_at", [])
        .unwrap();
    life
}
