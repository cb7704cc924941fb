//! The acceptance criteria of the story pml began with, on a package `serena@0.5.0` of a registry on loopback.

use serde_json::{Value, json};

use crate::support::registry::Registry;
use crate::support::world::{World, asks, texts};
use crate::support::{have, world};

/// A server of thirty lines: `analyze` returns what it was given and leaves a trace of having run.
const SERENA: &str = r#"#!/usr/bin/env node
const fs = require("fs");
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\n");
const schema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") {
    answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "serena", version: "0.5.0" } });
  } else if (method === "tools/list") {
    answer(id, { tools: [{ name: "analyze", inputSchema: schema }, { name: "other", inputSchema: { type: "object" } }] });
  } else if (method === "tools/call") {
    fs.appendFileSync("ran", params.name + "\n");
    answer(id, { content: [{ type: "text", text: `analyzed ${params.arguments?.path}` }] });
  }
});
"#;

/// A world in which `serena` is declared but not installed; `None` without Node.
fn world(permissions: &Value) -> Option<(World, Registry)> {
    if !have(&["node", "npm"]) {
        return None;
    }
    let registry = Registry::start();
    registry.publish(
        "serena",
        "0.5.0",
        &json!({ "bin": "serena.js" }),
        &[("serena.js", SERENA)],
    );
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.configure(&json!({
        "permissions": permissions,
        "mcpServers": { "serena": { "command": "npx", "args": ["-y", "serena@0.5.0"] } },
    }));
    Some((world, registry))
}

fn ask_everything() -> Value {
    json!({ "allow": ["existing:tools"], "deny": [], "ask": ["*"] })
}

fn downloads(registry: &Registry) -> usize {
    registry.hits(&Registry::tarball("serena", "0.5.0"))
}

fn analyze() -> Value {
    json!({ "path": "src" })
}

#[test]
fn ac1_2_a_call_that_needs_an_install_returns_approval_required_with_a_workflow_id() {
    let Some((world, registry)) = world(&ask_everything()) else {
        return;
    };
    let mut client = world.legacy();
    let asked = client.call("serena:analyze", &analyze());
    let context = &asked["approval_context"];
    let id = context["workflow_id"].as_str().unwrap();
    assert_eq!(uuid::Uuid::parse_str(id).unwrap().get_version_num(), 4);
    assert_eq!(asked["approval_required"], true);
    assert_eq!(
        asked["content"][0],
        json!({ "type": "text", "text": "Approval required to install serena@0.5.0" })
    );
    // What the registry says of it is found out first, without fetching or running anything of the package.
    let integrity = context["dependency"]["integrity"].clone();
    assert!(integrity.as_str().unwrap().starts_with("sha512-"), "{asked}");
    let dependency = json!({ "name": "serena", "version": "0.5.0", "install": "npx serena@0.5.0", "integrity": integrity });
    assert_eq!(
        *context,
        json!({ "type": "dependency_install", "tool": "serena:analyze", "dependency": dependency, "workflow_id": id })
    );
    assert_eq!(asked["structuredContent"]["approval_context"], *context);
    assert_eq!(
        asked["structuredContent"]["instructions"],
        asked["content"][1]["text"]
    );
    assert!(texts(&asked)[1].contains(id) && texts(&asked)[1].contains("A person must decide"));
    assert_eq!(downloads(&registry), 0);
    assert!(!world.path("ran").exists());
}

#[test]
fn ac3_4_an_approved_continuation_installs_and_runs_the_original_call() {
    let Some((world, registry)) = world(&ask_everything()) else {
        return;
    };
    let mut client = world.legacy();
    let asked = client.call("serena:analyze", &analyze());
    let result = client.proceed(
        "serena:analyze",
        &asked,
        &json!({ "approved": true, "always": false }),
    );
    assert_eq!(
        texts(&result),
        ["analyzed src"],
        "what was shown is what was installed"
    );
    assert_eq!(
        (downloads(&registry), world.read("ran")),
        (1, "analyze\n".to_owned())
    );
    let next = client.call("serena:other", &json!({}));
    assert_eq!(
        texts(&next),
        ["analyzed undefined"],
        "an approved dependency runs without a question"
    );
}

#[test]
fn ac5_6_always_is_persisted_and_skips_approval_from_then_on() {
    let Some((world, registry)) = world(&ask_everything()) else {
        return;
    };
    let mut client = world.legacy();
    let asked = client.call("serena:analyze", &analyze());
    let result = client.proceed(
        "serena:analyze",
        &asked,
        &json!({ "approved": true, "always": true }),
    );
    assert_eq!(texts(&result)[0], "analyzed src");
    let config: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    assert_eq!(
        config["permissions"]["allow"],
        json!(["existing:tools", "serena:analyze"])
    );
    drop(client);
    // Neither the approval nor the package is left; the rule alone installs it again.
    assert!(world.run(&["uninstall", "serena"]).status.success());
    let result = world.legacy().call("serena:analyze", &analyze());
    assert_eq!(texts(&result), ["analyzed src"]);
    assert!(downloads(&registry) >= 1);
    assert!(
        asks(&world.legacy().call("serena:other", &json!({}))),
        "the rule names one tool"
    );
}

#[test]
fn ac7_8_an_allowed_tool_is_installed_and_run_at_once() {
    let Some((world, registry)) = world(&json!({ "allow": ["serena:*"], "ask": ["*"] })) else {
        return;
    };
    let result = world.legacy().call("serena:analyze", &analyze());
    assert!(!asks(&result));
    assert_eq!((texts(&result), downloads(&registry)), (vec!["analyzed src"], 1));
}

#[test]
fn ac9_10_an_abort_installs_nothing_and_an_old_id_is_expired_or_not_found() {
    let Some((world, registry)) = world(&ask_everything()) else {
        return;
    };
    let mut client = world.legacy();
    let asked = client.call("serena:analyze", &analyze());
    let aborted = client.proceed("serena:analyze", &asked, &json!({ "approved": false }));
    assert_eq!(texts(&aborted)[0], "Workflow aborted by user");

    let asked = client.call("serena:analyze", &json!({ "path": "late" }));
    let expires_in = world::expire_workflows(&world);
    assert!(
        (295_000..=300_000).contains(&expires_in),
        "five minutes, not {expires_in} ms"
    );
    let unknown = json!({ "approval_context": { "workflow_id": uuid::Uuid::new_v4() } });
    for late in [&asked, &unknown] {
        let expired = client.proceed("serena:analyze", late, &json!({ "approved": true }));
        assert_eq!(expired["isError"], true);
        assert_eq!(texts(&expired)[0], "Workflow expired or not found");
    }
    assert_eq!(downloads(&registry), 0);
    assert!(!world.path("ran").exists());
}
