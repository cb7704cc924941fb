//! Starting, dying, starting again, stopping: a dependency's life as its callers see it.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::world::{Client, World, texts};
use crate::support::{DEADLINE, eventually};

fn allowed() -> Value {
    json!({ "allow": ["fake"] })
}

/// A world whose fake server has one of its times set to a second.
fn with_setting(options: &[&str], setting: &str) -> World {
    let world = World::new();
    let mut fake = world.fake(options);
    fake[setting] = json!(1);
    world.configure(&json!({ "permissions": allowed(), "mcpServers": { "fake": fake } }));
    world
}

/// Calls `echo` and returns the steps that pml told meanwhile.
fn steps_of_a_call(client: &mut Client) -> Vec<String> {
    let params = json!({ "name": "fake__echo", "arguments": {}, "_meta": { "progressToken": "steps" } });
    let answer = client.request("tools/call", &params);
    assert!(answer["result"].get("isError").is_none(), "{answer}");
    let told = client
        .aside
        .iter()
        .filter(|message| message["params"]["progressToken"] == "steps");
    told.map(|message| message["params"]["message"].as_str().unwrap().to_owned())
        .collect()
}

fn starts(world: &World) -> usize {
    std::fs::read_to_string(world.path("started")).map_or(0, |text| text.lines().count())
}

#[test]
fn nothing_starts_before_it_is_called_and_then_once() {
    let world = World::with_fake(&allowed(), &["--started", "started"]);
    let mut client = world.legacy();
    client.tools();
    assert_eq!(starts(&world), 0);
    let ids: Vec<u64> = (0..50)
        .map(|number| {
            client.send(
                "tools/call",
                &json!({ "name": "fake__echo", "arguments": { "n": number } }),
            )
        })
        .collect();
    for id in ids {
        assert!(client.answer(id)["result"]["content"].is_array());
    }
    assert_eq!(starts(&world), 1);
}

#[test]
fn an_eager_server_starts_with_pml_only_if_a_rule_allows_it() {
    for (permissions, expected) in [
        (json!({ "allow": ["fake", "probe"] }), 1),
        (json!({ "allow": ["probe"], "ask": ["*"] }), 0),
        (json!({ "allow": ["*"], "deny": ["fake"] }), 0),
    ] {
        let world = World::new();
        let mut eager = world.fake(&["--started", "started"]);
        let mut probe = world.fake(&["--started", "probed"]);
        eager["startup"] = json!("eager");
        probe["startup"] = json!("eager");
        world.configure(
            &json!({ "permissions": permissions, "mcpServers": { "fake": eager, "probe": probe } }),
        );
        let mut client = world.legacy();
        client.tools();
        // Servers are started in the order of their names: when the probe runs, the other had its turn.
        eventually("the eager probe runs", DEADLINE, || world.path("probed").exists());
        if expected == 1 {
            eventually("the eager server runs", DEADLINE, || starts(&world) == 1);
        }
        assert!(client.close().success());
        assert_eq!(starts(&world), expected, "{permissions}");
    }
}

#[test]
fn a_crash_fails_the_call_with_the_last_words_and_the_next_call_starts_it_anew() {
    let world = World::with_fake(&allowed(), &["--started", "started"]);
    let mut client = world.legacy();
    client.call("fake__complain", &json!({ "text": "about to go wrong" }));
    let hanging = client.send("tools/call", &json!({ "name": "fake__hang" }));
    let crashed = client.call("fake__crash", &json!({}));
    assert_eq!(crashed["isError"], true);
    assert!(
        texts(&crashed)[0].starts_with("`fake` exited with code 3"),
        "{crashed}"
    );
    assert!(texts(&crashed)[0].contains("about to go wrong"), "{crashed}");
    assert_eq!(
        client.answer(hanging)["result"]["isError"],
        true,
        "every call in flight is told"
    );
    let steps = steps_of_a_call(&mut client);
    assert!(
        steps
            .iter()
            .any(|step| step.contains("before it is started again")),
        "{steps:?}"
    );
    assert_eq!(starts(&world), 2);
}

#[test]
fn a_server_that_exits_at_once_or_never_answers_says_so() {
    let world = World::with_fake(&allowed(), &["--exit-at-once", "7"]);
    let result = world.legacy().call("fake__echo", &json!({}));
    assert_eq!(result["isError"], true);
    assert!(texts(&result)[0].contains("exited with code 7"), "{result}");

    let world = with_setting(&["--silent"], "startTimeoutSeconds");
    let result = world.legacy().call("fake__echo", &json!({}));
    assert!(
        texts(&result)[0].contains("was not ready within 1 seconds"),
        "{result}"
    );
    assert!(texts(&result)[1].contains("startTimeoutSeconds"), "{result}");
    world.assert_no_survivor("a server that was not ready");
}

#[test]
fn ten_thousand_calls_of_a_server_that_exits_at_once_are_answered_and_start_it_a_few_times() {
    // A first start and five further tries, then it rests for minutes, after which a single one is allowed; each is made
    // in both eras, because a server that ends at once may have ended over the first words of one of them.
    const STARTS: usize = 2 * 7;
    // As many as may be under way at once.
    const WAVE: usize = 1_000;
    let world = World::with_fake(&allowed(), &["--started", "started", "--exit-at-once", "7"]);
    let mut client = world.legacy();
    let params = json!({ "name": "fake__echo", "arguments": {} });
    for _ in 0..10_000 / WAVE {
        let calls: Vec<u64> = (1..WAVE).map(|_| client.send("tools/call", &params)).collect();
        // Others are not held up by it.
        let answer = client.request("ping", &json!({}));
        assert_eq!(answer["result"], json!({}), "{answer}");
        for call in calls {
            let answer = client.answer(call);
            assert_eq!(answer["result"]["isError"], true, "{answer}");
        }
    }
    assert!((1..=STARTS).contains(&starts(&world)), "{}", starts(&world));
    let answered_twice = client.aside.iter().any(|line| line.get("id").is_some());
    assert!(!answered_twice, "{:?}", client.aside);
}

#[test]
fn a_missing_program_is_named() {
    let world = World::new();
    world.configure(&json!({
        "permissions": { "allow": ["x"] },
        "mcpServers": { "x": { "command": "no-such-program-anywhere" } },
    }));
    let result = world.legacy().call("x__connect", &json!({}));
    assert_eq!(result["isError"], true);
    assert!(texts(&result)[0].contains("no-such-program-anywhere"), "{result}");
}

#[test]
fn a_call_timeout_cancels_downstream() {
    let world = with_setting(&["--record", "seen"], "callTimeoutSeconds");
    let mut client = world.legacy();
    let result = client.call("fake__hang", &json!({}));
    assert_eq!(texts(&result)[0], "`fake:hang` did not answer within 1 seconds");
    eventually("the call is cancelled", DEADLINE, || {
        world.read("seen").contains("notifications/cancelled")
    });
    client.call("fake__echo", &json!({}));
}

#[test]
fn an_unused_server_is_stopped_and_comes_back_without_a_penalty() {
    let world = with_setting(&["--started", "started"], "idleSeconds");
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    let servers = || {
        world
            .running()
            .iter()
            .filter(|line| line.contains("fake_server"))
            .count()
    };
    assert!(servers() > 0);
    eventually("the idle server goes", DEADLINE, || servers() == 0);
    let steps = steps_of_a_call(&mut client);
    assert!(!steps.is_empty(), "a start is told");
    assert!(
        !steps
            .iter()
            .any(|step| step.contains("before it is started again")),
        "a stop is no crash: {steps:?}"
    );
    assert_eq!(starts(&world), 2);
}

#[test]
fn tools_that_appear_later_are_listed_and_announced() {
    let world = World::with_fake(&allowed(), &[]);
    let mut client = world.legacy();
    assert_eq!(client.tools()[0], "fake__connect");
    let connected = client.call("fake__connect", &json!({}));
    assert!(texts(&connected)[0].contains("- fake__echo"), "{connected}");
    client.notified("notifications/tools/list_changed");
    let tools = client.tools();
    assert!(
        tools.contains(&"fake__echo".to_owned()) && !tools.contains(&"fake__connect".to_owned()),
        "{tools:?}"
    );
    client.call("fake__grow", &json!({}));
    client.notified("notifications/tools/list_changed");
    assert!(client.tools().contains(&"fake__grown".to_owned()));
    // What was learned is there before anything runs.
    drop(client);
    assert!(world.legacy().tools().contains(&"fake__grown".to_owned()));
}

#[test]
fn signals_and_the_end_of_input_leave_nobody_behind() {
    for (told, signal) in [
        ("SIGINT", Some(Signal::INT)),
        ("SIGTERM", Some(Signal::TERM)),
        ("EOF", None),
        ("SIGKILL", Some(Signal::KILL)),
    ] {
        let world = World::with_fake(&allowed(), &["--orphan", "orphan", "--stubborn"]);
        let mut client = world.legacy();
        client.call("fake__echo", &json!({}));
        eventually("the orphan runs", DEADLINE, || world.path("orphan").exists());
        client.send("tools/call", &json!({ "name": "fake__hang" }));
        match signal {
            Some(signal) => client.signal(signal),
            None => client.end_input(),
        }
        client.ended(Duration::from_secs(5));
        world.assert_no_survivor(told);
    }
}

#[test]
fn answers_in_flight_are_still_written_at_the_end_of_input() {
    let world = World::with_fake(&allowed(), &[]);
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    let ids: Vec<u64> = (0..20)
        .map(|_| client.send("tools/call", &json!({ "name": "fake__echo" })))
        .collect();
    client.end_input();
    for id in ids {
        assert!(client.answer(id)["result"].is_object());
    }
    assert!(client.ended(Duration::from_secs(5)).success());
}

#[test]
fn a_server_that_closes_its_stdin_fails_the_next_call_and_is_started_again() {
    let world = World::with_fake(&allowed(), &["--started", "started"]);
    let mut client = world.legacy();
    let closed = client.call("fake__close_stdin", &json!({}));
    assert_eq!(texts(&closed), ["closed its stdin"]);
    let failed = client.call("fake__echo", &json!({}));
    assert_eq!(failed["isError"], true, "{failed}");
    let answered = client.call("fake__echo", &json!({}));
    assert_eq!(answered.get("isError"), None, "{answered}");
    assert_eq!(starts(&world), 2);
}

/// Adds what a Modern client says of itself, which has roots.
fn with_roots(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "roots": {} },
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    params
}

#[test]
fn a_server_that_wants_its_roots_before_it_lists_starts_for_a_modern_client() {
    let world = World::with_fake(&allowed(), &["--roots-first", "--record", "seen"]);
    let mut client = world.client();
    let params = with_roots(json!({ "name": "fake__closed", "arguments": {} }));
    let answer = client.request("tools/call", &params);
    assert_eq!(texts(&answer["result"]), ["closed"], "{answer}");
    assert!(
        world
            .read("seen")
            .contains(r#""id":"roots","error":{"code":-32601"#)
    );
}

#[test]
fn what_a_server_asked_while_it_was_opened_is_answered_whatever_it_was_opened_for() {
    let world = World::with_fake(
        &allowed(),
        &["--offers", "one", "--roots-aside", "--record", "seen"],
    );
    let mut first = world.legacy();
    first.call("fake__closed", &json!({}));
    assert!(first.close().success());
    std::fs::remove_file(world.path("seen")).unwrap();
    let mut client = world.client();
    let listed = client.request("prompts/list", &with_roots(json!({})));
    let name = &listed["result"]["prompts"][0]["name"];
    let argument = json!({ "name": "a", "value": "b" });
    let reference = json!({ "type": "ref/prompt", "name": name });
    client.request(
        "completion/complete",
        &with_roots(json!({ "ref": reference, "argument": argument })),
    );
    eventually("the server is answered", DEADLINE, || {
        world
            .read("seen")
            .contains(r#""id":"roots","error":{"code":-32601"#)
    });
}

#[test]
fn a_server_is_offered_the_version_that_its_client_speaks() {
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let world = World::with_fake(&allowed(), &["--record", "seen"]);
        let mut client = world.client();
        client.initialize(version);
        client.call("fake__closed", &json!({}));
        let seen = world.read("seen");
        let opened: Value = serde_json::from_str(seen.lines().next().unwrap()).unwrap();
        assert_eq!(opened["params"]["protocolVersion"], version, "{seen}");
    }
}
