//! A wall clock that is set back: no ask lives longer than was promised.

use serde_json::json;

use crate::support::faults::WallClock;
use crate::support::have;
use crate::support::world::{Client, World, asks, json_of, texts};

const HOUR: i64 = 3600;

/// The wall clock is an hour ahead while the call asks, and right afterwards.
#[test]
fn an_ask_from_before_the_clock_was_set_back_is_over_on_every_road() {
    if !have(&["cc"]) {
        return;
    }
    let world = World::with_fake(&json!({}), &[]);
    let mut command = world.command(&["stdio"]);
    let clock = WallClock::give(&mut command, world.home().join("clock"), HOUR);
    let mut client = Client::start(command);
    client.initialize("2025-06-18");
    let asked = client.call("fake__echo", &json!({}));
    assert!(asks(&asked), "{asked}");
    let code = asked["approval_context"]["workflow_id"]
        .as_str()
        .unwrap()
        .to_owned();

    clock.set(0);
    assert_eq!(
        json_of(&world.run(&["pending", "--json"])),
        json!({ "pending": [] })
    );
    let approved = world.run(&["approve", &code]);
    assert_eq!(approved.status.code(), Some(1), "{approved:?}");
    let result = client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    let told = texts(&result).join("\n");
    assert!(told.contains("expired"), "{told}");
    assert!(
        asks(&client.call("fake__echo", &json!({}))),
        "a person is asked anew"
    );
}

#[test]
fn a_call_that_waits_for_a_form_goes_on_when_the_clock_is_set_back() {
    if !have(&["cc"]) {
        return;
    }
    let world = World::with_fake(&json!({}), &[]);
    let mut command = world.command(&["stdio"]);
    let clock = WallClock::give(&mut command, world.home().join("clock"), HOUR);
    let mut client = Client::start(command);
    client.initialize_with_forms();
    let waiting = client.send("tools/call", &json!({ "name": "fake__echo", "arguments": {} }));
    client.notified("elicitation/create");
    clock.set(0);
    let result = client.answer(waiting)["result"].clone();
    let told = texts(&result).join("\n");
    assert!(told.contains("no person answered the question"), "{told}");
}
