//! Servers and clients that write sloppily, too much or for ever: only the owner of the trouble has it, and pml's
//! memory stays within bounds.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::stalls::Watch;
use crate::support::world::{self, World};
use crate::support::{DEADLINE, eventually};

/// Characters of one to four bytes, so that pieces of a line end within one.
const WORDS: &str = "plain é 中 \u{1f980} \u{feff}";

const MEBIBYTE: u64 = 1024 * 1024;

/// The texts of a result, without what pml tells once: that the two servers, one program, have the same tools.
fn texts(result: &Value) -> Vec<&str> {
    let texts = world::texts(result).into_iter();
    texts
        .filter(|text| !text.contains("can be mistaken for those of other servers"))
        .collect()
}

/// A world with a server `fake` that has `options`, and a server `good` that has no bad habit.
fn world(options: &[&str]) -> World {
    let world = World::new();
    let servers = json!({ "fake": world.fake(options), "good": world.fake(&["--record", "seen"]) });
    world.configure(&json!({ "permissions": { "allow": ["fake", "good"] }, "mcpServers": servers }));
    world
}

#[test]
fn whatever_the_habit_of_a_server_each_call_gets_its_own_answer_once() {
    for habit in [
        "crlf",
        "bom",
        "pieces",
        "blank",
        "null-error",
        "float-ids",
        "batch",
        "strangers",
        "twice",
        "id-last",
    ] {
        let world = world(&["--habit", habit]);
        let mut client = world.legacy();
        client.call("fake__connect", &json!({}));
        assert!(client.tools().contains(&"fake__echo".to_owned()), "{habit}");
        let calls: Vec<(u64, String)> = (0..5)
            .map(|call| {
                let arguments = json!({ "words": WORDS, "call": call });
                let sent = client.send(
                    "tools/call",
                    &json!({ "name": "fake__echo", "arguments": arguments }),
                );
                (
                    sent,
                    json!({ "name": "echo", "arguments": arguments }).to_string(),
                )
            })
            .collect();
        for (id, expected) in calls {
            let answer = client.answer(id);
            assert_eq!(texts(&answer["result"]), [expected], "{habit}");
            // Canonical for the client, whatever came: a strict one refuses `"error": null`.
            let members: Vec<&String> = answer.as_object().unwrap().keys().collect();
            assert_eq!(members, ["jsonrpc", "id", "result"], "{habit}");
        }
        let refused = client.request(
            "tools/call",
            &json!({ "name": "fake__give_error", "arguments": { "error": r#"{"code":7,"message":"no"}"# } }),
        );
        assert_eq!(refused["error"], json!({ "code": 7, "message": "no" }), "{habit}");
        assert_eq!(refused.get("result"), None, "{habit}");
        assert_eq!(
            texts(&client.call("good__closed", &json!({}))),
            ["closed"],
            "{habit}"
        );
        let strangers: Vec<&Value> = client
            .aside
            .iter()
            .filter(|message| message.get("id").is_some())
            .collect();
        assert_eq!(strangers, [&Value::Null; 0], "{habit}: nothing is answered twice");
        assert!(client.close().success(), "{habit}");
    }
}

#[test]
fn noise_between_messages_is_passed_over() {
    let world = world(&["--banner"]);
    let mut client = world.legacy();
    for noise in [
        "Listening on stdio...",
        "{",
        "[]",
        "null",
        "7",
        "\u{1b}[31mred\u{1b}[0m",
        r#"{"jsonrpc":"2.0"}"#,
    ] {
        let said = client.call("fake__say", &json!({ "line": noise }));
        assert_eq!(texts(&said), ["said"], "{noise}");
    }
    let answered = client
        .aside
        .iter()
        .filter(|message| message.get("id").is_some())
        .count();
    assert_eq!(answered, 0, "{:?}", client.aside);
}

/// Deeper than pml reads.
fn deep() -> String {
    format!("{}{}", "[".repeat(200), "]".repeat(200))
}

#[test]
fn an_answer_that_cannot_be_read_fails_its_call_wherever_its_id_stands() {
    for habit in ["crlf", "id-last"] {
        let world = World::new();
        world.configure(&json!({
            "permissions": { "allow": ["fake"] }, "limits": { "lineBytes": 65536 },
            "mcpServers": { "fake": world.fake(&["--habit", habit]) },
        }));
        let mut client = world.legacy();
        for unreadable in [
            format!(
                r#"{{"content":[],"structuredContent":{{"id":1,"x":{}}}}}"#,
                deep()
            ),
            r#"{"content":[],"structuredContent":{"x":NaN}}"#.to_owned(),
        ] {
            let failed = client.call("fake__give", &json!({ "result": unreadable }));
            assert_eq!(failed["isError"], true, "{habit}: {failed}");
            assert!(texts(&failed)[0].contains("cannot be read"), "{habit}: {failed}");
        }
        let failed = client.call("fake__big", &json!({ "bytes": 200_000 }));
        assert_eq!(failed["isError"], true, "{habit}: {failed}");
        assert!(texts(&failed)[0].contains("line limit"), "{habit}: {failed}");
        assert_eq!(texts(&client.call("fake__closed", &json!({}))), ["closed"]);
    }
}

#[test]
fn a_line_of_nothing_but_brackets_costs_nobody_anything() {
    let world = world(&[]);
    let mut client = world.legacy();
    client.call("good__closed", &json!({}));
    for count in [200, 150_000] {
        let bomb = format!("{}{}", "[".repeat(count), "]".repeat(count));
        assert_eq!(
            texts(&client.call("fake__say", &json!({ "line": bomb }))),
            ["said"]
        );
        assert_eq!(texts(&client.call("good__closed", &json!({}))), ["closed"]);
    }
    // Beside what cannot be read, what can be read is.
    let batch = format!(
        r#"[{},[],{{"id":"a","method":"ping"}},{{"id":"b","method":"ping","x":{}}}]"#,
        deep(),
        deep()
    );
    client.call("good__say", &json!({ "line": batch }));
    eventually("both requests are answered", DEADLINE, || {
        let seen = world.read("seen");
        seen.contains(r#""id":"a","result":{}"#) && seen.contains(r#""id":"b","error":{"code":-32600"#)
    });
}

#[test]
fn a_request_of_a_server_that_cannot_be_read_is_refused_and_fails_no_call() {
    let world = world(&[]);
    world.configure(&json!({
        "permissions": { "allow": ["good"] }, "limits": { "lineBytes": 65536 },
        "mcpServers": { "good": world.fake(&["--record", "seen"]) },
    }));
    let mut client = world.legacy();
    let waiting = client.send(
        "tools/call",
        &json!({ "name": "good__wait", "arguments": { "file": world.path("go") } }),
    );
    let mut id = None;
    eventually("the call is sent", DEADLINE, || {
        let seen = std::fs::read_to_string(world.path("seen")).unwrap_or_default();
        let messages = seen
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        id = messages
            .filter(|message| message["params"]["name"] == "wait")
            .find_map(|message| message["id"].as_u64());
        id.is_some()
    });
    // The same number as that of the call: each side counts for itself.
    let id = id.unwrap();
    let long = "x".repeat(100_000);
    for (place, params) in [deep(), format!(r#""{long}""#)].into_iter().enumerate() {
        for line in [
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"sampling/createMessage","params":{params}}}"#),
            format!(r#"{{"method":"sampling/createMessage","params":{params},"jsonrpc":"2.0","id":{id}}}"#),
        ] {
            world.write("line", &line);
            client.call("good__say_file", &json!({ "file": world.path("line") }));
        }
        eventually("the server is refused", DEADLINE, || {
            let refusal = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600"#);
            world.read("seen").matches(&refusal).count() == 2 * (place + 1)
        });
    }
    world.write("go", "");
    assert_eq!(texts(&client.answer(waiting)["result"]), ["waited"]);
}

#[test]
fn an_answer_of_a_client_that_cannot_be_read_is_an_error_for_whoever_asked() {
    let world = world(&[]);
    let mut client = world.client();
    let about = json!({ "name": "test", "version": "1" });
    client.request(
        "initialize",
        &json!({ "protocolVersion": "2025-06-18", "capabilities": { "roots": {} }, "clientInfo": about }),
    );
    client.notify("notifications/initialized", &json!({}));
    let answers = [
        format!(
            r#"{{"jsonrpc":"2.0","id":"ID","result":{{"roots":[],"x":{}}}}}"#,
            deep()
        ),
        format!(
            r#"{{"result":{{"roots":[],"x":{}}},"jsonrpc":"2.0","id":"ID"}}"#,
            deep()
        ),
        r#"{"jsonrpc":"2.0","id":"ID"}"#.to_owned(),
        // Answered already.
        format!(r#"{{"jsonrpc":"2.0","id":"pml-1","result":{}}}"#, deep()),
    ];
    for (place, answer) in answers.iter().enumerate() {
        let asked = format!(r#"{{"jsonrpc":"2.0","id":"ask-{place}","method":"roots/list"}}"#);
        client.call("good__say", &json!({ "line": asked }));
        let asked = client.notified("roots/list");
        client.raw(&answer.replace("ID", asked["id"].as_str().unwrap()));
        if answer.contains("ID") {
            eventually("the server is told", DEADLINE, || {
                let refusal = format!(r#"{{"jsonrpc":"2.0","id":"ask-{place}","error":{{"code":-32603"#);
                world.read("seen").contains(&refusal)
            });
        }
    }
    client.call("good__closed", &json!({}));
    let answered = client
        .aside
        .iter()
        .filter(|message| message.get("id").is_some())
        .count();
    assert_eq!(answered, 0, "the client asked nothing: {:?}", client.aside);
    // What it does ask is answered under its id, wherever that stands.
    client.raw(&format!(
        r#"{{"method":"tools/call","params":{},"jsonrpc":"2.0","id":99}}"#,
        deep()
    ));
    assert_eq!(client.answer(99)["error"]["code"], -32700);
}

#[test]
fn a_client_of_the_oldest_versions_may_send_a_batch() {
    let world = world(&[]);
    let mut client = world.client();
    client.initialize("2025-03-26");
    client.call("fake__connect", &json!({}));
    let request = |id: &str, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let batch = json!([
        request("a", "ping", json!({})),
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        request("b", "tools/call", json!({ "name": "fake__closed", "arguments": {} })),
        request("c", "no/such", json!({})),
        request("d", "tools/list", json!({})),
    ]);
    client.raw(&batch.to_string());
    // As one array or one by one: the receiver of a batch may choose.
    let mut answered = BTreeSet::new();
    while answered.len() < 4 {
        let answer: Value = serde_json::from_str(&client.line()).unwrap();
        let answers = answer.as_array().cloned().unwrap_or_else(|| vec![answer]);
        for answer in answers.iter().filter(|answer| answer.get("method").is_none()) {
            let kind = if answer.get("error").is_some() {
                "error"
            } else {
                "result"
            };
            let id = answer["id"].as_str().unwrap_or_else(|| panic!("{answer}"));
            assert!(answered.insert((id.to_owned(), kind)), "answered twice: {answer}");
        }
    }
    let expected = [("a", "result"), ("b", "result"), ("c", "error"), ("d", "result")];
    assert_eq!(answered, expected.map(|(id, kind)| (id.to_owned(), kind)).into());
}

#[test]
fn an_endless_line_costs_its_server_only() {
    // Four times what a line may have by default, so that keeping it would be seen.
    let bytes = 256 * MEBIBYTE;
    let world = world(&[]);
    let mut client = world.legacy();
    client.call("good__closed", &json!({}));
    let endless = client.send(
        "tools/call",
        &json!({ "name": "fake__endless", "arguments": { "bytes": bytes } }),
    );
    for _ in 0..20 {
        assert_eq!(texts(&client.call("good__closed", &json!({}))), ["closed"]);
    }
    let answer = client.answer(endless);
    assert!(
        answer.get("error").is_some()
            || answer["result"]["isError"] == true
            || texts(&answer["result"]) == ["ended"],
        "{answer}"
    );
    assert_eq!(texts(&client.call("good__closed", &json!({}))), ["closed"]);
    assert_eq!(
        texts(&client.call("fake__closed", &json!({}))),
        ["closed"],
        "it may start anew"
    );
    let peak = peak(client.id());
    // One line of the default limit, the copy that a growing buffer makes of it, and pml itself.
    assert!(peak < 160 * MEBIBYTE, "{peak} bytes");
}

#[test]
fn fifty_mebibytes_pass_or_fail_alone() {
    let world = world(&[]);
    world.watch(Watch::Off);
    let mut client = world.legacy();
    let big = client.send(
        "tools/call",
        &json!({ "name": "fake__big", "arguments": { "bytes": 50 * MEBIBYTE } }),
    );
    for _ in 0..20 {
        assert_eq!(texts(&client.call("good__closed", &json!({}))), ["closed"]);
    }
    let answer = client.answer(big);
    assert_eq!(texts(&answer["result"])[0].len() as u64, 50 * MEBIBYTE);
    let peak = peak(client.id());
    // The line once, the copy that a growing buffer makes of it, and pml itself: never a parsed copy beside it.
    assert!(peak < 140 * MEBIBYTE, "{peak} bytes");
}

/// A client that reads when it is told to.
struct Reluctant {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Reluctant {
    fn start(world: &World) -> Self {
        let mut child = world
            .command(&["stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, stdin, stdout };
        let about = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
        client.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!(client.message()["id"], 0);
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_ref().unwrap(), "{message}").unwrap();
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
    }

    fn message(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(
            self.stdout.read_line(&mut line).unwrap(),
            0,
            "pml closed its stdout"
        );
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"))
    }

    /// Waits until nothing in pml moves any more.
    fn wait_for_rest(&self) {
        let mut last = 0;
        eventually("pml rests", DEADLINE, || {
            let now = processor_time(self.child.id());
            std::mem::replace(&mut last, now) == now && now > 0
        });
    }

    /// Has the answer to a call of three mebibytes written, and closes its own end unread.
    fn leave_a_large_answer(&mut self, world: &World) {
        self.call(1, "good__closed", &json!({}));
        self.answer(1);
        self.call(2, "good__big", &json!({ "bytes": 3 * MEBIBYTE }));
        // Where its first bytes are, all of it waits to be read.
        self.stdout.fill_buf().unwrap();
        drop(self.stdin.take());
        eventually("the servers are gone", DEADLINE, || world.running().len() <= 1);
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message();
            if message["id"] == id {
                return message;
            }
        }
    }
}

impl Drop for Reluctant {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_flood_of_notifications_waits_for_a_client_that_does_not_read() {
    const COUNT: u64 = 100_000;
    // So many bytes in each that all of them together are far more than the bound below.
    const BYTES: u64 = 1000;
    let world = world(&[]);
    let mut client = Reluctant::start(&world);
    client.call(1, "fake__closed", &json!({}));
    client.answer(1);
    client.call(2, "good__closed", &json!({}));
    client.answer(2);
    client.call(3, "fake__notify", &json!({ "count": COUNT, "bytes": BYTES }));
    // The other server gets its calls all the same.
    client.call(4, "good__closed", &json!({ "a": "during the flood" }));
    eventually("the other server is called", DEADLINE, || {
        world.read("seen").contains("during the flood")
    });
    // The flood has reached its dam once nothing in pml moves any more.
    client.wait_for_rest();
    let (mut told, mut left) = (Vec::new(), BTreeSet::from([3, 4]));
    while !left.is_empty() {
        let message = client.message();
        match message["id"].as_u64() {
            Some(id) => assert!(left.remove(&id), "{message}"),
            None if message["method"] == "notifications/message" => {
                told.push(message["params"]["data"]["count"].as_u64().unwrap());
            }
            None => {}
        }
    }
    assert!(
        told.iter().copied().eq(0..COUNT),
        "{} of {COUNT} came, or not in their order",
        told.len()
    );
    let peak = peak(client.child.id());
    // What may wait for a client (8 MiB), what a server's reader holds, and pml itself; the flood has a hundred.
    assert!(peak < 48 * MEBIBYTE, "{peak} bytes");
}

#[test]
fn a_client_that_closed_its_end_gets_the_rest_as_slowly_as_it_reads() {
    let world = world(&[]);
    let mut client = Reluctant::start(&world);
    client.leave_a_large_answer(&world);
    let mut piece = vec![0; 64 * 1024];
    let mut got = Vec::new();
    loop {
        client.wait_for_rest();
        match client.stdout.read(&mut piece).unwrap() {
            0 => break,
            read => got.extend_from_slice(&piece[..read]),
        }
    }
    assert_eq!(got.last(), Some(&b'\n'), "{} bytes", got.len());
    let answer: Value = serde_json::from_slice(&got).unwrap();
    assert_eq!(texts(&answer["result"])[0].len() as u64, 3 * MEBIBYTE);
}

#[test]
fn a_client_that_closed_its_end_and_reads_nothing_does_not_keep_pml() {
    let world = world(&[]);
    let mut client = Reluctant::start(&world);
    client.leave_a_large_answer(&world);
    eventually("pml goes", DEADLINE, || {
        client.child.try_wait().unwrap().is_some()
    });
}

/// The most memory a process ever had.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes * 1024
}

/// The processor time of a process, in ticks.
fn processor_time(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The fields after the name begin with the third of proc_pid_stat(5); user and system time are the 14th and 15th.
    fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum()
}
