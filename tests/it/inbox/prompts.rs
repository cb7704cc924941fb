//! The slash commands of pml, in both eras.

use pml::protocol::question::Selection;
use serde_json::{Value, json};

use super::{asking, code, echoed, log, proceed, questions};
use crate::support::world::{Client, World};

fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params
}

/// Runs a prompt and returns the text of its one message.
fn prompt(client: &mut Client, name: &str, arguments: &Value) -> String {
    let answer = client.request("prompts/get", &json!({ "name": name, "arguments": arguments }));
    text(&answer)
}

fn text(answer: &Value) -> String {
    let messages = answer["result"]["messages"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(messages.len(), 1, "{answer}");
    assert_eq!(messages[0]["role"], "user");
    messages[0]["content"]["text"].as_str().unwrap().to_owned()
}

#[test]
fn prompts_are_listed_in_both_eras() {
    let world = World::new();
    let mut client = world.client();
    let capabilities = client.initialize("2025-06-18")["capabilities"].clone();
    assert_eq!(capabilities["prompts"], json!({ "listChanged": true }));
    let legacy = client.request("prompts/list", &json!({}))["result"].clone();
    let names: Vec<&str> = legacy["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|prompt| prompt["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["approve", "refuse", "answer", "pending"]);
    assert_eq!(
        legacy["prompts"][0]["arguments"][0],
        json!({ "name": "code", "description": "The five letters of the ask", "required": true })
    );

    let mut client = world.client();
    let listed = client.request("prompts/list", &modern(json!({})))["result"].clone();
    assert_eq!(
        listed,
        json!({ "prompts": legacy["prompts"], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" })
    );
    let pending = client.request("prompts/get", &modern(json!({ "name": "pending" })));
    assert_eq!(pending["result"]["resultType"], "complete");
    assert_eq!(
        text(&pending),
        "The person asked what waits for them in pml: nothing does. Tell them so."
    );
}

#[test]
fn a_person_approves_by_a_prompt_where_only_a_person_counts() {
    let world = asking("human");
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({ "a": 1 }));
    let code = code(&world);
    let listed = prompt(&mut client, "pending", &json!({}));
    let install = asked["approval_context"]["dependency"]["install"]
        .as_str()
        .unwrap();
    assert!(listed.contains(&code) && listed.contains(install), "{listed}");
    let told = prompt(&mut client, "approve", &json!({ "code": code }));
    let id = asked["approval_context"]["workflow_id"].as_str().unwrap();
    assert_eq!(
        told,
        format!(
            "The person approved `{code}` (`fake:echo`), as it was shown, from now on. If the call still waits, it goes on by itself; \
             otherwise call `pml_continue` with {{\"workflow_id\":\"{id}\",\"approved\":true}}: the original call is \
             kept and runs as it was."
        )
    );
    assert_eq!(echoed(&proceed(&mut client, &asked)), json!({ "a": 1 }));
    assert_eq!(log(&world)[0]["by"], "prompt");
    let late = prompt(&mut client, "refuse", &json!({ "code": code }));
    assert!(
        late.contains("it changed nothing") && late.contains("was already used at"),
        "{late}"
    );
}

#[test]
fn a_refusal_by_a_prompt_is_told_with_its_reason() {
    let world = asking("human");
    let mut client = world.client();
    let call = modern(json!({ "name": "fake__echo", "arguments": {} }));
    client.request("tools/call", &call);
    let code = code(&world);
    let arguments = json!({ "code": code, "reason": "not\u{202e} now" });
    let params = modern(json!({ "name": "refuse", "arguments": arguments }));
    let told = text(&client.request("prompts/get", &params));
    assert!(
        told.starts_with(&format!(
            "The person refused `{code}` (`fake:echo`). Their reason: not\\u{{202e}} now\n"
        )),
        "{told}"
    );
    let kept = &log(&world)[0];
    assert_eq!(
        [&kept["state"], &kept["by"]],
        [&json!("refused"), &json!("prompt")]
    );
}

#[test]
fn a_question_is_answered_by_a_prompt() {
    let world = World::new();
    let mut client = world.legacy();
    let colours = questions::choice("Which?", &["Red", "Blue"], Selection::Several);
    let asked = questions::put(&world, vec![colours]);
    let two = questions::put(&world, vec![questions::free("a?"), questions::free("b?")]);
    let told = prompt(
        &mut client,
        "answer",
        &json!({ "code": asked.code, "text": "1,blue" }),
    );
    assert_eq!(
        told,
        format!(
            "The person answered `{}`. User selected: Red, Blue\nIf the question still waits, it goes on by itself; \
             otherwise call `ask_user` with {{\"continue_workflow\":{{\"workflow_id\":\"{}\"}}}} to take the answer.",
            asked.code, asked.id
        )
    );
    let told = prompt(&mut client, "answer", &json!({ "code": two.code, "text": "x" }));
    assert!(told.contains(&format!("pml answer {}", two.code)), "{told}");
    let states: Vec<Value> = log(&world).iter().map(|kept| kept["state"].clone()).collect();
    assert!(
        states.contains(&json!("answered")) && states.contains(&json!("pending")),
        "{states:?}"
    );
}

#[test]
fn bad_arguments_are_errors_and_unknown_codes_are_told() {
    let world = World::new();
    let mut client = world.legacy();
    for (params, message) in [
        (json!({ "name": "approve" }), "the argument `code` is missing"),
        (json!({ "name": "nope" }), "Unknown prompt: nope"),
        (
            json!({ "name": "approve", "arguments": { "code": "abcde", "scope": "ever" } }),
            "the argument `scope` is once, session or always, not `ever`",
        ),
    ] {
        let answer = client.request("prompts/get", &params);
        assert_eq!(answer["error"], json!({ "code": -32602, "message": message }));
    }
    let told = prompt(&mut client, "approve", &json!({ "code": "abcde" }));
    assert_eq!(
        told,
        "The person ran a prompt of pml, but it changed nothing. Tell them why: no workflow has the code or the id \
         `abcde`\n\nhint: to see what waits: pml pending"
    );
}
