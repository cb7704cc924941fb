//! `pml uninstall`: what is taken back stays taken back, and what a server wrote is not lost.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::packages::{SERVER_JS, files_below, publish_server};
use crate::support::registry::Registry;
use crate::support::world::{World, approvals, asks, hold_database, json_of, stderr, stdout, texts, turns};
use crate::support::{DEADLINE, eventually, have};

/// A world whose user has `registry`, with the servers `servers` and the rule that everything asks.
fn world(registry: &Registry, servers: &Value) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.configure(&json!({ "permissions": { "ask": ["*"] }, "mcpServers": servers }));
    world
}

/// Tells whether a process writes in the database, or waits for its turn.
#[cfg(target_os = "linux")]
fn is_at_the_database(world: &World, process: u32) -> bool {
    let turns = turns(world);
    let open = std::fs::read_dir(format!("/proc/{process}/fd"));
    { open.into_iter().flatten().flatten() }
        .any(|descriptor| std::fs::read_link(descriptor.path()).is_ok_and(|path| path == turns))
}

#[test]
#[cfg(target_os = "linux")]
fn an_uninstall_during_the_first_use_is_not_undone_by_it() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    let gate = tempfile::tempdir().unwrap();
    let gate = gate.path().join("gate");
    let servers = json!({ "hello": { "command": "npx", "args": ["hello@1.0.0"], "env": { "GATE": gate } } });
    let world = world(&registry, &servers);
    let mut client = world.legacy();
    let asked = client.call("hello__look", &json!({}));
    let id = &asked["approval_context"]["workflow_id"];
    let going_on = json!({ "continue_workflow": { "workflow_id": id, "approved": true } });
    let call = client.send(
        "tools/call",
        &json!({ "name": "hello__look", "arguments": going_on }),
    );
    eventually("the approval is recorded", DEADLINE, || {
        !approvals(&world).is_empty() && !is_at_the_database(&world, client.id())
    });

    // The first use has the integrity to add, and waits; the uninstall comes before it gets its turn.
    let held = hold_database(&world);
    std::fs::write(&gate, "").unwrap();
    eventually("the first use waits for its turn", DEADLINE, || {
        is_at_the_database(&world, client.id())
    });
    let mut uninstall = world
        .command(&["uninstall", "hello"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the uninstall is done or waits for its turn", DEADLINE, || {
        uninstall.try_wait().unwrap().is_some() || is_at_the_database(&world, uninstall.id())
    });
    drop(held);
    assert!(uninstall.wait().unwrap().success());
    client.answer(call);
    assert_eq!(approvals(&world), Vec::<Value>::new());
    assert!(asks(&client.call("hello__look", &json!({}))));
}

/// Calls a tool and agrees where that is asked for; returns the answer of the server.
fn call(world: &World, tool: &str, arguments: &Value) -> Value {
    let mut client = world.legacy();
    client.call_agreeing(world, tool, arguments).1
}

fn note(file: &str) -> Value {
    json!({ "file": file, "text": "remember me" })
}

fn store(world: &World) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(world.home().join(".local/share/pml/store/npm"));
    entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

fn uninstalled(world: &World, name: &str) -> Value {
    json_of(&world.run(&["uninstall", name, "--json"]))["packages"][0].clone()
}

#[test]
fn a_package_that_another_server_uses_stays() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    let exact = json!({ "command": "npx", "args": ["hello@1.0.0"] });
    let floating = json!({ "command": "npx", "args": ["hello"] });
    let world = world(
        &registry,
        &json!({ "one": exact, "two": exact, "three": floating }),
    );
    let user = world.home().join(".config/pml/pml.json");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    std::fs::write(&user, json!({ "mcpServers": { "four": exact } }).to_string()).unwrap();
    assert!(world.run(&["install", "--yes"]).status.success());
    assert_eq!(store(&world).len(), 1);

    let of = |state: &str, by: &[&str]| json!({ "package": "npm:hello@1.0.0", "state": state, "version": "1.0.0", "usedBy": by });
    let user = "`four` in ~/.config/pml/pml.json";
    let words = stdout(&world.run(&["uninstall", "one"]));
    assert_eq!(
        words,
        format!(
            "one: was not approved; hello@1.0.0 stays, because it is used by `two` in .pml.json, {user}\n"
        )
    );
    assert_eq!(
        uninstalled(&world, "one"),
        of("stillNeeded", &["`two` in .pml.json", user])
    );
    for name in ["one", "two"] {
        assert!(world.run(&["remove", name]).status.success());
    }
    assert!(world.run(&["remove", "--user", "four"]).status.success());
    // Another spelling of the same version uses the same files.
    world.configure(&json!({ "mcpServers": { "one": exact, "three": floating } }));
    assert_eq!(
        uninstalled(&world, "one"),
        of("stillNeeded", &["`three` in .pml.json"])
    );
    assert_eq!(store(&world).len(), 1);
    assert!(world.run(&["remove", "one"]).status.success());
    let last = uninstalled(&world, "three");
    assert_eq!(
        (&last["state"], &last["kept"]),
        (&json!("removed"), &json!([])),
        "{last}"
    );
    assert_eq!(store(&world), Vec::<PathBuf>::new());
}

#[test]
fn a_package_that_is_approved_in_another_project_stays() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    let exact = json!({ "command": "npx", "args": ["hello@1.0.0"] });
    let world = world(&registry, &json!({ "elsewhere": exact }));
    call(&world, "elsewhere__look", &json!({}));
    world.configure(&json!({ "mcpServers": { "here": exact } }));
    assert!(world.run(&["uninstall", "here"]).status.success());
    assert_eq!(store(&world).len(), 1);
    let done = uninstalled(&world, "here");
    assert_eq!(
        (&done["state"], &done["usedBy"]),
        (&json!("stillNeeded"), &json!(["the approval of `elsewhere`"]))
    );
    assert_eq!(store(&world).len(), 1);
    // The other is not declared here, but what was approved says what it ran.
    assert_eq!(
        uninstalled(&world, "elsewhere")["usedBy"],
        json!(["`here` in .pml.json"])
    );
    assert_eq!(uninstalled(&world, "here")["state"], "removed");
    assert_eq!(store(&world), Vec::<PathBuf>::new());
}

#[test]
fn what_a_server_wrote_beside_its_code_survives_an_uninstall() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    let server = json!({ "command": "npx", "args": ["hello@1.0.0"] });
    let world = world(&registry, &json!({ "hello": server }));
    for (round, folder) in ["kept/hello", "kept/hello.1"].into_iter().enumerate() {
        call(&world, "hello__note", &note("memory.json"));
        let folder = world.home().join(".local/share/pml").join(folder);
        let file = "node_modules/hello/memory.json";
        if round == 1 {
            let done = uninstalled(&world, "hello");
            assert_eq!(done["kept"], json!([{ "directory": folder, "files": [file] }]));
        } else {
            let output = world.run(&["uninstall", "hello"]);
            assert!(output.status.success());
            let said = stderr(&output);
            assert!(
                said.contains(&format!(
                    "what the server wrote is kept in `{}`: `{file}`",
                    folder.display()
                )),
                "{said}"
            );
        }
        assert_eq!(files_below(&folder), [file]);
        assert_eq!(std::fs::read_to_string(folder.join(file)).unwrap(), "remember me");
        assert_eq!(store(&world), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_changed_file_of_the_package_is_kept_too() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let manifest = json!({ "bin": "server.js" });
    let files = [("server.js", SERVER_JS), ("settings.json", "{}")];
    registry.publish("hello", "1.0.0", &manifest, &files);
    let server = json!({ "command": "npx", "args": ["hello@1.0.0"] });
    let world = world(&registry, &json!({ "hello": server }));
    assert!(world.run(&["install", "--yes"]).status.success());
    let settings = store(&world)[0].join("node_modules/hello/settings.json");
    std::fs::remove_file(&settings).unwrap();
    std::fs::write(&settings, "{ }").unwrap();
    assert!(world.run(&["uninstall", "hello"]).status.success());
    let kept = world.home().join(".local/share/pml/kept/hello");
    assert_eq!(files_below(&kept), ["node_modules/hello/settings.json"]);
}

#[test]
fn another_version_or_a_repair_says_where_the_files_of_the_server_are() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    for version in ["1.0.0", "1.1.0", "1.2.0"] {
        publish_server(&registry, version, &json!({}));
    }
    let server = |version: &str| json!({ "command": "npx", "args": [format!("hello@{version}")] });
    let world = world(&registry, &json!({ "hello": server("1.0.0") }));
    call(&world, "hello__note", &note("memory.json"));
    let before = store(&world)[0].clone();
    let file = "node_modules/hello/memory.json";

    // A repair: the installation lost its executable.
    std::fs::remove_file(before.join("node_modules/hello/server.js")).unwrap();
    let repaired = json_of(&world.run(&["install", "--yes", "--json"]));
    let kept = world.home().join(".local/share/pml/kept/hello");
    let told = format!(
        "files that the server wrote into its installation are kept in `{}`: `{file}`",
        kept.display()
    );
    assert_eq!(repaired[0]["notes"], json!([format!("hello@1.0.0: {told}")]));
    assert_eq!(files_below(&kept), [file]);
    assert!(!before.join(file).exists());

    // Another version, by the first call and by the command.
    call(&world, "hello__note", &note("memory.json"));
    let told = format!(
        "the server wrote files into its installation of hello@1.0.0: they are in `{}`: `{file}`",
        before.display()
    );
    world.configure(&json!({ "permissions": { "ask": ["*"] }, "mcpServers": { "hello": server("1.1.0") } }));
    let first = call(&world, "hello__look", &json!({}));
    assert!(
        texts(&first).contains(&format!("pml: hello@1.1.0: {told}").as_str()),
        "{first}"
    );
    world.configure(&json!({ "mcpServers": { "hello": server("1.2.0") } }));
    let output = world.run(&["install", "--yes"]);
    assert!(
        stderr(&output).contains(&format!("hello@1.2.0: {told}")),
        "{}",
        stderr(&output)
    );
    assert_eq!(std::fs::read_to_string(before.join(file)).unwrap(), "remember me");
}

#[test]
fn the_graph_of_the_real_memory_server_survives_an_uninstall() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = World::new();
    world.configure(&json!({
        "permissions": { "ask": ["*"] },
        "mcpServers": { "memory": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"] } },
    }));
    let entity =
        json!({ "name": "pml", "entityType": "program", "observations": ["it keeps what servers wrote"] });
    let made = call(
        &world,
        "memory__create_entities",
        &json!({ "entities": [entity] }),
    );
    assert_ne!(made["isError"], true, "{made}");
    assert!(world.run(&["uninstall", "memory"]).status.success());
    let kept = world.home().join(".local/share/pml/kept/memory");
    let files = files_below(&kept);
    assert_eq!(files.len(), 1, "{files:?}");
    let file = kept.join(&files[0]);
    let graph = std::fs::read_to_string(&file).unwrap();
    assert!(graph.contains("it keeps what servers wrote"), "{graph}");
    assert_eq!(store(&world), Vec::<PathBuf>::new());
}

#[test]
fn what_nothing_declares_any_more_is_collected() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    let world = world(
        &registry,
        &json!({ "hello": { "command": "npx", "args": ["hello@1.0.0"] } }),
    );
    let approved = world.run(&["approve", "--yes", "hello"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    let declared = json_of(&world.run(&["gc", "--yes", "--json"]));
    assert_eq!(declared, json!({ "unused": [], "bytes": 0, "removed": [] }));

    world.configure(&json!({}));
    let dry = json_of(&world.run(&["gc", "--dry-run", "--json"]));
    assert_eq!(dry["unused"][0]["package"], "hello@1.0.0", "{dry}");
    assert!(dry["bytes"].as_u64().unwrap() > 0);
    assert_eq!(dry["removed"], json!([]));
    let refused = world.run(&["gc"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("hint: to agree beforehand: pml gc --yes"),
        "{}",
        stderr(&refused)
    );
    let collected = json_of(&world.run(&["gc", "--yes", "--json"]));
    assert_eq!(collected["removed"], json!(["hello@1.0.0"]));
    let history = world.home().join(".local/state/pml/history/part-00000001.jsonl");
    let history = std::fs::read_to_string(history).unwrap();
    let removed = history.matches(r#""event":"removed","package":"npm:hello@1.0.0""#);
    assert_eq!(removed.count(), 1, "{history}");
    assert_eq!(
        stderr(&world.run(&["gc"])),
        "every installed package is declared\n"
    );
}
