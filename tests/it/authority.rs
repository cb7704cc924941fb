//! A command that fetches or starts a server is under the same rules, approvals and guard as a call.

use serde_json::{Value, json};

use crate::support::registry::Registry;
use crate::support::terminal::typed;
use crate::support::world::{World, json_of, stderr, stdout};
use crate::support::{fake_server, have};

/// A package whose install script leaves `ran` in the home.
fn published(world: &World) -> Registry {
    let registry = Registry::start();
    let ran = world.home().join("ran");
    let script = format!("node -e \"require('fs').writeFileSync('{}', '')\"", ran.display());
    let manifest = json!({ "bin": "x.js", "scripts": { "postinstall": script } });
    registry.publish("hello", "1.0.0", &manifest, &[("x.js", "#!/usr/bin/env node\n")]);
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    registry
}

fn configuration(permissions: &Value) -> Value {
    let hello = json!({ "command": "npx", "args": ["-y", "hello@1.0.0"], "allowScripts": true });
    json!({ "permissions": permissions, "mcpServers": { "hello": hello } })
}

fn assert_nothing_fetched(world: &World, registry: &Registry) {
    assert_eq!(registry.hits(&Registry::tarball("hello", "1.0.0")), 0);
    assert_eq!(registry.hits("/hello"), 0, "not even its name was sent");
    assert!(!world.home().join("ran").exists());
}

#[test]
fn a_denied_server_is_not_installed_by_a_command() {
    let world = World::new();
    let registry = published(&world);
    for deny in ["*", "hello", "hello:*"] {
        world.configure(&configuration(
            &json!({ "deny": [deny], "allow": ["hello:read"] }),
        ));
        for arguments in [&["install"][..], &["install", "--yes", "hello"]] {
            let output = world.run(arguments);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{said}");
            let told = format!(
                "error: hello: `hello` is denied by rule `{deny}`\n  in the deny list (.pml.json:4)\n\n\
                 hint: only a person can lift it: pml forget "
            );
            assert!(said.starts_with(&told), "{said}");
        }
        assert_nothing_fetched(&world, &registry);
    }
}

#[test]
fn an_agent_installs_nothing_where_only_a_person_may() {
    let world = World::new();
    let registry = published(&world);
    let mut configuration = configuration(&json!({ "allow": ["*"] }));
    configuration["approvals"] = json!({ "by": "human" });
    world.configure(&configuration);
    world.set("CLAUDECODE", "1");
    for arguments in [&["install"][..], &["install", "--yes", "hello"]] {
        let output = world.run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("`pml install` is for a person, and an agent runs it"),
            "{said}"
        );
    }
    let before = world.read(".pml.json");
    let add = ["add", "--yes", "other", "--", "npx", "-y", "hello@1.0.0"];
    for arguments in [&add[..], &["upgrade", "--yes", "hello"]] {
        let output = world.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let told = format!("`pml {}` is for a person", arguments[0]);
        assert!(stderr(&output).contains(&told), "{output:?}");
    }
    assert_eq!(world.read(".pml.json"), before);
    assert_nothing_fetched(&world, &registry);
}

#[test]
fn what_nobody_allowed_is_not_installed_without_a_question() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = World::new();
    let registry = published(&world);
    world.configure(&configuration(&json!({})));
    let output = world.run(&["install"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("there is no terminal to ask in"), "{said}");
    assert!(
        said.ends_with("hint: to agree beforehand: pml install --yes hello\n"),
        "{said}"
    );
    assert_nothing_fetched(&world, &registry);
    let refused = world.run(&["install", "--json"]);
    let outcomes: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(outcomes[0]["state"], "refused");

    let agreed = world.run(&["install", "--yes"]);
    let said = stderr(&agreed);
    assert!(agreed.status.success(), "{said}");
    for shown in [
        "runs       npx hello@1.0.0\n",
        "integrity  sha512-",
        "scripts    install scripts of the package and its dependencies run once you accept them\n",
    ] {
        assert!(said.contains(shown), "{shown:?} is not in {said}");
    }
    assert!(world.home().join("ran").exists());
    // What is there needs no leave to be fetched, and agreeing to fetch is not agreeing to run.
    assert!(world.run(&["install"]).status.success());
    assert_eq!(
        json_of(&world.run(&["list", "--json"]))["servers"][0]["access"],
        "asks"
    );
}

#[test]
fn the_person_at_the_terminal_decides_what_is_installed() {
    if !have(&["node", "npm", "script"]) {
        return;
    }
    for (line, code) in [("n\n", 1), ("\n", 1), ("y\ny\n", 0)] {
        let world = World::new();
        let registry = published(&world);
        world.configure(&configuration(&json!({})));
        let (status, said) = typed(&world, "install", line);
        assert_eq!(status, Some(code), "{line:?}: {said}");
        assert!(said.contains("Install hello? [y/N]"), "{said}");
        let fetched = registry.hits(&Registry::tarball("hello", "1.0.0"));
        assert_eq!(
            (fetched > 0, world.home().join("ran").exists()),
            (code == 0, code == 0)
        );
    }
}

#[test]
fn a_disabled_server_is_not_installed() {
    let world = World::new();
    let registry = published(&world);
    let mut configuration = configuration(&json!({ "allow": ["*"] }));
    configuration["mcpServers"]["hello"]["disabled"] = json!(true);
    world.configure(&configuration);
    let output = world.run(&["install", "--yes", "hello"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_nothing_fetched(&world, &registry);
}

#[test]
fn a_denied_server_is_not_added() {
    let world = World::new();
    let registry = published(&world);
    world.configure(&json!({ "permissions": { "deny": ["fake", "hello"] } }));
    let before = world.read(".pml.json");
    let started = world.path("started");
    let fake = fake_server();
    for line in [
        &[
            "fake",
            "--",
            fake.to_str().unwrap(),
            "--started",
            started.to_str().unwrap(),
        ][..],
        &["hello", "--", "npx", "-y", "hello"],
    ] {
        let output = world.run(&[&["add", "--yes"], line].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let told = format!(
            "error: `{0}` is denied by rule `{0}`\n  in the deny list (.pml.json:",
            line[0]
        );
        assert!(said.starts_with(&told), "{said}");
        assert_eq!(world.read(".pml.json"), before);
    }
    assert!(!started.exists());
    assert_nothing_fetched(&world, &registry);
    // A declaration alone runs nothing.
    let declared = world.run(&["add", "--no-install", "fake", "--", fake.to_str().unwrap()]);
    assert!(declared.status.success(), "{}", stderr(&declared));
    assert!(!started.exists());
}

#[test]
fn an_approval_covers_an_installation_of_the_same_content_only() {
    if !have(&["node", "npm"]) {
        return;
    }
    let world = World::new();
    let registry = published(&world);
    world.configure(&configuration(&json!({})));
    assert!(world.run(&["install", "--yes"]).status.success());
    let mut client = world.legacy();
    let asked = client.call("hello__connect", &json!({}));
    let integrity = &asked["approval_context"]["dependency"]["integrity"];
    assert!(integrity.is_string(), "{asked}");
    // It is installed, and does not speak MCP.
    client.proceed("hello__connect", &asked, &json!({ "approved": true }));
    client.close();
    let again = || {
        for folder in [".local/share/pml", ".cache/pml"] {
            std::fs::remove_dir_all(world.home().join(folder)).unwrap();
        }
        world.run(&["install"])
    };
    let output = again();
    assert!(output.status.success(), "{}", stderr(&output));
    registry.publish(
        "hello",
        "1.0.0",
        &json!({ "bin": "x.js" }),
        &[("x.js", "// another\n")],
    );
    let output = again();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("a published version must not change"), "{said}");
    assert!(!stdout(&output).contains("is installed"), "{said}");
}
