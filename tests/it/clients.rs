//! The official clients list and call through pml, and all of them see the same.
//!
//! Each client goes through one scenario and reports what reached it, after its own validation: `client.py`,
//! `client.mjs` in `tests/interop`, and [`rmcp`] below.

mod rmcp;

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::sdk::{self, Python};
use crate::support::world::World;
use crate::support::{have, pml};

/// A world where `free` is allowed but for one tool, `asked` is known and asks, `fresh` was never seen.
fn world() -> World {
    let world = World::new();
    let servers = json!({
        "free": { "command": pml(), "args": ["sample-server"] },
        "asked": world.fake(&[]),
        "fresh": { "command": pml(), "args": ["sample-server"], "env": { "SAMPLE": "fresh" } },
    });
    world.configure(&json!({ "permissions": { "allow": ["free", "asked"] }, "mcpServers": servers }));
    let mut client = world.legacy();
    for server in ["free", "asked"] {
        client.call(&format!("{server}__connect"), &json!({}));
    }
    drop(client);
    let permissions = json!({ "allow": ["free"], "deny": ["free:roll_dice"], "ask": ["*", "asked:closed"] });
    world.configure(&json!({ "permissions": permissions, "mcpServers": servers }));
    world
}

/// What every client must have seen.
fn expected() -> Value {
    json!({
        "server": "pml",
        "names": ["free__greet", "free__echo", "free__add", "fresh__connect",
            "ask_user", "ask_user_questions", "approval_prompt", "pml_status", "pml_continue"],
        // A tool that may ask is listed without its output schema, and with it once it simply runs.
        "promising": ["free__add"],
        "sum": { "sum": 5.5 },
        "question": [true, "dependency_install", "asked:structured", "Approval required to run asked"],
        "continued": { "answer": 42 },
        "promising_once_approved": ["asked__structured", "free__add"],
        "again": { "answer": 42 },
        "narrower": [true, "tool_permission", "asked:closed", "Approval required to call asked:closed"],
        "closed": "closed",
        "progress": ["1/3 step 1", "2/3 step 2", "3/3 step 3"],
        "aborted": "Workflow aborted by user",
        "connected": ["fresh__greet", "fresh__echo", "fresh__roll_dice", "fresh__add"],
        "names_once_connected": [
            "free__greet", "free__echo", "free__add",
            "fresh__greet", "fresh__echo", "fresh__roll_dice", "fresh__add",
            "ask_user", "ask_user_questions", "approval_prompt", "pml_status", "pml_continue",
        ],
        // A question that cannot match the promised output comes as an error in words: nothing else passes validation.
        "question_despite_a_promise": [true, "Approval required to run asked"],
        "aborted_despite_a_promise": "Workflow aborted by user",
        "denied": [true, "`free:roll_dice` is denied by rule `free:roll_dice`"],
        "unknown": -32602,
    })
}

/// Runs a script as a client and checks what it saw, and that it left nothing running.
fn assert_sees(program: &Path, script: &str, arguments: &[&str]) {
    let world = world();
    let seen = sdk::seen(&world, program, script, arguments);
    assert_eq!(seen, expected());
    world.assert_no_survivor("after the client closed");
}

fn assert_python_sees(line: Python, mode: &str) {
    assert_sees(&sdk::python(line), "client.py", &[mode]);
}

fn assert_typescript_sees(mode: &str) {
    let sdks = sdk::typescript();
    assert_sees(Path::new("node"), "client.mjs", &[mode, sdks.to_str().unwrap()]);
}

#[test]
fn the_python_client_of_sdk_1_lists_and_calls() {
    if have(&["uv"]) {
        assert_python_sees(Python::One, "session");
    }
}

#[test]
fn the_python_client_of_sdk_2_lists_and_calls_in_the_legacy_era() {
    if have(&["uv"]) {
        assert_python_sees(Python::Two, "session");
        assert_python_sees(Python::Two, "legacy");
    }
}

#[test]
fn the_python_client_of_sdk_2_lists_and_calls_in_the_modern_era() {
    if have(&["uv"]) {
        assert_python_sees(Python::Two, "auto");
        assert_python_sees(Python::Two, "2026-07-28");
    }
}

#[test]
fn the_typescript_client_of_sdk_1_lists_and_calls() {
    if have(&["node", "npm"]) {
        assert_typescript_sees("v1");
    }
}

#[test]
fn the_typescript_client_of_sdk_2_lists_and_calls_in_the_legacy_era() {
    if have(&["node", "npm"]) {
        assert_typescript_sees("legacy");
    }
}

/// `auto` asks a process of its own for the era and throws it away.
#[test]
fn the_typescript_client_of_sdk_2_lists_and_calls_in_the_modern_era() {
    if have(&["node", "npm"]) {
        assert_typescript_sees("auto");
        assert_typescript_sees("2026-07-28");
    }
}
