//! Clients that start pml in `/` or in the home, and name their project as a root.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::world::{Client, World, asks, texts};

/// A world whose project allows its server `fake`; `user` declares one as well.
fn world() -> World {
    World::with_fake(&json!({ "allow": ["*"] }), &[])
}

/// Starts `pml stdio` in a directory and opens the conversation with these capabilities.
fn started(world: &World, directory: &Path, capabilities: &Value) -> Client {
    let mut command = world.command(&["stdio"]);
    command.current_dir(directory);
    let mut client = Client::start(command);
    let told = json!({ "name": "desktop", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": told });
    let opened = client.request("initialize", &params);
    assert!(opened["result"]["capabilities"]["tools"].is_object(), "{opened}");
    client.notify("notifications/initialized", &json!({}));
    client
}

/// Opens the conversation of a client with these roots, which answers when it is asked and has asked for the tools by then.
fn rooted(world: &World, directory: &Path, roots: &[String]) -> (Client, Vec<String>) {
    let mut client = started(world, directory, &json!({ "roots": { "listChanged": true } }));
    let listing = client.send("tools/list", &json!({}));
    let asked: Value = serde_json::from_str(&client.line()).unwrap();
    assert_eq!(asked["method"], "roots/list", "{asked}");
    let roots: Vec<Value> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
    client.reply(&asked, &json!({ "roots": roots }));
    let tools = names(&client.answer(listing));
    (client, tools)
}

fn names(listed: &Value) -> Vec<String> {
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn status(client: &mut Client) -> Value {
    client.call("pml_status", &json!({}))["structuredContent"]["config"].clone()
}

#[test]
fn the_file_of_the_root_counts_from_the_first_list_on() {
    let world = world();
    let project = world.project().canonicalize().unwrap();
    for directory in [Path::new("/"), world.home()] {
        let roots = [uri(&project), "https://example.com/x".to_owned()];
        let (mut client, tools) = rooted(&world, directory, &roots);
        assert!(tools.iter().any(|tool| tool.starts_with("fake__")), "{tools:?}");
        let said = status(&mut client);
        assert_eq!(
            (&said["file"], &said["note"]),
            (&json!(project.join(".pml.json")), &Value::Null)
        );
        assert!(!asks(&client.call("fake__echo", &json!({ "a": 1 }))));
        client.close();
    }
}

#[test]
fn a_call_that_comes_before_the_roots_waits_for_them() {
    let world = world();
    let mut client = started(&world, world.home(), &json!({ "roots": {} }));
    let call = client.send(
        "tools/call",
        &json!({ "name": "fake__echo", "arguments": { "a": 1 } }),
    );
    let asked: Value = serde_json::from_str(&client.line()).unwrap();
    let pinged = client.request("ping", &json!({}));
    assert_eq!(pinged["result"], json!({}), "what needs no project is answered");
    client.reply(&asked, &json!({ "roots": [{ "uri": uri(&world.project()) }] }));
    let called = client.answer(call);
    assert!(called["result"]["content"].is_array(), "{called}");
    assert!(!asks(&called["result"]), "{called}");
}

#[test]
fn a_file_that_came_with_a_repository_grants_nothing_through_a_root() {
    let world = World::new();
    let marker = world.path("marker");
    world.configure(&json!({
        "permissions": { "allow": ["*"] },
        "mcpServers": { "evil": { "command": "touch", "args": [marker] } },
    }));
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let done = world
            .program(Path::new("git"))
            .args(identity)
            .args(arguments)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", ".pml.json"]);
    git(&["commit", "--quiet", "--message", "all"]);
    let (mut client, tools) = rooted(&world, world.home(), &[uri(&world.project())]);
    let asked = client.call("evil__connect", &json!({}));
    assert!(asks(&asked), "{tools:?} {asked}");
    // Exactly as where pml is started in the project.
    let mut inside = started(&world, &world.project(), &json!({ "roots": {} }));
    let there = inside.call("evil__connect", &json!({}));
    assert_eq!(
        asked["approval_context"]["type"],
        there["approval_context"]["type"]
    );
    inside.close();
    client.close();
    assert!(!marker.exists(), "nothing ran");
}

#[test]
fn several_projects_are_none_and_the_status_says_so() {
    let world = world();
    let other = world.home().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join(".pml.json"), "{}").unwrap();
    let (mut client, tools) = rooted(&world, world.home(), &[uri(&world.project()), uri(&other)]);
    assert!(!tools.iter().any(|tool| tool.starts_with("fake__")), "{tools:?}");
    let said = status(&mut client);
    assert_eq!(
        (&said["file"], &said["note"]),
        (
            &Value::Null,
            &json!(format!(
                "`{}` does not count here: the client works in several folders with a file each",
                other.join(".pml.json").display()
            ))
        )
    );
}

#[test]
fn without_roots_the_status_says_that_there_is_no_file() {
    let world = world();
    let mut client = started(&world, world.home(), &json!({}));
    let said = status(&mut client);
    assert_eq!(
        (&said["file"], &said["note"]),
        (
            &Value::Null,
            &json!(format!(
                "there is no .pml.json for `{}`; a person writes one by `pml init` or `pml add`",
                world.home().display()
            ))
        )
    );
    // A client that declares roots and refuses to name them is no worse off.
    let mut client = started(&world, world.home(), &json!({ "roots": {} }));
    let asked: Value = serde_json::from_str(&client.line()).unwrap();
    client.raw(
        &json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -32603, "message": "no" } })
            .to_string(),
    );
    assert_eq!(status(&mut client)["file"], Value::Null);
    assert_eq!(texts(&client.call("pml_status", &json!({}))).len(), 1);
}

#[test]
fn in_a_project_no_client_is_asked() {
    let world = world();
    let mut client = started(&world, &world.project(), &json!({ "roots": {} }));
    assert!(client.tools().contains(&"fake__connect".to_owned()));
    assert!(
        client
            .aside
            .iter()
            .all(|message| message["method"] != "roots/list")
    );
}

#[test]
fn a_client_that_never_names_its_roots_is_served_without() {
    let world = world();
    let mut client = started(&world, world.home(), &json!({ "roots": {} }));
    let tools = client.tools();
    assert!(tools.contains(&"pml_status".to_owned()), "{tools:?}");
    let told: Vec<&Value> = client.aside.iter().map(|message| &message["method"]).collect();
    assert_eq!(told, ["roots/list", "notifications/cancelled"]);
}
