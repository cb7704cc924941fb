//! The list `tools` of a server, and rules about tools that only read: what is listed, what may be called.

use serde_json::{Value, json};

use crate::support::world::{Client, World, asks, json_of, stderr, stdout, texts};

/// A world with a server that has these tools in a file beside those of its kind, declared in the user's file.
fn world(permissions: &Value, user: &Value, project: &Value) -> World {
    let world = World::new();
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let tools: Vec<Value> = ["echo", "give", "connect", "prompts/x"]
        .into_iter()
        .map(tool)
        .collect();
    world.write("tools.json", &json!({ "tools": tools }).to_string());
    let file = world.path("tools.json");
    let mut server = world.fake(&[
        "--offers",
        "own",
        "--answer",
        "tools/list",
        file.to_str().unwrap(),
    ]);
    if !user.is_null() {
        server["tools"] = user.clone();
    }
    let config = json!({ "permissions": permissions, "mcpServers": { "fake": server } });
    let directory = world.home().join(".config/pml");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(
        directory.join("pml.json"),
        serde_json::to_string_pretty(&config).unwrap(),
    )
    .unwrap();
    if !project.is_null() {
        world.configure(&json!({ "mcpServers": { "fake": { "tools": project } } }));
    }
    world
}

fn listed(client: &mut Client) -> Vec<String> {
    let mut tools = client.tools();
    tools.retain(|tool| tool.starts_with("fake__"));
    tools
}

#[test]
fn what_a_list_takes_away_is_neither_listed_nor_called() {
    let world = world(
        &json!({ "allow": ["*"] }),
        &json!(["e*", "give", "!give"]),
        &Value::Null,
    );
    let mut client = world.legacy();
    assert_eq!(texts(&client.call("fake__echo", &json!({ "a": 1 }))).len(), 1);
    assert_eq!(listed(&mut client), ["fake__echo"]);
    for (name, says) in [
        (
            "fake__give",
            "`fake:give` is not offered: `tools` of `fake` excepts it by `!give`",
        ),
        ("fake:give", "`fake:give` is not offered"),
        (
            "fake__unknown",
            "`fake:unknown` is not offered: `tools` of `fake` does not name it",
        ),
        // A tool that is called as prompts and as the stand-in of unknown tools are.
        ("fake:prompts/x", "`fake:prompts/x` is not offered"),
        ("fake__connect", "`fake:connect` is not offered"),
    ] {
        let refused = client.call(name, &json!({}));
        assert_eq!(refused["isError"], true, "{refused}");
        let text = texts(&refused).join("\n");
        assert!(text.starts_with(says), "{text}");
        assert!(
            text.contains("in the tools list of ") && text.contains("pml.json, line "),
            "{text}"
        );
    }
    // Prompts and resources are not tools.
    let prompts = client.request("prompts/list", &json!({}));
    assert!(
        !prompts["result"]["prompts"].as_array().unwrap().is_empty(),
        "{prompts}"
    );
    let resources = client.request("resources/list", &json!({}));
    assert!(
        !resources["result"]["resources"].as_array().unwrap().is_empty(),
        "{resources}"
    );
}

#[test]
fn a_project_narrows_what_the_user_offers_and_widens_nothing() {
    let world = world(
        &json!({ "allow": ["*"] }),
        &json!(["echo", "give"]),
        &json!(["*", "!give"]),
    );
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    assert_eq!(listed(&mut client), ["fake__echo"]);
    let refused = client.call("fake__give", &json!({ "result": "{}" }));
    assert!(
        texts(&refused)[0].contains("project/.pml.json, line "),
        "{refused}"
    );

    // Declared again by the project, the user's list still counts.
    let file = world.path("tools.json");
    let mut server = world.fake(&["--answer", "tools/list", file.to_str().unwrap()]);
    server["tools"] = json!(["*"]);
    world.configure(&json!({ "mcpServers": { "fake": server } }));
    client.call("fake__echo", &json!({}));
    assert_eq!(listed(&mut client), ["fake__echo", "fake__give"]);
}

#[test]
fn a_file_that_is_not_accepted_narrows_too() {
    let world = world(&json!({ "allow": ["*"] }), &Value::Null, &json!(["echo"]));
    let user = world.home().join(".config/pml/pml.json");
    let text = std::fs::read_to_string(&user).unwrap();
    std::fs::write(&user, text.replacen('{', r#"{ "projectTrust": "strict","#, 1)).unwrap();
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    assert_eq!(listed(&mut client), ["fake__echo"]);
}

#[test]
fn a_known_route_ends_with_the_list_that_takes_its_tool_away() {
    let world = world(&json!({ "allow": ["*"] }), &Value::Null, &Value::Null);
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    assert_ne!(client.call("fake__echo", &json!({}))["isError"], true);
    world.configure(&json!({ "mcpServers": { "fake": { "tools": ["!echo"] } } }));
    assert_eq!(client.call("fake__echo", &json!({}))["isError"], true);
}

#[test]
fn a_list_of_tools_is_marked_and_a_name_that_nobody_declares_narrows_nothing() {
    let world = world(&json!({ "allow": ["*"] }), &json!(["echo"]), &Value::Null);
    world.configure(&json!({ "mcpServers": { "elsewhere": { "tools": ["a"] } } }));
    world.legacy().call("fake__echo", &json!({}));
    let listed = stdout(&world.run(&["list", "--tools"]));
    assert!(listed.contains("  1 of 4  "), "{listed}");
    assert!(
        listed.contains("  fake:give  hidden: `tools` of its server (~/.config/pml/pml.json:"),
        "{listed}"
    );
    let json = json_of(&world.run(&["list", "--json"]));
    let hidden: Vec<_> = json["servers"][0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["hidden"])
        .collect();
    assert_eq!(hidden, [&json!(false), &json!(true), &json!(true), &json!(true)]);
    assert_eq!(json["servers"].as_array().unwrap().len(), 1, "{json}");
    let checked = world.run(&["check", "fake:give"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(
        stdout(&checked)
            .starts_with("deny: `fake:give` never runs\n  it is not offered: `tools` of its server (")
    );
}

#[test]
fn a_list_that_is_none_is_refused_where_it_stands() {
    let world = World::new();
    world.write(".pml.json", "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"tools\": [\"[b\"]\n    }\n  }\n}\n");
    let output = world.run(&["rules"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(".pml.json:5:17"), "{}", stderr(&output));
}

/// A world with a server whose tools say of themselves what they do.
fn reading(permissions: &Value, hint: &Value) -> World {
    let world = World::new();
    write_tools(&world, hint);
    let file = world.path("tools.json");
    let server = world.fake(&["--answer", "tools/list", file.to_str().unwrap()]);
    world.configure(&json!({ "permissions": permissions, "mcpServers": { "fake": server } }));
    world
}

fn write_tools(world: &World, hint: &Value) {
    let tool = |name: &str, annotations: &Value| json!({ "name": name, "inputSchema": { "type": "object" }, "annotations": annotations });
    let tools = [
        tool("echo", hint),
        tool("give", &json!({ "readOnlyHint": true, "destructiveHint": true })),
        tool("big", &Value::Null),
    ];
    world.write("tools.json", &json!({ "tools": tools }).to_string());
}

#[test]
fn everything_that_only_reads_is_allowed_in_one_line() {
    let world = reading(
        &json!({ "allow": ["*@readonly"] }),
        &json!({ "readOnlyHint": true }),
    );
    let mut client = world.legacy();
    // What a server that was never accepted says of itself counts for nothing.
    let asked = client.call("fake__echo", &json!({}));
    assert!(asks(&asked), "{asked}");
    client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    let checked = |tool: &str| json_of_any(&world, tool)["rule"]["pattern"].clone();
    assert_eq!(checked("echo"), "*@readonly");
    assert_eq!(checked("give"), "*");
    assert_eq!(checked("big"), "*");

    // The approval of the server is gone; the accepted hint is not.
    assert!(world.run(&["ask", "fake"]).status.success());
    assert!(
        asks(&client.call("fake__echo", &json!({}))),
        "the narrower rule wins"
    );
    assert!(world.run(&["forget", "fake"]).status.success());
    assert!(world.run(&["deny", "fake:echo"]).status.success());
    assert_eq!(
        client.call("fake__echo", &json!({}))["isError"],
        true,
        "deny always wins"
    );
}

fn json_of_any(world: &World, tool: &str) -> Value {
    serde_json::from_slice(&world.run(&["check", "--json", &format!("fake:{tool}")]).stdout).unwrap()
}

#[test]
fn a_hint_that_changed_counts_only_once_it_is_accepted() {
    let permissions = json!({ "allow": ["fake:*@readonly"], "ask": ["fake"] });
    let world = reading(&permissions, &json!({}));
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    assert!(
        asks(&client.call("fake__echo", &json!({}))),
        "it does not say that it reads"
    );
    client.close();

    write_tools(&world, &json!({ "readOnlyHint": true }));
    let mut client = world.legacy();
    for _ in 0..2 {
        let asked = client.call("fake__echo", &json!({}));
        assert!(asks(&asked), "{asked}");
        assert_eq!(json_of_any(&world, "echo")["rule"]["pattern"], "fake");
        client.proceed("fake__echo", &asked, &json!({ "approved": false }));
    }
}

#[test]
fn a_condition_of_the_server_can_only_allow() {
    let world = World::new();
    for list in ["deny", "ask"] {
        let refused = world.run(&[list, "*@readonly"]);
        assert_ne!(refused.status.code(), Some(0));
        assert!(
            stderr(&refused).contains("`*@readonly` can only be allowed"),
            "{}",
            stderr(&refused)
        );
    }
    assert!(!world.path(".pml.json").exists());
}

#[test]
fn a_method_that_pml_does_not_know_counts_by_its_name_as_a_tool_does() {
    for (tools, passes) in [
        (Value::Null, true),
        (json!(["echo"]), false),
        (json!(["echo", "x/*"]), true),
        (json!(["!x/list"]), false),
    ] {
        let world = world(&json!({ "allow": ["*"] }), &tools, &Value::Null);
        let mut client = world.legacy();
        client.call("fake__echo", &json!({}));
        let answer = client.request("x/list", &json!({}));
        let said = answer["error"]["message"].as_str().unwrap();
        let refused = said.contains("`fake:x/list` is not offered: `tools` of `fake`");
        // The server does not know it either, which it says itself.
        assert_eq!(refused, !passes, "{tools}: {answer}");
    }
}
