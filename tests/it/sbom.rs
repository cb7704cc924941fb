//! `pml sbom` lists what is installed: as the official validator of CycloneDX reads it, and as npm itself lists it.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::packages::publish_server;
use crate::support::registry::Registry;
use crate::support::world::{World, json_of, stderr};
use crate::support::{have, sdk};

/// Reads a bill from stdin and says what the official schema has against it.
const VALIDATE: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
errors = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(None if errors is None else repr(errors))
";

/// What the official schema has against a bill, if anything.
pub(crate) fn complaint(bill: &Value) -> Option<String> {
    let mut validator = Command::new(sdk::cyclonedx())
        .args(["-c", VALIDATE])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = validator.stdin.take().unwrap();
    stdin.write_all(bill.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = validator.wait_with_output().unwrap();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

fn purls(bill: &Value) -> BTreeSet<String> {
    let components = bill["components"].as_array().unwrap().iter();
    components
        .filter_map(|component| component["purl"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn the_bill_of_real_servers_is_valid_and_lists_what_npm_lists() {
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
        "permissions": { "allow": ["files", "time"] },
        "mcpServers": {
            "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "."] },
            "time": { "command": "uvx", "args": ["mcp-server-time==2026.10.19"] },
        },
    }));
    let installed = json_of(&world.run(&["install", "--json"]));
    let bill = json_of(&world.run(&["sbom"]));
    assert_eq!(complaint(&bill), None);
    let mut broken = bill.clone();
    broken["components"][0]["type"] = "server".into();
    assert!(complaint(&broken).unwrap().contains("'server'"));
    assert_eq!(bill["components"][0]["name"], "files");
    assert_eq!(bill["components"][1]["name"], "time");

    let directory = installed[0]["directory"].as_str().unwrap();
    let output = world
        .program(&which::which("npm").unwrap())
        .args(["sbom", "--sbom-format=cyclonedx", "--package-lock-only"])
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let oracle = serde_json::from_slice::<Value>(&output.stdout).unwrap();
    let own = json_of(&world.run(&["sbom", "files"]));
    assert!(purls(&own).len() > 50, "{own}");
    assert_eq!(purls(&own), purls(&oracle));
    let hashes = |bill: &Value| -> BTreeSet<(String, String)> {
        let components = bill["components"].as_array().unwrap().iter();
        let with_hash = components.filter(|component| component["hashes"].is_array());
        with_hash
            .map(|component| {
                (
                    component["purl"].as_str().unwrap().to_owned(),
                    component["hashes"].to_string(),
                )
            })
            .collect()
    };
    assert_eq!(hashes(&own), hashes(&oracle));
    assert!(
        purls(&bill).contains("pkg:pypi/mcp-server-time@2026.10.19"),
        "{bill}"
    );
}

#[test]
fn the_same_installation_gives_the_same_bytes_and_what_is_not_installed_is_told() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    registry.publish("dep", "1.0.0", &json!({}), &[]);
    publish_server(&registry, "1.0.0", &json!({ "dep": "1.0.0" }));
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.configure(&json!({
        "permissions": { "allow": ["*"] },
        "mcpServers": {
            "hello": { "command": "npx", "args": ["hello@1.0.0"] },
            "absent": { "command": "npx", "args": ["absent@1.0.0"] },
            "plain": { "command": "true" },
        },
    }));
    json_of(&world.run(&["install", "hello", "--json"]));
    let first = world.run(&["sbom"]);
    let bill = json_of(&first);
    assert_eq!(world.run(&["sbom"]).stdout, first.stdout);
    assert!(
        stderr(&first).contains("`absent` is not installed"),
        "{}",
        stderr(&first)
    );
    assert!(!stderr(&first).contains("plain"), "{}", stderr(&first));
    let expected = ["pkg:npm/dep@1.0.0", "pkg:npm/hello@1.0.0"];
    assert_eq!(
        bill["dependencies"][1],
        json!({ "ref": "server:hello", "dependsOn": expected })
    );
    let named = world.run(&["sbom", "plain"]);
    assert!(
        stderr(&named).contains("`plain` has no package"),
        "{}",
        stderr(&named)
    );
    assert_eq!(world.run(&["sbom", "helo"]).status.code(), Some(2));
}
