//! `pml check` and `pml list` say what a call will do: the call that follows does just that.

use serde_json::{Value, json};

use crate::support::world::{World, asks, json_of, stdout};

/// What `pml check` and `pml list` say of a tool of `fake`.
fn forecast(world: &World, tool: &str) -> Value {
    let checked = world.run(&["check", "--json", &format!("fake:{tool}")]);
    let code = checked.status.code();
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(code == Some(0), checked["decision"] == "allow", "{checked}");
    let listed = json_of(&world.run(&["list", "--json"]));
    let server = &listed["servers"][0];
    let of_tool = server["tools"].as_array().into_iter().flatten();
    for listed in of_tool.filter(|listed| listed["tool"] == checked["tool"]) {
        for member in ["decision", "asks", "reason"] {
            assert_eq!(listed[member], checked[member], "{member}");
        }
    }
    checked
}

fn said(world: &World, tool: &str) -> (String, String) {
    let checked = stdout(&world.run(&["check", &format!("fake:{tool}")]));
    let listed = stdout(&world.run(&["list", "--tools"]));
    (checked, listed)
}

#[test]
fn an_approved_server_is_said_to_run_with_the_approval_as_the_reason() {
    let world = World::with_fake(&json!({ "ask": ["*"] }), &[]);
    let before = forecast(&world, "echo");
    assert_eq!(
        (&before["decision"], &before["asks"], &before["approval"]),
        (&json!("ask"), &json!("first"), &Value::Null)
    );
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert!(asks(&asked), "{asked}");
    client.proceed("fake__echo", &asked, &json!({ "approved": true }));

    let after = forecast(&world, "echo");
    assert_eq!(
        (&after["decision"], &after["asks"]),
        (&json!("allow"), &Value::Null)
    );
    assert!(after["approval"]["approvedAt"].is_u64(), "{after}");
    assert_eq!(after["rule"]["pattern"], "*");
    let reason = after["reason"].as_str().unwrap();
    assert!(reason.starts_with("its server was approved on 20"), "{reason}");
    assert!(
        !asks(&client.call("fake__echo", &json!({}))),
        "what is said is so"
    );
    let (checked, listed) = said(&world, "echo");
    assert!(
        checked.starts_with("allow: `fake:echo` runs without a question\n"),
        "{checked}"
    );
    assert!(
        checked.contains("rule `*` in the ask list (.pml.json:"),
        "{checked}"
    );
    assert!(listed.contains("  yes       run "), "{listed}");
    assert!(
        listed.contains(&format!("  fake:echo  runs: {reason}\n")),
        "{listed}"
    );

    // Taken back, it asks again.
    assert!(world.run(&["uninstall", "fake"]).status.success());
    assert_eq!(forecast(&world, "echo")["decision"], "ask");
    assert!(asks(&client.call("fake__echo", &json!({}))));
}

#[test]
fn a_narrower_rule_a_deny_and_a_disabled_server_are_told_apart() {
    let permissions = json!({ "ask": ["*", "fake:echo"], "deny": ["fake:slow"] });
    let world = World::with_fake(&permissions, &[]);
    let mut client = world.legacy();
    let asked = client.call("fake__connect", &json!({}));
    client.proceed("fake__connect", &asked, &json!({ "approved": true }));
    let told = |tool: &str| {
        let forecast = forecast(&world, tool);
        let rule = forecast["rule"]["pattern"].as_str().unwrap().to_owned();
        (forecast["decision"].clone(), forecast["asks"].clone(), rule)
    };
    let expected = |decision: &str, asks: Value, rule: &str| (json!(decision), asks, rule.to_owned());
    assert_eq!(told("echo"), expected("ask", json!("every"), "fake:echo"));
    assert_eq!(told("slow"), expected("deny", Value::Null, "fake:slow"));
    assert_eq!(told("other"), expected("allow", Value::Null, "*"));
    assert!(asks(&client.call("fake__echo", &json!({}))), "what is said is so");
    let (_, listed) = said(&world, "echo");
    assert!(
        listed.contains("  fake:echo  asks before every call: rule `fake:echo`"),
        "{listed}"
    );
    assert!(listed.contains("  yes       mixed "), "{listed}");

    let mut configured: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    configured["mcpServers"]["fake"]["disabled"] = json!(true);
    world.configure(&configured);
    let (checked, listed) = said(&world, "other");
    assert_eq!(
        checked,
        "deny: `fake:other` never runs\n  its server is disabled\n"
    );
    assert!(listed.contains(" never "), "{listed}");
}

#[test]
fn what_waits_to_be_accepted_is_said_to_ask_although_a_rule_allows_it_and_then_asks() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    assert_eq!(world.foretold("fake:echo").0, "allow");
    assert!(!asks(&world.legacy().call("fake__echo", &json!({}))));
    let mut config: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    config["mcpServers"]["fake"]["args"] = json!(["--banner"]);
    world.configure(&config);

    world.assert_foretells_change(
        "fake:echo",
        "its server is declared otherwise than you accepted it",
    );
    let (checked, listed) = said(&world, "echo");
    assert_eq!(
        checked,
        "ask: `fake:echo` asks whether you accept what changed\n  \
         its server is declared otherwise than you accepted it\n  \
         to see it: pml diff fake; to accept it: pml approve fake\n"
    );
    assert!(listed.contains("  no        changed "), "{listed}");
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert_eq!(
        asked["approval_context"]["type"], "integrity",
        "what is said is so: {asked}"
    );

    // The command that is named accepts it.
    let approved = world.run(&["approve", "--yes", "fake"]);
    assert!(approved.status.success(), "{approved:?}");
    assert_eq!(world.foretold("fake:echo").0, "allow");
    assert!(!asks(&client.call("fake__echo", &json!({}))));

    // A record that cannot be read refuses, and that is said, too.
    let pins = world.home().join(".local/state/pml/pins");
    let records = std::fs::read_dir(&pins)
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    for record in records.filter(|path| path.extension().is_some_and(|found| found == "json")) {
        std::fs::write(record, "{").unwrap();
    }
    let (decision, _, reason) = world.foretold("fake:echo");
    assert_eq!(
        (decision.as_str(), reason.as_str()),
        ("deny", "what you accepted of its server cannot be read")
    );
    assert_eq!(world.legacy().call("fake__echo", &json!({}))["isError"], true);
}

#[test]
fn one_tool_that_is_defined_otherwise_is_said_to_ask_and_the_others_run() {
    let world = World::new();
    let tool = |name: &str, text: &str| json!({ "name": name, "description": text, "inputSchema": { "type": "object" } });
    let list = |text: &str| {
        let tools = json!({ "tools": [tool("echo", text), tool("wait", "Waits.")] });
        world.write("tools.json", &tools.to_string());
    };
    list("Says it.");
    let file = world.path("tools.json");
    let server = world.fake(&["--answer", "tools/list", file.to_str().unwrap()]);
    let config = |pin: bool| json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": server }, "pinTools": pin });
    let own = world.home().join(".config/pml/pml.json");
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    std::fs::write(&own, config(true).to_string()).unwrap();
    assert!(!asks(&world.legacy().call("fake__echo", &json!({}))));
    list("Says it all.");
    assert!(asks(&world.legacy().call("fake__echo", &json!({}))));

    world.assert_foretells_change("fake:echo", "it is not defined as you accepted it");
    assert_eq!(world.foretold("fake:wait").0, "allow");
    let (_, listed) = said(&world, "echo");
    assert!(listed.contains(" mixed "), "{listed}");
    // For a server under development nothing is compared.
    std::fs::write(&own, config(false).to_string()).unwrap();
    assert_eq!(world.foretold("fake:echo").0, "allow");
}
