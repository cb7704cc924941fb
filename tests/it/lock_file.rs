//! `.pml.lock` and the commands around it: what a team reviewed is what is compared, and an upgrade is shown first.

use serde_json::{Value, json};

use crate::shown_contents::asked_with_contents;
use crate::support::have;
use crate::support::packages::{SERVER_JS, files_below};
use crate::support::registry::Registry;
use crate::support::terminal::typed;
use crate::support::world::{World, asks, json_of, stderr, stdout, texts};

/// Publishes the server `hello` whose tool `look` is described as `says`.
pub(crate) fn publish(registry: &Registry, version: &str, says: &str, dependencies: &Value) {
    let tools = format!("({{ name, description: '{says}', inputSchema: {{ type: 'object' }} }})");
    let server = SERVER_JS.replace("({ name, inputSchema: { type: 'object' } })", &tools);
    assert_ne!(server, SERVER_JS);
    let manifest = json!({ "bin": "server.js", "dependencies": dependencies });
    registry.publish("hello", version, &manifest, &[("server.js", &server)]);
}

fn publish_dependency(registry: &Registry, version: &str) {
    let text = format!("module.exports = '{version}';");
    registry.publish(
        "dep",
        version,
        &json!({ "main": "index.js" }),
        &[("index.js", &text)],
    );
}

pub(crate) fn world(registry: &Registry) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world
}

/// A world in which `hello` was added at 1.0.0, while the registry has 1.1.0 too.
pub(crate) fn upgradable() -> Option<(Registry, World)> {
    if !have(&["node", "npm"]) {
        return None;
    }
    let registry = Registry::start();
    publish_dependency(&registry, "1.0.0");
    publish(&registry, "1.0.0", "Looks.", &json!({}));
    let world = world(&registry);
    let added = world.run(&["add", "--yes", "hello", "--", "npx", "-y", "hello", "--flag"]);
    assert!(added.status.success(), "{added:?}");
    publish(&registry, "1.1.0", "Looks around.", &json!({ "dep": "1.0.0" }));
    std::fs::remove_dir_all(world.home().join(".cache/pml/npm")).unwrap();
    Some((registry, world))
}

pub(crate) fn lock(world: &World) -> Value {
    serde_json::from_str(&world.read(".pml.lock")).unwrap()
}

#[test]
fn an_added_server_stands_in_the_lock_with_its_packages_and_its_tools() {
    let Some((_registry, world)) = upgradable() else {
        return;
    };
    let lock = lock(&world);
    let hello = &lock["servers"]["hello"];
    assert_eq!(hello["launch"], json!(["npx", "-y", "hello@1.0.0", "--flag"]));
    assert_eq!(hello["package"]["name"], "npm:hello");
    assert_eq!(hello["package"]["version"], "1.0.0");
    let integrity = hello["package"]["integrity"].as_str().unwrap();
    assert_eq!(hello["package"]["packages"], json!({ "hello@1.0.0": integrity }));
    assert_eq!(hello["tools"]["look"]["definition"]["description"], "Looks.");

    let before = world.read(".pml.lock");
    let locked = world.run(&["lock"]);
    assert!(locked.status.success(), "{locked:?}");
    assert_eq!(
        world.read(".pml.lock"),
        before,
        "a lock that is up to date is not touched"
    );
    assert!(world.run(&["lock", "--check"]).status.success());
    world.write(".pml.lock", &before.replace("Looks.", "Looks!"));
    let broken = world.run(&["lock"]);
    assert_eq!(broken.status.code(), Some(2));
    assert!(
        stderr(&broken).contains("does not fit its definition"),
        "{broken:?}"
    );
    assert!(
        world.read(".pml.lock").contains("Looks!"),
        "what cannot be read is left as it is"
    );
}

#[test]
fn an_upgrade_is_shown_then_refused_then_accepted_then_rolled_back() {
    let Some((_registry, world)) = upgradable() else {
        return;
    };
    let (config, lock_text) = (world.read(".pml.json"), world.read(".pml.lock"));
    let outdated = world.run(&["outdated", "--json"]);
    assert_eq!(outdated.status.code(), Some(1));
    let outdated: Value = serde_json::from_str(&stdout(&outdated)).unwrap();
    assert_eq!(outdated[0]["newest"], "1.1.0");

    let diff = world.run(&["diff", "hello"]);
    assert_eq!(diff.status.code(), Some(1), "{diff:?}");
    let text = stdout(&diff);
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            "- version 1.0.0",
            "+ version 1.1.0",
            "- 1 package less: hello@1.0.0",
            "+ 2 packages more: dep@1.0.0, hello@1.1.0",
        ]
    );

    // Without a terminal there is nobody who could agree.
    let refused = world.run(&["upgrade", "hello"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        stderr(&refused).contains("+ 2 packages more: dep@1.0.0, hello@1.1.0"),
        "{refused:?}"
    );
    assert_eq!(
        (world.read(".pml.json"), world.read(".pml.lock")),
        (config.clone(), lock_text.clone())
    );

    let done = world.run(&["upgrade", "--yes", "hello"]);
    assert!(done.status.success(), "{done:?}");
    let told = stderr(&done);
    assert!(
        told.contains("-   description: Looks.") && told.contains("+   description: Looks around."),
        "{told}"
    );
    assert_eq!(
        world.read(".pml.json"),
        config.replace("hello@1.0.0", "hello@1.1.0")
    );
    assert_eq!(lock(&world)["servers"]["hello"]["package"]["version"], "1.1.0");
    assert_eq!(
        lock(&world)["servers"]["hello"]["tools"]["look"]["definition"]["description"],
        "Looks around."
    );
    let called = world.legacy().call("hello__look", &json!({}));
    assert_eq!(texts(&called), ["dep 1.0.0"], "{called}");

    let back = world.run(&["upgrade", "--yes", "hello", "--to", "1.0.0"]);
    assert!(back.status.success(), "{back:?}");
    assert_eq!(world.read(".pml.json"), config);
    let called = world.legacy().call("hello__look", &json!({}));
    assert_eq!(texts(&called), ["dep none"], "{called}");
}

#[test]
fn a_version_that_somebody_else_declared_asks_with_the_difference_although_a_rule_allows_it() {
    let Some((_registry, world)) = upgradable() else {
        return;
    };
    assert!(world.run(&["allow", "hello"]).status.success());
    assert!(!asks(&world.legacy().call("hello__look", &json!({}))));
    let config = world.read(".pml.json").replace("hello@1.0.0", "hello@1.1.0");
    world.write(".pml.json", &config);
    let other_package = "the package of its server is not what you accepted";
    world.assert_foretells_change("hello:look", other_package);
    let mut client = world.legacy();
    let asked = asked_with_contents(&world, || client.call("hello__look", &json!({})));
    let context = &asked["approval_context"];
    assert_eq!(context["type"], "integrity");
    assert_eq!(context["dependency"]["change"]["part"], "package");
    world.assert_foretells_change("hello:look", other_package);
    assert_eq!(
        context["dependency"]["change"]["lines"],
        json!([
            "- version 1.0.0",
            "+ version 1.1.0",
            "- 1 package less: hello@1.0.0",
            "+ 2 packages more: dep@1.0.0, hello@1.1.0",
        ])
    );

    world.approve_oldest();
    // Its tools are known once it ran: they are another question.
    let asked = client.call("hello__look", &json!({}));
    assert_eq!(
        asked["approval_context"]["dependency"]["change"]["part"], "tools",
        "{asked}"
    );
    world.assert_foretells_change("hello:look", "it is not defined as you accepted it");
    world.approve_oldest();
    let ran = client.call("hello__look", &json!({}));
    assert_eq!(texts(&ran), ["dep 1.0.0"], "{ran}");
    assert_eq!(world.foretold("hello:look").0, "allow");

    // What was accepted before may come back without a question.
    world.write(".pml.json", &config.replace("hello@1.1.0", "hello@1.0.0"));
    let ran = world.legacy().call("hello__look", &json!({}));
    assert_eq!(texts(&ran), ["dep none"], "{ran}");
}

#[test]
fn of_a_version_that_its_lock_does_not_name_the_tools_of_the_first_use_are_remembered() {
    let Some((registry, first)) = upgradable() else {
        return;
    };
    // Another user, who accepts another version than the team has reviewed.
    let second = world(&registry);
    let config = first.read(".pml.json").replace("hello@1.0.0", "hello@1.1.0");
    second.write(".pml.json", &config);
    second.write(".pml.lock", &first.read(".pml.lock"));
    assert!(second.run(&["allow", "hello"]).status.success());
    let mut client = second.legacy();
    let asked = asked_with_contents(&second, || client.call("hello__look", &json!({})));
    let change = &asked["approval_context"]["dependency"]["change"];
    assert_eq!(change["part"], "package", "{asked}");
    second.approve_oldest();
    let ran = client.call("hello__look", &json!({}));
    assert_eq!(texts(&ran), ["dep 1.0.0"], "{ran}");
    let pins = second.home().join(".local/state/pml/pins");
    let files = files_below(&pins);
    let file = files.iter().find(|file| file.starts_with("hello-")).unwrap();
    let accepted = std::fs::read_to_string(pins.join(file)).unwrap();
    let accepted: Value = serde_json::from_str(&accepted).unwrap();
    let tools = &accepted["launches"][0]["pin"]["tools"];
    let definition = &tools["look"]["definition"];
    assert_eq!(definition["description"], "Looks around.", "{accepted:#}");
}

#[test]
fn what_a_colleague_locked_is_what_a_first_use_is_compared_with() {
    let Some((registry, first)) = upgradable() else {
        return;
    };
    // Another user: the same files, nothing accepted.
    let second = world(&registry);
    second.write(".pml.json", &first.read(".pml.json"));
    second.write(".pml.lock", &first.read(".pml.lock"));
    assert!(second.run(&["allow", "hello"]).status.success());
    let ran = second.legacy().call("hello__look", &json!({}));
    assert_eq!(texts(&ran), ["dep none"], "{ran}");

    // A lock that says something else of the tool than the server does.
    let third = world(&registry);
    third.write(".pml.json", &second.read(".pml.json"));
    let mut other = lock(&first);
    let definition =
        json!({ "description": "Looks away.", "inputSchema": { "type": "object" }, "name": "look" });
    let raw = serde_json::value::to_raw_value(&definition).unwrap();
    let pin = pml::pins::ToolPin::of(&raw);
    other["servers"]["hello"]["tools"]["look"] = serde_json::to_value(&pin).unwrap();
    third.write(".pml.lock", &serde_json::to_string_pretty(&other).unwrap());
    let asked = third.legacy().call("hello__look", &json!({}));
    assert_eq!(asked["approval_context"]["type"], "integrity", "{asked}");
    let pending = json_of(&third.run(&["pending", "--json"]));
    let lines = pending["pending"][0]["dependency"]["change"]["lines"].to_string();
    assert!(
        lines.contains("-   description: Looks away.") && lines.contains("+   description: Looks."),
        "{lines}"
    );

    // A lock that says something else of the package than the registry does.
    let fourth = world(&registry);
    fourth.write(".pml.json", &second.read(".pml.json"));
    let mut other = lock(&first);
    let integrity = format!("sha512-{}==", "A".repeat(86));
    other["servers"]["hello"]["package"]["integrity"] = json!(integrity);
    fourth.write(".pml.lock", &serde_json::to_string_pretty(&other).unwrap());
    let asked = fourth.legacy().call("hello__look", &json!({}));
    assert_eq!(asked["approval_context"]["type"], "integrity", "{asked}");
    let lines = asked["approval_context"]["dependency"]["change"]["lines"].to_string();
    assert!(
        lines.contains("the same version has other content") && lines.contains(&integrity),
        "{lines}"
    );

    // A lock that cannot be read refuses what it would be compared with.
    fourth.write(".pml.lock", "<<<<<<< ours");
    let refused = fourth.legacy().call("hello__look", &json!({}));
    let text = texts(&refused).concat();
    assert!(
        text.contains("cannot read") && text.contains(".pml.lock") && text.contains("pml lock"),
        "{text}"
    );
}

#[test]
fn a_lock_takes_every_server_to_its_newest_version_without_fetching_one() {
    let Some((registry, world)) = upgradable() else {
        return;
    };
    let done = world.run(&["lock", "--all", "--json"]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(json_of(&done)["servers"][0]["version"], "1.1.0");
    assert!(world.read(".pml.json").contains("hello@1.1.0"));
    assert_eq!(
        lock(&world)["servers"]["hello"]["tools"],
        Value::Null,
        "its tools were never seen"
    );
    assert_eq!(registry.hits(&Registry::tarball("hello", "1.1.0")), 0);
}

#[test]
fn an_agent_neither_upgrades_a_server_nor_adds_another_in_its_place() {
    let Some((registry, world)) = upgradable() else {
        return;
    };
    let state = |world: &World| {
        let store = files_below(&world.home().join(".local/share/pml/store"));
        let pins = files_below(&world.home().join(".local/state/pml/pins"));
        (world.read(".pml.json"), world.read(".pml.lock"), store, pins)
    };
    let before = state(&world);
    world.set("CLAUDECODE", "1");
    let replacing = [
        "add",
        "--yes",
        "--replace",
        "hello",
        "--",
        "npx",
        "-y",
        "hello@1.1.0",
    ];
    for arguments in [
        &["upgrade", "hello"][..],
        &["upgrade", "--yes", "hello"],
        &["upgrade", "--yes", "hello", "--to", "1.1.0"],
        &["upgrade", "--yes", "--now", "hello"],
        &replacing,
    ] {
        let refused = world.run(arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {refused:?}");
        let told = format!("`pml {}` is for a person, and an agent runs it", arguments[0]);
        assert!(stderr(&refused).contains(&told), "{arguments:?}: {refused:?}");
        assert_eq!(state(&world), before, "{arguments:?}");
    }
    // Nor does it approve what it declared itself, although the client's word counts here.
    let config = world.read(".pml.json");
    world.write(".pml.json", &config.replace("hello@1.0.0", "hello@1.1.0"));
    let declared = state(&world);
    let refused = world.run(&["approve", "--yes", "hello"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let told = stderr(&refused);
    for wanted in [
        "`pml approve --yes hello` is for a person, and an agent runs it",
        "- version 1.0.0\n+ version 1.1.0\n",
        "+ 2 packages more: dep@1.0.0, hello@1.1.0",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    assert_eq!(state(&world), declared);
    assert_eq!(registry.hits(&Registry::tarball("hello", "1.1.0")), 0);
    assert_eq!(world.recorded("accept").len(), 1, "only what was added first");

    // A person is let through, and is shown the same.
    world.set("CLAUDECODE", "");
    let (code, told) = typed(&world, "approve hello", "n\n");
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("- version 1.0.0") && told.contains("+ version 1.1.0"),
        "{told}"
    );
    assert_eq!(state(&world), declared);
    let approved = world.run(&["approve", "--yes", "hello"]);
    assert!(approved.status.success(), "{approved:?}");
    let told = stderr(&approved);
    assert!(told.contains("+   description: Looks around."), "{told}");
    assert!(!asks(&world.legacy().call("hello__look", &json!({}))));
    let replaced = world.run(&replacing);
    assert!(replaced.status.success(), "{replaced:?}");
    let upgraded = world.run(&["upgrade", "--yes", "hello", "--to", "1.0.0"]);
    assert!(upgraded.status.success(), "{upgraded:?}");
}
