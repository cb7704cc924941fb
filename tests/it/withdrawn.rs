//! A version that its authors took back is installed where it is declared exactly, but never without a word.

use serde_json::{Value, json};

use crate::support::have;
use crate::support::packages::{SERVER_JS, SERVER_PY, sha256, wheel};
use crate::support::registry::Registry;
use crate::support::world::{World, asks, json_of, stderr, stdout, texts};

/// A kind of package, and what is said of its withdrawn version.
struct Kind {
    package: &'static str,
    said: &'static str,
}

const KINDS: [Kind; 2] = [
    Kind {
        package: "npm:hello@1.0.0",
        said: "this version is deprecated by its authors (it eats files \\u{202e})",
    },
    Kind {
        package: "pypi:hello==1.0.0",
        said: "this version is yanked: its authors took it back (it eats files \\u{202e})",
    },
];

const REASON: &str = "it eats files \u{202e}";

/// A registry that has withdrawn its only version of `hello`, for both kinds.
fn withdrawn() -> Registry {
    let registry = Registry::start();
    let manifest = json!({ "bin": "server.js", "deprecated": REASON });
    registry.publish("hello", "1.0.0", &manifest, &[("server.js", SERVER_JS)]);
    let wheel = wheel("hello", "1.0.0", &[], &[("hello.py", SERVER_PY)]);
    let file = "hello-1.0.0-py3-none-any.whl";
    let hash = sha256(&wheel);
    let page = format!("<a href=\"/files/{file}#sha256={hash}\" data-yanked=\"{REASON}\">{file}</a>");
    registry.serve(&format!("/files/{file}"), &wheel);
    registry.serve("/simple/hello/", page.as_bytes());
    registry
}

fn world(registry: &Registry, permissions: &Value, kind: &Kind) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.set("UV_DEFAULT_INDEX", &format!("{}simple", registry.url()));
    let servers = json!({ "hello": { "package": kind.package } });
    world.configure(&json!({ "permissions": permissions, "mcpServers": servers }));
    world
}

fn can() -> bool {
    have(&["npm", "node", "uv", "python3"])
}

#[test]
fn a_person_is_told_of_a_withdrawn_version_before_they_agree_to_it() {
    if !can() {
        return;
    }
    let registry = withdrawn();
    for kind in &KINDS {
        let world = world(&registry, &json!({}), kind);
        let mut client = world.legacy();
        let asked = client.call("hello:look", &json!({}));
        assert!(asks(&asked), "{asked}");
        let text = texts(&asked).concat();
        assert!(text.contains(kind.said), "{text}");
        assert!(!asked.to_string().contains('\u{202e}'), "{asked}");
        let pending = stdout(&world.run(&["pending"]));
        assert!(pending.contains(kind.said), "{pending}");
        // An exact version is installed all the same, as the installers themselves do.
        let result = client.proceed("hello:look", &asked, &json!({ "approved": true }));
        assert!(texts(&result).concat().contains("dep none"), "{result}");
        client.close();
        let listed = json_of(&world.run(&["list", "--json"]));
        let withdrawn = listed["servers"][0]["withdrawn"].as_str().unwrap();
        assert_eq!(format!("this version {withdrawn}"), kind.said);
    }
}

#[test]
fn pml_install_tells_of_a_withdrawn_version() {
    if !can() {
        return;
    }
    let registry = withdrawn();
    for kind in &KINDS {
        // With a question, with an agreement beforehand, and by a rule.
        for (permissions, arguments) in [
            (json!({}), &["install", "--yes"][..]),
            (json!({ "allow": ["hello"] }), &["install"]),
            (json!({ "allow": ["hello"] }), &["install", "--json"]),
        ] {
            let output = world(&registry, &permissions, kind).run(arguments);
            assert!(output.status.success(), "{}", stderr(&output));
            let printed = format!("{}{}", stdout(&output), stderr(&output)).replace("\\\\u", "\\u");
            assert!(printed.contains(kind.said), "pml {arguments:?}: {printed}");
        }
    }
}

#[test]
fn pml_add_tells_of_a_withdrawn_version() {
    if !can() {
        return;
    }
    let registry = withdrawn();
    for kind in &KINDS {
        let world = world(&registry, &json!({}), kind);
        let output = world.run(&["add", "more", "--yes", "--package", kind.package]);
        assert!(output.status.success(), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains(&format!("note       {}", kind.said)), "{said}");
    }
}

#[test]
fn a_registry_that_does_not_answer_holds_up_no_question() {
    if !can() {
        return;
    }
    let registry = withdrawn();
    registry.stall("/hello");
    let world = world(&registry, &json!({}), &KINDS[0]);
    let asked = world.legacy().call("hello:look", &json!({}));
    assert!(asks(&asked), "{asked}");
    assert_eq!(asked["approval_context"]["dependency"]["integrity"], Value::Null);
}

#[test]
fn a_person_is_told_of_a_withdrawn_version_before_they_import_it() {
    if !can() {
        return;
    }
    let registry = withdrawn();
    let world = world(&registry, &json!({}), &KINDS[0]);
    std::fs::remove_file(world.path(".pml.json")).unwrap();
    let entries = json!({ "mcpServers": {
        "exact": { "command": "npx", "args": ["-y", "hello@1.0.0"] },
        "floating": { "command": "npx", "args": ["-y", "hello", "more"] },
    } });
    std::fs::create_dir(world.home().join(".cursor")).unwrap();
    std::fs::write(world.home().join(".cursor/mcp.json"), entries.to_string()).unwrap();
    let shown = world.run(&["import", "--dry-run"]);
    let said = stderr(&shown);
    let told = format!("note       {}", KINDS[0].said);
    assert_eq!(said.matches(&told).count(), 2, "{said}");
}
