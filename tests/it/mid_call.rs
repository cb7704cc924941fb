//! A question in the middle of a call: what a person agreed to, the rules and the time of the server hold also when
//! the call goes on.

use std::fmt::Write as _;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::world::{Client, World, texts};
use crate::support::{DEADLINE, eventually};

/// A world with the server that misbehaves on demand, started with `options`, its entry amended by `settings`.
fn world(permissions: &Value, settings: &Value, options: &[&str]) -> World {
    let world = World::new();
    let mut fake = world.fake(options);
    for (name, value) in settings.as_object().unwrap() {
        fake[name] = value.clone();
    }
    world.configure(&json!({ "permissions": permissions, "mcpServers": { "fake": fake } }));
    world
}

/// Calls a tool as a Modern client, its arguments as they are; `more` are further members of the parameters.
fn modern(client: &mut Client, id: u64, tool: &str, arguments: &str, more: &Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let mut members = format!(r#""name":"{tool}","arguments":{arguments},"_meta":{meta}"#);
    for (name, value) in more.as_object().unwrap() {
        let _ = write!(members, ",{}:{value}", json!(name));
    }
    client.raw(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{members}}}}}"#
    ));
    client.answer(id)["result"].clone()
}

/// Answers every question of a result.
fn answered(asked: &Value) -> Value {
    let keys = asked["inputRequests"].as_object().unwrap().keys();
    let said = json!({ "action": "accept", "content": { "name": "Ada", "decision": "continue" } });
    let responses: serde_json::Map<String, Value> = keys.map(|key| (key.clone(), said.clone())).collect();
    json!({ "requestState": asked["requestState"], "inputResponses": responses })
}

#[test]
fn what_was_approved_runs_also_after_a_question_and_nothing_else() {
    for (approved, again, changed) in [
        (
            r#"{"x":"\ud800","path":"safe"}"#,
            r#"{ "path":"safe", "x":"\ud800" }"#,
            r#"{"x":"\ud800","path":"other"}"#,
        ),
        (
            r#"{"id":10000000000000000000001}"#,
            r#"{"id": 10000000000000000000001}"#,
            r#"{"id":10000000000000000000002}"#,
        ),
    ] {
        let world = world(&json!({ "ask": ["fake:ask"] }), &json!({}), &["--modern"]);
        let mut client = world.client();
        for (retried, runs) in [(changed, false), (again, true)] {
            let approval = modern(&mut client, 1, "fake__ask", approved, &json!({}));
            let asked = modern(&mut client, 2, "fake__ask", approved, &answered(&approval));
            assert!(asked["inputRequests"]["person"].is_object(), "{asked}");
            let done = modern(&mut client, 3, "fake__ask", retried, &answered(&asked));
            if runs {
                let told = texts(&done)[0];
                assert!(told.contains(&format!(r#""arguments":{approved}"#)), "{told}");
            } else {
                // Another call, for which a person is asked.
                assert!(done["inputRequests"]["answer"].is_object(), "{done}");
            }
        }
    }
}

#[test]
fn a_call_that_was_continued_by_its_id_goes_on_with_the_arguments_that_were_suspended() {
    let world = World::new();
    world.configure(&json!({
        "permissions": { "ask": ["fake:ask"] },
        "approvals": { "dialog": "never" },
        "mcpServers": { "fake": world.fake(&["--modern"]) },
    }));
    let mut client = world.client();
    let suspended = r#"{"n": 12345678901234567890123}"#;
    let approval = modern(&mut client, 1, "fake__ask", suspended, &json!({}));
    let id = &approval["approval_context"]["workflow_id"];
    let continued = json!({ "workflow_id": id, "approved": true }).to_string();
    let asked = modern(&mut client, 2, "pml_continue", &continued, &json!({}));
    let done = modern(&mut client, 3, "pml_continue", &continued, &answered(&asked));
    let told = texts(&done)[0];
    assert!(told.contains(&format!(r#""arguments":{suspended}"#)), "{told}");
}

/// Lets the time that a server has for a call go by.
fn let_a_call_time_out(client: &mut Client) {
    let late = client.call("fake__hang", &json!({}));
    assert_eq!(texts(&late)[0], "`fake:hang` did not answer within 1 seconds");
}

#[test]
fn a_server_has_its_time_anew_after_a_person_answered_and_no_more() {
    let allowed = json!({ "allow": ["fake"] });
    let settings = json!({ "callTimeoutSeconds": 1 });
    let late = "`fake:ask` did not answer within 1 seconds";
    let hanging = json!({ "then": "hang" });

    let legacy = world(&allowed, &settings, &[]);
    let mut client = legacy.client();
    let asked = modern(&mut client, 1, "fake__ask", "{}", &json!({}));
    let done = modern(&mut client, 2, "fake__ask", "{}", &answered(&asked));
    assert_eq!(texts(&done)[0], late, "parked");

    let world = world(&allowed, &settings, &["--modern"]);
    let mut client = world.client();
    client.initialize_with_forms();
    for (arguments, goes_on) in [(&hanging, false), (&json!({}), true)] {
        let id = client.send(
            "tools/call",
            &json!({ "name": "fake__ask", "arguments": arguments }),
        );
        let question = client.notified("elicitation/create");
        // A person may think for longer than the server has.
        let_a_call_time_out(&mut client);
        client.reply(
            &question,
            &json!({ "action": "accept", "content": { "name": "Ada" } }),
        );
        let done = client.answer(id)["result"].clone();
        assert_eq!(texts(&done)[0] != late, goes_on, "collected: {done}");
    }

    let mut client = world.legacy();
    let told = client.call("fake__ask", &hanging);
    let_a_call_time_out(&mut client);
    let input = json!({ "person": { "name": "Ada" } });
    let id = &told["structuredContent"]["workflow_id"];
    let continued = json!({ "workflow_id": id, "approved": true, "input": input });
    assert_eq!(
        texts(&client.call("pml_continue", &continued))[0],
        late,
        "relayed"
    );
}

/// A Modern server, a Legacy client with forms, and a call of it whose question is open: its id and the question.
fn collecting(world: &World) -> (Client, u64, Value) {
    let mut client = world.client();
    client.initialize_with_forms();
    let id = client.send(
        "tools/call",
        &json!({ "name": "fake__ask", "arguments": { "n": 1.0 } }),
    );
    let question = client.notified("elicitation/create");
    (client, id, question)
}

/// A Modern server, a Legacy client without forms, and what continues its call, whose question is open.
fn relayed(world: &World) -> (Client, Value) {
    let mut client = world.legacy();
    let told = client.call("fake__ask", &json!({ "n": 1.0 }));
    let id = &told["structuredContent"]["workflow_id"];
    let input = json!({ "person": { "name": "Ada" } });
    let continued = json!({ "workflow_id": id, "approved": true, "input": input });
    (client, continued)
}

#[test]
fn a_deny_that_was_added_meanwhile_wins_when_a_call_goes_on() {
    let allowed = json!({ "allow": ["fake"] });
    let said = json!({ "action": "accept", "content": { "name": "Ada" } });
    let deny = |world: &World, options: &[&str]| {
        let permissions = json!({ "allow": ["fake"], "deny": ["fake:ask"] });
        world
            .configure(&json!({ "permissions": permissions, "mcpServers": { "fake": world.fake(options) } }));
    };
    let assert_denied = |result: &Value| {
        let told = texts(result)[0];
        assert!(
            told.starts_with("`fake:ask` is denied by rule `fake:ask`"),
            "{told}"
        );
        assert!(told.contains(".pml.json"), "{told}");
    };

    let first = world(&allowed, &json!({}), &["--modern"]);
    let (mut client, id, question) = collecting(&first);
    deny(&first, &["--modern"]);
    client.reply(&question, &said);
    assert_denied(&client.answer(id)["result"]);

    let second = world(&allowed, &json!({}), &["--modern"]);
    let (mut client, continued) = relayed(&second);
    deny(&second, &["--modern"]);
    assert_denied(&client.call("pml_continue", &continued));

    let third = world(&allowed, &json!({}), &["--record", "seen"]);
    let mut client = third.client();
    let asked = modern(&mut client, 1, "fake__ask", "{}", &json!({}));
    deny(&third, &["--record", "seen"]);
    assert_denied(&modern(&mut client, 2, "fake__ask", "{}", &answered(&asked)));
    eventually("the server is told that nobody goes on", DEADLINE, || {
        third.read("seen").contains("notifications/cancelled")
    });
}

#[test]
fn a_server_that_went_while_a_person_thought_is_reached_again() {
    let said = json!({ "action": "accept", "content": { "name": "Ada" } });
    let world = world(&json!({ "allow": ["fake"] }), &json!({}), &["--modern"]);
    let (mut client, id, question) = collecting(&world);
    client.call("fake__crash", &json!({}));
    client.reply(&question, &said);
    let done = client.answer(id)["result"].clone();
    assert!(texts(&done)[0].contains(r#""arguments":{"n":1.0}"#), "{done}");
    assert!(texts(&done)[0].contains(r#""requestState":"theirs""#), "{done}");

    let (mut client, continued) = relayed(&world);
    client.call("fake__crash", &json!({}));
    let done = client.call("pml_continue", &continued);
    assert!(texts(&done)[0].contains(r#""arguments":{"n":1.0}"#), "{done}");
}

#[test]
fn an_approval_that_was_taken_back_meanwhile_lets_no_call_go_on() {
    let asking = json!({ "ask": ["*"] });
    let taken_back = "`fake:ask` does not go on: the approval of its server was taken back meanwhile";
    // It still runs, or it went.
    for meanwhile in ["fake__echo", "fake__crash"] {
        let world = world(
            &asking,
            &json!({}),
            &["--modern", "--started", "started", "--record", "seen"],
        );
        let mut client = world.legacy();
        let asked = client.call("fake__echo", &json!({}));
        client.proceed("fake__echo", &asked, &json!({ "approved": true }));
        let told = client.call("fake__ask", &json!({}));
        let id = &told["structuredContent"]["workflow_id"];
        let input = json!({ "person": { "name": "Ada" } });
        let continued = json!({ "workflow_id": id, "approved": true, "input": input });
        client.call(meanwhile, &json!({}));
        assert!(world.run(&["uninstall", "fake"]).status.success());
        let done = client.call("pml_continue", &continued);
        assert_eq!(texts(&done)[0], taken_back, "{meanwhile}");
        assert_eq!(world.read("started").lines().count(), 1, "{meanwhile}");
        assert!(!world.read("seen").contains("inputResponses"), "{meanwhile}");
    }

    let world = world(&asking, &json!({}), &[]);
    let mut client = world.client();
    let approval = modern(&mut client, 1, "fake__ask", "{}", &json!({}));
    let asked = modern(&mut client, 2, "fake__ask", "{}", &answered(&approval));
    assert!(world.run(&["uninstall", "fake"]).status.success());
    let done = modern(&mut client, 3, "fake__ask", "{}", &answered(&asked));
    assert_eq!(texts(&done)[0], taken_back, "parked");
}

#[test]
fn a_call_that_a_person_let_through_alone_goes_on_whatever_becomes_of_approvals() {
    let asking = json!({ "ask": ["fake:ask"], "allow": ["fake"] });
    let world = world(&asking, &json!({}), &["--modern"]);
    let mut client = world.legacy();
    let asked = client.call("fake__ask", &json!({}));
    let told = client.proceed("fake__ask", &asked, &json!({ "approved": true }));
    let id = &told["structuredContent"]["workflow_id"];
    let input = json!({ "person": { "name": "Ada" } });
    client.call("fake__crash", &json!({}));
    world.run(&["uninstall", "fake"]);
    let continued = json!({ "workflow_id": id, "approved": true, "input": input });
    let done = client.call("pml_continue", &continued);
    assert!(texts(&done)[0].contains("inputResponses"), "{done}");
}

#[test]
fn a_call_that_waits_for_its_client_holds_no_more_questions_than_a_person_is_asked() {
    let world = world(&json!({ "allow": ["fake"] }), &json!({}), &["--record", "seen"]);
    let mut client = world.client();
    let arguments = r#"{"count":5,"bytes":400000}"#;
    let asked = modern(&mut client, 1, "fake__ask_often", arguments, &json!({}));
    assert_eq!(asked["inputRequests"].as_object().unwrap().len(), 1);
    let refused = |number: u32| {
        let refusal = format!(r#""id":"asked-{number}","error""#);
        world.read("seen").contains(&refusal)
    };
    eventually("the last question is refused", DEADLINE, || refused(4));
    let all: Vec<u32> = (0..5).filter(|number| refused(*number)).collect();
    assert_eq!(all, [2, 3, 4]);
    let more = modern(&mut client, 2, "fake__ask_often", arguments, &answered(&asked));
    assert_eq!(
        more["inputRequests"].as_object().unwrap().len(),
        1,
        "what was kept is asked"
    );
}

#[test]
fn the_time_of_a_legacy_server_does_not_run_while_its_legacy_client_is_asked() {
    let world = World::new();
    let entry = || {
        let mut entry = world.fake(&[]);
        entry["callTimeoutSeconds"] = json!(1);
        entry
    };
    let servers = json!({ "fake": entry(), "other": entry() });
    world.configure(&json!({ "permissions": { "allow": ["*"] }, "mcpServers": servers }));
    let mut client = world.client();
    client.initialize_with_forms();
    let id = client.send("tools/call", &json!({ "name": "fake__ask" }));
    let question = client.notified("elicitation/create");
    // A person thinks for longer than the server has; another server's time runs as ever.
    let late = client.call("other__hang", &json!({}));
    assert_eq!(texts(&late)[0], "`other:hang` did not answer within 1 seconds");
    let answered = client.aside.iter().find(|message| message["id"] == id);
    assert_eq!(answered, None);
    client.reply(&question, &json!({ "action": "decline" }));
    let late = client.answer(id)["result"].clone();
    assert_eq!(texts(&late)[0], "`fake:ask` did not answer within 1 seconds");
}

#[test]
fn a_legacy_client_hears_that_its_call_lives_while_it_answers_a_modern_server() {
    let world = world(&json!({ "allow": ["fake"] }), &json!({}), &["--modern"]);
    let mut client = world.client();
    client.initialize_with_forms();
    // Started before, so that no start is reported.
    client.call("fake__echo", &json!({}));
    let params = json!({ "name": "fake__ask", "arguments": {}, "_meta": { "progressToken": "t" } });
    let id = client.send("tools/call", &params);
    let question = client.notified("elicitation/create");
    let waiting = client.notified("notifications/progress");
    assert_eq!(
        (&waiting["params"]["progressToken"], &waiting["params"]["message"]),
        (
            &json!("t"),
            &json!("waiting for the answer to a question of `fake`")
        )
    );
    client.reply(
        &question,
        &json!({ "action": "accept", "content": { "name": "Ada" } }),
    );
    assert!(texts(&client.answer(id)["result"])[0].contains("Ada"));
}

#[test]
fn what_a_modern_server_asks_a_legacy_client_is_withdrawn_with_its_call() {
    let world = world(&json!({ "allow": ["fake"] }), &json!({}), &["--modern"]);
    let (mut client, id, question) = collecting(&world);
    client.notify("notifications/cancelled", &json!({ "requestId": id }));
    let withdrawn = client.notified("notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    // An answer that comes anyway is nobody's, and the conversation goes on.
    client.reply(&question, &json!({ "action": "decline" }));
    assert!(texts(&client.call("fake__echo", &json!({})))[0].contains("echo"));
    assert_eq!(client.aside.iter().find(|message| message["id"] == id), None);
}
