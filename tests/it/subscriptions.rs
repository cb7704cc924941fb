//! What a client subscribed to: one server that does not answer costs nobody else anything, and an end is an end.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::world::{Client, World};
use crate::support::{DEADLINE, eventually};

fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params
}

/// A world whose fake servers may run, by their names and options.
fn world(servers: &[(&str, &[&str])]) -> World {
    let world = World::new();
    let entries = servers
        .iter()
        .map(|(name, options)| ((*name).to_owned(), world.fake(options)));
    let entries: serde_json::Map<String, Value> = entries.collect();
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": entries }));
    world
}

/// Sends a request under an id of the test's own.
fn send(client: &mut Client, id: u64, method: &str, params: &Value) {
    client.raw(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
}

/// Cancels a request, and returns once whatever belongs to it had its turn.
fn cancel(client: &mut Client, id: u64) {
    client.notify("notifications/cancelled", &json!({ "requestId": id }));
    client.request("ping", &json!({}));
}

#[test]
fn a_silent_server_costs_the_other_subscriptions_nothing() {
    let world = world(&[
        (
            "mute",
            &[
                "--offers",
                "mute",
                "--record",
                "seen",
                "--ignore",
                "resources/subscribe",
            ],
        ),
        ("other", &["--offers", "other"]),
    ]);
    let mut client = world.client();
    for tool in ["mute__connect", "other__connect"] {
        client.request("tools/call", &modern(json!({ "name": tool })));
    }
    let asked_for = |count| move |seen: String| seen.matches(r#""resources/subscribe""#).count() == count;
    let wishes = json!({ "toolsListChanged": true, "resourceSubscriptions": ["mute://own", "other://own"] });
    let listen = modern(json!({ "notifications": wishes }));

    // Cancelled while a server is still silent: its id is free, and nothing is watched.
    send(&mut client, 70, "subscriptions/listen", &listen);
    let first = asked_for(1);
    eventually("the server is subscribed to", DEADLINE, || {
        first(world.read("seen"))
    });
    cancel(&mut client, 70);
    send(&mut client, 70, "tools/list", &modern(json!({})));
    let tools = client.answer(70);
    assert!(tools["result"]["tools"].is_array(), "{tools}");
    eventually("nothing is watched any more", DEADLINE, || {
        world.read("seen").contains("resources/unsubscribe")
    });

    // What changes before it is acknowledged is told right after it.
    send(&mut client, 71, "subscriptions/listen", &listen);
    let second = asked_for(2);
    eventually("the server is subscribed to", DEADLINE, || {
        second(world.read("seen"))
    });
    client.request("tools/call", &modern(json!({ "name": "other__grow" })));
    let updated = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "other://own" } });
    let say = json!({ "name": "other__say", "arguments": { "line": updated.to_string() } });
    client.request("tools/call", &modern(say));
    let acknowledged = client.notified("notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], wishes);
    let changed = client.notified("notifications/tools/list_changed");
    let told = client.notified("notifications/resources/updated");
    let id = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(changed["params"]["_meta"][id], 71);
    assert_eq!(
        told["params"],
        json!({ "uri": "other://own", "_meta": { id: 71 } })
    );
}

/// A Legacy client in front of a Modern server that records what it is sent.
fn recorded(option: [&str; 2]) -> (World, Client) {
    let options = [
        "--modern", "--offers", "new", "--record", "seen", option[0], option[1],
    ];
    let world = world(&[("fake", &options)]);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    (world, client)
}

#[test]
fn a_cancelled_subscription_to_a_modern_server_is_not_answered() {
    let (world, mut client) = recorded(["--ignore", "subscriptions/listen"]);
    send(
        &mut client,
        70,
        "resources/subscribe",
        &json!({ "uri": "new://own" }),
    );
    eventually("the server is subscribed to", DEADLINE, || {
        world.read("seen").contains("resourceSubscriptions")
    });
    cancel(&mut client, 70);
    send(&mut client, 70, "ping", &json!({}));
    assert_eq!(client.answer(70)["result"], json!({}));
    eventually("nothing is watched any more", DEADLINE, || {
        world.read("seen").contains("notifications/cancelled")
    });
    client.call("fake__echo", &json!({}));
    assert!(
        client.aside.iter().all(|message| message["id"] != 70),
        "{:?}",
        client.aside
    );
}

#[test]
fn a_legacy_client_is_not_told_of_the_subscriptions_of_pml() {
    let world = world(&[("fake", &["--modern", "--offers", "new"])]);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    client.request("resources/subscribe", &json!({ "uri": "new://own" }));
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": 3, "x-own": 1 });
    for (method, params, expected) in [
        (
            "notifications/resources/updated",
            json!({ "uri": "new://own", "_meta": meta }),
            json!({ "uri": "new://own", "_meta": { "x-own": 1 } }),
        ),
        (
            "notifications/message",
            json!({ "level": "info", "data": 1, "_meta": meta }),
            json!({ "level": "info", "data": 1, "_meta": { "x-own": 1 } }),
        ),
    ] {
        let line = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        client.call("fake__say", &json!({ "line": line }));
        assert_eq!(client.notified(method)["params"], expected);
    }
}

#[test]
fn a_server_whose_resources_are_watched_is_not_idle() {
    let world = World::new();
    let entry = |name: &str| {
        let mut entry = world.fake(&["--offers", name, "--started", name]);
        entry["idleSeconds"] = json!(1);
        entry
    };
    let servers = json!({ "watched": entry("watched"), "other": entry("other") });
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": servers }));
    let runs = |name: &str| {
        let options = format!("--offers {name}");
        world.running().iter().any(|line| line.contains(&options))
    };
    let mut client = world.legacy();
    client.call("watched__connect", &json!({}));
    client.request("resources/subscribe", &json!({ "uri": "watched://own" }));
    // Used last, so that when it is stopped the other has been left alone for even longer.
    client.call("other__connect", &json!({}));
    eventually("the unused server is stopped", DEADLINE, || !runs("other"));
    client.call("other__echo", &json!({}));
    eventually("it is stopped again", DEADLINE, || !runs("other"));
    assert!(runs("watched"));
    client.request("resources/unsubscribe", &json!({ "uri": "watched://own" }));
    eventually("what nobody watches is stopped", DEADLINE, || !runs("watched"));
    assert_eq!(world.read("watched").lines().count(), 1);
}

#[test]
fn a_subscription_that_came_to_nothing_does_not_keep_a_server() {
    let subscribe = "resources/subscribe";
    let world = World::new();
    let entry = |name: &str, habit: &str| {
        let mut entry = world.fake(&["--offers", name, "--record", name, habit, subscribe]);
        entry["idleSeconds"] = json!(1);
        entry
    };
    let servers = json!({ "refuses": entry("refuses", "--fail"), "ignores": entry("ignores", "--ignore") });
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": servers }));
    let runs = |name: &str| {
        let options = format!("--offers {name}");
        world.running().iter().any(|line| line.contains(&options))
    };
    let mut client = world.legacy();
    client.call("refuses__connect", &json!({}));
    client.call("ignores__connect", &json!({}));
    let refused = client.request(subscribe, &json!({ "uri": "refuses://own" }));
    assert_eq!(refused["error"]["message"], "out of order");
    send(&mut client, 70, subscribe, &json!({ "uri": "ignores://own" }));
    eventually("the server is subscribed to", DEADLINE, || {
        world.read("ignores").contains(subscribe)
    });
    cancel(&mut client, 70);
    for name in ["refuses", "ignores"] {
        eventually("the unused server is stopped", DEADLINE, || !runs(name));
    }
    // What nobody watches is not watched again either.
    std::fs::remove_file(world.path("ignores")).unwrap();
    client.call("ignores__echo", &json!({}));
    assert!(!world.read("ignores").contains(subscribe));
}

#[test]
fn a_modern_client_is_not_granted_what_a_server_refuses() {
    let world = world(&[
        (
            "refuses",
            &["--offers", "refuses", "--fail", "resources/subscribe"],
        ),
        ("accepts", &["--offers", "accepts"]),
    ]);
    let mut client = world.client();
    for tool in ["refuses__connect", "accepts__connect"] {
        client.request("tools/call", &modern(json!({ "name": tool })));
    }
    let wishes = json!({ "resourceSubscriptions": ["refuses://own", "accepts://own"] });
    let listen = modern(json!({ "notifications": wishes }));
    send(&mut client, 70, "subscriptions/listen", &listen);
    let acknowledged = client.notified("notifications/subscriptions/acknowledged");
    let granted = json!({ "resourceSubscriptions": ["accepts://own"] });
    assert_eq!(acknowledged["params"]["notifications"], granted);
}

#[test]
fn a_second_subscription_that_is_cancelled_leaves_the_first() {
    // One is pml's own, of the lists; one is the first of the client.
    let (world, mut client) = recorded(["--acknowledge", "2"]);
    let own = json!({ "uri": "new://own" });
    client.request("resources/subscribe", &own);
    let asked_for = |count| {
        world
            .read("seen")
            .matches(r#""resourceSubscriptions":["new://own"]"#)
            .count()
            == count
    };
    assert!(asked_for(1));
    send(&mut client, 70, "resources/subscribe", &own);
    eventually("the second is asked for", DEADLINE, || asked_for(2));
    cancel(&mut client, 70);
    eventually("the first is there again", DEADLINE, || asked_for(3));
}

#[test]
fn a_resource_that_is_watched_under_two_names_is_told_under_both() {
    let world = world(&[("fake", &["--offers", "old", "--record", "seen"])]);
    let names = ["old://own", "pml://fake/old://own"];
    let updated = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": names[0] } });
    let say = json!({ "name": "fake__say", "arguments": { "line": updated.to_string() } });
    let told = |client: &mut Client| client.notified("notifications/resources/updated")["params"].clone();

    let mut client = world.client();
    client.request("tools/call", &modern(json!({ "name": "fake__connect" })));
    for (id, name) in [(70, names[0]), (71, names[1])] {
        let listen = modern(json!({ "notifications": { "resourceSubscriptions": [name] } }));
        send(&mut client, id, "subscriptions/listen", &listen);
        client.notified("notifications/subscriptions/acknowledged");
    }
    client.request("tools/call", &modern(say.clone()));
    let id = "io.modelcontextprotocol/subscriptionId";
    for (subscription, name) in [(70, names[0]), (71, names[1])] {
        let expected = json!({ "uri": name, "_meta": { id: subscription } });
        assert_eq!(told(&mut client), expected);
    }
    assert!(client.close().success());
    std::fs::remove_file(world.path("seen")).unwrap();

    let mut client = world.legacy();
    for name in names {
        client.request("resources/subscribe", &json!({ "uri": name }));
    }
    client.request("tools/call", &say);
    for name in names {
        assert_eq!(told(&mut client), json!({ "uri": name }));
    }
    // The server goes on telling until the last name is gone.
    let ended = || world.read("seen").contains("resources/unsubscribe");
    for (name, is_last) in [(names[0], false), (names[1], true)] {
        let done = client.request("resources/unsubscribe", &json!({ "uri": name }));
        assert_eq!((&done["result"], ended()), (&json!({}), is_last));
    }
}
