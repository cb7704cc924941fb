//! What the host of pml relies on in the real Claude Code, with a script for a model.
//!
//! Two things that are easily overlooked: the lines that the host writes as answers come back on stdout as they are, by
//! `--replay-user-messages`; and `type` is not the first member of every line.

mod asks;
mod guidance;
mod host;
mod parked;
mod script;

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::messages_api::{Gate, MessagesApi, SCRIPT_END, Turn};
use host::{Session, Start};

/// A call of the tool by which Claude Code asks its user.
fn question() -> Turn {
    Turn::tool("AskUserQuestion", questions())
}

fn questions() -> Value {
    json!({ "questions": [{
        "question": "Which database?", "header": "Database", "multiSelect": false,
        "options": [{ "label": "pg", "description": "Postgres" }, { "label": "sqlite", "description": "SQLite" }],
    }] })
}

/// What a hook says once the person chose.
fn answered() -> Value {
    let mut input = questions();
    input["answers"] = json!({ "Which database?": "pg" });
    json!({ "updatedInput": input })
}

const READ_BY_THE_MODEL: &str = r#"Your questions have been answered: "Which database?"="pg". You can now continue with these answers in mind."#;

fn bash(command: &str) -> Value {
    json!({ "command": command, "description": "a command" })
}

#[test]
fn a_text_is_streamed_while_it_is_said_and_ends_with_success() {
    let gate = Gate::new();
    let said = Turn::streamed("Hello, whoever", 4)
        .and_wait(&gate)
        .and_text(" you are.");
    let Some(session) = Session::scripted([said]) else {
        return;
    };
    let mut host = session.start(Start::New);
    host.user("Hello");
    gate.wait_until_reached();
    host.until("the fourth delta", |line| line["event"]["delta"]["text"] == "er");
    gate.release();
    let result = host.result();
    assert_eq!(
        [&result["subtype"], &result["stop_reason"], &result["result"]],
        ["success", "end_turn", "Hello, whoever you are."]
    );
    let deltas = host.seen.iter();
    let deltas = deltas.filter_map(|line| line["event"]["delta"]["text"].as_str());
    assert_eq!(
        deltas.collect::<Vec<_>>(),
        ["Hell", "o, w", "hoev", "er", " you are."]
    );
    assert_eq!(host.close().code(), Some(0));
    assert_eq!(session.api.requests().len(), 1);
}

/// The first line of a turn names the model and the state of each MCP server; it comes only once a user said something.
#[test]
fn a_turn_begins_with_what_there_is() {
    let Some(session) = Session::scripted([]) else {
        return;
    };
    let config = json!({ "mcpServers": {
        "fake": session.world.fake(&[]), "broken": { "command": session.world.path("missing") },
    } });
    session.world.write("servers.json", &config.to_string());
    let mut host = session.start_with(
        Start::New,
        &["--mcp-config", "servers.json", "--strict-mcp-config"],
    );
    let opened = host.initialize(None);
    assert_eq!(opened["subtype"], "success");
    let told = &opened["response"];
    assert_eq!(
        [&told["hooks_applied"], &told["session_state"]],
        [&json!(true), &json!("idle")]
    );
    assert_eq!(host.summary(), ["control_response"]);
    host.user("Hello");
    assert_eq!(host.result()["result"], SCRIPT_END);
    let init = host.until("init", |line| line["subtype"] == "init");
    assert_eq!(init["session_id"], *session.id);
    let project = std::fs::canonicalize(session.world.project()).unwrap();
    assert_eq!(init["cwd"], project.to_str().unwrap());
    assert_eq!(init["permissionMode"], "default");
    assert_eq!(
        init["mcp_servers"],
        json!([
            { "name": "fake", "status": "connected", "source": "dynamic" },
            { "name": "broken", "status": "failed", "source": "dynamic" },
        ])
    );
    let request = &session.api.requests()[0];
    assert_eq!(init["model"], request.body()["model"]);
    let tools = init["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("mcp__fake__echo")), "{tools:?}");
}

#[test]
fn two_sessions_at_once_have_scripts_of_their_own() {
    let gate = Gate::new();
    let scripts = [
        ("apples", vec![Turn::held(&gate).and_text("About apples.")]),
        ("pears", vec![Turn::text("About pears.")]),
    ];
    let api = Arc::new(MessagesApi::scripted_by_prompt(scripts));
    let Some(apples) = Session::with(Arc::clone(&api)) else {
        return;
    };
    let pears = Session::with(Arc::clone(&api)).unwrap();
    let (mut first, mut second) = (apples.start(Start::New), pears.start(Start::New));
    first.user("Tell me of apples");
    gate.wait_until_reached();
    second.user("Tell me of pears");
    assert_eq!(second.result()["result"], "About pears.");
    second.user("And more");
    assert_eq!(second.result()["result"], SCRIPT_END);
    gate.release();
    assert_eq!(first.result()["result"], "About apples.");
    assert_eq!(
        [api.requests_of("apples").len(), api.requests_of("pears").len()],
        [1, 2]
    );
    let said = api.user_texts();
    assert!(said.contains(&"And more".to_owned()), "{said:?}");
}

/// The subtype is `success` even so: `is_error` tells, and the exit code, which is that of the last result.
#[test]
fn a_failing_api_is_told_by_the_error_of_a_result() {
    let Some(session) = Session::scripted([Turn::fails(400, "nobody is at home")]) else {
        return;
    };
    let mut host = session.start(Start::New);
    host.user("Hello");
    let result = host.result();
    let told = result["result"].as_str().unwrap_or_default();
    assert!(told.contains("nobody is at home"), "{result}");
    assert_eq!(
        json!([result["subtype"], result["is_error"], result["api_error_status"]]),
        json!(["success", true, 400])
    );
    assert_eq!(host.close().code(), Some(1));
}
