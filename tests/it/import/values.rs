//! The value of a variable reaches the server it was given to, and no other: in whatever client, by whichever import.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{started_by, write};
use crate::support::world::{World, stderr, texts};

/// Returns what a server has for a variable where a client starts pml; `None` where it does not run there.
fn received(world: &World, file: &str, server: &str, variable: &str) -> Option<String> {
    let mut client = started_by(world, file);
    let answer = client.call(&format!("{server}__environment"), &json!({}));
    let said = texts(&answer).concat();
    assert!(client.close().success());
    let variables: Value = serde_json::from_str(&said).ok()?;
    variables[variable].as_str().map(str::to_owned)
}

fn cursor(world: &World, servers: &Value) {
    write(
        world,
        ".cursor/mcp.json",
        &json!({ "mcpServers": servers }).to_string(),
    );
}

fn server(key: &str) -> Value {
    json!({ "command": "FAKE", "env": { "API_KEY": key, "PML_TEST_MARK": "MARK" } })
}

/// Adds a server beside what stands in Cursor's file.
fn add_to_cursor(world: &World, name: &str, entry: Value) {
    let mut file: Value = serde_json::from_str(&super::read(world, ".cursor/mcp.json")).unwrap();
    file["mcpServers"][name] = entry;
    write(world, ".cursor/mcp.json", &file.to_string());
}

#[test]
fn two_servers_of_one_client_keep_their_own_keys() {
    let world = World::new();
    cursor(
        &world,
        &json!({ "one": server("key-of-one-1111"), "two": server("key-of-two-2222") }),
    );
    let done = world.run(&["import", "--yes"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let of = |server: &str| received(&world, ".cursor/mcp.json", server, "API_KEY");
    assert_eq!(of("one").as_deref(), Some("key-of-one-1111"));
    assert_eq!(of("two").as_deref(), Some("key-of-two-2222"));
}

#[test]
fn a_key_of_one_client_reaches_no_server_of_another() {
    let world = World::new();
    cursor(&world, &json!({ "a": server("key-of-a-1111") }));
    let windsurf = json!({ "mcpServers": { "b": server("key-of-b-2222") } });
    write(&world, ".codeium/windsurf/mcp_config.json", &windsurf.to_string());
    let done = world.run(&["import", "--yes"]);
    assert!(done.status.success(), "{}", stderr(&done));
    for (file, a, b) in [
        (".cursor/mcp.json", Some("key-of-a-1111"), None),
        (".codeium/windsurf/mcp_config.json", None, Some("key-of-b-2222")),
    ] {
        assert_eq!(received(&world, file, "a", "API_KEY").as_deref(), a, "{file}");
        assert_eq!(received(&world, file, "b", "API_KEY").as_deref(), b, "{file}");
    }
}

#[test]
fn a_server_that_comes_later_has_its_own_key_and_no_value_is_lost() {
    let world = World::new();
    cursor(&world, &json!({ "a": server("key-of-a-1111") }));
    assert!(world.run(&["import", "--yes"]).status.success());
    add_to_cursor(&world, "b", server("key-of-b-2222"));
    let done = world.run(&["import", "--yes"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let of = |server: &str| received(&world, ".cursor/mcp.json", server, "API_KEY");
    assert_eq!(of("a").as_deref(), Some("key-of-a-1111"));
    assert_eq!(of("b").as_deref(), Some("key-of-b-2222"));
    assert!(super::read(&world, ".cursor/mcp.json").contains("key-of-b-2222"));
}

#[test]
fn two_accounts_of_one_server_are_two_servers() {
    let world = World::new();
    cursor(&world, &json!({ "one": server("key-of-me-1111") }));
    let windsurf = json!({ "mcpServers": { "one": server("key-of-work-2222") } });
    write(&world, ".codeium/windsurf/mcp_config.json", &windsurf.to_string());
    let gemini = json!({ "mcpServers": { "one": server("key-of-me-1111") } });
    write(&world, ".gemini/settings.json", &gemini.to_string());
    let done = world.run(&["import", "--yes"]);
    let said = stderr(&done);
    assert!(done.status.success(), "{said}");
    assert!(
        said.contains("the same as `one`"),
        "one account is one server: {said}"
    );
    let windsurf = ".codeium/windsurf/mcp_config.json";
    let work = received(&world, windsurf, "one-windsurf", "API_KEY");
    assert_eq!(work.as_deref(), Some("key-of-work-2222"));
    assert_eq!(received(&world, windsurf, "one", "API_KEY"), None);
    for file in [".cursor/mcp.json", ".gemini/settings.json"] {
        assert_eq!(
            received(&world, file, "one", "API_KEY").as_deref(),
            Some("key-of-me-1111"),
            "{file}"
        );
    }
}

#[test]
fn what_a_projects_server_needs_is_named_apart_from_what_the_users_has() {
    let world = World::new();
    cursor(&world, &json!({ "mine": server("key-of-mine-1111") }));
    let project = json!({ "mcpServers": { "theirs": server("key-of-theirs-2222") } });
    write(&world, "project/.mcp.json", &project.to_string());
    let done = world.run(&["import", "--yes"]);
    let said = stderr(&done);
    assert!(done.status.success(), "{said}");
    let mine = received(&world, ".cursor/mcp.json", "mine", "API_KEY");
    assert_eq!(mine.as_deref(), Some("key-of-mine-1111"));
    assert_eq!(received(&world, ".cursor/mcp.json", "theirs", "API_KEY"), None);
    // A project's value is written nowhere: the person sets it, by the name that is said.
    world.set("API_KEY", "key-of-theirs-2222");
    assert!(
        said.contains("set API_KEY in the environment that Claude Code is started in"),
        "{said}"
    );
    assert!(
        said.contains("what stood there for API_KEY is kept for you alone in ~/.local/state/pml/imports/"),
        "{said}"
    );
    let theirs = received(&world, "project/.mcp.json", "theirs", "API_KEY");
    assert_eq!(theirs.as_deref(), Some("key-of-theirs-2222"));
    let mine = received(&world, "project/.mcp.json", "mine", "MINE_API_KEY");
    assert_eq!(mine, None, "Claude Code does not have it");
}
