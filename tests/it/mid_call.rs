//! A question in the middle of a call: what a person agreed to, the rules and the time of the server hold also when
//! the call goes on.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::world::{Client, World, texts};

/// A world with the server that misbehaves on demand, started with `options`, its entry amended by `settings`.
fn world(permissions: &Value, settings: &Value, options: &[&str]) -> World {
    let world = World::new();
    let mut fake = world.fake(options);
    for (name, value) in settings.as_object().unwrap() {
        fake[name] = value.clone();
    }
    world.configure(&json!({ "permissions": permissions, "mcpServers": { "fake": fake } }));
    world
}

/// Calls a tool as a Modern client, its arguments as they are; `more` are further members of the parameters.
fn modern(client: &mut Client, id: u64, tool: &str, arguments: &str, more: &Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let mut members = format!(r#""name":"fake__{tool}","arguments":{arguments},"_meta":{meta}"#);
    for (name, value) in more.as_object().unwrap() {
        let _ = write!(members, ",{}:{value}", json!(name));
    }
    client.raw(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{members}}}}}"#
    ));
    client.answer(id)["result"].clone()
}

/// Answers every question of a result.
fn answered(asked: &Value) -> Value {
    let keys = asked["inputRequests"].as_object().unwrap().keys();
    let said = json!({ "action": "accept", "content": { "name": "Ada", "decision": "continue" } });
    let responses: serde_json::Map<String, Value> = keys.map(|key| (key.clone(), said.clone())).collect();
    json!({ "requestState": asked["requestState"], "inputResponses": responses })
}

#[test]
fn what_was_approved_runs_also_after_a_question_and_nothing_else() {
    for (approved, again, changed) in [
        (
            r#"{"x":"\ud800","path":"safe"}"#,
            r#"{ "path":"safe", "x":"\ud800" }"#,
            r#"{"x":"\ud800","path":"other"}"#,
        ),
        (
            r#"{"id":10000000000000000000001}"#,
            r#"{"id": 10000000000000000000001}"#,
            r#"{"id":10000000000000000000002}"#,
        ),
    ] {
        let world = world(&json!({ "ask": ["fake:ask"] }), &json!({}), &["--modern"]);
        let mut client = world.client();
        for (retried, runs) in [(changed, false), (again, true)] {
            let approval = modern(&mut client, 1, "ask", approved, &json!({}));
            let asked = modern(&mut client, 2, "ask", approved, &answered(&approval));
            assert!(asked["inputRequests"]["person"].is_object(), "{asked}");
            let done = modern(&mut client, 3, "ask", retried, &answered(&asked));
            if runs {
                let told = texts(&done)[0];
                assert!(told.contains(&format!(r#""arguments":{retried}"#)), "{told}");
            } else {
                // Another call, for which a person is asked.
                assert!(done["inputRequests"]["answer"].is_object(), "{done}");
            }
        }
    }
}
