//! `pml init`: a new file, a registration, and nothing that was there before is lost.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::world::{World, json_of, stderr, stdout};

const CLIENT: &str = "{\r\n\t// mine\r\n\t\"mcpServers\": {\r\n\t\t\"files\": {\"command\": \"npx\", \"args\": [\"-y\", \"fs@1.0.0\"]},\r\n\t},\r\n\t\"other\": 1.0\r\n}";

#[test]
fn without_a_terminal_the_file_is_written_and_nothing_is_registered() {
    let world = World::new();
    let output = world.run(&["init"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""));
    let said = stderr(&output);
    assert!(said.starts_with("created .pml.json\n"), "{said}");
    assert!(said.contains("to register pml: pml init --yes"), "{said}");
    assert!(said.contains("+    \"pml\": {"), "{said}");
    assert!(!world.path(".mcp.json").exists());
    let rules = json_of(&world.run(&["rules", "--json"]));
    assert_eq!(rules["rules"][0]["pattern"], "*");
    assert!(world.read(".pml.json").contains("// "), "it is commented");
}

#[test]
fn a_registration_is_made_once() {
    let world = World::new();
    assert!(world.run(&["init", "--yes"]).status.success());
    let client: Value = serde_json::from_str(&world.read(".mcp.json")).unwrap();
    assert_eq!(
        client,
        json!({ "mcpServers": { "pml": { "command": "pml", "args": ["stdio"] } } })
    );
    let before = (world.read(".pml.json"), world.read(".mcp.json"));
    let output = world.run(&["init", "--yes"]);
    assert!(output.status.success());
    let said = stderr(&output);
    assert!(
        said.contains(".pml.json is there already and was left as it is"),
        "{said}"
    );
    assert!(said.contains("pml is registered in .mcp.json already"), "{said}");
    assert_eq!((world.read(".pml.json"), world.read(".mcp.json")), before);
    assert!(
        !world.path(".mcp.json.bak").exists(),
        "nothing changed, nothing is kept"
    );
}

#[test]
fn every_other_byte_stays_and_older_copies_are_never_overwritten() {
    let world = World::new();
    world.write(".mcp.json", CLIENT);
    world.write(".mcp.json.bak", "the first copy");
    let output = world.run(&["init", "--yes", "--json"]);
    let done = json_of(&output);
    assert_eq!(done["backup"], world.path(".mcp.json.bak.1").to_str().unwrap());
    assert_eq!(done["registered"], true);
    assert_eq!(world.read(".mcp.json.bak"), "the first copy");
    assert_eq!(world.read(".mcp.json.bak.1"), CLIENT);
    let mode = world
        .path(".mcp.json.bak.1")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "what it copies may hold secrets");
    let after = world.read(".mcp.json");
    let start = CLIENT.find(",\r\n\t},").unwrap();
    assert!(after.starts_with(&CLIENT[..start]), "{after}");
    assert!(after.ends_with("\r\n\t\"other\": 1.0\r\n}"), "{after}");
    assert!(after.contains("\"pml\""), "{after}");
    let said = stderr(&output);
    assert!(said.contains(".mcp.json starts `files` without pml"), "{said}");
}

#[test]
fn an_existing_configuration_is_never_touched() {
    let world = World::new();
    world.write(".pml.json", "{} // mine");
    assert!(world.run(&["init", "--yes"]).status.success());
    assert_eq!(world.read(".pml.json"), "{} // mine");
}

#[test]
fn a_broken_client_file_stops_before_anything_is_written() {
    let world = World::new();
    world.write(".mcp.json", "{ \"mcpServers\": [] }");
    let output = world.run(&["init", "--yes"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(!world.path(".pml.json").exists());
    assert_eq!(world.read(".mcp.json"), "{ \"mcpServers\": [] }");
}

#[test]
fn an_import_copies_what_can_be_copied_and_names_the_rest() {
    let world = World::new();
    let client = json!({ "mcpServers": {
        "files": { "command": "npx", "args": ["-y", "fs@1.0.0"] },
        "bad__name": { "command": "x" },
        "odd": { "command": "x", "whatever": true },
        "pml": { "command": "/opt/pml", "args": ["stdio"] },
    } });
    world.write(".mcp.json", &client.to_string());
    let output = world.run(&["init", "--import", "--json"]);
    let done = json_of(&output);
    assert_eq!(
        (&done["imported"], &done["notImported"], &done["registered"]),
        (&json!(["files"]), &json!(["bad__name", "odd"]), &json!(true))
    );
    let said = stderr(&output);
    assert!(
        said.contains("`odd` was not copied: unknown key `whatever`"),
        "{said}"
    );
    let listed = json_of(&world.run(&["list", "--json"]));
    assert_eq!(listed["servers"][0]["name"], "files");
    assert_eq!(
        world.read(".mcp.json"),
        client.to_string(),
        "it is a copy, not a move"
    );
    assert!(world.read(".pml.json").contains("// "), "the comments stay");
}

#[test]
fn a_file_further_up_is_said_not_to_count_any_more() {
    let world = World::new();
    std::fs::write(world.home().join(".pml.json"), "{}").unwrap();
    let said = stderr(&world.run(&["init"]));
    assert!(
        said.contains("note: ~/.pml.json does not count here any more"),
        "{said}"
    );
    assert!(world.path(".pml.json").exists());
}
