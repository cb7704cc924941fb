//! What an import carries over beside the line of a server: its tools, and the file that it goes into; and the exact version
//! that it gets.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{read, started_by, write};
use crate::support::have;
use crate::support::packages::publish_server;
use crate::support::registry::Registry;
use crate::support::world::{World, stderr};

#[test]
fn a_floating_package_gets_the_exact_version_of_today_and_says_so() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    publish_server(&registry, "1.2.0", &json!({}));
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    let npx = |package: &str, flag: &str| json!({ "command": "npx", "args": ["-y", package, flag] });
    let servers = json!({ "new": npx("hello", "--new"), "old": npx("hello@1.0.0", "--old") });
    write(
        &world,
        ".cursor/mcp.json",
        &json!({ "mcpServers": servers }).to_string(),
    );
    let done = world.run(&["import", "--yes"]);
    let said = stderr(&done);
    assert!(done.status.success(), "{said}");
    assert_eq!(said.matches("was floating: hello").count(), 1, "{said}");
    let own: Value = serde_json::from_str(&read(&world, ".config/pml/pml.json")).unwrap();
    let args = |name: &str| own["mcpServers"][name]["args"].clone();
    assert_eq!(args("new"), json!(["-y", "hello@1.2.0", "--new"]));
    assert_eq!(args("old"), json!(["-y", "hello@1.0.0", "--old"]));
    let mut client = started_by(&world, ".cursor/mcp.json");
    let tools = client.tools();
    for tool in ["new__look", "old__look"] {
        assert!(tools.contains(&tool.to_owned()), "{tool}: {tools:?}");
    }
    assert!(client.close().success());
    drop(registry);
}

#[test]
fn the_tools_that_a_client_leaves_out_are_neither_listed_nor_called() {
    let world = World::new();
    write(
        &world,
        ".codex/config.toml",
        "[mcp_servers.one]\ncommand = \"FAKE\"\nenabled_tools = [\"echo\", \"environment\"]\n\
         disabled_tools = [\"environment\"]\nenv = { PML_TEST_MARK = \"MARK\" }\n",
    );
    let done = world.run(&["import", "--yes"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let own: Value = serde_json::from_str(&read(&world, ".config/pml/pml.json")).unwrap();
    assert_eq!(
        own["mcpServers"]["one"]["tools"],
        json!(["echo", "environment", "!environment"])
    );
    let mut client = started_by(&world, ".codex/config.toml");
    let tools = client.tools();
    let of_one: Vec<&String> = tools.iter().filter(|tool| tool.starts_with("one__")).collect();
    assert_eq!(of_one, ["one__echo"]);
    assert_eq!(client.call("one__environment", &json!({}))["isError"], true);
    assert!(client.close().success());
}

#[test]
fn all_servers_go_into_the_file_that_is_asked_for() {
    for (option, file) in [
        ("--user", ".config/pml/pml.json"),
        ("--project", "project/.pml.json"),
    ] {
        let world = World::new();
        let servers = |name: &str| json!({ "mcpServers": { name: { "command": "FAKE", "env": { "PML_TEST_MARK": "MARK" } } } });
        write(&world, ".cursor/mcp.json", &servers("mine").to_string());
        write(&world, "project/.mcp.json", &servers("ours").to_string());
        let done = world.run(&["import", "--yes", option]);
        assert!(done.status.success(), "{}", stderr(&done));
        let declared: Value = serde_json::from_str(&read(&world, file)).unwrap();
        let names: Vec<&String> = declared["mcpServers"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["ours", "mine"], "{option}");
    }
}
