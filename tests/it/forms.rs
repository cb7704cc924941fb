//! The official clients answer pml's dialogs, and all of them get the same for it.
//!
//! Each client goes through one scenario and reports what reached it, after its own validation: `forms.py`,
//! `forms.mjs` in `tests/interop`, and [`rmcp`] below.

mod rmcp;

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::have;
use crate::support::sdk::{self, Python};
use crate::support::world::World;

/// On which road the answers of a client must have come: the two eras show forms differently.
#[derive(Debug, Clone, Copy)]
enum Road {
    Elicitation,
    Dialog,
}

/// A world where `fake` asks before it is first run, and one of its tools before every call.
fn world() -> World {
    World::with_fake(&json!({ "ask": ["*", "fake:closed"] }), &[])
}

/// What every client must have seen.
fn expected(road: Road) -> Value {
    let by = match road {
        Road::Elicitation => "elicitation",
        Road::Dialog => "dialog",
    };
    let decision = json!({ "decision": ["continue", "session", "always", "abort"] });
    let run = json!(["Run fake for fake:structured?", decision]);
    let call = json!(["Call fake:closed?", decision]);
    let which = json!(["Which way?", { "answer1": ["Left", "Right", "Other…"] }]);
    let words = json!(["In your own words:", { "answer1_other": [] }]);
    let name = json!(["Your name?", { "answer1": [] }]);
    let both =
        json!(["2 questions for you", { "answer1": ["A", "B", "Other…"], "answer2": ["A", "B", "Other…"] }]);
    let more = json!(["In your own words:", { "answer2_other": [] }]);
    json!({
        "aborted": "Workflow aborted by user",
        "declined": "Workflow aborted by user",
        // A refusal faster than anybody reads is no person's.
        "unavailable": true,
        "continued": { "answer": 42 },
        "again": { "answer": 42 },
        "narrower": "closed",
        "session": "closed",
        "in_session": "closed",
        "chosen": ["User selected: Right", by],
        "other": "User answered: Back",
        "plain": "User answered: Ada",
        // A form that is sent without an answer is not asked again and again.
        "empty": "pending",
        "unasked": "pending",
        "several": { "One of them?": ["A"], "Some of them?": ["A", "B", "C"] },
        "forms": [run, run, run, run, call, call, which, which, words, name, which, which, both, more],
    })
}

/// Runs a script as a client and checks what it saw, and that it left nothing running.
fn assert_answers(road: Road, program: &Path, script: &str, arguments: &[&str]) {
    let world = world();
    let seen = sdk::seen(&world, program, script, arguments);
    assert_eq!(seen, expected(road));
    world.assert_no_survivor("after the client closed");
}

fn assert_python_answers(road: Road, line: Python, mode: &str) {
    assert_answers(road, &sdk::python(line), "forms.py", &[mode]);
}

fn assert_typescript_answers(road: Road, mode: &str) {
    let sdks = sdk::typescript();
    let arguments = [mode, sdks.to_str().unwrap()];
    assert_answers(road, Path::new("node"), "forms.mjs", &arguments);
}

#[test]
fn the_python_client_of_sdk_1_answers_forms() {
    if have(&["uv"]) {
        assert_python_answers(Road::Elicitation, Python::One, "session");
    }
}

#[test]
fn the_python_client_of_sdk_2_answers_forms_in_the_legacy_era() {
    if have(&["uv"]) {
        assert_python_answers(Road::Elicitation, Python::Two, "session");
        assert_python_answers(Road::Elicitation, Python::Two, "legacy");
    }
}

#[test]
fn the_python_client_of_sdk_2_answers_forms_in_the_modern_era() {
    if have(&["uv"]) {
        assert_python_answers(Road::Dialog, Python::Two, "auto");
        assert_python_answers(Road::Dialog, Python::Two, "2026-07-28");
    }
}

#[test]
fn the_typescript_client_of_sdk_1_answers_forms() {
    if have(&["node", "npm"]) {
        assert_typescript_answers(Road::Elicitation, "v1");
    }
}

#[test]
fn the_typescript_client_of_sdk_2_answers_forms_in_the_legacy_era() {
    if have(&["node", "npm"]) {
        assert_typescript_answers(Road::Elicitation, "legacy");
    }
}

#[test]
fn the_typescript_client_of_sdk_2_answers_forms_in_the_modern_era() {
    if have(&["node", "npm"]) {
        assert_typescript_answers(Road::Dialog, "auto");
        assert_typescript_answers(Road::Dialog, "2026-07-28");
    }
}
