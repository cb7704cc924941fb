//! The sample server speaks MCP as a stranger would.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::pml;

/// Sends every line and returns every answer.
fn converse(lines: &[&str]) -> Vec<Value> {
    let mut server = Command::new(pml())
        .arg("sample-server")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = server.stdin.take().unwrap();
    stdin.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    drop(stdin);
    let mut text = String::new();
    server.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(server.wait().unwrap().success());
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn result(line: &str) -> Value {
    converse(&[line])[0]["result"].clone()
}

fn call(name: &str, arguments: &Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    result(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string())
}

#[test]
fn it_opens_lists_calls_and_goes_on_after_nonsense() {
    let answers = converse(&[
        r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "nonsense",
        r#"{"jsonrpc":"2.0","id":"two","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"missing"}}"#,
    ]);
    assert_eq!(
        json!(answers),
        json!([
            { "jsonrpc": "2.0", "id": 0, "error": { "code": -32601, "message": "there is no method `server/discover`" } },
            { "jsonrpc": "2.0", "id": 1, "result": {
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "pml-sample", "title": "Sample", "version": env!("CARGO_PKG_VERSION") },
                "instructions": "A sample: greets, echoes, rolls dice and adds.",
            } },
            { "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "this is not JSON" } },
            { "jsonrpc": "2.0", "id": "two", "result": {} },
            { "jsonrpc": "2.0", "id": 3, "result": { "content": [{ "type": "text", "text": "Hello, Ada!" }] } },
            { "jsonrpc": "2.0", "id": 4, "error": { "code": -32602, "message": "there is no tool `missing`" } },
        ])
    );
}

#[test]
fn what_a_tool_returns_fits_its_schema() {
    let listed = result(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let add = &listed["tools"][3];
    let sum = call("add", &json!({ "a": 1, "b": 2.5 }));
    assert_eq!(sum["structuredContent"], json!({ "sum": 3.5 }));
    assert!(jsonschema::is_valid(
        &add["outputSchema"],
        &sum["structuredContent"]
    ));
    for tool in listed["tools"].as_array().unwrap() {
        assert!(jsonschema::meta::is_valid(&tool["inputSchema"]), "{tool}");
    }
}

#[test]
fn arguments_come_back_verbatim_and_wrong_ones_are_told() {
    let arguments = json!({ "z": [1, null], "a": { "text": "é" } });
    let echoed = call("echo", &arguments);
    assert_eq!(echoed["content"][0]["text"], arguments.to_string());
    assert_eq!(echoed["structuredContent"], arguments);
    assert_eq!(
        call("roll_dice", &json!({ "sides": 0 })),
        json!({
            "content": [{ "type": "text", "text": "`sides` must be an integer from 1 to 1000000" }],
            "isError": true,
        })
    );
    assert_eq!(
        call("roll_dice", &json!({ "sides": 1 }))["content"][0]["text"],
        "Rolled 1 of 1"
    );
}
