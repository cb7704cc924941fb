//! The era of a request: its own envelope decides, and only a bare `initialize` opens a Legacy conversation.

use serde_json::{Value, json};

use crate::support::world::World;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn world() -> World {
    World::with_fake(&json!({ "allow": ["fake"] }), &[])
}

fn enveloped() -> Value {
    json!({ "_meta": { VERSION: "2026-07-28", CAPABILITIES: {} } })
}

#[test]
fn an_enveloped_initialize_is_an_unknown_method_and_pins_nothing() {
    let world = world();
    let mut client = world.client();
    let mut params = enveloped();
    params["protocolVersion"] = json!("2025-11-25");
    params["capabilities"] = json!({});
    params["clientInfo"] = json!({ "name": "test", "version": "1" });
    for envelope in [
        params["_meta"].clone(),
        json!({ VERSION: "2026-07-28" }),
        json!({ VERSION: "2031-01-01", CAPABILITIES: {} }),
    ] {
        params["_meta"] = envelope;
        assert_eq!(
            client.request("initialize", &params)["error"]["code"],
            -32601,
            "{params}"
        );
        let listed = client.request("tools/list", &enveloped());
        assert_eq!(listed["result"]["resultType"], "complete", "{listed}");
        assert_eq!(client.request("tools/list", &json!({}))["error"]["code"], -32602);
    }
    // What is no envelope is no reason to refuse an opening.
    params["_meta"] = json!({ "progressToken": 1 });
    assert_eq!(
        client.request("initialize", &params)["result"]["protocolVersion"],
        "2025-11-25"
    );
    let listed = client.request("tools/list", &json!({}))["result"].clone();
    assert!(
        listed["tools"].is_array() && listed.get("resultType").is_none(),
        "{listed}"
    );
}

#[test]
fn methods_that_the_modern_era_has_not_are_unknown_in_it() {
    let world = world();
    let mut client = world.client();
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
    ] {
        let mut params = enveloped();
        params["uri"] = json!("a://b");
        params["level"] = json!("debug");
        let answer = client.request(method, &params);
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
}

#[test]
fn discover_needs_an_envelope_of_a_version_that_is_spoken() {
    let world = world();
    let mut client = world.client();
    for (params, code) in [
        (json!({}), -32602),
        (json!({ "_meta": null }), -32602),
        (json!({ "_meta": {} }), -32602),
        (json!({ "_meta": { CAPABILITIES: {} } }), -32602),
        (json!({ "_meta": { VERSION: "2026-07-28" } }), -32602),
        (json!({ "_meta": { VERSION: 7, CAPABILITIES: {} } }), -32602),
        (
            json!({ "_meta": { VERSION: "2026-07-28", CAPABILITIES: [] } }),
            -32602,
        ),
        (
            json!({ "_meta": { VERSION: "v999.0.0", CAPABILITIES: {} } }),
            -32022,
        ),
    ] {
        let answer = client.request("server/discover", &params);
        assert_eq!(answer["error"]["code"], code, "{params} -> {answer}");
        if code == -32022 {
            let data = &answer["error"]["data"];
            assert_eq!(data["requested"], "v999.0.0");
            assert_eq!(data["supported"][0], "2026-07-28");
        }
    }
    client.raw(r#"{"jsonrpc":"2.0","id":"none","method":"server/discover"}"#);
    assert!(client.line().contains("-32602"));
    let discovered = client.request("server/discover", &enveloped());
    assert_eq!(discovered["result"]["resultType"], "complete", "{discovered}");
    // A client that falls back opens the same process by `initialize`, and may still ask what is there.
    client.initialize("2025-11-25");
    let discovered = client.request("server/discover", &enveloped());
    assert_eq!(discovered["result"]["resultType"], "complete", "{discovered}");
    assert_eq!(client.request("ping", &enveloped())["result"], json!({}));
}

#[test]
fn a_server_of_both_eras_asks_a_modern_client_though_it_was_opened_by_initialize() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &["--record", "seen"]);
    let mut client = world.client();
    let modern = |mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        });
        params
    };
    let form = json!({ "message": "Name?", "requestedSchema": { "type": "object", "properties": {} } });
    let asking = json!({
        "resultType": "input_required",
        "inputRequests": {
            "cannot": { "method": "sampling/createMessage", "params": {} },
            "can": { "method": "elicitation/create", "params": form },
        },
        "requestState": "theirs",
    });
    let call = json!({ "name": "fake__give", "arguments": { "result": asking.to_string() } });
    let asked = client.request("tools/call", &modern(call.clone()))["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let questions = asked["inputRequests"].as_object().unwrap();
    assert_eq!(
        questions.keys().collect::<Vec<_>>(),
        ["can"],
        "only what the client can answer"
    );
    assert_eq!(questions["can"]["params"]["message"], "[fake] Name?");
    assert_ne!(asked["requestState"], "theirs");

    let mut retry = call;
    retry["requestState"] = asked["requestState"].clone();
    retry["inputResponses"] = json!({ "can": { "action": "accept", "content": {} } });
    client.request("tools/call", &modern(retry));
    let seen = world.read("seen");
    let last: Value = serde_json::from_str(seen.lines().last().unwrap()).unwrap();
    assert_eq!(last["params"]["requestState"], "theirs");
    assert_eq!(last["params"]["inputResponses"]["can"]["action"], "accept");

    // What this request declares nothing for is refused, and no question is left.
    let only = json!({
        "resultType": "input_required",
        "inputRequests": { "cannot": { "method": "sampling/createMessage", "params": {} } },
    });
    let call = json!({ "name": "fake__give", "arguments": { "result": only.to_string() } });
    let refused = client.request("tools/call", &modern(call))["result"].clone();
    assert_eq!(
        (&refused["isError"], &refused["resultType"]),
        (&json!(true), &json!("complete"))
    );
}

#[test]
fn a_server_is_opened_first_as_its_configuration_says() {
    for (options, first) in [
        (&["--record", "seen", "--modern"][..], "server/discover"),
        // One that knows no other way is opened by `initialize` all the same.
        (&["--record", "seen"], "server/discover"),
    ] {
        let world = World::new();
        let mut server = world.fake(options);
        server["protocol"] = json!("2026-07-28");
        world.configure(&json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": server } }));
        let called = world.legacy().call("fake__echo", &json!({ "a": 1 }));
        assert!(called.get("isError").is_none(), "{called}");
        let seen = world.read("seen");
        let message: Value = serde_json::from_str(seen.lines().next().unwrap()).unwrap();
        assert_eq!(message["method"], first);
    }
}
