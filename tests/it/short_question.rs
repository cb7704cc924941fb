//! `ask_user_questions` takes a single question as `ask_user` takes it, for clients that hide a tool named `ask_user`.

use serde_json::{Value, json};

use crate::support::world::{World, texts};

const TOOL: &str = "ask_user_questions";

fn which() -> Value {
    json!({ "question": "Which way?", "options": [{ "label": "Left" }, { "label": "Right" }], "multiSelect": true })
}

#[test]
fn a_single_question_is_asked_and_answered_in_the_short_form() {
    let world = World::new();
    let mut client = world.legacy();
    for (answer, told) in [
        (json!({ "answer": "Left" }), json!(["Left"])),
        (json!({ "answer": ["Left", "Right"] }), json!(["Left", "Right"])),
        (json!({ "answers": [["Right"]] }), json!(["Right"])),
        (json!({ "answers": { "Which way?": "Left" } }), json!(["Left"])),
    ] {
        let pending = client.call(TOOL, &which());
        let mut continuation = answer;
        continuation["workflow_id"] = pending["structuredContent"]["workflow_id"].clone();
        let answered = client.call(TOOL, &json!({ "continue_workflow": continuation }));
        assert_eq!(
            answered["structuredContent"]["answers"],
            json!({ "Which way?": told }),
            "{answered}"
        );
    }
    let free = client.call(TOOL, &json!({ "question": "Why?" }));
    assert_eq!(free["structuredContent"]["status"], "pending", "{free}");
    let both = client.call(TOOL, &json!({ "question": "Why?", "questions": [] }));
    assert_eq!(
        texts(&both),
        ["`question` is not a field here; did you mean `questions`?"]
    );
}

#[test]
fn the_short_form_opens_the_dialog_of_the_client() {
    let world = World::new();
    let mut client = world.client();
    client.initialize_with_forms();
    let id = client.send("tools/call", &json!({ "name": TOOL, "arguments": which() }));
    let form = client.notified("elicitation/create");
    assert!(
        form["params"]["message"].as_str().unwrap().contains("Which way?"),
        "{form}"
    );
    client.reply(&form, &json!({ "action": "decline" }));
    assert_eq!(client.answer(id)["result"]["isError"], Value::Null);
}

#[test]
fn the_schema_advertises_the_short_form() {
    let world = World::new();
    let listed = world.legacy().request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let schema = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["inputSchema"]["properties"].clone()
    };
    let (one, several) = (schema("ask_user"), schema(TOOL));
    for member in ["question", "header", "options", "multiSelect"] {
        assert_eq!(several[member], one[member], "{member}");
    }
    let continuation = |schema: &Value| schema["continue_workflow"]["properties"].clone();
    assert_eq!(continuation(&several)["answer"], continuation(&one)["answer"]);
    assert!(continuation(&several)["answers"].is_object() && several["questions"].is_object());
}
