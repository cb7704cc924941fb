//! What a package calls its executables, and its files, deceives no reader of any output.

use serde_json::{Value, json};

use crate::support::have;
use crate::support::packages::{SERVER_JS, publish_wheels, wheel};
use crate::support::registry::Registry;
use crate::support::world::{World, asks, stderr, stdout, texts};

/// Clears the screen, turns the direction of reading, moves the cursor in one character, and begins a line of its own.
const NAME: &str = "a\u{1b}[2J\u{202e}\u{9b}1A\nFORGED";

/// A world with a server whose package has several executables, none of which is chosen by its name.
fn world(registry: &Registry) -> World {
    let manifest = json!({ "bin": { NAME: "server.js", "b": "other.js" } });
    let files = [("server.js", SERVER_JS), ("other.js", SERVER_JS)];
    registry.publish("hello", "1.0.0", &manifest, &files);
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.configure(&json!({
        "permissions": { "allow": ["hello"] },
        "mcpServers": { "hello": { "package": "npm:hello@1.0.0" } },
    }));
    world
}

/// Asserts that a text names the executable, and that nothing in it acts on a terminal or a reader.
fn assert_harmless(text: &str) {
    assert!(text.contains("[2J"), "the name is told: {text:?}");
    let acting = ['\u{1b}', '\u{202e}', '\u{9b}'];
    assert!(!text.contains(acting), "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("FORGED")), "{text}");
}

/// Everything a reader of a JSON value sees, with its escapes read.
fn meant(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text} "),
        Value::Array(list) => list.iter().map(meant).collect(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| [name, " ", &meant(value)].concat());
            members.collect()
        }
        other => other.to_string(),
    }
}

/// Runs a command that must fail on the executables, and returns its stdout and its stderr.
fn fails(world: &World, arguments: &[&str]) -> (String, String) {
    let output = world.run(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    (stdout(&output), stderr(&output))
}

#[test]
fn pml_install_escapes_the_names_of_executables() {
    if have(&["npm", "node"]) {
        let registry = Registry::start();
        assert_harmless(&fails(&world(&registry), &["install"]).1);
    }
}

#[test]
fn pml_install_in_json_escapes_the_names_of_executables() {
    if have(&["npm", "node"]) {
        let registry = Registry::start();
        let (printed, _) = fails(&world(&registry), &["install", "--json"]);
        assert_harmless(&printed);
        assert_harmless(&meant(&serde_json::from_str(&printed).unwrap()));
    }
}

#[test]
fn pml_add_escapes_the_names_of_executables() {
    if have(&["npm", "node"]) {
        let registry = Registry::start();
        let world = world(&registry);
        for json in [&[][..], &["--json"]] {
            let arguments = [
                &["add", "more", "--yes", "--package", "npm:hello@1.0.0"][..],
                json,
            ]
            .concat();
            let (printed, said) = fails(&world, &arguments);
            assert_harmless(&said);
            assert_eq!(printed, "");
        }
    }
}

#[test]
fn pml_list_escapes_the_names_of_executables() {
    if have(&["npm", "node"]) {
        let registry = Registry::start();
        let world = world(&registry);
        fails(&world, &["install"]);
        for arguments in [&["list"][..], &["list", "--json"]] {
            let output = world.run(arguments);
            assert_harmless(&format!("{}{}", stdout(&output), stderr(&output)));
        }
    }
}

#[test]
fn a_call_tells_the_model_the_names_of_executables_escaped() {
    if have(&["npm", "node"]) {
        let registry = Registry::start();
        let world = world(&registry);
        let mut client = world.legacy();
        assert_harmless(&texts(&client.call("hello:look", &json!({}))).concat());
        world.configure(&json!({ "mcpServers": { "hello": { "package": "npm:hello@1.0.0" } } }));
        let asked = client.call("hello:look", &json!({}));
        assert!(asks(&asked), "{asked}");
        let result = client.proceed("hello:look", &asked, &json!({ "approved": true }));
        assert_harmless(&meant(&result));
        let status = client.call("pml_status", &json!({}));
        assert!(
            !meant(&status).contains(['\u{1b}', '\u{202e}', '\u{9b}']),
            "{status}"
        );
    }
}

/// A world with an installed Python package, one file of which runs at every start.
fn starting(registry: &Registry) -> World {
    // An installer takes no control characters in the name of a file, but these.
    let files = [
        ("hello.py", "def main(): pass\n"),
        ("a[2J\u{2028}FORGED.start", "hello:main\n"),
    ];
    let wheel = wheel("hello", "1.0.0", &[], &files);
    publish_wheels(registry, "hello", &[("1.0.0", &wheel)]);
    let world = World::new();
    world.set("UV_DEFAULT_INDEX", &format!("{}simple", registry.url()));
    world.configure(&json!({ "mcpServers": { "hello": { "package": "pypi:hello==1.0.0" } } }));
    world
}

#[test]
fn the_names_of_files_that_run_at_every_start_are_escaped_everywhere() {
    if !have(&["uv", "python3"]) {
        return;
    }
    let registry = Registry::start();
    let world = starting(&registry);
    for arguments in [
        &["install", "--yes"][..],
        &["install", "--yes", "--json"],
        &["list", "--json"],
    ] {
        let output = world.run(arguments);
        let printed = format!("{}{}", stdout(&output), stderr(&output));
        assert!(output.status.success(), "{printed}");
        assert_harmless(&printed);
        assert!(!printed.contains('\u{2028}'), "{printed}");
    }
    let mut client = world.legacy();
    let asked = client.call("hello:look", &json!({}));
    assert!(asks(&asked), "{asked}");
    assert_harmless(&meant(&asked));
    assert!(!meant(&asked).contains('\u{2028}'), "{asked}");
    for arguments in [&["pending"][..], &["pending", "--json"]] {
        let output = world.run(arguments);
        assert_harmless(&format!("{}{}", stdout(&output), stderr(&output)));
    }
}
