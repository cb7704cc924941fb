//! What a client may not do with the questions of a server: answer another call's, answer twice, or answer where only
//! a person may; and what it can do without forms.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::sdk_server;
use crate::support::world::{Client, World, texts};

/// The server that asks by a form, in the era of its options.
fn world(permissions: &Value, approvals: &Value, options: &[&str]) -> World {
    let world = World::new();
    let entry = json!({ "command": sdk_server(), "args": options });
    world.configure(&json!({
        "permissions": permissions, "approvals": approvals, "mcpServers": { "server": entry },
    }));
    world
}

fn allowed(options: &[&str]) -> World {
    world(&json!({ "allow": ["server"] }), &json!({}), options)
}

fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": { "form": {} } });
    params
}

fn call(client: &mut Client, question: &str, more: &Value) -> Value {
    let mut params = json!({ "name": "server__ask", "arguments": { "question": question } });
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    client.request("tools/call", &modern(params))["result"].clone()
}

/// Answers every question of a result.
fn answered(asked: &Value) -> Value {
    let accepted = json!({ "action": "accept", "content": { "name": "Ada", "age": 36 } });
    let keys = asked["inputRequests"].as_object().unwrap().keys();
    let responses: serde_json::Map<String, Value> = keys.map(|key| (key.clone(), accepted.clone())).collect();
    json!({ "requestState": asked["requestState"], "inputResponses": responses })
}

#[test]
fn a_client_without_forms_is_told_the_question_and_continues_with_what_the_person_said() {
    let world = allowed(&["--modern"]);
    let mut client = world.legacy();
    let told = client.call("server__ask", &json!({ "question": "Who?" }));
    let asked = &told["structuredContent"];
    assert_eq!(
        (&asked["input_required"], &asked["questions"]["person"]["message"]),
        (&json!(true), &json!("Who?"))
    );
    let id = &asked["workflow_id"];
    let unanswered = client.call("pml_continue", &json!({ "workflow_id": id, "approved": true }));
    assert_eq!(
        texts(&unanswered),
        ["`input.person` must be an object with the answer"]
    );
    let input = json!({ "person": { "name": "Ada", "age": 36 } });
    let continued = json!({ "workflow_id": id, "approved": true, "input": input });
    assert_eq!(texts(&client.call("pml_continue", &continued)), ["Ada is 36"]);
    // Once only.
    let again = client.call("pml_continue", &continued);
    assert_eq!(
        (&again["isError"], texts(&again)[0]),
        (&json!(true), "Workflow expired or not found")
    );
}

#[test]
fn a_refused_question_is_declined_at_the_server() {
    let world = allowed(&["--modern"]);
    let mut client = world.legacy();
    let told = client.call("server__ask", &json!({ "question": "Who?" }));
    let id = &told["structuredContent"]["workflow_id"];
    let declined = client.call("pml_continue", &json!({ "workflow_id": id, "approved": false }));
    assert_eq!(texts(&declined), ["Some(\"decline\")"]);
}

#[test]
fn where_only_a_person_counts_a_model_cannot_answer_for_them() {
    let world = world(
        &json!({ "allow": ["server"] }),
        &json!({ "by": "human" }),
        &["--modern"],
    );
    let mut client = world.legacy();
    let refused = client.call("server__ask", &json!({ "question": "Who?" }));
    assert_eq!(
        (&refused["isError"], texts(&refused)),
        (
            &json!(true),
            vec!["`server` asks `elicitation/create` of its client, which this client cannot answer"]
        )
    );
}

#[test]
fn a_parked_call_goes_on_for_the_very_same_request_only_and_once() {
    let world = allowed(&[]);
    let mut client = world.client();
    let asked = call(&mut client, "Who?", &json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let answers = answered(&asked);
    let other = call(&mut client, "Somebody else?", &answers);
    assert_eq!(
        texts(&other)[0],
        "`requestState` belongs to another call",
        "{other}"
    );
    // What is missing is asked for again.
    let state = json!({ "requestState": asked["requestState"], "inputResponses": {} });
    let again = call(&mut client, "Who?", &state);
    assert_eq!(again["inputRequests"], asked["inputRequests"]);
    assert_eq!(
        texts(&call(&mut client, "Who?", &answered(&again))),
        ["Ada is 36"]
    );
    let late = call(&mut client, "Who?", &answered(&again));
    assert_eq!(texts(&late)[0], "Workflow expired or not found", "{late}");
}

#[test]
fn a_question_of_a_modern_server_does_not_cost_a_second_approval() {
    let world = world(&json!({ "ask": ["server:ask"] }), &json!({}), &["--modern"]);
    let mut client = world.client();
    let approval = call(&mut client, "Who?", &json!({}));
    let decided = json!({
        "requestState": approval["requestState"],
        "inputResponses": { "answer": { "action": "accept", "content": { "decision": "continue" } } },
    });
    let asked = call(&mut client, "Who?", &decided);
    assert_eq!(
        asked["inputRequests"]["person"]["params"]["message"], "[server] Who?",
        "{asked}"
    );
    let answers = answered(&asked);
    let done = call(&mut client, "Who?", &answers);
    assert_eq!(
        (&done["resultType"], texts(&done)),
        (&json!("complete"), vec!["Ada is 36"])
    );
    // The same answers again are a new call, and a new call is asked for.
    let anew = call(&mut client, "Who?", &answers);
    assert_eq!(
        anew["inputRequests"]["answer"]["method"], "elicitation/create",
        "{anew}"
    );
}
