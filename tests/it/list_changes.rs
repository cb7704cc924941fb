//! What a client hears of changed lists: only that one differs from what it was shown.

use serde_json::{Value, json};

use crate::support::world::{Client, World, asks};

const CHANGED: &str = "notifications/tools/list_changed";

/// A world whose server was seen before, so that its tools are listed from the start, and asks now.
fn world() -> World {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    world.legacy().call("fake__connect", &json!({}));
    configure(&world, &json!({ "ask": ["fake"] }));
    world
}

fn configure(world: &World, permissions: &Value) {
    world.configure(&json!({ "permissions": permissions, "mcpServers": { "fake": world.fake(&[]) } }));
}

fn enveloped(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

/// The notifications of changed lists that have come so far.
fn heard(client: &Client) -> Vec<&Value> {
    let changes = |message: &&Value| {
        let method = message["method"].as_str().unwrap_or_default();
        method.ends_with("list_changed")
    };
    client.aside.iter().filter(changes).collect()
}

#[test]
fn a_rule_that_pml_itself_writes_is_no_changed_list() {
    let world = world();
    let mut client = world.legacy();
    client.tools();
    let asked = client.call("fake__structured", &json!({}));
    assert!(asks(&asked), "{asked}");
    client.proceed(
        "fake__structured",
        &asked,
        &json!({ "approved": true, "always": true }),
    );
    assert!(world.read(".pml.json").contains("fake:structured"));
    for _ in 0..3 {
        client.call("fake__structured", &json!({}));
    }
    assert_eq!(heard(&client), Vec::<&Value>::new());

    // A tool that can no longer be called is a changed list.
    configure(&world, &json!({ "allow": ["fake"], "deny": ["fake:echo"] }));
    client.call("fake__structured", &json!({}));
    client.notified(CHANGED);
    assert_eq!(heard(&client), Vec::<&Value>::new(), "only the tools changed");
    assert!(!client.tools().contains(&"fake__echo".to_owned()));

    // So is a tool that begins to ask: it may answer what its output schema forbids.
    configure(
        &world,
        &json!({ "ask": ["fake:structured"], "deny": ["fake:echo"] }),
    );
    client.call("fake__structured", &json!({}));
    client.notified(CHANGED);
}

#[test]
fn a_modern_subscription_does_not_hear_of_a_rule_that_pml_itself_writes() {
    let world = world();
    let mut client = world.client();
    let wishes =
        json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true });
    client.send(
        "subscriptions/listen",
        &enveloped(json!({ "notifications": wishes })),
    );
    client.notified("notifications/subscriptions/acknowledged");
    for list in ["tools/list", "prompts/list", "resources/list"] {
        client.request(list, &enveloped(json!({})));
    }
    let call = |client: &mut Client, arguments: Value| {
        let params = enveloped(json!({ "name": "fake__echo", "arguments": arguments }));
        client.request("tools/call", &params)["result"].clone()
    };
    let asked = call(&mut client, json!({}));
    let id = &asked["approval_context"]["workflow_id"];
    let decision = json!({ "workflow_id": id, "approved": true, "always": true });
    call(&mut client, json!({ "continue_workflow": decision }));
    assert!(world.read(".pml.json").contains("fake:echo"));
    for _ in 0..3 {
        call(&mut client, json!({}));
    }
    assert_eq!(heard(&client), Vec::<&Value>::new());
    configure(&world, &json!({ "allow": ["fake"], "deny": ["fake:structured"] }));
    call(&mut client, json!({}));
    client.notified(CHANGED);
    assert_eq!(heard(&client), Vec::<&Value>::new(), "only the tools changed");
}

#[test]
fn a_configuration_that_can_be_read_again_is_a_changed_list() {
    let world = world();
    let readable = world.read(".pml.json");
    world.write(".pml.json", "{");
    let mut client = world.legacy();
    assert!(!client.tools().contains(&"fake__echo".to_owned()));
    for _ in 0..2 {
        world.write(".pml.json", &readable);
        client.call("pml_status", &json!({}));
        client.notified(CHANGED);
        assert!(client.tools().contains(&"fake__echo".to_owned()));
        world.write(".pml.json", "{");
        assert!(!client.tools().contains(&"fake__echo".to_owned()));
    }
}
