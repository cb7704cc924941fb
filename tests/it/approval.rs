//! Asking and continuing: what is asked, who decides, what an approval covers.

use serde_json::{Value, json};

use crate::support::world::{World, asks, texts};

fn yes() -> Value {
    json!({ "approved": true })
}

fn starts(world: &World) -> usize {
    std::fs::read_to_string(world.path("started")).map_or(0, |text| text.lines().count())
}

/// A world with a server that nobody has approved yet and that counts its starts.
fn asking() -> World {
    World::with_fake(&json!({ "ask": ["*"] }), &["--started", "started"])
}

#[test]
fn the_original_call_runs_whatever_the_continuation_carries() {
    let world = asking();
    let mut client = world.legacy();
    let asked = client.call("fake:echo", &json!({ "text": "original", "n": 1.5 }));
    assert!(asks(&asked), "{asked}");
    assert_eq!(
        asked["approval_context"],
        asked["structuredContent"]["approval_context"]
    );
    assert_eq!(starts(&world), 0);
    let id = &asked["approval_context"]["workflow_id"];
    let result = client.call(
        "fake:echo",
        &json!({ "text": "changed", "continue_workflow": { "workflow_id": id, "approved": true } }),
    );
    let echoed: Value = serde_json::from_str(texts(&result)[0]).unwrap();
    assert_eq!(echoed["arguments"], json!({ "text": "original", "n": 1.5 }));
}

#[test]
fn an_approval_lasts_over_restarts_until_the_declaration_changes_or_it_is_taken_back() {
    let world = asking();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert!(!asks(&client.proceed("fake__echo", &asked, &yes())));
    assert!(
        !asks(&client.call("fake__closed", &json!({ "a": 1 }))),
        "another tool of the same server"
    );
    drop(client);
    assert!(
        !asks(&world.legacy().call("fake__echo", &json!({}))),
        "after a restart"
    );

    let mut entry = world.fake(&["--started", "started"]);
    entry["args"] = json!(["--started", "started", "--banner"]);
    world.configure(&json!({ "mcpServers": { "fake": entry } }));
    assert!(
        asks(&world.legacy().call("fake__echo", &json!({}))),
        "other arguments are another thing to approve"
    );

    world.configure(&json!({ "mcpServers": { "fake": world.fake(&["--started", "started"]) } }));
    assert!(
        !asks(&world.legacy().call("fake__echo", &json!({}))),
        "what was approved is approved"
    );
    let told = world.run(&["uninstall", "fake"]);
    assert!(told.status.success());
    assert!(asks(&world.legacy().call("fake__echo", &json!({}))), "taken back");
}

#[test]
fn taking_an_approval_back_counts_for_a_running_pml_at_once() {
    let world = asking();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    client.proceed("fake__echo", &asked, &yes());
    assert!(world.run(&["uninstall", "fake"]).status.success());
    assert!(asks(&client.call("fake__echo", &json!({}))));
}

#[test]
fn always_writes_the_exact_tool_and_the_next_call_is_direct() {
    let world = World::new();
    let entry = world.fake(&[]);
    world.write(
        ".pml.json",
        &format!("{{\n  // mine\n  \"permissions\": {{ \"allow\": [\"existing:tools\"], \"ask\": [\"*\"] }},\n  \"mcpServers\": {{ \"fake\": {entry} }}\n}}\n"),
    );
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let result = client.proceed("fake__echo", &asked, &json!({ "approved": true, "always": true }));
    assert!(
        texts(&result)[1].starts_with("pml: `fake:echo` is in the allow list of "),
        "{result}"
    );
    let text = world.read(".pml.json");
    assert!(text.contains("// mine"), "{text}");
    assert!(text.contains(r#"["existing:tools", "fake:echo"]"#), "{text}");
    assert!(world.run(&["uninstall", "fake"]).status.success());
    assert!(
        !asks(&world.legacy().call("fake__echo", &json!({}))),
        "the rule holds without the approval"
    );
    assert!(
        asks(&world.legacy().call("fake__closed", &json!({ "a": 1 }))),
        "the rule is for that tool alone"
    );
}

#[test]
fn always_moves_an_ask_rule_of_the_same_name() {
    let world = World::with_fake(&json!({ "ask": ["*", "fake:echo"] }), &[]);
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    client.proceed("fake__echo", &asked, &json!({ "approved": true, "always": true }));
    assert!(!asks(&client.call("fake__echo", &json!({}))));
}

#[test]
fn always_says_when_another_rule_still_wins() {
    let world = asking();
    let user = world.home().join(".config/pml");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(
        user.join("pml.json"),
        r#"{ "permissions": { "ask": ["fake:echo"] } }"#,
    )
    .unwrap();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let result = client.proceed("fake__echo", &asked, &json!({ "approved": true, "always": true }));
    let note = texts(&result)[1];
    assert!(
        note.contains("but rule `fake:echo` in the ask list of ") && note.ends_with("line 1 still wins"),
        "{note}"
    );
}

#[test]
fn always_says_when_it_could_not_be_written_and_the_call_runs_all_the_same() {
    let world = World::new();
    let user = world.home().join(".config/pml");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(
        user.join("pml.json"),
        json!({ "mcpServers": { "fake": world.fake(&[]) } }).to_string(),
    )
    .unwrap();
    // The project's file is a link that pml does not write through.
    let outside = world.home().join("outside.json");
    std::fs::write(&outside, "{}").unwrap();
    std::os::unix::fs::symlink(outside, world.path(".pml.json")).unwrap();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let result = client.proceed("fake__echo", &asked, &json!({ "approved": true, "always": true }));
    assert_eq!(result.get("isError"), None, "{result}");
    let note = texts(&result)[1];
    assert!(
        note.starts_with("pml: the call ran, but `fake:echo` could not be added to the allow list"),
        "{note}"
    );
}

#[test]
fn a_refusal_runs_nothing_and_uses_the_workflow_up() {
    let world = asking();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let refused = client.proceed("fake__echo", &asked, &json!({ "approved": false }));
    assert_eq!(texts(&refused)[0], "Workflow aborted by user");
    assert_eq!(starts(&world), 0);
    let again = client.proceed("fake__echo", &asked, &yes());
    assert_eq!(again["isError"], true);
    assert_eq!(
        texts(&again)[0],
        "Workflow aborted by user",
        "the first answer counts"
    );
    assert_eq!(starts(&world), 0);
    assert!(
        asks(&client.call("fake__echo", &json!({}))),
        "a refusal is no deny rule"
    );
}

#[test]
fn a_continuation_is_used_once() {
    let world = asking();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    client.proceed("fake__echo", &asked, &yes());
    let again = client.proceed("fake__echo", &asked, &yes());
    assert_eq!(again["isError"], true);
    assert!(texts(&again)[0].contains("was already used at"), "{again}");
}

#[test]
fn a_wrong_tool_is_refused_and_the_workflow_stays() {
    let world = asking();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let wrong = client.proceed("fake__closed", &asked, &yes());
    assert_eq!(wrong["isError"], true);
    assert!(texts(&wrong)[0].contains("belongs to `fake:echo`"), "{wrong}");
    assert_eq!(starts(&world), 0);
    assert!(!asks(&client.proceed("fake__echo", &asked, &yes())));
}

#[test]
fn pml_continue_continues_any_workflow() {
    let world = asking();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({ "a": 1 }));
    let id = &asked["approval_context"]["workflow_id"];
    let result = client.call("pml_continue", &json!({ "workflow_id": id, "approved": true }));
    let echoed: Value = serde_json::from_str(texts(&result)[0]).unwrap();
    assert_eq!(
        (&echoed["name"], &echoed["arguments"]),
        (&json!("echo"), &json!({ "a": 1 }))
    );
}

#[test]
fn pml_continue_grants_a_prompt_and_calls_no_tool_of_its_name() {
    let world = World::with_fake(
        &json!({ "allow": ["fake:echo"], "ask": ["*"] }),
        &["--offers", "new", "--record", "seen"],
    );
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    let greet = json!({ "name": "fake__greet" });
    let asked = client.request("prompts/get", &greet);
    let id = &asked["error"]["data"]["workflow_id"];
    let granted = client.call("pml_continue", &json!({ "workflow_id": id, "approved": true }));
    assert_eq!(
        texts(&granted)[0],
        "Approved: `fake:prompts/greet`. Ask for it again."
    );
    client.request("prompts/get", &greet);
    let seen = world.read("seen");
    assert!(!seen.contains("prompts/greet"), "{seen}");
    assert_eq!(seen.matches(r#""prompts/get""#).count(), 1, "{seen}");
}

#[test]
fn nothing_is_guessed_from_a_sloppy_continuation() {
    let world = asking();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    for (decision, reason) in [
        (
            json!({ "approved": "false" }),
            "`continue_workflow.approved` must be true or false, not the string \"false\"",
        ),
        (
            json!({ "approved": "true" }),
            "`continue_workflow.approved` must be true or false, not the string \"true\"",
        ),
        (
            json!({ "approve": true }),
            "`continue_workflow` has no member `approve`",
        ),
        (
            json!({ "always": true }),
            "`continue_workflow.approved` is missing",
        ),
    ] {
        let result = client.proceed("fake__echo", &asked, &decision);
        assert_eq!(result["isError"], true);
        assert!(texts(&result)[0].starts_with(reason), "{result}");
    }
    assert_eq!(starts(&world), 0);
    for id in ["nonsense", "00000000-0000-4000-8000-000000000000", "../../etc"] {
        let result = client.call(
            "fake__echo",
            &json!({ "continue_workflow": { "workflow_id": id, "approved": true } }),
        );
        assert_eq!(
            (&result["isError"], texts(&result)[0]),
            (&json!(true), "Workflow expired or not found")
        );
    }
    assert!(
        !asks(&client.proceed("fake__echo", &asked, &yes())),
        "the workflow was not used up"
    );
}

#[test]
fn a_deny_added_meanwhile_wins() {
    let world = asking();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert!(world.run(&["deny", "fake:echo"]).status.success());
    let denied = client.proceed("fake__echo", &asked, &yes());
    assert_eq!(denied["isError"], true);
    assert!(
        texts(&denied)[0].starts_with("`fake:echo` is denied by rule `fake:echo`\n  in the deny list of "),
        "{denied}"
    );
    assert!(texts(&denied)[0].contains(".pml.json, line "), "{denied}");
    assert_eq!(starts(&world), 0);
}

#[test]
fn what_changed_between_ask_and_continue_does_not_run() {
    let world = asking();
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    world.configure(&json!({ "mcpServers": { "fake": world.fake(&["--started", "started", "--banner"]) } }));
    let refused = client.proceed("fake__echo", &asked, &yes());
    assert_eq!(refused["isError"], true);
    assert!(
        texts(&refused)[0].contains("changed since the person was asked"),
        "{refused}"
    );
    assert_eq!(starts(&world), 0);
}

#[test]
fn a_narrower_ask_rule_asks_every_time_unless_for_the_session() {
    let world = World::with_fake(&json!({ "allow": ["fake"], "ask": ["fake:echo"] }), &[]);
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert_eq!(asked["approval_context"]["type"], "tool_permission");
    assert_eq!(texts(&asked)[0], "Approval required to call fake:echo");
    assert!(!asks(&client.proceed("fake__echo", &asked, &yes())));
    let asked = client.call("fake__echo", &json!({}));
    assert!(asks(&asked), "once is once");
    assert!(!asks(&client.proceed(
        "fake__echo",
        &asked,
        &json!({ "approved": true, "scope": "session" })
    )));
    assert!(!asks(&client.call("fake__echo", &json!({}))), "for the session");
    drop(client);
    assert!(
        asks(&world.legacy().call("fake__echo", &json!({}))),
        "the session is over"
    );
}

#[test]
fn a_deny_names_rule_and_file_and_hides_the_tool() {
    let world = World::with_fake(&json!({ "allow": ["fake"], "deny": ["fake:ec*"] }), &[]);
    let mut client = world.legacy();
    let denied = client.call("fake__echo", &json!({}));
    assert_eq!(denied["isError"], true);
    assert!(
        texts(&denied)[0].starts_with("`fake:echo` is denied by rule `fake:ec*`"),
        "{denied}"
    );
    assert!(texts(&denied)[1].contains("pml forget 'fake:ec*'"), "{denied}");
    client.call("fake__connect", &json!({}));
    let tools = client.tools();
    assert!(
        !tools.contains(&"fake__echo".to_owned()) && tools.contains(&"fake__closed".to_owned()),
        "{tools:?}"
    );
}

#[test]
fn a_broken_configuration_refuses_every_call_with_its_position_and_recovers() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    let good = world.read(".pml.json");
    world.write(
        ".pml.json",
        &good.replacen("\"permissions\"", "\"permisions\"", 1),
    );
    let refused = client.call("fake__echo", &json!({}));
    assert_eq!(refused["isError"], true);
    let text = texts(&refused)[0];
    assert!(text.contains(".pml.json:2:3: unknown key `permisions`"), "{text}");
    world.write(".pml.json", "{ not json");
    assert_eq!(client.call("fake__echo", &json!({}))["isError"], true);
    world.write(".pml.json", &good);
    assert_eq!(client.call("fake__echo", &json!({})).get("isError"), None);
}

#[test]
fn edits_take_effect_on_the_next_call() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    let mut client = world.legacy();
    assert!(!asks(&client.call("fake__echo", &json!({}))));
    assert!(world.run(&["deny", "fake"]).status.success());
    assert_eq!(client.call("fake__echo", &json!({}))["isError"], true);
    assert!(world.run(&["forget", "fake"]).status.success());
    assert!(asks(&client.call("fake__echo", &json!({}))));
    assert!(world.run(&["allow", "fake:echo"]).status.success());
    assert!(!asks(&client.call("fake__echo", &json!({}))));
}

#[test]
fn a_workflow_survives_its_process_and_is_continued_by_another() {
    let world = asking();
    let mut first = world.legacy();
    let asked = first.call("fake__echo", &json!({ "from": "first" }));
    first.signal(rustix::process::Signal::KILL);
    first.ended(crate::support::DEADLINE);
    let result = world.legacy().proceed("fake__echo", &asked, &yes());
    let echoed: Value = serde_json::from_str(texts(&result)[0]).unwrap();
    assert_eq!(echoed["arguments"], json!({ "from": "first" }));
}

#[test]
fn a_hundred_continuations_from_four_processes_run_the_call_once() {
    let world = World::with_fake(&json!({ "ask": ["*"] }), &["--record", "seen"]);
    let mut clients: Vec<_> = (0..4).map(|_| world.legacy()).collect();
    let asked = clients[0].call("fake__echo", &json!({ "once": true }));
    let id = &asked["approval_context"]["workflow_id"];
    let params = json!({ "name": "fake__echo", "arguments": { "continue_workflow": { "workflow_id": id, "approved": true } } });
    let mut sent = Vec::new();
    for _ in 0..25 {
        for (number, client) in clients.iter_mut().enumerate() {
            sent.push((number, client.send("tools/call", &params)));
        }
    }
    let answers: Vec<Value> = sent
        .into_iter()
        .map(|(number, id)| clients[number].answer(id)["result"].clone())
        .collect();
    let (ran, told): (Vec<_>, Vec<_>) = answers.iter().partition(|result| result.get("isError").is_none());
    assert_eq!((ran.len(), told.len()), (1, 99));
    assert!(
        told.iter()
            .all(|result| texts(result)[0].contains("was already used at")),
        "{told:?}"
    );
    assert_eq!(world.read("seen").matches("\"once\":true").count(), 1);
}

#[test]
fn a_tool_promises_its_output_only_when_it_simply_runs() {
    let world = asking();
    let mut client = world.legacy();
    let asked = client.call("fake__connect", &json!({}));
    client.proceed("fake__connect", &asked, &yes());
    let definition = |client: &mut crate::support::world::Client| {
        let listed = client.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        tools
            .into_iter()
            .find(|tool| tool["name"] == "fake__structured")
            .unwrap()
    };
    let approved = definition(&mut client);
    assert!(approved.get("outputSchema").is_some(), "{approved}");
    assert!(
        approved["inputSchema"]["properties"]
            .get("continue_workflow")
            .is_none()
    );
    assert!(world.run(&["uninstall", "fake"]).status.success());
    // The tools stay known through another declaration of the same server: only the approval is gone.
    let asked = client.call("fake__connect", &json!({}));
    assert!(asks(&asked));
    client.proceed("fake__connect", &asked, &yes());
    assert!(world.run(&["ask", "fake:structured"]).status.success());
    let ruled = definition(&mut client);
    assert!(ruled.get("outputSchema").is_none());
    assert!(
        ruled["inputSchema"]["properties"]
            .get("continue_workflow")
            .is_some()
    );
}
