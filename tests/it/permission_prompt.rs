//! `approval_prompt` and `pml_status`: what a client without a terminal gets, and what a model may know.

use serde_json::{Value, json};

use crate::support::faults::{Fault, inject};
use crate::support::world::{Client, World, asks, expire_workflows, json_of, texts};
use crate::support::{DEADLINE, eventually, have};

fn prompt(client: &mut Client, tool: &str, input: &Value) -> u64 {
    let arguments = json!({ "tool_name": tool, "input": input, "tool_use_id": "toolu_1" });
    client.send(
        "tools/call",
        &json!({ "name": "approval_prompt", "arguments": arguments }),
    )
}

/// The one text block of the reply, read as JSON.
fn reply(client: &mut Client, id: u64) -> Value {
    let result = client.answer(id)["result"].clone();
    assert_eq!(
        result.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["content"],
        "{result}"
    );
    let blocks = texts(&result);
    assert_eq!(blocks.len(), 1);
    serde_json::from_str(blocks[0]).unwrap()
}

fn code(world: &World) -> String {
    let mut code = None;
    eventually("an ask waits", DEADLINE, || {
        let told = world.run(&["pending", "--json"]);
        let pending: Value = serde_json::from_slice(&told.stdout).unwrap();
        code = find_code(&pending);
        code.is_some()
    });
    code.unwrap()
}

/// The first `code` anywhere in the report.
fn find_code(value: &Value) -> Option<String> {
    match value {
        Value::Object(members) => members
            .get("code")
            .and_then(Value::as_str)
            .map(str::to_owned)
            .or_else(|| members.values().find_map(find_code)),
        Value::Array(list) => list.iter().find_map(find_code),
        _ => None,
    }
}

#[test]
fn rules_decide_what_they_can() {
    let world = World::new();
    let allow = ["client:Read", "client:mcp__github__get_*"];
    world.configure(&json!({ "permissions": { "allow": allow, "deny": ["client:Bash"] } }));
    let mut client = world.legacy();
    let input = json!({ "path": "a" });
    for tool in ["Read", "mcp__github__get_issue", "mcp__pml__ask_user"] {
        let id = prompt(&mut client, tool, &input);
        assert_eq!(
            reply(&mut client, id),
            json!({ "behavior": "allow", "updatedInput": input })
        );
    }
    let id = prompt(&mut client, "Bash", &json!({ "command": "ls" }));
    let denied = reply(&mut client, id);
    assert_eq!(denied["behavior"], "deny");
    assert!(
        denied["message"]
            .as_str()
            .unwrap()
            .starts_with("`client:Bash` is denied by rule `client:Bash`"),
        "{denied}"
    );
}

#[test]
fn a_person_in_another_terminal_decides_the_rest() {
    let world = World::new();
    let mut client = world.legacy();
    let input = json!({ "command": "ls" });
    let id = prompt(&mut client, "Bash", &input);
    let approved = world.run(&["approve", &code(&world), "--session"]);
    assert!(approved.status.success(), "{approved:?}");
    assert_eq!(
        reply(&mut client, id),
        json!({
            "behavior": "allow",
            "updatedInput": input,
            "updatedPermissions": [{
                "type": "addRules", "rules": [{ "toolName": "Bash" }], "behavior": "allow", "destination": "session",
            }],
        })
    );
    let id = prompt(&mut client, "Bash", &json!({ "command": "pwd" }));
    assert_eq!(reply(&mut client, id)["behavior"], "allow", "for the session");
    let id = prompt(&mut client, "Edit", &input);
    assert!(
        world
            .run(&["refuse", &code(&world), "--reason", "not now"])
            .status
            .success()
    );
    assert_eq!(
        reply(&mut client, id),
        json!({ "behavior": "deny", "message": "The person refused: not now\nDo not try it again unless they ask for it." })
    );
}

#[test]
fn always_is_a_rule_about_the_clients_tool() {
    let world = World::new();
    let mut client = world.legacy();
    let id = prompt(&mut client, "Bash", &json!({}));
    assert!(
        world
            .run(&["approve", &code(&world), "--always"])
            .status
            .success()
    );
    assert_eq!(reply(&mut client, id)["behavior"], "allow");
    assert!(world.read(".pml.json").contains("client:Bash"));
}

#[test]
fn a_grant_for_a_tool_of_the_client_reaches_no_server_of_pml() {
    for scope in ["--session", "--always"] {
        let world = World::new();
        world.configure(&json!({ "mcpServers": { "github": world.fake(&["--started", "started"]) } }));
        let mut client = world.legacy();
        let id = prompt(&mut client, "mcp__github__echo", &json!({}));
        let code = code(&world);
        let shown = json_of(&world.run(&["pending", "--json"]));
        assert!(world.run(&["approve", &code, scope]).status.success());
        assert_eq!(reply(&mut client, id)["behavior"], "allow");
        assert!(shown.to_string().contains("client:mcp__github__echo"), "{shown}");
        let asked = client.call("github__echo", &json!({}));
        assert!(asks(&asked), "{scope}: {asked}");
        assert!(!world.path("started").exists(), "{scope}");
        // The client's tool itself is granted.
        let id = prompt(&mut client, "mcp__github__echo", &json!({ "again": true }));
        assert_eq!(reply(&mut client, id)["behavior"], "allow", "{scope}");
    }
}

#[test]
fn a_rule_for_a_server_of_pml_says_nothing_about_a_tool_of_the_client() {
    let world = World::new();
    let permissions = json!({ "allow": ["github"], "deny": ["client:mcp__github__danger"] });
    world.configure(&json!({ "permissions": permissions, "mcpServers": { "github": world.fake(&[]) } }));
    let mut client = world.legacy();
    let id = prompt(&mut client, "mcp__github__echo", &json!({}));
    assert!(
        world.run(&["refuse", &code(&world)]).status.success(),
        "it is asked for"
    );
    assert_eq!(reply(&mut client, id)["behavior"], "deny");
    let id = prompt(&mut client, "mcp__github__danger", &json!({}));
    assert_eq!(reply(&mut client, id)["behavior"], "deny");
}

#[test]
fn rules_come_before_what_goes_through_pml_and_nothing_else_passes_unasked() {
    let world = World::with_fake(&json!({ "allow": ["fake"], "deny": ["fake:crash"] }), &[]);
    let mut client = world.legacy();
    client.call("fake__connect", &json!({}));
    for (tool, behavior) in [
        ("mcp__pml__fake__echo", "allow"),
        ("mcp__pml__pml_status", "allow"),
        ("mcp__pml__fake__crash", "deny"),
    ] {
        let id = prompt(&mut client, tool, &json!({}));
        assert_eq!(reply(&mut client, id)["behavior"], behavior, "{tool}");
    }
    // What pml does not list is a tool of the client like any other: a person is asked.
    for tool in [
        "mcp__pml__x__echo",
        "mcp__pml__fake__nothing",
        "mcp__pml__anything",
        "mcp__pml__",
    ] {
        let id = prompt(&mut client, tool, &json!({}));
        assert!(world.run(&["refuse", &code(&world)]).status.success(), "{tool}");
        assert_eq!(reply(&mut client, id)["behavior"], "deny", "{tool}");
    }
    world.configure(&json!({ "permissions": { "deny": ["*"] }, "mcpServers": { "fake": world.fake(&[]) } }));
    for tool in [
        "mcp__pml__x__echo",
        "mcp__pml__fake__echo",
        "mcp__pml__pml_status",
    ] {
        let id = prompt(&mut client, tool, &json!({}));
        assert_eq!(reply(&mut client, id)["behavior"], "deny", "{tool}");
    }
}

#[test]
fn questions_of_the_client_are_answered_by_a_person() {
    let world = World::new();
    let mut client = world.legacy();
    let option = |label: &str| json!({ "label": label, "description": "d" });
    let questions = json!([
        { "question": "How?", "header": "Way", "multiSelect": true, "options": [option("A"), option("B")] },
    ]);
    let id = prompt(&mut client, "AskUserQuestion", &json!({ "questions": questions }));
    assert!(world.run(&["answer", &code(&world), "A", "B"]).status.success());
    assert_eq!(
        reply(&mut client, id),
        json!({ "behavior": "allow", "updatedInput": { "questions": questions, "answers": { "How?": "A, B" } } })
    );
    for (input, reason) in [
        (json!({ "questions": [] }), "At least one question is required"),
        (json!({}), "`questions` must be a list"),
        (
            json!({ "questions": [{ "question": "?" }] }),
            "`questions[0].options` is missing",
        ),
    ] {
        let id = prompt(&mut client, "AskUserQuestion", &input);
        assert_eq!(
            reply(&mut client, id),
            json!({ "behavior": "deny", "message": reason })
        );
    }
}

#[test]
fn a_malformed_prompt_is_denied_with_the_reason() {
    let world = World::new();
    let mut client = world.legacy();
    for (arguments, reason) in [
        (json!({ "input": {} }), "`tool_name` must be a string"),
        (json!({ "tool_name": "Bash" }), "`input` must be an object"),
    ] {
        let id = client.send(
            "tools/call",
            &json!({ "name": "approval_prompt", "arguments": arguments }),
        );
        assert_eq!(
            reply(&mut client, id),
            json!({ "behavior": "deny", "message": reason })
        );
    }
}

#[test]
fn the_status_tells_servers_asks_and_denials() {
    let world = World::with_fake(&json!({ "ask": ["*"], "deny": ["fake:crash"] }), &[]);
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    let status = client.call("pml_status", &json!({}))["structuredContent"].clone();
    assert_eq!(status["servers"][0]["name"], "fake");
    assert_eq!(
        (&status["servers"][0]["state"], &status["servers"][0]["approved"]),
        (&json!("ready"), &json!(false))
    );
    assert_eq!(status["pending"][0]["tool"], "fake:echo");
    assert!(
        status["denied"][0]
            .as_str()
            .unwrap()
            .starts_with("fake:crash in the deny list of "),
        "{status}"
    );
    client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    let status = client.call("pml_status", &json!({}))["structuredContent"].clone();
    assert_eq!(
        (&status["servers"][0]["state"], &status["servers"][0]["approved"]),
        (&json!("running"), &json!(true))
    );
    assert_eq!(status["pending"], json!([]));
}

/// What a tool of the client is given in these tests, and nothing else holds.
const CANARY: &str = "c4nary-of-the-input";

/// Tells whether a text is in the file of workflows or in SQLite's log of it.
fn is_stored(world: &World, text: &str) -> bool {
    let state = world.home().join(".local/state/pml");
    ["workflows.db", "workflows.db-wal", "workflows.db-shm"]
        .iter()
        .filter_map(|file| std::fs::read(state.join(file)).ok())
        .any(|bytes| memchr::memmem::find(&bytes, text.as_bytes()).is_some())
}

/// Asserts that the input is gone; the log is emptied a moment after the end.
fn assert_erased(world: &World, end: &str) {
    eventually(&format!("the input is erased: {end}"), DEADLINE, || {
        !is_stored(world, CANARY)
    });
    let log = world.run(&["log", "--json"]);
    assert_eq!(json_of(&log)["workflows"][0]["tool"], "client:Bash", "{end}");
}

#[test]
fn the_input_of_a_prompt_is_erased_with_its_end() {
    for end in ["approve", "refuse", "expire", "withdraw"] {
        let world = World::new();
        let mut client = world.client();
        client.initialize_with_forms();
        let id = prompt(&mut client, "Bash", &json!({ "command": CANARY }));
        let code = code(&world);
        assert!(is_stored(&world, CANARY), "a person is shown it");
        let shown = json_of(&world.run(&["pending", "--json"]))["pending"][0]["arguments"].clone();
        assert_eq!(shown, format!("{{\"command\": \"{CANARY}\"}}"));
        client.notified("elicitation/create");
        match end {
            "expire" => drop(expire_workflows(&world)),
            "withdraw" => client.notify("notifications/cancelled", &json!({ "requestId": id })),
            _ => assert!(world.run(&[end, &code]).status.success()),
        }
        if end != "withdraw" {
            let expected = if end == "approve" { "allow" } else { "deny" };
            assert_eq!(reply(&mut client, id)["behavior"], expected, "{end}");
        }
        assert_erased(&world, end);
    }
}

#[test]
fn a_prompt_that_no_call_waits_for_any_more_is_withdrawn_also_without_a_dialog() {
    for end in ["cancelled", "end of input"] {
        let world = World::new();
        let mut client = world.legacy();
        let id = prompt(&mut client, "Bash", &json!({ "command": CANARY }));
        let code = code(&world);
        if end == "cancelled" {
            client.notify("notifications/cancelled", &json!({ "requestId": id }));
            assert_erased(&world, end);
        } else {
            client.close();
            assert_erased(&world, end);
        }
        let late = world.run(&["approve", &code, "--always"]);
        assert_eq!(late.status.code(), Some(1), "{end}: {late:?}");
    }
}

#[test]
fn nobody_answering_is_told_as_that_and_not_as_a_refusal() {
    let world = World::new();
    world.configure(&json!({ "approvals": { "ttlSeconds": 30 } }));
    let mut client = world.legacy();
    let id = prompt(&mut client, "Bash", &json!({ "command": CANARY }));
    code(&world);
    assert!(is_stored(&world, CANARY), "a person is shown it");
    let denied = reply(&mut client, id);
    assert_eq!(denied["behavior"], "deny");
    assert!(
        denied["message"]
            .as_str()
            .unwrap()
            .starts_with("No person answered in time, and none refused."),
        "{denied}"
    );
    assert_erased(&world, "never answered");
}

#[test]
fn the_permission_prompt_shows_that_it_waits() {
    let world = World::new();
    let mut client = world.legacy();
    let arguments = json!({ "tool_name": "Bash", "input": { "command": "ls" } });
    let params =
        json!({ "name": "approval_prompt", "arguments": arguments, "_meta": { "progressToken": "p" } });
    let id = client.send("tools/call", &params);
    let progress = client.notified("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p");
    assert!(world.run(&["approve", &code(&world)]).status.success());
    assert_eq!(reply(&mut client, id)["behavior"], "allow");
}

#[test]
fn a_rule_that_a_person_wanted_and_that_could_not_be_written_is_said() {
    if !have(&["cc"]) {
        return;
    }
    let world = World::new();
    world.configure(&json!({ "permissions": {} }));
    let before = world.read(".pml.json");
    let mut command = world.command(&["stdio"]);
    let file = world.path(".pml.json");
    let fault = Fault {
        call: "rename",
        nth: 0,
        errno: Some(rustix::io::Errno::NOSPC),
        path: &file,
    };
    inject(&mut command, &[fault]);
    let mut client = Client::start(command);
    client.initialize_with_forms();
    let arguments = json!({ "tool_name": "Bash", "input": { "command": "ls" } });
    let params =
        json!({ "name": "approval_prompt", "arguments": arguments, "_meta": { "progressToken": "p" } });
    let id = client.send("tools/call", &params);
    let request = client.notified("elicitation/create");
    let always = json!({ "action": "accept", "content": { "decision": "always" } });
    client.reply(&request, &always);
    assert_eq!(reply(&mut client, id)["behavior"], "allow", "the person said yes");
    let told = |message: &Value| {
        message["params"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        client
            .aside
            .iter()
            .any(|message| told(message).contains("could not be added to the allow list")),
        "{:?}",
        client.aside
    );
    assert_eq!(world.read(".pml.json"), before);
}

#[test]
fn a_command_is_allowed_by_its_words_and_by_nothing_that_follows_them() {
    let world = World::new();
    let permissions = json!({ "allow": ["client:Bash(git status)"], "deny": ["client:Bash(rm -rf)"] });
    world.configure(&json!({ "permissions": permissions }));
    let mut client = world.legacy();
    let input = json!({ "command": "git status --short" });
    let id = prompt(&mut client, "Bash", &input);
    assert_eq!(
        reply(&mut client, id),
        json!({ "behavior": "allow", "updatedInput": input })
    );
    let id = prompt(&mut client, "Bash", &json!({ "command": "git status; rm -rf /" }));
    let denied = reply(&mut client, id);
    assert!(
        denied["message"]
            .as_str()
            .unwrap()
            .starts_with("`client:Bash` is denied by rule `client:Bash(rm -rf)`"),
        "{denied}"
    );
    for command in [
        "git status; id",
        "git status && id",
        "git status $(id)",
        "git status\nid",
        "git status > x",
        "(git status)",
    ] {
        let id = prompt(&mut client, "Bash", &json!({ "command": command }));
        let code = code(&world);
        assert!(world.run(&["refuse", &code]).status.success());
        assert_eq!(reply(&mut client, id)["behavior"], "deny", "{command}");
    }
}
