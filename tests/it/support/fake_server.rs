//! An MCP server that misbehaves on demand.
//!
//! How it starts and lives is set by options on its command line; what it does during a call, by its tools.
//!
//! | option | effect |
//! |---|---|
//! | `--started FILE` | appends its process id as a line, once per start |
//! | `--record FILE` | appends every line it receives, before it is answered |
//! | `--orphan FILE` | starts a process that forks twice, leaves the session, ignores SIGTERM and SIGHUP, holds stdout and stderr open; its id stands in FILE |
//! | `--banner` | writes a line that is not JSON to stdout first |
//! | `--flood BYTES` | writes so many bytes without a line break to stderr first |
//! | `--exit-at-once CODE` | complains on stderr and exits |
//! | `--silent` | reads, records and never answers |
//! | `--stubborn` | ignores SIGTERM and the end of stdin |
//! | `--crash-on-call N` | complains on stderr and exits with code 3 at the Nth `tools/call` of this process |
//! | `--odd-tools` | also lists tools with names that are strange, over-long or double |
//! | `--refuse-initialize` | answers `initialize` with -32022, as servers of the Modern era do, and knows no other way |
//! | `--modern` | speaks the Modern era and no other |
//! | `--modern-if FILE` | as `--modern`, if the file exists |
//! | `--exit-on METHOD` | exits without an answer when it is asked for METHOD |
//! | `--fail METHOD` | answers METHOD with an error |
//! | `--per-client` | also lists a tool `for_CAPABILITY` for each capability of its client |
//! | `--roots-aside` | asks for the roots when it lists its tools, and goes on without an answer |
//! | `--roots-first` | asks for the roots before it lists its tools, and lists them once it has an answer |
//! | `--start-when FILE` | answers `initialize` only once the file exists, and reads nothing before |
//! | `--ignore METHOD` | never answers METHOD |
//! | `--acknowledge N` | acknowledges only so many subscriptions, in the Modern era |
//! | `--read-when FILE` | reads its resources only once the file exists; other requests go on meanwhile |
//! | `--offers NAME` | has prompts, resources and templates, some of its own and some that every such server has |
//! | `--quiet NAME` | as `--offers`, but does not tell when they change |
//! | `--more-when FILE` | has one prompt and one resource more once the file exists, and says so; after `--offers` |
//! | `--answer METHOD FILE` | answers METHOD with the result that stands in the file |
//! | `--tool JSON` | also lists this tool, byte for byte |
//! | `--habit WORD` | writes every message wrongly: `fake_server/writing.rs` says in which ways |
//!
//! | tool | effect |
//! |---|---|
//! | `echo` | returns the bytes of `params` as text |
//! | `wait {file}` | answers once the file exists; other calls go on meanwhile |
//! | `progress {steps, until}` | sends that many progress notifications before its answer, which comes once the file `until` exists, if one is named |
//! | `crash` | complains on stderr and exits with code 3, without an answer |
//! | `exit {code}` | exits without a word |
//! | `say {line}` | writes the line to stdout as it is, then answers |
//! | `say_file {file}` | likewise the line that stands in the file |
//! | `complain {text}` | writes the text to stderr, then answers |
//! | `flood {bytes}` | writes so many bytes without a line break to stderr, then answers |
//! | `orphan {file}` | as `--orphan` |
//! | `close_stdout` | closes stdout and lives on |
//! | `close_stdin` | closes stdin, answers and lives on |
//! | `hang` | never answers |
//! | `ask {then, for}` | asks its client by a form first, as its era does, for a text or what JSON calls it; then returns the bytes of `params`, or never answers if `then` is `hang` |
//! | `ask_often {count, bytes}` | asks its client by so many forms of so many bytes, in the Legacy era, and never answers |
//! | `grow` | adds the tool `grown` and sends `notifications/tools/list_changed` |
//! | `more` | has one prompt and one resource more, and says so unless it is `--quiet` |
//! | `environment` | returns its variables as a JSON object |
//! | `closed {a}` | has `additionalProperties: false` and refuses any other argument |
//! | `structured` | has an `outputSchema` and returns `structuredContent` |
//! | `give {result}` | its result is the text, byte for byte |
//! | `give_error {error}` | likewise its error |
//! | `big {bytes}` | returns a text of so many bytes |
//! | `notify {count, bytes}` | sends so many log messages of so many bytes, then answers |
//! | `endless {bytes}` | writes so many bytes without a line break to stdout, then ends the line and answers |

#![expect(
    clippy::disallowed_methods,
    clippy::exit,
    clippy::print_stderr,
    clippy::struct_excessive_bools,
    clippy::unwrap_used,
    reason = "a server that misbehaves, for tests alone"
)]

#[path = "fake_server/writing.rs"]
mod writing;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::writing::{Habit, notify, reply_raw, write_line};

#[path = "fake_offers.rs"]
mod fake_offers;
use fake_offers::{ACKNOWLEDGEMENTS, Asked, MODERN, Offers};

/// What it offers beside its tools.
static OFFERS: std::sync::OnceLock<Offers> = std::sync::OnceLock::new();

/// Whether `grow` was called.
static GROWN: AtomicBool = AtomicBool::new(false);
/// The `tools/list` that waits for the roots.
static LISTING: Mutex<Option<Value>> = Mutex::new(None);
/// The names of the capabilities that its client declared last.
static CLIENT: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// How often `tools/call` was received.
static CALLS: AtomicU32 = AtomicU32::new(0);

#[derive(Default)]
struct Options {
    record: Option<PathBuf>,
    crash_on_call: Option<u32>,
    silent: bool,
    stubborn: bool,
    odd_tools: bool,
    refuse_initialize: bool,
    tools: Vec<String>,
    answers: Vec<(String, PathBuf)>,
    read_when: Option<PathBuf>,
    exit_on: Option<String>,
    fail: Option<String>,
    roots_first: bool,
    roots_aside: bool,
    per_client: bool,
    ignore: Option<String>,
    start_when: Option<PathBuf>,
}

/// What a client sends; parameters stay as they came.
#[derive(Deserialize)]
struct Message<'a> {
    id: Option<Value>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

fn main() {
    writing::open();
    let options = options();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Some(file) = &options.record {
            append(file, &line);
        }
        if !options.silent {
            receive(&options, &line);
        }
    }
    if options.stubborn {
        loop {
            std::thread::park();
        }
    }
}

/// Reads the command line; options that act at the start do so here, in their order.
fn options() -> Options {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().unwrap();
        match option.as_str() {
            "--started" => append(Path::new(&value()), &std::process::id().to_string()),
            "--record" => options.record = Some(value().into()),
            "--orphan" => orphan(&value()),
            "--banner" => write_line("Welcome to the fake server! Listening on stdio..."),
            "--flood" => flood(value().parse().unwrap()),
            "--exit-at-once" => {
                eprintln!("fake server: cannot go on");
                std::process::exit(value().parse().unwrap());
            }
            "--silent" => options.silent = true,
            "--stubborn" => {
                options.stubborn = true;
                ignore_sigterm();
            }
            "--crash-on-call" => options.crash_on_call = Some(value().parse().unwrap()),
            "--odd-tools" => options.odd_tools = true,
            "--refuse-initialize" => options.refuse_initialize = true,
            "--tool" => options.tools.push(value()),
            "--answer" => options.answers.push((value(), value().into())),
            "--habit" => Habit::named(&value()).unwrap().adopt(),
            "--modern" => MODERN.store(true, Ordering::SeqCst),
            "--modern-if" => MODERN.store(Path::new(&value()).exists(), Ordering::SeqCst),
            "--read-when" => options.read_when = Some(value().into()),
            "--exit-on" => options.exit_on = Some(value()),
            "--fail" => options.fail = Some(value()),
            "--roots-first" => options.roots_first = true,
            "--roots-aside" => options.roots_aside = true,
            "--per-client" => options.per_client = true,
            "--ignore" => options.ignore = Some(value()),
            "--start-when" => options.start_when = Some(value().into()),
            "--acknowledge" => ACKNOWLEDGEMENTS.store(value().parse().unwrap(), Ordering::SeqCst),
            "--offers" | "--quiet" => {
                let (tells, name) = (option == "--offers", value());
                drop(OFFERS.set(Offers { name, tells }));
            }
            "--more-when" => fake_offers::more_when(value(), OFFERS.get().unwrap().name.clone()),
            _ => {
                eprintln!("fake server: there is no option {option}");
                std::process::exit(2);
            }
        }
    }
    options
}

fn receive(options: &Options, line: &str) {
    let Ok(message) = serde_json::from_str::<Message>(line) else {
        return reply(
            &Value::Null,
            "error",
            &json!({ "code": -32700, "message": "not JSON" }),
        );
    };
    let (id, method) = match (message.id, message.method) {
        (Some(id), Some(method)) => (id, method),
        // The roots have come.
        (Some(id), None) if id == "roots" => match LISTING.lock().unwrap().take() {
            Some(id) => return reply(&id, "result", &json!({ "tools": tools(options) })),
            None => return,
        },
        _ => return,
    };
    let raw = message.params.map_or("null", RawValue::get).to_owned();
    let params = read(&raw);
    if options.exit_on.as_ref() == Some(&method) {
        std::process::exit(4);
    }
    if let (Some(file), "initialize") = (&options.start_when, method.as_str()) {
        while !file.exists() {
            std::thread::sleep(Duration::from_millis(3));
        }
    }
    if options.ignore.as_ref() == Some(&method) {
        return;
    }
    if let Some((_, file)) = options.answers.iter().find(|(answered, _)| *answered == method) {
        return reply_raw(&id, "result", &std::fs::read_to_string(file).unwrap());
    }
    if options.fail.as_ref() == Some(&method) {
        let error = json!({ "code": -32603, "message": "out of order" });
        return reply(&id, "error", &error);
    }
    if let (Some(file), "resources/read") = (options.read_when.clone(), method.as_str()) {
        std::thread::spawn(move || {
            wait_for(&file);
            if let Some((kind, value)) = fake_offers::answer(OFFERS.get(), &id, &method, &params) {
                reply(&id, kind, &value);
            }
        });
        return;
    }
    if let Some((kind, value)) = fake_offers::answer(OFFERS.get(), &id, &method, &params) {
        return reply(&id, kind, &value);
    }
    if method == "tools/list" && (options.roots_first || options.roots_aside) {
        write_line(r#"{"jsonrpc":"2.0","id":"roots","method":"roots/list"}"#);
    }
    let modern = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    if let Some(capabilities) = modern.as_object().or_else(|| params["capabilities"].as_object()) {
        *CLIENT.lock().unwrap() = capabilities.keys().cloned().collect();
    }
    match method.as_str() {
        "subscriptions/listen" if MODERN.load(Ordering::SeqCst) => {}
        "initialize" if options.refuse_initialize => {
            let supported = json!({ "supported": ["2026-07-28"], "requested": params["protocolVersion"] });
            let error = json!({ "code": -32022, "message": "unsupported version", "data": supported });
            reply(&id, "error", &error);
        }
        "initialize" => {
            let mut result = fake_offers::introduction(OFFERS.get());
            result["protocolVersion"] = params["protocolVersion"].clone();
            reply(&id, "result", &result);
        }
        "ping" => reply(&id, "result", &json!({})),
        "tools/list" if options.roots_first => *LISTING.lock().unwrap() = Some(id),
        "tools/list" if options.tools.is_empty() => {
            reply(&id, "result", &json!({ "tools": tools(options) }));
        }
        "tools/list" => {
            let mut tools: Vec<String> = tools(options).iter().map(Value::to_string).collect();
            tools.extend(options.tools.iter().cloned());
            reply_raw(&id, "result", &format!(r#"{{"tools":[{}]}}"#, tools.join(",")));
        }
        "tools/call" => {
            let call = CALLS.fetch_add(1, Ordering::SeqCst) + 1;
            if options.crash_on_call == Some(call) {
                crash();
            }
            if params["name"] == "close_stdin" {
                let nothing = std::fs::File::open("/dev/null").unwrap();
                rustix::stdio::dup2_stdin(&nothing).unwrap();
                run(&id, &raw, &params);
                loop {
                    std::thread::park();
                }
            }
            // On a thread: a slow call delays no other.
            std::thread::spawn(move || run(&id, &raw, &params));
        }
        _ => reply(
            &id,
            "error",
            &json!({ "code": -32601, "message": "no such method" }),
        ),
    }
}

/// Reads parameters, without the members that have no Rust value (half a surrogate pair, a very deep nesting).
fn read(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or_else(|_| {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(raw).unwrap();
        let readable = members
            .into_iter()
            .filter_map(|(name, value)| Some((name, serde_json::from_str(value.get()).ok()?)));
        Value::Object(readable.collect())
    })
}

/// Runs one call and answers it, where its tool does so.
fn run(id: &Value, raw: &str, params: &Value) {
    let arguments = &params["arguments"];
    let string = |name: &str| arguments[name].as_str().unwrap_or_default();
    let number = |name: &str| arguments[name].as_u64().unwrap_or_default();
    let text = match params["name"].as_str().unwrap_or_default() {
        "echo" => raw.to_owned(),
        "wait" => {
            wait_for(Path::new(string("file")));
            "waited".to_owned()
        }
        "progress" => {
            progress(&params["_meta"]["progressToken"], number("steps"));
            if let Some(file) = arguments["until"].as_str() {
                wait_for(Path::new(file));
            }
            "progressed".to_owned()
        }
        "crash" => crash(),
        "exit" => std::process::exit(i32::try_from(number("code")).unwrap()),
        "say" => {
            write_line(string("line"));
            "said".to_owned()
        }
        "say_file" => {
            write_line(&std::fs::read_to_string(string("file")).unwrap());
            "said".to_owned()
        }
        "complain" => {
            eprintln!("{}", string("text"));
            "complained".to_owned()
        }
        "flood" => {
            flood(number("bytes"));
            "flooded".to_owned()
        }
        "orphan" => {
            orphan(string("file"));
            "orphaned".to_owned()
        }
        "close_stdout" => {
            writing::close();
            return;
        }
        "close_stdin" => "closed its stdin".to_owned(),
        "hang" => return,
        "ask" => match fake_offers::ask(id, params) {
            Asked::Now => return,
            Asked::Before if string("then") == "hang" => return,
            Asked::Before => raw.to_owned(),
        },
        "ask_often" => return fake_offers::ask_often(number("count"), number("bytes")),
        "grow" => {
            GROWN.store(true, Ordering::SeqCst);
            notify("notifications/tools/list_changed", &json!({}));
            "grew".to_owned()
        }
        "more" => {
            fake_offers::more(OFFERS.get());
            "more".to_owned()
        }
        "grown" if GROWN.load(Ordering::SeqCst) => "grown".to_owned(),
        "environment" => json!(std::env::vars().collect::<BTreeMap<_, _>>()).to_string(),
        "closed" => match arguments
            .as_object()
            .and_then(|all| all.keys().find(|key| *key != "a"))
        {
            Some(key) => {
                let content = json!([{ "type": "text", "text": format!("unknown argument {key}") }]);
                return reply(id, "result", &json!({ "content": content, "isError": true }));
            }
            None => "closed".to_owned(),
        },
        "structured" => {
            let content = json!([{ "type": "text", "text": "{\"answer\":42}" }]);
            let result = json!({ "content": content, "structuredContent": { "answer": 42 } });
            return reply(id, "result", &result);
        }
        "give" => return reply_raw(id, "result", string("result")),
        "give_error" => return reply_raw(id, "error", string("error")),
        "big" => "x".repeat(usize::try_from(number("bytes")).unwrap()),
        "notify" => {
            notify_often(number("count"), number("bytes"));
            "notified".to_owned()
        }
        "endless" => {
            writing::write_endless(number("bytes"));
            write_line("");
            "ended".to_owned()
        }
        name => {
            let message = format!("Unknown tool: {name}");
            return reply(id, "error", &json!({ "code": -32602, "message": message }));
        }
    };
    reply(
        id,
        "result",
        &json!({ "content": [{ "type": "text", "text": text }] }),
    );
}

fn notify_often(times: u64, bytes: u64) {
    let padding = "x".repeat(usize::try_from(bytes).unwrap());
    for count in 0..times {
        let data = json!({ "count": count, "padding": padding });
        notify("notifications/message", &json!({ "level": "info", "data": data }));
    }
}

fn tools(options: &Options) -> Vec<Value> {
    let open = json!({ "type": "object" });
    let tool = |name: &str, schema: &Value| json!({ "name": name, "description": format!("Fake: {name}"), "inputSchema": schema });
    let needs = |name: &str, kind: &str| json!({ "type": "object", "properties": { name: { "type": kind } }, "required": [name] });
    let mut tools = vec![
        tool("echo", &open),
        tool("wait", &needs("file", "string")),
        tool("progress", &needs("steps", "integer")),
        tool("crash", &open),
        tool("exit", &needs("code", "integer")),
        tool("say", &needs("line", "string")),
        tool("say_file", &needs("file", "string")),
        tool("complain", &needs("text", "string")),
        tool("flood", &needs("bytes", "integer")),
        tool("orphan", &needs("file", "string")),
        tool("close_stdout", &open),
        tool("close_stdin", &open),
        tool("hang", &open),
        tool("ask", &open),
        tool("ask_often", &needs("count", "integer")),
        tool("grow", &open),
        tool("environment", &open),
        tool("give", &needs("result", "string")),
        tool("give_error", &needs("error", "string")),
        tool("big", &needs("bytes", "integer")),
        tool("notify", &needs("count", "integer")),
        tool("endless", &needs("bytes", "integer")),
    ];
    let mut closed = needs("a", "string");
    closed["additionalProperties"] = json!(false);
    tools.push(tool("closed", &closed));
    let mut structured = tool("structured", &open);
    structured["outputSchema"] = needs("answer", "integer");
    tools.push(structured);
    if options.odd_tools {
        let long = "long".repeat(32);
        let other = format!("{}x", &long[..127]);
        let odd = [
            "with.dot",
            "with/slash",
            "with space",
            "with__both",
            "Ünïcode",
            "tab\there",
        ];
        let double = ["double", "double", "a.b", "a_b", &long, &other];
        tools.extend(odd.into_iter().chain(double).map(|name| tool(name, &open)));
    }
    if OFFERS.get().is_some() {
        tools.push(tool("more", &open));
    }
    if options.per_client {
        let capabilities = CLIENT.lock().unwrap();
        tools.extend(
            capabilities
                .iter()
                .map(|name| tool(&format!("for_{name}"), &open)),
        );
    }
    if GROWN.load(Ordering::SeqCst) {
        tools.push(tool("grown", &open));
    }
    tools
}

fn reply(id: &Value, kind: &str, value: &Value) {
    let value = match kind {
        "result" => fake_offers::completed(value),
        _ => value.clone(),
    };
    reply_raw(id, kind, &value.to_string());
}

fn append(file: &Path, line: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn progress(token: &Value, steps: u64) {
    for step in 1..=steps {
        let params = json!({ "progressToken": token, "progress": step, "total": steps, "message": format!("step {step}") });
        notify("notifications/progress", &params);
    }
}

fn crash() -> ! {
    eprintln!("fake server: something terrible happened\n  at the very end");
    std::process::exit(3);
}

fn flood(bytes: u64) {
    let block = [b'x'; 4096];
    let mut left = usize::try_from(bytes).unwrap();
    let mut stderr = std::io::stderr().lock();
    while left > 0 {
        let size = left.min(block.len());
        stderr.write_all(&block[..size]).unwrap();
        left -= size;
    }
}

fn wait_for(file: &Path) {
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a process that no group, session or polite signal reaches, and returns once its id is written.
fn orphan(file: &str) {
    let script = r#"trap "" TERM HUP; sleep 1000 <&- & echo $! > "$0.part"; mv "$0.part" "$0""#;
    let mut child = Command::new("setsid")
        .args(["sh", "-c", script, file])
        .stdout(writing::stdout())
        .spawn()
        .unwrap();
    child.wait().unwrap();
}

/// Takes SIGTERM and does nothing: once listened to, a signal never regains its default.
fn ignore_sigterm() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let kind = tokio::signal::unix::SignalKind::terminate();
        std::mem::forget(tokio::signal::unix::signal(kind).unwrap());
    });
}
