//! Install scripts: a question of their own names each of them, nothing runs before its answer, and the answer counts for
//! exactly those.

use serde_json::{Value, json};

use crate::support::have;
use crate::support::hostile;
use crate::support::packages::SERVER_JS;
use crate::support::registry::Registry;
use crate::support::terminal::typed;
use crate::support::world::{Client, World, asks, json_of, stderr, stdout, texts};

/// A script that writes `file` into the home of the user.
fn writes(file: &str) -> String {
    format!("touch \"$HOME/{file}\"")
}

/// Publishes the server `hello` at `version`, with `dep` below it.
fn publish(registry: &Registry, version: &str, scripts: &Value, files: &[(&str, &str)]) {
    let manifest = json!({ "bin": "server.js", "scripts": scripts, "dependencies": { "dep": "1.0.0" } });
    let files: Vec<_> = [("server.js", SERVER_JS)]
        .into_iter()
        .chain(files.iter().copied())
        .collect();
    registry.publish("hello", version, &manifest, &files);
}

/// A registry with `dep@1.0.0`, whose scripts are these.
fn registry(scripts: &Value) -> Registry {
    let registry = Registry::start();
    let manifest = json!({ "main": "index.js", "scripts": scripts });
    registry.publish(
        "dep",
        "1.0.0",
        &manifest,
        &[("index.js", "module.exports = '1.0.0';")],
    );
    registry
}

fn world(registry: &Registry, permissions: &Value) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    declare(&world, "1.0.0", permissions);
    world
}

fn declare(world: &World, version: &str, permissions: &Value) {
    let hello = json!({ "command": "npx", "args": ["-y", format!("hello@{version}")], "allowScripts": true });
    world.configure(&json!({ "permissions": permissions, "mcpServers": { "hello": hello } }));
}

/// A package and a dependency that both leave a marker.
fn both() -> Option<Registry> {
    if !have(&["node", "npm"]) {
        return None;
    }
    let registry = registry(&json!({ "preinstall": writes("dep-ran") }));
    publish(
        &registry,
        "1.0.0",
        &json!({ "postinstall": writes("hello-ran") }),
        &[],
    );
    Some(registry)
}

fn allowed() -> Value {
    json!({ "allow": ["hello"] })
}

fn ran(world: &World) -> (bool, bool) {
    let exists = |file: &str| world.home().join(file).exists();
    (exists("hello-ran"), exists("dep-ran"))
}

fn assert_asks_about_scripts(asked: &Value) {
    assert!(asks(asked), "{asked}");
    assert_eq!(asked["approval_context"]["type"], "integrity", "{asked}");
    let change = &asked["approval_context"]["dependency"]["change"];
    assert_eq!(change["part"], "scripts", "{asked}");
}

fn newest(world: &World) -> Value {
    let pending = json_of(&world.run(&["pending", "--json"]));
    pending["pending"].as_array().unwrap().last().unwrap().clone()
}

/// What a person is shown of the newest ask.
fn lines(world: &World) -> Value {
    newest(world)["dependency"]["change"]["lines"].clone()
}

fn look(client: &mut Client) -> Value {
    client.call("hello__look", &json!({}))
}

/// What the history says of packages that were about to be fetched.
fn fetches(world: &World) -> Vec<Value> {
    world.recorded("fetch")
}

fn remove_store(world: &World) {
    std::fs::remove_dir_all(world.home().join(".local/share/pml")).unwrap();
}

#[test]
fn the_scripts_are_a_question_of_their_own_that_names_package_version_hook_and_command() {
    let Some(registry) = both() else {
        return;
    };
    let world = world(&registry, &json!({}));
    let mut client = world.legacy();
    let asked = look(&mut client);
    assert_eq!(asked["approval_context"]["type"], "dependency_install", "{asked}");
    world.approve_oldest();

    let asked = look(&mut client);
    assert_asks_about_scripts(&asked);
    let shown = [
        format!("! dep@1.0.0  preinstall: {}", writes("dep-ran")),
        format!("! hello@1.0.0  postinstall: {}", writes("hello-ran")),
    ];
    assert_eq!(lines(&world), json!(shown));
    assert!(
        !asked.to_string().contains("dep-ran"),
        "no word of a script reaches a model: {asked}"
    );
    assert_eq!(ran(&world), (false, false));
    let unaccepted = "its server has install scripts that you have not accepted";
    world.assert_foretells_change("hello:look", unaccepted);

    // The word of a model accepts nothing.
    let continued = client.proceed("hello__look", &asked, &json!({ "approved": true }));
    assert!(texts(&continued).concat().contains("person"), "{continued}");
    assert_eq!(ran(&world), (false, false));
    let fetched = registry.hits(&Registry::tarball("hello", "1.0.0"));
    assert_asks_about_scripts(&look(&mut client));
    assert_eq!(registry.hits(&Registry::tarball("hello", "1.0.0")), fetched);

    world.approve_oldest();
    let called = look(&mut client);
    assert_eq!(texts(&called), ["dep 1.0.0"], "{called}");
    assert_eq!(ran(&world), (true, true));

    let digest = asked["approval_context"]["dependency"]["change"]["content"].as_str();
    let recorded: Vec<Value> = fetches(&world)
        .iter()
        .map(|fetch| fetch["acceptedScripts"].clone())
        .collect();
    assert_eq!(recorded, [Value::Null, json!(digest.unwrap())]);
}

#[test]
fn a_refusal_runs_nothing_and_starts_nothing() {
    let Some(registry) = both() else {
        return;
    };
    let world = world(&registry, &allowed());
    let mut client = world.legacy();
    let asked = look(&mut client);
    assert_asks_about_scripts(&asked);
    let code = newest(&world)["code"].as_str().unwrap().to_owned();
    let refused = world.run(&["refuse", &code]);
    assert!(refused.status.success(), "{refused:?}");
    let continued = client.proceed("hello__look", &asked, &json!({ "approved": true }));
    assert!(!texts(&continued).concat().contains("dep "), "{continued}");
    assert_eq!(ran(&world), (false, false));
    let running = world.running().concat();
    assert!(!running.contains("server.js"), "{running}");
    assert_asks_about_scripts(&look(&mut client));
}

#[test]
fn what_was_accepted_is_installed_again_without_a_question_and_a_changed_script_is_not() {
    let Some(registry) = both() else {
        return;
    };
    let world = world(&registry, &allowed());
    let asked = look(&mut world.legacy());
    assert_asks_about_scripts(&asked);
    world.approve_oldest();
    let called = look(&mut world.legacy());
    assert_eq!(texts(&called), ["dep 1.0.0"], "{called}");

    remove_store(&world);
    for file in ["hello-ran", "dep-ran"] {
        std::fs::remove_file(world.home().join(file)).unwrap();
    }
    let called = look(&mut world.legacy());
    assert_eq!(texts(&called), ["dep 1.0.0"], "{called}");
    assert_eq!(ran(&world), (true, true));

    publish(
        &registry,
        "1.1.0",
        &json!({ "postinstall": writes("other-ran") }),
        &[],
    );
    std::fs::remove_dir_all(world.home().join(".cache/pml/npm")).unwrap();
    declare(&world, "1.1.0", &allowed());
    let mut client = world.legacy();
    let asked = look(&mut client);
    assert_eq!(
        asked["approval_context"]["dependency"]["change"]["part"], "package",
        "{asked}"
    );
    world.approve_oldest();
    let asked = look(&mut client);
    assert_asks_about_scripts(&asked);
    assert_eq!(
        lines(&world),
        json!([
            format!("- hello@1.0.0  postinstall: {}", writes("hello-ran")),
            format!("  dep@1.0.0  preinstall: {}", writes("dep-ran")),
            format!("+ hello@1.1.0  postinstall: {}", writes("other-ran")),
        ])
    );
    let continued = client.proceed("hello__look", &asked, &json!({ "approved": true }));
    assert!(texts(&continued).concat().contains("person"), "{continued}");
    assert!(!world.home().join("other-ran").exists());
    world.approve_oldest();
    let called = look(&mut client);
    assert_eq!(texts(&called), ["dep 1.0.0"], "{called}");
    assert!(world.home().join("other-ran").exists());
}

#[test]
fn a_long_script_with_control_characters_is_shown_escaped_and_whole() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = registry(&json!({}));
    let end = "x".repeat(3_000);
    let script = format!("true \u{1b}[2K\u{202e}\n# {end}END");
    publish(&registry, "1.0.0", &json!({ "install": script }), &[]);
    let world = world(&registry, &allowed());
    assert_asks_about_scripts(&look(&mut world.legacy()));
    let pending = newest(&world);
    let shown = stdout(&world.run(&["pending", pending["code"].as_str().unwrap()]));
    let line = format!("! hello@1.0.0  install: true \\u{{1b}}[2K\\u{{202e}}\\n# {end}END\n");
    assert!(shown.contains(&line), "{shown}");
    assert_eq!(lines(&world).as_array().unwrap().len(), 1);
}

#[test]
fn what_npm_builds_by_itself_is_named_as_its_command() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = registry(&json!({}));
    let gyp = ("binding.gyp", "{'targets': []}");
    publish(&registry, "1.0.0", &json!({}), &[gyp]);
    let world = world(&registry, &allowed());
    assert_asks_about_scripts(&look(&mut world.legacy()));
    assert_eq!(lines(&world), json!(["! hello@1.0.0  install: node-gyp rebuild"]));
}

#[test]
fn a_package_without_scripts_asks_nothing_more() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = registry(&json!({ "test": "false", "prepare": "false" }));
    publish(&registry, "1.0.0", &json!({}), &[]);
    let world = world(&registry, &allowed());
    let called = look(&mut world.legacy());
    assert_eq!(texts(&called), ["dep 1.0.0"], "{called}");
}

#[test]
fn the_person_at_the_terminal_sees_the_scripts_before_they_run() {
    let Some(registry) = both() else {
        return;
    };
    if !have(&["script"]) {
        return;
    }
    let named = format!("! dep@1.0.0  preinstall: {}", writes("dep-ran"));
    let world = world(&registry, &allowed());
    let output = world.run(&["install"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&named) && said.contains("there is no terminal to ask in"),
        "{said}"
    );
    let (status, said) = typed(&world, "install", "n\n");
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains(&named) && said.contains("Run them? [y/N]"),
        "{said}"
    );
    assert_eq!(ran(&world), (false, false));
    let (status, said) = typed(&world, "install", "y\n");
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(ran(&world), (true, true));
    // A call does not ask about what was accepted here.
    remove_store(&world);
    let called = look(&mut world.legacy());
    assert_eq!(texts(&called), ["dep 1.0.0"], "{called}");
}

#[test]
fn added_and_upgraded_servers_show_their_scripts_too() {
    let Some(registry) = both() else {
        return;
    };
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    let add = [
        "add",
        "--yes",
        "--allow-scripts",
        "hello",
        "--",
        "npx",
        "-y",
        "hello",
    ];
    let added = world.run(&add);
    let said = stderr(&added);
    assert!(added.status.success(), "{said}");
    assert!(
        said.contains(&format!("! hello@1.0.0  postinstall: {}", writes("hello-ran"))),
        "{said}"
    );
    assert_eq!(ran(&world), (true, true));

    publish(
        &registry,
        "1.1.0",
        &json!({ "postinstall": writes("other-ran") }),
        &[],
    );
    std::fs::remove_dir_all(world.home().join(".cache/pml/npm")).unwrap();
    let upgraded = world.run(&["upgrade", "--yes", "hello"]);
    let said = stderr(&upgraded);
    assert!(upgraded.status.success(), "{said}");
    assert!(
        said.contains(&format!("+ hello@1.1.0  postinstall: {}", writes("other-ran"))),
        "{said}"
    );
    assert!(world.home().join("other-ran").exists());
    remove_store(&world);
    let called = look(&mut world.legacy());
    assert_eq!(texts(&called), ["dep 1.0.0"], "{called}");
}

#[test]
fn a_package_that_only_npm_finds_runs_no_script_and_is_named() {
    if !have(&["node", "npm", "python3"]) {
        return;
    }
    for archive in hostile::hidden_packages("touch \"$HOME/hidden-ran\"") {
        let registry = Registry::start();
        hostile::publish_hidden(&registry, &writes("hello-ran"), &archive);
        let world = world(&registry, &allowed());
        for output in [world.run(&["install", "--yes"]), world.run(&["install", "--yes"])] {
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(
                said.contains("is a package that its lock does not name"),
                "{said}"
            );
        }
        let called = look(&mut world.legacy());
        assert!(called.to_string().contains("its lock does not name"), "{called}");
        for marker in ["hidden-ran", "hello-ran"] {
            assert!(!world.home().join(marker).exists(), "{marker}");
        }
    }
}

#[test]
fn an_agent_accepts_no_script_by_a_command_and_a_person_leaves_a_record() {
    let Some(registry) = both() else {
        return;
    };
    let world = world(&registry, &allowed());
    world.set("CLAUDECODE", "1");
    let refused = world.run(&["install", "--yes", "hello"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("is for a person"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(ran(&world), (false, false));
    world.set("CLAUDECODE", "");
    let installed = world.run(&["install", "--yes", "hello"]);
    assert!(installed.status.success(), "{}", stderr(&installed));
    assert_eq!(ran(&world), (true, true));
    let recorded = world.recorded("accept");
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    assert_eq!(recorded[0]["of"], "scripts");
    assert_eq!(recorded[0]["by"], "cli");
}
