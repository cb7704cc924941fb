//! `ask_user` and `ask_user_questions`: every rung, every mode, bad input.

use serde_json::{Value, json};

use crate::support::world::{Client, World, texts};

fn modern(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    params
}

fn which() -> Value {
    json!({
        "question": "Which way?",
        "options": [{ "label": "Left", "description": "shorter" }, { "label": "Right" }],
    })
}

fn two_questions() -> Value {
    let options = json!([{ "label": "A", "description": "a" }, { "label": "B", "description": "b" }]);
    json!({ "questions": [
        { "question": "First?", "header": "One", "multiSelect": false, "options": options },
        { "question": "Second?", "header": "Two", "multiSelect": true, "options": options },
    ]})
}

fn proceed(client: &mut Client, tool: &str, pending: &Value, continuation: Value) -> Value {
    let mut continuation = continuation;
    continuation["workflow_id"] = pending["structuredContent"]["workflow_id"].clone();
    client.call(tool, &json!({ "continue_workflow": continuation }))
}

#[test]
fn without_a_dialog_a_question_returns_an_id_and_takes_a_relayed_answer() {
    let world = World::new();
    let mut client = world.legacy();
    let pending = client.call("ask_user", &which());
    assert_eq!(pending["structuredContent"]["status"], "pending");
    assert!(texts(&pending)[1].contains("\"answer\":\"…\""), "{pending}");
    let still = proceed(&mut client, "ask_user", &pending, json!({}));
    assert_eq!(still["structuredContent"]["status"], "pending");
    let answered = proceed(&mut client, "ask_user", &pending, json!({ "answer": "Left" }));
    assert_eq!(texts(&answered), ["User selected: Left"]);
    assert_eq!(
        answered["structuredContent"]["answers"],
        json!({ "Which way?": ["Left"] })
    );
    assert_eq!(answered["structuredContent"]["by"], "continuation");
    let again = proceed(&mut client, "ask_user", &pending, json!({}));
    assert_eq!(
        texts(&again),
        ["User selected: Left"],
        "an answer may be asked for again"
    );
    let late = proceed(&mut client, "ask_user", &pending, json!({ "answer": "Right" }));
    assert_eq!(late["isError"], true, "the first answer counts");
}

#[test]
fn free_text_is_always_possible_and_two_choices_of_one_are_not() {
    let world = World::new();
    let mut client = world.legacy();
    let pending = client.call("ask_user", &which());
    let refused = proceed(
        &mut client,
        "ask_user",
        &pending,
        json!({ "answer": ["Left", "Right"] }),
    );
    assert_eq!(texts(&refused), ["`answer` takes 2 choices; only one is allowed"]);
    let answered = proceed(
        &mut client,
        "ask_user",
        &pending,
        json!({ "answer": "straight on" }),
    );
    assert_eq!(texts(&answered), ["User answered: straight on"]);
}

#[test]
fn a_modern_client_shows_the_question_and_its_retry_is_the_answer() {
    let world = World::new();
    let mut client = world.client();
    let call = json!({ "name": "ask_user", "arguments": which() });
    let asked = client.request("tools/call", &modern(call.clone()))["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let fields = &asked["inputRequests"]["answer"]["params"]["requestedSchema"]["properties"];
    assert_eq!(
        fields["answer1"]["oneOf"][0],
        json!({ "const": "Left", "title": "Left: shorter" })
    );
    let mut retry = call;
    retry["requestState"] = asked["requestState"].clone();
    retry["inputResponses"] = json!({ "answer": { "action": "accept", "content": { "answer1": "Right" } } });
    let result = client.request("tools/call", &modern(retry))["result"].clone();
    assert_eq!(
        (&result["resultType"], texts(&result)[0]),
        (&json!("complete"), "User selected: Right")
    );
    assert_eq!(result["structuredContent"]["by"], "dialog");
}

#[test]
fn an_answer_from_elsewhere_is_told_though_the_dialog_then_says_nothing() {
    let world = World::new();
    let mut client = world.client();
    let mut call = json!({ "name": "ask_user", "arguments": which() });
    let asked = client.request("tools/call", &modern(call.clone()))["result"].clone();
    let state = asked["requestState"].as_str().unwrap();
    assert!(world.run(&["answer", state, "Left"]).status.success());
    call["requestState"] = json!(state);
    call["inputResponses"] = json!({ "answer": { "action": "accept", "content": {} } });
    let result = client.request("tools/call", &modern(call))["result"].clone();
    assert_eq!(texts(&result), ["User selected: Left"]);
    assert_eq!(result["structuredContent"]["by"], "cli");
}

#[test]
fn a_legacy_client_shows_several_questions_in_one_form() {
    let world = World::new();
    let mut client = world.client();
    client.initialize_with_forms();
    let id = client.send(
        "tools/call",
        &json!({ "name": "ask_user_questions", "arguments": two_questions() }),
    );
    let request = client.notified("elicitation/create");
    let fields = request["params"]["requestedSchema"]["properties"]
        .as_object()
        .unwrap();
    // The version of this client knows no lists.
    assert_eq!(fields["answer2"]["type"], "string");
    let content = json!({ "answer1": "Other…", "answer2": "A, B" });
    client.reply(&request, &json!({ "action": "accept", "content": content }));
    // Own words are asked for in a form of their own.
    let request = client.notified("elicitation/create");
    let required = &request["params"]["requestedSchema"]["required"];
    assert_eq!(*required, json!(["answer1_other"]));
    let content = json!({ "answer1_other": "C" });
    client.reply(&request, &json!({ "action": "accept", "content": content }));
    let result = client.answer(id)["result"].clone();
    assert_eq!(
        result["structuredContent"]["answers"],
        json!({ "First?": ["C"], "Second?": ["A", "B"] })
    );
    assert_eq!(
        texts(&result),
        ["First?\nUser answered: C\n\nSecond?\nUser selected: A, B"]
    );
}

#[test]
fn a_slip_in_a_form_is_asked_for_again_and_an_empty_form_is_not() {
    let world = World::new();
    let mut client = world.client();
    client.initialize_with_forms();
    let call = json!({ "name": "ask_user_questions", "arguments": two_questions() });
    let id = client.send("tools/call", &call);
    for (again, wrong) in [(false, "7"), (true, "1, 9")] {
        let form = client.notified("elicitation/create");
        let message = form["params"]["message"].as_str().unwrap();
        assert_eq!(
            message.starts_with("What you sent is not one of the answers."),
            again
        );
        let content = json!({ "answer1": "A", "answer2": wrong });
        client.reply(&form, &json!({ "action": "accept", "content": content }));
    }
    let form = client.notified("elicitation/create");
    let content = json!({ "answer1": "A", "answer2": "2" });
    client.reply(&form, &json!({ "action": "accept", "content": content }));
    assert_eq!(
        client.answer(id)["result"]["structuredContent"]["answers"],
        json!({ "First?": ["A"], "Second?": ["B"] })
    );

    let mut call = json!({ "name": "ask_user", "arguments": which() });
    let mut client = world.client();
    let form = client.request("tools/call", &modern(call.clone()))["result"].clone();
    call["requestState"] = form["requestState"].clone();
    for content in [json!({ "answer1": ["Left", "Right"] }), json!({ "answer1": 1 })] {
        call["inputResponses"] = json!({ "answer": { "action": "accept", "content": content } });
        let again = client.request("tools/call", &modern(call.clone()))["result"].clone();
        assert_eq!(again["resultType"], "input_required", "{again}");
        assert_eq!(again["requestState"], form["requestState"]);
    }
    call["inputResponses"] = json!({ "answer": { "action": "accept", "content": {} } });
    let empty = client.request("tools/call", &modern(call))["result"].clone();
    assert_eq!(empty["structuredContent"]["status"], "pending", "{empty}");
}

#[test]
fn several_questions_are_answered_by_a_relay_too() {
    let world = World::new();
    let mut client = world.legacy();
    let pending = client.call("ask_user_questions", &two_questions());
    let short = proceed(
        &mut client,
        "ask_user_questions",
        &pending,
        json!({ "answers": ["A"] }),
    );
    assert_eq!(texts(&short), ["`answers` has 1 entries; 2 questions were asked"]);
    let answered = proceed(
        &mut client,
        "ask_user_questions",
        &pending,
        json!({ "answers": { "First?": "B", "Second?": ["A"] } }),
    );
    assert_eq!(
        answered["structuredContent"]["answers"],
        json!({ "First?": ["B"], "Second?": ["A"] })
    );
    let wrong = proceed(&mut client, "ask_user", &pending, json!({}));
    assert_eq!(wrong["isError"], true, "the id belongs to the other tool");
}

#[test]
fn a_relay_says_which_question_the_person_left_unanswered() {
    let world = World::new();
    let mut client = world.legacy();
    let pending = client.call("ask_user_questions", &two_questions());
    let mut relay = |answers: Value| {
        let continuation = json!({ "answers": answers });
        proceed(&mut client, "ask_user_questions", &pending, continuation)
    };
    let nothing = relay(json!([null, null]));
    assert!(
        texts(&nothing)[0].starts_with("no question is answered"),
        "{nothing}"
    );
    let answered = relay(json!([null, ["A", "C"]]));
    assert_eq!(
        texts(&answered),
        ["First?\nUser left this question unanswered.\n\nSecond?\nUser selected: A, C"]
    );
    assert_eq!(
        answered["structuredContent"]["answers"],
        json!({ "First?": [], "Second?": ["A", "C"] })
    );
}

#[test]
fn where_only_a_person_counts_a_model_cannot_answer() {
    let world = World::new();
    world.configure(&json!({ "approvals": { "by": "human" } }));
    let mut client = world.legacy();
    let pending = client.call("ask_user", &which());
    let refused = proceed(&mut client, "ask_user", &pending, json!({ "answer": "Left" }));
    assert_eq!(refused["isError"], true);
    assert!(
        texts(&refused)[0].starts_with("waiting for a person"),
        "{refused}"
    );
    assert_eq!(
        proceed(&mut client, "ask_user", &pending, json!({}))["structuredContent"]["status"],
        "pending"
    );
}

#[test]
fn bad_input_is_refused_by_field_value_and_rule() {
    let world = World::new();
    let mut client = world.legacy();
    for (tool, arguments, reason) in [
        ("ask_user", json!({}), "`question` is missing"),
        (
            "ask_user",
            json!({ "question": "x".repeat(100_000) }),
            "`question` has 100000 characters; 1 to 4000 are allowed",
        ),
        (
            "ask_user",
            json!({ "question": 1 }),
            "`question` must be a string, not the number 1",
        ),
        (
            "ask_user_questions",
            json!({ "questions": [] }),
            "At least one question is required",
        ),
        ("ask_user_questions", json!({}), "`questions` is missing"),
        (
            "ask_user",
            json!({ "continue_workflow": { "workflow_id": 7 } }),
            "`continue_workflow.workflow_id` must be a string",
        ),
        (
            "ask_user",
            json!({ "continue_workflow": { "workflow_id": "x", "wait_seconds": 51 } }),
            "`continue_workflow.wait_seconds` must be a whole number from 0 to 50",
        ),
        (
            "ask_user",
            json!({ "continue_workflow": { "workflow_id": "x" } }),
            "Workflow expired or not found",
        ),
    ] {
        let result = client.call(tool, &arguments);
        assert_eq!((&result["isError"], texts(&result)[0]), (&json!(true), reason));
    }
    client.raw(r#"{"jsonrpc":"2.0","id":"lone","method":"tools/call","params":{"name":"ask_user","arguments":{"question":"\ud800"}}}"#);
    let line = client.line();
    assert!(
        line.contains(r#""id":"lone""#) && line.contains("no text"),
        "{line}"
    );
}

#[test]
fn the_tools_can_be_switched_off() {
    let world = World::new();
    assert_eq!(
        world.legacy().tools(),
        [
            "ask_user",
            "ask_user_questions",
            "approval_prompt",
            "pml_status",
            "pml_continue"
        ]
    );
    world.configure(&json!({ "askUser": { "enabled": false } }));
    let mut client = world.legacy();
    assert_eq!(client.tools(), ["pml_status", "pml_continue"]);
    assert_eq!(client.call("ask_user", &which())["isError"], true);
}

fn blocking() -> World {
    let world = World::new();
    world.configure(&json!({ "askUser": { "mode": "blocking", "timeoutSeconds": 30 } }));
    world
}

/// The code of the one question that waits.
fn code(world: &World) -> String {
    let mut code = None;
    crate::support::eventually("a question waits", crate::support::DEADLINE, || {
        let told = world.run(&["pending", "--json"]);
        let pending: Value = serde_json::from_slice(&told.stdout).unwrap();
        let first = pending
            .as_array()
            .or_else(|| pending["pending"].as_array())
            .and_then(|list| list.first().cloned());
        code = first.and_then(|first| first["code"].as_str().map(str::to_owned));
        code.is_some()
    });
    code.unwrap()
}

#[test]
fn a_blocking_question_holds_its_call_until_somebody_answers() {
    let world = blocking();
    let mut client = world.legacy();
    let id = client.send("tools/call", &json!({ "name": "ask_user", "arguments": which() }));
    let code = code(&world);
    assert_eq!(
        client.request("ping", &json!({}))["result"],
        json!({}),
        "the conversation goes on"
    );
    assert!(world.run(&["answer", &code, "Right"]).status.success());
    let result = client.answer(id)["result"].clone();
    assert_eq!(texts(&result), ["User selected: Right"]);
    assert_eq!(result["structuredContent"]["by"], "cli");
}

#[test]
fn a_blocking_question_times_out_in_the_seeds_words_and_a_late_answer_is_kept() {
    let world = blocking();
    let mut client = world.legacy();
    let id = client.send("tools/call", &json!({ "name": "ask_user", "arguments": which() }));
    let code = code(&world);
    let timed_out = client.answer(id)["result"].clone();
    assert_eq!(timed_out["isError"], true);
    assert_eq!(
        texts(&timed_out)[0],
        "User did not respond within the timeout period. Proceeding with your best judgment."
    );
    assert_eq!(timed_out["structuredContent"]["status"], "timed_out");
    assert!(world.run(&["answer", &code, "Left"]).status.success());
    let workflow = texts(&timed_out)[1]
        .split("\"workflow_id\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let late = client.call(
        "ask_user",
        &json!({ "continue_workflow": { "workflow_id": workflow } }),
    );
    assert_eq!(texts(&late), ["User selected: Left"]);
}

#[test]
fn a_continuation_waits_for_the_answer_so_that_nobody_polls() {
    let world = World::new();
    let mut client = world.legacy();
    let pending = client.call("ask_user", &which());
    let workflow = &pending["structuredContent"]["workflow_id"];
    let arguments = json!({ "continue_workflow": { "workflow_id": workflow, "wait_seconds": 50 } });
    let id = client.send(
        "tools/call",
        &json!({ "name": "ask_user", "arguments": arguments }),
    );
    assert!(
        world
            .run(&["answer", &code(&world), "--text", "over there"])
            .status
            .success()
    );
    assert_eq!(texts(&client.answer(id)["result"]), ["User answered: over there"]);
}

#[test]
fn a_rejection_with_its_reason_reaches_the_model() {
    let world = World::new();
    let mut client = world.legacy();
    let pending = client.call("ask_user_questions", &two_questions());
    assert!(
        world
            .run(&["refuse", &code(&world), "--reason", "ask me later"])
            .status
            .success()
    );
    let rejected = proceed(&mut client, "ask_user_questions", &pending, json!({}));
    assert_eq!(rejected["structuredContent"]["status"], "rejected");
    assert_eq!(
        texts(&rejected),
        [
            "User rejected the question. Reason: ask me later",
            "Do not ask it again unless they want you to."
        ]
    );
}

#[test]
fn a_question_that_nobody_answered_in_its_life_has_timed_out() {
    let world = World::new();
    let mut client = world.legacy();
    let pending = client.call("ask_user", &which());
    crate::support::world::expire_workflows(&world);
    let late = proceed(&mut client, "ask_user", &pending, json!({}));
    assert_eq!(
        (&late["isError"], &late["structuredContent"]["status"]),
        (&json!(true), &json!("timed_out"))
    );
}
