//! A server that is launched otherwise than before: its package is compared with what was accepted all the same.

use serde_json::{Value, json};

use crate::support::have;
use crate::support::packages::SERVER_JS;
use crate::support::registry::Registry;
use crate::support::world::{World, asks, texts};

/// A registry with `plain` at two versions, and a world in which a rule allows it.
fn scene() -> Option<(Registry, World)> {
    if !have(&["node", "npm"]) {
        return None;
    }
    let registry = Registry::start();
    for version in ["1.0.0", "1.9.0"] {
        publish(&registry, version, "honest");
    }
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    declare(&world, "plain@1.0.0", &json!({}));
    Some((registry, world))
}

fn publish(registry: &Registry, version: &str, says: &str) {
    registry.publish(
        "dep",
        "1.0.0",
        &json!({ "main": "index.js" }),
        &[("index.js", "module.exports = 1;")],
    );
    let server = format!("{SERVER_JS}\n// {says}\n");
    let manifest = json!({ "bin": "server.js", "dependencies": { "dep": "1.0.0" } });
    registry.publish("plain", version, &manifest, &[("server.js", &server)]);
}

fn declare(world: &World, spec: &str, env: &Value) {
    let server = json!({ "command": "npx", "args": ["-y", spec], "env": env });
    world.configure(&json!({ "permissions": { "allow": ["plain"] }, "mcpServers": { "plain": server } }));
}

fn look(world: &World) -> Value {
    world.legacy().call("plain__look", &json!({}))
}

fn assert_asks_about_the_package(asked: &Value) {
    assert!(asks(asked), "{asked}");
    assert_eq!(asked["approval_context"]["type"], "integrity", "{asked}");
    assert_eq!(
        asked["approval_context"]["dependency"]["change"]["part"], "package",
        "{asked}"
    );
}

#[test]
fn a_range_that_means_another_version_than_was_accepted_asks() {
    let Some((_registry, world)) = scene() else {
        return;
    };
    let first = look(&world);
    assert!(!asks(&first), "{first}");
    declare(&world, "plain@^1", &json!({}));
    let asked = look(&world);
    assert_asks_about_the_package(&asked);
    let lines = asked["approval_context"]["dependency"]["change"]["lines"].to_string();
    assert!(
        lines.contains("- version 1.0.0") && lines.contains("+ version 1.9.0"),
        "{lines}"
    );
    assert_eq!(
        world.recorded("start").len(),
        1,
        "it was started once, as it was accepted"
    );
    world.approve_oldest();
    let called = look(&world);
    assert!(!asks(&called), "{called}");
}

#[test]
fn a_range_that_means_the_accepted_version_runs() {
    let Some((_registry, world)) = scene() else {
        return;
    };
    declare(&world, "plain@1.9.0", &json!({}));
    assert!(!asks(&look(&world)));
    declare(&world, "plain@^1", &json!({}));
    let called = look(&world);
    assert!(!asks(&called), "{called}");
}

#[test]
fn the_same_version_with_other_content_asks_also_with_another_variable() {
    let Some((registry, world)) = scene() else {
        return;
    };
    assert!(!asks(&look(&world)));
    std::fs::remove_dir_all(world.home().join(".local/share/pml")).unwrap();
    std::fs::remove_dir_all(world.home().join(".cache/pml")).unwrap();
    publish(&registry, "1.0.0", "hijacked");
    declare(&world, "plain@1.0.0", &json!({ "X": "1" }));
    let asked = look(&world);
    assert_asks_about_the_package(&asked);
    // Both in one question.
    let lines = asked["approval_context"]["dependency"]["change"]["lines"].to_string();
    assert!(
        lines.contains("+ gets the variable X") && lines.contains("the same version has other content"),
        "{lines}"
    );
    assert!(!texts(&asked).concat().contains("hijacked"), "{asked}");
    assert_eq!(
        world.recorded("start").len(),
        1,
        "it was started once, as it was accepted"
    );
}
