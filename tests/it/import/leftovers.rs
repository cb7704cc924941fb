//! What an import installed to try a server leaves the store again where nothing declares it in the end.

use std::process::Stdio;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::write;
use crate::support::packages::{SERVER_JS, publish_server};
use crate::support::registry::Registry;
use crate::support::terminal::typed;
use crate::support::world::{World, json_of, stderr};
use crate::support::{DEADLINE, eventually, have};

/// A server that ends before it says anything.
const BROKEN_JS: &str = "#!/usr/bin/env node\nprocess.exit(3);\n";

/// A registry with a server that works, `hello`, and one that does not, `broken`; a world that uses it.
fn world() -> Option<(Registry, World)> {
    if !have(&["node", "npm"]) {
        return None;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    registry.publish(
        "broken",
        "2.0.0",
        &json!({ "bin": "b.js" }),
        &[("b.js", BROKEN_JS)],
    );
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    Some((registry, world))
}

fn cursor(world: &World, servers: &Value) {
    write(
        world,
        ".cursor/mcp.json",
        &json!({ "mcpServers": servers }).to_string(),
    );
}

fn npx(package: &str) -> Value {
    json!({ "command": "npx", "args": ["-y", package] })
}

/// The packages whose files are in the store.
fn installed(world: &World) -> Vec<String> {
    let store = world.home().join(".local/share/pml/store/npm");
    let entries = std::fs::read_dir(store).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .map(|name| name.rsplit_once('-').unwrap().0.to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn what_was_installed_for_a_server_that_failed_is_removed_and_what_works_stays() {
    let Some((registry, world)) = world() else { return };
    cursor(
        &world,
        &json!({ "hello": npx("hello"), "broken": npx("broken@2.0.0") }),
    );
    // It asks the registry as well, and must not make what comes later look as if it had been there.
    assert!(world.run(&["import", "--dry-run"]).status.success());
    let done = world.run(&["import", "--yes", "--json"]);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("removed broken@2.0.0 again ("), "{said}");
    assert!(
        said.contains("it was installed to try `broken`, and nothing declares it"),
        "{said}"
    );
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["removedPackages"], json!(["broken@2.0.0"]));
    assert_eq!(installed(&world), ["hello@1.0.0"]);
    let unused = json_of(&world.run(&["gc", "--dry-run", "--json"]));
    assert_eq!(unused["unused"], json!([]));
    drop(registry);
}

#[test]
fn what_was_there_before_or_is_declared_stays() {
    let Some((registry, world)) = world() else { return };
    world.configure(
        &json!({ "permissions": { "allow": ["*"] }, "mcpServers": { "mine": npx("broken@2.0.0") } }),
    );
    assert!(world.run(&["install", "--yes", "mine"]).status.success());
    world.configure(&json!({ "mcpServers": {} }));
    cursor(&world, &json!({ "hello": npx("hello"), "broken": npx("broken") }));
    let done = world.run(&["import", "--yes", "--json"]);
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["removedPackages"], json!([]), "{}", stderr(&done));
    assert_eq!(installed(&world), ["broken@2.0.0", "hello@1.0.0"]);

    // Declared by another server, it stays as well, although this import installed it.
    assert!(world.run(&["gc", "--yes"]).status.success());
    assert_eq!(installed(&world), ["hello@1.0.0"]);
    world.configure(&json!({ "mcpServers": { "mine": npx("broken@2.0.0") } }));
    let again = world.run(&["import", "--yes", "--json"]);
    let report: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(report["removedPackages"], json!([]), "{}", stderr(&again));
    assert_eq!(installed(&world), ["broken@2.0.0", "hello@1.0.0"]);
    drop(registry);
}

#[test]
fn a_person_who_takes_a_broken_server_all_the_same_keeps_its_package() {
    let Some((registry, world)) = world() else { return };
    cursor(&world, &json!({ "broken": npx("broken") }));
    let (code, said) = typed(&world, "import", "y\nn\n");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("removed broken@2.0.0 again"), "{said}");
    assert_eq!(installed(&world), Vec::<String>::new());
    let (_, said) = typed(&world, "import", "y\ny\n");
    assert!(!said.contains("removed broken"), "{said}");
    assert_eq!(installed(&world), ["broken@2.0.0"]);
    drop(registry);
}

#[test]
fn an_import_that_is_interrupted_leaves_nothing_in_the_store() {
    let Some((registry, world)) = world() else { return };
    let started = world.path("started");
    let silent = format!(
        "#!/usr/bin/env node\nrequire('fs').writeFileSync({}, '');\nprocess.stdin.resume();\n",
        json!(started)
    );
    registry.publish("silent", "1.0.0", &json!({ "bin": "s.js" }), &[("s.js", &silent)]);
    registry.publish(
        "hello",
        "1.0.0",
        &json!({ "bin": "server.js" }),
        &[("server.js", SERVER_JS)],
    );
    cursor(&world, &json!({ "hello": npx("hello"), "silent": npx("silent") }));
    let before = super::read(&world, ".cursor/mcp.json");
    let mut command = world.command(&["import", "--yes"]);
    let importing = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the server runs", DEADLINE, || started.exists());
    assert_eq!(installed(&world), ["hello@1.0.0", "silent@1.0.0"]);
    let id = rustix::process::Pid::from_raw(i32::try_from(importing.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = importing.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("interrupted; nothing was changed"), "{said}");
    assert!(
        said.contains("removed hello@1.0.0 again") && said.contains("removed silent@1.0.0 again"),
        "{said}"
    );
    assert_eq!(installed(&world), Vec::<String>::new());
    assert_eq!(super::read(&world, ".cursor/mcp.json"), before);
    drop(registry);
}
