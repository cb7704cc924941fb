//! What is judged is what is forwarded: a message that two readers would read differently is refused.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::world::{Client, World, stderr, texts};
use crate::support::{DEADLINE, eventually};

/// Sends a request with raw parameters and returns its answer.
fn raw(client: &mut Client, id: u64, method: &str, params: &str) -> Value {
    client.raw(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
    ));
    client.answer(id)
}

fn assert_refused(answer: &Value, path: &str) {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("`params.{path}`")), "{message}");
}

#[test]
fn a_twin_member_is_refused() {
    let permissions = json!({ "allow": ["fake"], "deny": ["fake:give"] });
    let world = World::with_fake(&permissions, &["--offers", "fake", "--record", "seen"]);
    let mut client = world.legacy();
    let requests = [
        ("tools/call", r#"{"name":"fake__echo","Name":"give"}"#, "name"),
        ("tools/call", r#"{"name":"give","name":"fake__echo"}"#, "name"),
        (
            "tools/call",
            r#"{"n\u0061me":"give","name":"fake__echo"}"#,
            "name",
        ),
        (
            "tools/call",
            "{\"name\":\"fake__echo\",\"argument\u{17f}\":{\"twin\":1}}",
            "arguments",
        ),
        (
            "tools/call",
            r#"{"name":"fake__echo","arguments":{},"arguments":{"twin":1}}"#,
            "arguments",
        ),
        (
            "tools/call",
            r#"{"name":"fake__echo","_meta":{"progressToken":1},"_META":{"progressToken":"twin"}}"#,
            "_meta",
        ),
        (
            "tools/call",
            r#"{"name":"fake__echo","_meta":{"progressToken":1,"progresstoken":"twin"}}"#,
            "_meta.progressToken",
        ),
        (
            "tools/call",
            r#"{"name":"fake__echo","RequestState":"twin"}"#,
            "requestState",
        ),
        (
            "tools/call",
            r#"{"name":"fake__echo","inputresponses":{"twin":1}}"#,
            "inputResponses",
        ),
        (
            "tools/call",
            r#"{"name":"fake__echo","arguments":{"continue_workflow":null,"Continue_Workflow":{"twin":1}}}"#,
            "arguments.continue_workflow",
        ),
        ("prompts/get", r#"{"name":"fake__greet","NAME":"twin"}"#, "name"),
        (
            "resources/read",
            r#"{"uri":"fake://own","Uri":"fake://twin"}"#,
            "uri",
        ),
        (
            "resources/subscribe",
            r#"{"uri":"fake://twin","uri":"fake://own"}"#,
            "uri",
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"fake__greet","Name":"twin"},"argument":{}}"#,
            "ref.name",
        ),
        ("vendor/method", r#"{"_meta":{},"_meta":{"twin":1}}"#, "_meta"),
        ("resources/list", r#"{"cursor":null,"Cursor":"twin"}"#, "cursor"),
    ];
    // Before the way to the tool is known, and along the known way.
    for _ in 0..2 {
        for (number, (method, params, path)) in (100..).zip(requests) {
            assert_refused(&raw(&mut client, number, method, params), path);
        }
        let passed = client.call("fake__echo", &json!({ "x": 1 }));
        assert!(texts(&passed)[0].contains(r#""x":1"#), "{passed}");
    }
    assert!(!world.read("seen").contains("twin"), "{}", world.read("seen"));
    // What pml does not judge by is the server's to read, as before.
    let odd = r#"{"name":"fake__echo","arguments":{"x":1,"x":2,"X":3},"y":1,"Y":2}"#;
    let passed = raw(&mut client, 200, "tools/call", odd)["result"].clone();
    assert_eq!(texts(&passed)[0], odd.replace("fake__echo", "echo"));
}

#[test]
fn a_twin_in_a_modern_envelope_is_refused() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &["--record", "seen"]);
    let mut client = world.client();
    let envelope = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    for (number, (more, path)) in (1..).zip([
        (
            r#""IO.modelcontextprotocol/x":1"#,
            "_meta.io.modelcontextprotocol/",
        ),
        (
            r#""io.modelcontextprotocol/CLIENTCAPABILITIES":{"elicitation":{}}"#,
            "_meta.io.modelcontextprotocol/clientCapabilities",
        ),
    ]) {
        let params = format!(r#"{{"name":"fake__echo","_meta":{{{envelope},{more}}}}}"#);
        assert_refused(&raw(&mut client, number, "tools/call", &params), path);
    }
    let filled = r#"{"answer":{"action":"decline","action":"accept"}}"#;
    let params = format!(r#"{{"name":"fake__echo","_meta":{{{envelope}}},"inputResponses":{filled}}}"#);
    assert_refused(
        &raw(&mut client, 9, "tools/call", &params),
        "inputResponses.answer.action",
    );
}

#[test]
fn a_notification_with_twins_is_passed_over() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &["--record", "seen"]);
    let mut client = world.legacy();
    let file = world.path("go").to_str().unwrap().to_owned();
    let params = json!({ "name": "fake__wait", "arguments": { "file": file } });
    let waiting = client.send("tools/call", &params);
    eventually("the call is under way", DEADLINE, || {
        world.path("seen").exists() && world.read("seen").contains("\"wait\"")
    });
    client.raw(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{waiting},"RequestId":1}}}}"#
    ));
    client.call("fake__echo", &json!({}));
    assert!(!world.read("seen").contains("cancelled"));
    world.write("go", "");
    assert_eq!(texts(&client.answer(waiting)["result"])[0], "waited");
}

#[test]
fn a_definition_with_two_names_is_not_listed() {
    let twin = r#"{"name":"safe","Name":"danger","inputSchema":{"type":"object"}}"#;
    let twice = r#"{"name":"danger","name":"safe","inputSchema":{"type":"object"}}"#;
    let sound = r#"{"name":"sound","inputSchema":{"type":"object"}}"#;
    let world = World::with_fake(
        &json!({ "allow": ["fake"] }),
        &["--tool", twin, "--tool", twice, "--tool", sound],
    );
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    let tools = client.tools();
    assert!(tools.contains(&"fake__sound".to_owned()), "{tools:?}");
    assert!(!tools.contains(&"fake__safe".to_owned()), "{tools:?}");
}

#[test]
fn a_question_with_two_messages_is_refused() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &["--record", "seen"]);
    let mut client = world.client();
    client.initialize_with_forms();
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"one","Message":"two","requestedSchema":{"type":"object","properties":{}}}}"#;
    client.call("fake__say", &json!({ "line": question }));
    eventually("the server is told", DEADLINE, || {
        world
            .read("seen")
            .lines()
            .any(|line| line.contains(r#""id":"q","error""#))
    });
    assert!(
        client
            .aside
            .iter()
            .all(|message| message["method"] != "elicitation/create")
    );
}

#[test]
fn a_definition_that_clients_cannot_read_costs_them_no_list() {
    let broken = r#"{"name":"broken","description":7,"inputSchema":{"$schema":"x"},"x":1.0}"#;
    for rule in ["allow", "ask"] {
        let world = World::with_fake(&json!({ rule: ["fake"] }), &["--tool", broken]);
        let mut client = world.legacy();
        let asked = client.call("fake__connect", &json!({}));
        client.proceed("fake__connect", &asked, &json!({ "approved": true }));
        let listed = client.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        let found = tools.iter().find(|tool| tool["name"] == "fake__broken").unwrap();
        assert_eq!(found["inputSchema"]["type"], "object", "{found}");
        assert_eq!((found.get("description"), &found["x"]), (None, &json!(1.0)));
        let told = stderr(&world.run(&["list"]));
        assert!(
            told.contains("clients cannot read the definitions of 1 of its tools"),
            "{told}"
        );
    }
}
