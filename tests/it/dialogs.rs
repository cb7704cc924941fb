//! The ladder to a person: a native dialog in either era, and what happens where none reaches anybody.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::world::{Client, World, asks, texts};
use crate::support::{DEADLINE, eventually};

/// Longer than pml takes for a person's shortest reading time.
const READ: Duration = Duration::from_millis(450);

fn asking() -> World {
    World::with_fake(&json!({ "ask": ["*"] }), &["--started", "started"])
}

fn starts(world: &World) -> usize {
    std::fs::read_to_string(world.path("started")).map_or(0, |text| text.lines().count())
}

fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": { "form": {} } });
    params
}

fn modern_call(client: &mut Client, params: Value) -> Value {
    let answer = client.request("tools/call", &modern(params));
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

fn with_forms(world: &World) -> Client {
    let mut client = world.client();
    client.initialize_with_forms();
    client
}

/// A person takes a moment to read; the test takes the same.
fn read_it() {
    let begin = std::time::Instant::now();
    eventually("the time to read a question has passed", DEADLINE, || {
        begin.elapsed() > READ
    });
}

fn accept(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

#[test]
fn a_modern_client_is_asked_by_a_form_and_its_retry_runs_the_call() {
    let world = asking();
    let mut client = world.client();
    let call = json!({ "name": "fake__echo", "arguments": { "a": 1.5 } });
    let asked = modern_call(&mut client, call.clone());
    assert_eq!(asked["resultType"], "input_required");
    let form = &asked["inputRequests"]["answer"];
    assert_eq!(
        (&form["method"], &form["params"]["mode"]),
        (&json!("elicitation/create"), &json!("form"))
    );
    let message = form["params"]["message"].as_str().unwrap();
    assert_eq!(message.lines().count(), 4, "{message}");
    assert!(message.starts_with("Run fake for fake:echo?\n"), "{message}");
    let decision = &form["params"]["requestedSchema"]["properties"]["decision"];
    let choices: Vec<&Value> = decision["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| &choice["const"])
        .collect();
    assert_eq!(choices, ["continue", "session", "always", "abort"]);
    let titles: Vec<&Value> = decision["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| &choice["title"])
        .collect();
    assert_eq!(
        titles,
        [
            "Continue – this command, from now on",
            "Only this session",
            "Always (writes .pml.json)",
            "Abort"
        ]
    );
    assert_eq!(form["params"]["requestedSchema"]["required"], json!(["decision"]));
    assert_eq!(decision.get("default"), None);
    assert_eq!(starts(&world), 0);

    let mut retry = call.clone();
    retry["requestState"] = asked["requestState"].clone();
    let again = modern_call(&mut client, retry.clone());
    assert_eq!(
        again["resultType"], "input_required",
        "a missing answer is asked for again"
    );
    retry["inputResponses"] = json!({ "answer": accept("continue") });
    let result = modern_call(&mut client, retry.clone());
    assert_eq!(result["resultType"], "complete");
    let echoed: Value = serde_json::from_str(texts(&result)[0]).unwrap();
    assert_eq!(
        echoed,
        json!({ "name": "echo", "arguments": { "a": 1.5 }, "_meta": {} })
    );
    let replayed = modern_call(&mut client, retry);
    assert_eq!(replayed["isError"], true);
    assert!(texts(&replayed)[0].contains("was already used"), "{replayed}");
}

#[test]
fn a_retry_for_another_call_or_with_an_invented_state_is_refused() {
    let world = asking();
    let mut client = world.client();
    let asked = modern_call(
        &mut client,
        json!({ "name": "fake__echo", "arguments": { "a": 1 } }),
    );
    for (name, arguments, state) in [
        ("fake__echo", json!({ "a": 2 }), asked["requestState"].clone()),
        ("fake__closed", json!({ "a": 1 }), asked["requestState"].clone()),
        (
            "fake__echo",
            json!({ "a": 1 }),
            json!("00000000-0000-4000-8000-000000000000"),
        ),
        ("fake__echo", json!({ "a": 1 }), json!("nonsense")),
    ] {
        let params = json!({
            "name": name, "arguments": arguments, "requestState": state,
            "inputResponses": { "answer": accept("continue") },
        });
        assert_eq!(modern_call(&mut client, params)["isError"], true);
    }
    assert_eq!(starts(&world), 0);
}

#[test]
fn an_instant_refusal_is_no_person_and_a_slow_one_is() {
    let world = asking();
    let mut client = world.client();
    let call = json!({ "name": "fake__echo", "arguments": {} });
    for action in ["cancel", "decline"] {
        let asked = modern_call(&mut client, call.clone());
        let mut retry = call.clone();
        retry["requestState"] = asked["requestState"].clone();
        retry["inputResponses"] = json!({ "answer": { "action": action } });
        let fallback = modern_call(&mut client, retry);
        assert!(asks(&fallback), "{fallback}");
    }
    let asked = modern_call(&mut client, call.clone());
    read_it();
    let mut retry = call;
    retry["requestState"] = asked["requestState"].clone();
    retry["inputResponses"] = json!({ "answer": { "action": "decline" } });
    assert_eq!(
        texts(&modern_call(&mut client, retry))[0],
        "Workflow aborted by user"
    );
    assert_eq!(starts(&world), 0);
}

#[test]
fn an_accepted_form_without_a_readable_decision_approves_nothing() {
    let world = asking();
    let mut client = world.client();
    let call = json!({ "name": "fake__echo", "arguments": {} });
    for content in [
        json!({}),
        json!({ "decision": true }),
        json!({ "decision": "yes" }),
    ] {
        let asked = modern_call(&mut client, call.clone());
        let mut retry = call.clone();
        retry["requestState"] = asked["requestState"].clone();
        retry["inputResponses"] = json!({ "answer": { "action": "accept", "content": content } });
        assert!(asks(&modern_call(&mut client, retry)));
    }
    assert_eq!(starts(&world), 0);
}

#[test]
fn a_legacy_client_is_asked_while_its_call_is_open() {
    let world = asking();
    let mut client = with_forms(&world);
    let id = client.send(
        "tools/call",
        &json!({ "name": "fake__echo", "arguments": { "a": 1 } }),
    );
    let request = client.notified("elicitation/create");
    assert!(
        request["params"]["message"]
            .as_str()
            .unwrap()
            .starts_with("Run fake for fake:echo?")
    );
    // The conversation goes on meanwhile.
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    client.reply(&request, &accept("always"));
    let result = client.answer(id)["result"].clone();
    let echoed: Value = serde_json::from_str(texts(&result)[0]).unwrap();
    assert_eq!(echoed["arguments"], json!({ "a": 1 }));
    assert!(world.read(".pml.json").contains("fake:echo"), "always is written");
}

#[test]
fn a_legacy_dialog_that_reaches_nobody_falls_back_and_a_decline_by_a_person_refuses() {
    let world = asking();
    let mut client = with_forms(&world);
    let call = json!({ "name": "fake__echo", "arguments": {} });
    for instant in [json!({ "action": "cancel" }), json!({ "action": "accept" })] {
        let id = client.send("tools/call", &call);
        let request = client.notified("elicitation/create");
        client.reply(&request, &instant);
        assert!(asks(&client.answer(id)["result"]));
    }
    let id = client.send("tools/call", &call);
    let request = client.notified("elicitation/create");
    client.raw(
        &json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": -1, "message": "no" } })
            .to_string(),
    );
    assert!(asks(&client.answer(id)["result"]));
    let id = client.send("tools/call", &call);
    let request = client.notified("elicitation/create");
    read_it();
    client.reply(&request, &json!({ "action": "decline" }));
    assert_eq!(texts(&client.answer(id)["result"])[0], "Workflow aborted by user");
    assert_eq!(starts(&world), 0);
    assert_eq!(world.run(&["check", "fake:echo"]).status.code(), Some(1));
    assert!(
        !world.read(".pml.json").contains("deny"),
        "a refusal is never stored as a rule"
    );
}

/// Approves from another process what a form asks.
fn approve_elsewhere(world: &World, form: &Value) {
    let (_, code) = form["message"].as_str().unwrap().rsplit_once("code ").unwrap();
    let code = code.split_whitespace().next().unwrap();
    assert!(world.run(&["approve", code]).status.success());
}

#[test]
fn an_answer_from_elsewhere_counts_though_the_dialog_then_reaches_nobody() {
    let world = asking();
    let mut client = with_forms(&world);
    let id = client.send("tools/call", &json!({ "name": "fake__closed", "arguments": {} }));
    let request = client.notified("elicitation/create");
    approve_elsewhere(&world, &request["params"]);
    // Whether pml has seen the approval by now or not: both ways end in the result.
    client.reply(&request, &json!({ "action": "accept" }));
    assert_eq!(texts(&client.answer(id)["result"]), ["closed"]);

    let world = asking();
    let mut client = world.client();
    let mut call = json!({ "name": "fake__closed", "arguments": {} });
    let asked = modern_call(&mut client, call.clone());
    approve_elsewhere(&world, &asked["inputRequests"]["answer"]["params"]);
    call["requestState"] = asked["requestState"].clone();
    call["inputResponses"] = json!({ "answer": { "action": "accept" } });
    assert_eq!(texts(&modern_call(&mut client, call)), ["closed"]);
}

#[test]
fn a_cancelled_call_closes_its_dialog_and_withdraws_the_ask() {
    let world = asking();
    let mut client = with_forms(&world);
    let id = client.send("tools/call", &json!({ "name": "fake__echo", "arguments": {} }));
    let request = client.notified("elicitation/create");
    client.notify("notifications/cancelled", &json!({ "requestId": id }));
    let closed = client.notified("notifications/cancelled");
    assert_eq!(closed["params"]["requestId"], request["id"]);
    client.reply(&request, &accept("continue"));
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    assert_eq!(starts(&world), 0);
}

#[test]
fn dialogs_can_be_switched_off() {
    let world = World::new();
    world
        .configure(&json!({ "approvals": { "dialog": "never" }, "mcpServers": { "fake": world.fake(&[]) } }));
    assert!(asks(&with_forms(&world).call("fake__echo", &json!({}))));
}

#[test]
fn where_only_a_person_counts_a_continuation_only_asks_how_it_stands() {
    let world = World::new();
    world.configure(&json!({
        "approvals": { "by": "human" },
        "mcpServers": { "fake": world.fake(&["--started", "started"]) },
    }));
    let before = world.read(".pml.json");
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert!(asks(&asked));
    assert!(texts(&asked)[1].contains("pml approve "), "{asked}");
    for decision in [
        json!({ "approved": true }),
        json!({ "approved": true, "always": true }),
        json!({ "approved": false }),
    ] {
        let waiting = client.proceed("fake__echo", &asked, &decision);
        assert!(
            texts(&waiting)[0].starts_with("Waiting for a person to decide"),
            "{waiting}"
        );
        assert_eq!(waiting["structuredContent"]["status"], "waiting_for_person");
    }
    assert_eq!((starts(&world), world.read(".pml.json")), (0, before));
    let listed = client.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let continuing = tools.iter().find(|tool| tool["name"] == "pml_continue").unwrap();
    // It only fetches what a person decided, so that no client must ask one before it.
    assert_eq!(continuing["_meta"], json!({ "anthropic/alwaysLoad": true }));
    // A dialog is a person.
    let mut dialog = with_forms(&world);
    let id = dialog.send("tools/call", &json!({ "name": "fake__echo", "arguments": {} }));
    let request = dialog.notified("elicitation/create");
    dialog.reply(&request, &accept("continue"));
    assert!(dialog.answer(id)["result"].get("isError").is_none());
}

#[test]
fn identical_calls_at_once_share_one_question() {
    let world = asking();
    let mut client = with_forms(&world);
    let call = json!({ "name": "fake__echo", "arguments": { "same": true } });
    let ids = [client.send("tools/call", &call), client.send("tools/call", &call)];
    let request = client.notified("elicitation/create");
    client.reply(&request, &accept("continue"));
    for id in ids {
        let result = client.answer(id)["result"].clone();
        assert!(result.get("isError").is_none() && !asks(&result), "{result}");
    }
    assert!(
        !client
            .aside
            .iter()
            .any(|message| message["method"] == "elicitation/create"),
        "{:?}",
        client.aside
    );
}

#[test]
fn every_rung_ends_in_the_same_result() {
    let call = json!({ "name": "fake__echo", "arguments": { "n": 1.5, "text": "ü" } });
    let by_continuation = {
        let world = asking();
        let mut client = world.legacy();
        let asked = client.call("fake__echo", &call["arguments"]);
        client.proceed("fake__echo", &asked, &json!({ "approved": true }))
    };
    let by_elicitation = {
        let world = asking();
        let mut client = with_forms(&world);
        let id = client.send("tools/call", &call);
        let request = client.notified("elicitation/create");
        client.reply(&request, &accept("continue"));
        client.answer(id)["result"].clone()
    };
    let by_dialog = {
        let world = asking();
        let mut client = world.client();
        let asked = modern_call(&mut client, call.clone());
        let mut retry = call.clone();
        retry["requestState"] = asked["requestState"].clone();
        retry["inputResponses"] = json!({ "answer": accept("continue") });
        let mut result = modern_call(&mut client, retry);
        // What the eras themselves demand is all that differs: the echo shows that `_meta` travels.
        assert_eq!(
            result.as_object_mut().unwrap().remove("resultType"),
            Some(json!("complete"))
        );
        let text = texts(&result)[0].replace(r#","_meta":{}"#, "");
        result["content"][0]["text"] = json!(text);
        result
    };
    assert_eq!(by_continuation.to_string(), by_elicitation.to_string());
    assert_eq!(by_continuation.to_string(), by_dialog.to_string());
}
