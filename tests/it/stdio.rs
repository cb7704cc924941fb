//! The conversation: malformed input, eras, concurrency, cancellation, progress, fidelity.

use serde_json::{Value, json};

use crate::support::world::{Client, World, texts};

fn allowed() -> Value {
    json!({ "allow": ["fake"] })
}

fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params
}

#[test]
fn malformed_lines_get_the_right_error_and_the_conversation_goes_on() {
    let world = World::new();
    let mut client = world.client();
    client.notify("notifications/initialized", &json!({}));
    client.notify("notifications/cancelled", &json!({ "requestId": 99 }));
    for (line, code, id) in [
        ("nonsense", -32700, json!(null)),
        ("{\"jsonrpc\":\"2.0\",\"id\":5", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            -32600,
            json!(null),
        ),
        (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, -32601, json!(1)),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
            -32602,
            json!(2),
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a__b"}}"#,
            -32602,
            json!(3),
        ),
    ] {
        client.raw(line);
        let answer: Value = serde_json::from_str(&client.line()).unwrap();
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(code), &id),
            "{line} -> {answer}"
        );
    }
    client.raw(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    assert_eq!(client.line(), r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
}

#[test]
fn both_eras_are_answered() {
    let world = World::with_fake(&allowed(), &[]);
    let mut client = world.client();
    let discovered = client.request("server/discover", &modern(json!({})))["result"].clone();
    assert_eq!(discovered["resultType"], "complete");
    assert_eq!(discovered["supportedVersions"][0], "2026-07-28");
    assert_eq!(discovered["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(
        discovered["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "pml"
    );
    let listed = client.request("tools/list", &modern(json!({})))["result"].clone();
    assert_eq!(
        (&listed["resultType"], &listed["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    let params = modern(json!({ "name": "fake__echo", "arguments": { "a": 1 } }));
    let result = client.request("tools/call", &params)["result"].clone();
    assert_eq!(result["resultType"], "complete", "{result}");
    assert_eq!(
        texts(&result)[0],
        r#"{"name":"echo","arguments":{"a":1},"_meta":{}}"#,
        "the envelope is pml's own business"
    );
    let refused = client.request("tools/list", &json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2031-01-01", "io.modelcontextprotocol/clientCapabilities": {} } }));
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["requested"], "2031-01-01");
    drop(client);

    let mut client = world.client();
    let opened = client.initialize("2024-11-05");
    assert_eq!(opened["protocolVersion"], "2024-11-05");
    assert_eq!(opened.get("resultType"), None);
    let result = client.call("fake__echo", &json!({}));
    assert_eq!(result.get("resultType"), None);
}

#[test]
fn a_modern_subscription_is_told_of_changed_tools() {
    let world = World::with_fake(&allowed(), &[]);
    let mut client = world.client();
    let id = client.send(
        "subscriptions/listen",
        &modern(json!({ "notifications": { "toolsListChanged": true } })),
    );
    let acknowledged = client.notified("notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({ "toolsListChanged": true })
    );
    assert_eq!(
        acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        id
    );
    client.request("tools/call", &modern(json!({ "name": "fake__connect" })));
    let changed = client.notified("notifications/tools/list_changed");
    assert_eq!(
        changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        id
    );
}

#[test]
fn every_byte_of_a_call_but_name_token_and_id_passes() {
    let world = World::with_fake(&allowed(), &["--record", "seen"]);
    let mut client = world.legacy();
    let arguments =
        r#"{ "b":1.0,"a":12345678901234567890123, "n":null,"e":"\u00e9\/","z":-0 ,"deep":{"x":[ ]}}"#;
    client.raw(&format!(
        r#"{{"future":1,"method":"tools/call","params":{{"extra":[1.50],"arguments":{arguments},"name":"fake:echo","_meta":{{"progressToken":"mine","x/y":1.0}}}},"id":"call","jsonrpc":"2.0"}}"#
    ));
    let answer = loop {
        let line = client.line();
        if line.contains(r#""id":"call""#) {
            break line;
        }
    };
    let seen = world.read("seen");
    let call = seen.lines().find(|line| line.contains("tools/call")).unwrap();
    let params = call
        .split_once(r#""params":"#)
        .unwrap()
        .1
        .strip_suffix('}')
        .unwrap();
    let (before, after) = params.split_once(r#""progressToken":"#).unwrap();
    let after = after.trim_start_matches(|found: char| found.is_ascii_digit());
    assert_eq!(
        format!(r#"{before}"progressToken":TOKEN{after}"#),
        format!(
            r#"{{"extra":[1.50],"arguments":{arguments},"name":"echo","_meta":{{"progressToken":TOKEN,"x/y":1.0}}}}"#
        )
    );
    let echoed: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(texts(&echoed["result"])[0], params);
}

#[test]
fn a_slow_call_delays_no_other() {
    let world = World::with_fake(&allowed(), &[]);
    let mut client = world.legacy();
    let file = world.path("go");
    let slow = client.send(
        "tools/call",
        &json!({ "name": "fake__wait", "arguments": { "file": file } }),
    );
    for _ in 0..20 {
        client.call("fake__echo", &json!({}));
    }
    assert!(!client.aside.iter().any(|message| message["id"] == slow));
    std::fs::write(&file, "").unwrap();
    assert!(client.answer(slow)["result"].is_object());
}

#[test]
fn a_cancelled_call_is_cancelled_at_its_owner_and_never_answered() {
    let world = World::with_fake(&allowed(), &["--record", "seen"]);
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    let id = client.send("tools/call", &json!({ "name": "fake__hang", "arguments": {} }));
    crate::support::eventually("the call reaches the server", crate::support::DEADLINE, || {
        world.read("seen").contains("\"hang\"")
    });
    client.notify("notifications/cancelled", &json!({ "requestId": id }));
    crate::support::eventually(
        "the cancellation reaches the server",
        crate::support::DEADLINE,
        || world.read("seen").contains("notifications/cancelled"),
    );
    client.call("fake__echo", &json!({}));
    assert!(
        !client.aside.iter().any(|message| message["id"] == id),
        "{:?}",
        client.aside
    );
    // The id is free again.
    client.raw(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string());
    assert_eq!(client.answer(id)["result"], json!({}));
}

#[test]
fn progress_carries_the_clients_token_rises_and_comes_before_the_answer() {
    let world = World::with_fake(&allowed(), &[]);
    let mut client = world.legacy();
    let params =
        json!({ "name": "fake__progress", "arguments": { "steps": 5 }, "_meta": { "progressToken": "t-1" } });
    client.request("tools/call", &params);
    let told: Vec<&Value> = client
        .aside
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .collect();
    assert!(
        told.iter()
            .all(|message| message["params"]["progressToken"] == "t-1"),
        "{told:?}"
    );
    let values: Vec<f64> = told
        .iter()
        .map(|message| message["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
    assert!(values.len() >= 5, "{values:?}");
}

#[test]
fn a_duplicate_id_and_an_overlong_line_cost_only_themselves() {
    let world = World::new();
    world.configure(&json!({
        "limits": { "lineBytes": 65536 },
        "permissions": allowed(),
        "mcpServers": { "fake": world.fake(&[]) },
    }));
    let mut client = world.legacy();
    let hanging = client.send("tools/call", &json!({ "name": "fake__hang" }));
    client.raw(&json!({ "jsonrpc": "2.0", "id": hanging, "method": "ping" }).to_string());
    assert_eq!(client.answer(hanging)["error"]["code"], -32600);
    let long = "x".repeat(100_000);
    client.raw(&format!(
        r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"{long}"}}}}"#
    ));
    assert_eq!(client.answer(77)["error"]["code"], -32600);
    client.call("fake__echo", &json!({}));
}

#[test]
fn an_unknown_tool_names_the_nearest_one() {
    let world = World::with_fake(&allowed(), &[]);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    let answer = client.request("tools/call", &json!({ "name": "fakr__echo" }));
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(
        answer["error"]["message"],
        "Unknown tool: fakr__echo; did you mean `fake__echo`?"
    );
}

#[test]
fn a_modern_request_hears_of_messages_as_soon_as_it_wants_them() {
    for options in [&["--record", "seen"][..], &["--record", "seen", "--modern"]] {
        let world = World::with_fake(&allowed(), options);
        let mut client = world.client();
        let mut call = modern(json!({ "name": "fake__notify", "arguments": { "count": 1, "bytes": 1 } }));
        let told = |client: &Client| {
            let message = |message: &&Value| message["method"] == "notifications/message";
            client.aside.iter().filter(message).count()
        };
        // The way to the tool is known from the second call on.
        for _ in 0..2 {
            client.request("tools/call", &call);
            assert_eq!(told(&client), 0, "{options:?}");
        }
        call["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        for wanted in 1..3 {
            client.request("tools/call", &call);
            assert_eq!(told(&client), wanted, "{options:?}");
        }
        let seen = world.read("seen");
        let level = seen.lines().position(|line| line.contains("logging/setLevel"));
        let calls = seen
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains("tools/call"));
        let third = calls.map(|(place, _)| place).nth(2);
        match options.len() {
            2 => assert!(level.is_some() && level < third, "{seen}"),
            _ => assert_eq!(level, None, "a Modern server reads it from the request"),
        }
    }
}
