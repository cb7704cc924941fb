//! `pml verify` names every file, link, lock and record that is not what was installed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::packages::{SERVER_PY, publish_server, publish_wheels, wheel};
use crate::support::registry::Registry;
use crate::support::world::{World, json_of, stderr, stdout, texts};
use crate::support::{have, sdk};

fn registry() -> Registry {
    let registry = Registry::start();
    registry.publish(
        "dep",
        "1.0.0",
        &json!({}),
        &[("index.js", "module.exports = '1'")],
    );
    publish_server(&registry, "1.0.0", &json!({ "dep": "1.0.0" }));
    registry
}

/// A user with the server `hello` installed; returns where it is.
fn installed(registry: &Registry) -> (World, PathBuf) {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.configure(&json!({
        "permissions": { "allow": ["*"] },
        "mcpServers": { "hello": { "command": "npx", "args": ["hello@1.0.0"] } },
    }));
    let installed = json_of(&world.run(&["install", "--json"]));
    let directory = installed[0]["directory"].as_str().unwrap().into();
    (world, directory)
}

fn assert_intact(world: &World) {
    let output = world.run(&["verify"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
}

/// Verifies what must not be intact any more; returns the lines after the first.
fn faults(world: &World) -> Vec<String> {
    let output = world.run(&["verify", "hello"]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    let lines: Vec<String> = stdout(&output)
        .lines()
        .map(|line| line.trim().to_owned())
        .collect();
    lines[1..].to_vec()
}

fn verified(output: &Output) -> Value {
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["installations"].clone()
}

/// Overwrites a file that was protected against accidents.
fn overwrite(path: &Path, bytes: &[u8]) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn one_byte_one_file_more_one_less_and_a_link_elsewhere_are_found_and_named() {
    if !have(&["node", "npm"]) {
        return;
    }
    let (world, directory) = installed(&registry());
    let first = world.run(&["verify"]);
    assert_eq!(
        stdout(&first),
        "hello: npm:hello@1.0.0: ok\n",
        "{}",
        stderr(&first)
    );
    let dep = directory.join("node_modules/dep/index.js");
    let bytes = std::fs::read(&dep).unwrap();

    // The same length and the same times: only the bytes tell.
    let times = std::fs::metadata(&dep).unwrap();
    let mut flipped = bytes.clone();
    flipped[0] ^= 1;
    overwrite(&dep, &flipped);
    let file = std::fs::File::options().write(true).open(&dep).unwrap();
    file.set_modified(times.modified().unwrap()).unwrap();
    assert_eq!(faults(&world), ["changed: node_modules/dep/index.js"]);
    overwrite(&dep, &bytes);
    assert_intact(&world);

    let planted = directory.join("node_modules/dep/node_modules/evil\u{202e}.js");
    std::fs::create_dir(planted.parent().unwrap()).unwrap();
    std::fs::write(&planted, "").unwrap();
    assert_eq!(
        faults(&world),
        ["added: node_modules/dep/node_modules/evil\\u{202e}.js"]
    );
    std::fs::remove_dir_all(planted.parent().unwrap()).unwrap();
    assert_intact(&world);

    std::fs::remove_file(&dep).unwrap();
    assert_eq!(faults(&world), ["missing: node_modules/dep/index.js"]);
    std::fs::write(&dep, &bytes).unwrap();
    assert_intact(&world);

    let link = directory.join("node_modules/.bin/hello");
    let leads = std::fs::read_link(&link).unwrap();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
    assert_eq!(faults(&world), ["changed: node_modules/.bin/hello"]);
    // A file with the content of the link's target is no link.
    std::fs::remove_file(&link).unwrap();
    std::fs::copy(directory.join("node_modules/hello/server.js"), &link).unwrap();
    assert_eq!(faults(&world), ["changed: node_modules/.bin/hello"]);
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(leads, &link).unwrap();
    assert_intact(&world);

    let manifest = directory.join("pml-manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    overwrite(&manifest, b"{}");
    assert_eq!(faults(&world)[0], "changed: pml-manifest.json");
    overwrite(&manifest, text.as_bytes());

    for number in 0..50 {
        std::fs::write(directory.join(format!("more-{number}")), "").unwrap();
    }
    let named = faults(&world);
    assert_eq!(named.len(), 21, "{named:?}");
    assert_eq!(named[20], "added: 30 more");
    let found = verified(&world.run(&["verify", "--json"]));
    assert_eq!(
        found[0]["counts"],
        json!({ "changed": 0, "missing": 0, "added": 50 })
    );

    std::fs::remove_dir_all(&directory).unwrap();
    let gone = world.run(&["verify"]);
    assert_eq!(gone.status.code(), Some(1));
    assert_eq!(stdout(&gone), "hello: npm:hello@1.0.0: MISSING\n");
    json_of(&world.run(&["install", "--json"]));
    assert_intact(&world);
    assert!(world.run(&["uninstall", "hello"]).status.success());
    let absent = world.run(&["verify", "hello"]);
    assert_eq!(absent.status.code(), Some(1), "{}", stderr(&absent));
    assert!(
        stderr(&absent).contains("`hello` is not installed"),
        "{}",
        stderr(&absent)
    );
    let nothing = world.run(&["verify"]);
    assert_eq!(nothing.status.code(), Some(0));
    assert_eq!(stderr(&nothing), "nothing is installed\n");
}

/// The only file of a folder of the store.
fn only(world: &World, folder: &str) -> PathBuf {
    let path = world.home().join(".local/share/pml").join(folder);
    let mut files = std::fs::read_dir(path).unwrap().flatten();
    let only = files.next().unwrap().path();
    assert!(files.next().is_none());
    only
}

#[test]
fn an_edited_lock_and_a_record_of_something_else_are_found() {
    if !have(&["node", "npm"]) {
        return;
    }
    let (world, _) = installed(&registry());
    let lock = only(&world, "frozen");
    let text = std::fs::read_to_string(&lock).unwrap();
    let mut edited: Value = serde_json::from_str(&text).unwrap();
    let inside = edited["text"].as_str().unwrap();
    // Another dependency at its place, as an attacker would put it there.
    edited["text"] = inside.replace("node_modules/dep\"", "node_modules/dep2\"").into();
    std::fs::write(&lock, edited.to_string()).unwrap();
    assert_eq!(
        faults(&world),
        ["its kept lock was edited: it does not fit its digest"]
    );
    edited["text"] = "{}".into();
    std::fs::write(&lock, edited.to_string()).unwrap();
    assert_eq!(faults(&world), ["its kept lock is not one of this package"]);
    std::fs::write(&lock, "garbage").unwrap();
    assert_eq!(faults(&world), ["its kept lock cannot be read"]);
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(faults(&world), ["its lock is not kept"]);
    std::fs::write(&lock, &text).unwrap();
    assert_intact(&world);

    // The digest edited along with the text: it is still not what was installed.
    let mut both: Value = serde_json::from_str(&text).unwrap();
    both["digest"] = "0".repeat(64).into();
    std::fs::write(&lock, both.to_string()).unwrap();
    let found = faults(&world);
    assert!(
        found.contains(&"its kept lock is not the one that it was installed from".to_owned()),
        "{found:?}"
    );
    std::fs::write(&lock, &text).unwrap();

    let record = only(&world, "resolved");
    let text = std::fs::read_to_string(&record).unwrap();
    let mut edited: Value = serde_json::from_str(&text).unwrap();
    edited["integrity"] = "sha512-other".into();
    std::fs::write(&record, edited.to_string()).unwrap();
    let found = faults(&world);
    let expected =
        "the record of `npm:hello@1.0.0` names another content (sha512-other) than what is installed";
    assert!(found[0].starts_with(expected), "{found:?}");
    std::fs::write(&record, text).unwrap();

    // Without checksums nothing is proved: an older pml wrote none.
    let checksums = only(&world, "checksums");
    let text = std::fs::read(&checksums).unwrap();
    std::fs::write(&checksums, "garbage").unwrap();
    assert!(faults(&world)[0].contains("cannot read"));
    std::fs::remove_file(&checksums).unwrap();
    let older = world.run(&["verify"]);
    assert_eq!(older.status.code(), Some(1));
    assert!(
        stdout(&older).contains("not verifiable: an older pml"),
        "{}",
        stdout(&older)
    );
    std::fs::write(&checksums, text).unwrap();
    assert_intact(&world);
}

#[test]
fn what_a_server_writes_beside_its_code_is_named() {
    if !have(&["node", "npm"]) {
        return;
    }
    let (world, _) = installed(&registry());
    let mut client = world.legacy();
    client.call("hello__look", &json!({}));
    client.call("hello__note", &json!({ "file": "graph.json", "text": "{}" }));
    drop(client);
    assert_eq!(faults(&world), ["added: node_modules/hello/graph.json"]);
}

#[test]
fn a_python_server_that_only_ran_is_intact_and_its_bytecode_counts() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    let archive = wheel("hello", "1.0.0", &[], &[("hello.py", SERVER_PY)]);
    publish_wheels(&registry, "hello", &[("1.0.0", &archive)]);
    let world = World::new();
    world.set("UV_DEFAULT_INDEX", &format!("{}simple", registry.url()));
    world.configure(&json!({
        "permissions": { "allow": ["*"] },
        "mcpServers": { "hello": { "command": "uvx", "args": ["hello==1.0.0"] } },
    }));
    let installed = json_of(&world.run(&["install", "--json"]));
    let directory = PathBuf::from(installed[0]["directory"].as_str().unwrap());
    let mut client = world.legacy();
    assert_eq!(texts(&client.call("hello__look", &json!({}))), ["dep none"]);
    drop(client);
    assert_intact(&world);
    let output = world.run(&["verify", "--json"]);
    assert_eq!(verified(&output)[0]["package"], "pypi:hello@1.0.0");

    let files = crate::support::packages::files_below(&directory);
    let bytecode = files
        .iter()
        .find(|file| file.contains("__pycache__/hello."))
        .unwrap();
    let path = directory.join(bytecode);
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    overwrite(&path, &bytes);
    assert_eq!(faults(&world), [format!("changed: {bytecode}")]);
}

#[test]
fn real_servers_are_intact_after_they_ran() {
    if !have(&["node", "npm", "uv"]) {
        return;
    }
    let world = World::new();
    let cache = world.home().join(".cache/pml");
    std::fs::create_dir_all(&cache).unwrap();
    for downloads in ["npm", "uv"] {
        std::os::unix::fs::symlink(sdk::kept(downloads), cache.join(downloads)).unwrap();
    }
    world.configure(&json!({
        "permissions": { "allow": ["*"] },
        "mcpServers": {
            "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "."] },
            "time": { "command": "uvx", "args": ["mcp-server-time==2026.10.19"] },
        },
    }));
    let mut client = world.legacy();
    client.call("files__list_allowed_directories", &json!({}));
    client.call("time__get_current_time", &json!({ "timezone": "UTC" }));
    drop(client);
    let output = world.run(&["verify"]);
    assert_eq!(
        stdout(&output),
        "files: npm:@modelcontextprotocol/server-filesystem@2026.8.31: ok\ntime: pypi:mcp-server-time@2026.10.19: ok\n",
        "{}",
        stderr(&output)
    );
}
