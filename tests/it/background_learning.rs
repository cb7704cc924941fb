//! Allowed servers that were never seen are learned behind the first list; nothing else is started for it.

use serde_json::json;

use crate::support::eventually;
use crate::support::world::World;

#[test]
fn an_allowed_server_is_learned_after_the_first_list_and_then_ends() {
    let world = World::new();
    world.configure(&json!({
        "permissions": { "allow": ["one"], "deny": ["three"], "ask": ["*"] },
        "mcpServers": { "one": world.fake(&[]), "two": world.fake(&[]), "three": world.fake(&[]) },
    }));
    let mut client = world.legacy();
    let first = client.tools();
    assert!(!first.contains(&"one__echo".to_owned()), "{first:?}");
    client.notified("notifications/tools/list_changed");
    let then = client.tools();
    assert!(then.contains(&"one__echo".to_owned()), "{then:?}");
    assert!(
        !then
            .iter()
            .any(|tool| tool == "two__echo" || tool == "three__echo"),
        "{then:?}"
    );
    // Its tools are known; it is started again when one is called.
    eventually("it ends", std::time::Duration::from_secs(20), || {
        !world.running().iter().any(|line| line.contains("fake_server"))
    });
    assert!(client.call("one__echo", &json!({}))["isError"] != true);
    assert!(client.close().success());
}

#[test]
fn of_many_servers_two_are_learned_at_once() {
    let world = World::new();
    let servers: serde_json::Map<String, serde_json::Value> = (0..8)
        .map(|number| (format!("s{number}"), world.fake(&[])))
        .collect();
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": servers }));
    let mut client = world.legacy();
    client.tools();
    let mut most = 0;
    eventually("all are learned", std::time::Duration::from_mins(1), || {
        let running = world.running();
        // The supervisor of a server names it as well.
        let servers = running
            .iter()
            .filter(|line| line.contains("fake_server") && !line.contains("supervise"));
        most = most.max(servers.count());
        (0..8).all(|number| client.tools().contains(&format!("s{number}__echo")))
    });
    // One that ends overlaps with the next that starts.
    assert!(most <= 4, "{most} ran at once");
    assert!(client.close().success());
}
