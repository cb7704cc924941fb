//! How many asks may wait: one conversation that loops stops itself and no other.

use serde_json::json;

use crate::support::world::{Client, World, asks, json_of, stderr, texts};

/// How many asks of one conversation may wait.
const OF_A_CONVERSATION: usize = 100;

fn ask(client: &mut Client, number: usize) -> serde_json::Value {
    client.call("fake__echo", &json!({ "text": number.to_string() }))
}

#[test]
fn a_looping_agent_is_told_which_limit_it_hit_and_blocks_no_other_conversation() {
    let world = World::with_fake(&json!({}), &[]);
    let mut looping = world.legacy();
    for number in 0..OF_A_CONVERSATION {
        let asked = ask(&mut looping, number);
        assert!(asks(&asked), "{number}: {asked}");
    }
    let full = ask(&mut looping, OF_A_CONVERSATION);
    assert_eq!(full["isError"], true, "{full}");
    let told = texts(&full).join("\n");
    for part in [
        "100 calls of this conversation already wait",
        "pml pending",
        "pml refuse",
    ] {
        assert!(told.contains(part), "{told}");
    }

    let mut other = world.legacy();
    assert!(asks(&ask(&mut other, 0)), "another conversation still asks");

    // What the error says makes room.
    let pending = json_of(&world.run(&["pending", "--json"]));
    let code = pending["pending"][0]["code"].as_str().unwrap();
    let refused = world.run(&["refuse", code]);
    assert!(refused.status.success(), "{}", stderr(&refused));
    assert!(asks(&ask(&mut looping, OF_A_CONVERSATION)));
}
