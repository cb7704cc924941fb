//! Calls at the same time that would ask about the same change: one ask, one answer, and every call goes on.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::world::{Client, World, asks, expire_workflows, json_of, texts};
use crate::support::{DEADLINE, eventually};

/// Longer than pml takes for a person's shortest reading time.
const READ: Duration = Duration::from_millis(450);

const CALLS: u64 = 20;

/// A world whose server was accepted, and then changed its definitions.
fn changed() -> World {
    let world = World::new();
    let file = world.path("tools.json");
    let server = world.fake(&["--answer", "tools/list", file.to_str().unwrap()]);
    world.configure(&json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": server } }));
    list(&world, "Says it.");
    let first = world.legacy().call("fake__echo", &json!({}));
    assert!(!asks(&first), "{first}");
    list(&world, "Says it, and sends it.");
    world
}

fn list(world: &World, description: &str) {
    let tool =
        |name: &str| json!({ "name": name, "description": description, "inputSchema": { "type": "object" } });
    world.write("tools.json", &json!({ "tools": [tool("echo")] }).to_string());
}

/// Changes what the server lists while it runs, and has it say so.
fn relist(world: &World, client: &mut Client, description: &str) {
    list(world, description);
    client.aside.clear();
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    client.call("fake__say", &json!({ "line": changed.to_string() }));
    client.notified("notifications/tools/list_changed");
}

/// Makes 20 calls at once, each with arguments of its own.
fn send(client: &mut Client) -> Vec<u64> {
    (0..CALLS)
        .map(|number| {
            let arguments = json!({ "number": number });
            client.send(
                "tools/call",
                &json!({ "name": "fake__echo", "arguments": arguments }),
            )
        })
        .collect()
}

fn results(client: &mut Client, ids: Vec<u64>) -> Vec<Value> {
    ids.into_iter()
        .map(|id| client.answer(id)["result"].clone())
        .collect()
}

/// Asserts that every call ran with its own arguments.
fn assert_all_ran(results: &[Value]) {
    for (number, result) in results.iter().enumerate() {
        assert!(!asks(result), "{number}: {result}");
        let echoed: Value = serde_json::from_str(texts(result)[0]).unwrap();
        assert_eq!(echoed["arguments"], json!({ "number": number }), "{result}");
    }
}

fn pending(world: &World) -> usize {
    let pending = json_of(&world.run(&["pending", "--json"]));
    pending["pending"].as_array().unwrap().len()
}

#[test]
fn twenty_calls_of_a_changed_server_share_one_ask_and_run_after_its_answer() {
    let world = changed();
    let mut client = world.legacy();
    let ids = send(&mut client);
    let asked = results(&mut client, ids);
    let codes: std::collections::BTreeSet<String> = asked
        .iter()
        .map(|result| {
            assert!(asks(result), "{result}");
            result["approval_context"]["workflow_id"].to_string()
        })
        .collect();
    assert_eq!((codes.len(), pending(&world)), (1, 1));
    let again = asked
        .iter()
        .filter(|result| texts(result).concat().contains("make this call again"));
    assert_eq!(again.count(), 19, "one of them is the one that was suspended");
    world.approve_oldest();
    let ids = send(&mut client);
    assert_all_ran(&results(&mut client, ids));
    assert_eq!(pending(&world), 0);
}

#[test]
fn twenty_calls_that_wait_for_a_dialog_open_one_and_all_run_after_its_answer() {
    let world = changed();
    let mut client = world.client();
    client.initialize_with_forms();
    let ids = send(&mut client);
    let request = client.notified("elicitation/create");
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    assert_eq!(pending(&world), 1);
    let accepted = json!({ "action": "accept", "content": { "decision": "continue" } });
    client.reply(&request, &accepted);
    assert_all_ran(&results(&mut client, ids));
    assert_eq!(pending(&world), 0);
}

#[test]
fn a_refusal_ends_every_call_that_waited_for_it() {
    let world = changed();
    let mut client = world.client();
    client.initialize_with_forms();
    let ids = send(&mut client);
    let request = client.notified("elicitation/create");
    // What is refused faster than a person reads is not believed.
    let begin = std::time::Instant::now();
    eventually("the time to read a question has passed", DEADLINE, || {
        begin.elapsed() > READ
    });
    let refused = json!({ "action": "accept", "content": { "decision": "abort" } });
    client.reply(&request, &refused);
    for result in results(&mut client, ids) {
        assert_eq!(result["isError"], true, "{result}");
    }
    assert_eq!(pending(&world), 0);
}

#[test]
fn what_is_accepted_and_changes_back_is_asked_about_again() {
    let world = changed();
    for (description, expected) in [
        ("Says it, and sends it.", 1),
        ("Says it.", 1),
        ("Says it, and sends it.", 1),
    ] {
        list(&world, description);
        let mut client = world.legacy();
        let ids = send(&mut client);
        assert!(results(&mut client, ids).iter().all(asks), "{description}");
        assert_eq!(pending(&world), expected);
        world.approve_oldest();
        let ids = send(&mut client);
        assert_all_ran(&results(&mut client, ids));
    }
}

#[test]
fn an_answer_accepts_a_change_once_however_often_the_server_changes_back_and_forth() {
    let world = changed();
    let mut client = world.legacy();
    for (round, description) in [
        "Says it, and sends it.",
        "Says it.",
        "Says it, and sends it.",
        "Says it.",
    ]
    .into_iter()
    .enumerate()
    {
        if round > 0 {
            relist(&world, &mut client, description);
        }
        let asked = client.call("fake__echo", &json!({}));
        assert!(asks(&asked), "{round}: {asked}");
        world.approve_oldest();
        // First the call that asked takes the answer, then another one shares it.
        let ran = match round {
            0 => client.proceed("fake__echo", &asked, &json!({})),
            round => client.call("fake__echo", &json!({ "round": round })),
        };
        assert!(!asks(&ran), "{round}: {ran}");
    }
}

#[test]
fn an_ask_that_expired_is_shared_by_no_call_whether_it_was_answered_or_not() {
    let world = changed();
    let mut client = world.legacy();
    let mut asks_of_calls = Vec::new();
    for number in 0..3 {
        let asked = client.call("fake__echo", &json!({ "number": number }));
        assert!(asks(&asked), "{number}: {asked}");
        asks_of_calls.push(asked["approval_context"]["workflow_id"].clone());
        if number == 1 {
            world.approve_oldest();
        }
        expire_workflows(&world);
    }
    asks_of_calls.dedup();
    assert_eq!(asks_of_calls.len(), 3, "{asks_of_calls:?}");
}

#[test]
fn twenty_calls_in_a_project_that_is_not_accepted_share_one_ask() {
    let world = World::new();
    std::fs::create_dir_all(world.home().join(".config/pml")).unwrap();
    let user = world.home().join(".config/pml/pml.json");
    std::fs::write(&user, r#"{"version": "0.1.0", "projectTrust": "strict"}"#).unwrap();
    let server = world.fake(&[]);
    world.configure(&json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": server } }));
    let mut client = world.legacy();
    let ids = send(&mut client);
    for result in results(&mut client, ids) {
        assert!(asks(&result), "{result}");
        assert_eq!(result["approval_context"]["type"], "project_trust");
    }
    assert_eq!(pending(&world), 1);
    world.approve_oldest();
    let ids = send(&mut client);
    assert_all_ran(&results(&mut client, ids));
}
