//! What clients hand to pml, as the commands of a terminal see it; and a repository as its subdirectories do.

use std::path::Path;

use serde_json::{Value, json};

use crate::lock_file;
use crate::support::world::{World, json_of, stderr, stdout};
use crate::support::{fake_server, have};

const KEY: &str = "key-of-the-client-1";

/// Writes a client's file below the home.
fn write(world: &World, file: &str, content: &Value) {
    let path = world.home().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content.to_string()).unwrap();
}

/// A world with a server whose secret stood in Cursor's file and was imported from there.
fn imported() -> World {
    let world = World::new();
    let one = json!({ "command": fake_server(), "env": { "PML_TEST_MARK": world.mark(), "API_KEY": KEY } });
    write(
        &world,
        ".cursor/mcp.json",
        &json!({ "mcpServers": { "one": one } }),
    );
    let done = world.run(&["import", "--yes"]);
    assert!(done.status.success(), "{}", stderr(&done));
    world
}

#[test]
fn a_server_whose_secret_a_client_hands_over_is_seen_as_it_is_in_the_client() {
    let world = imported();
    let from = "gets `API_KEY` from Cursor's entry of pml (~/.cursor/mcp.json)";

    let listed = world.run(&["list"]);
    let (table, said) = (stdout(&listed), stderr(&listed));
    let row = table.lines().nth(1).unwrap();
    assert!(
        row.starts_with("one ") && row.contains(" yes ") && row.contains(" run "),
        "{table}"
    );
    assert!(said.contains(&format!("note: `one`: {from}\n")), "{said}");
    assert!(!said.contains("is not set"), "{said}");
    let server = &json_of(&world.run(&["list", "--json"]))["servers"][0];
    assert_eq!(
        (&server["approved"], &server["problems"]),
        (&json!(true), &json!([])),
        "{server}"
    );

    let checked = world.run(&["check", "one:echo"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    assert!(stdout(&checked).starts_with("allow: `one:echo` runs without a question\n"));
    assert_eq!(stderr(&checked), format!("note: {from}\n"));

    let healthy = world.run(&["doctor"]);
    assert_eq!(healthy.status.code(), Some(0), "{}", stdout(&healthy));

    for output in [listed, checked, healthy] {
        assert!(!format!("{}{}", stdout(&output), stderr(&output)).contains(KEY));
    }
}

#[test]
fn in_a_terminal_a_server_gets_what_the_users_own_client_hands_over() {
    let world = imported();
    let taken = "note: `API_KEY` is taken from Cursor's entry of pml (~/.cursor/mcp.json)\n";
    let called = world.run(&["call", "one", "environment"]);
    let said = stderr(&called);
    assert_eq!(called.status.code(), Some(0), "{said}{}", stdout(&called));
    assert!(said.contains(taken), "{said}");
    assert!(!said.contains(KEY), "{said}");
    assert!(stdout(&called).contains("API_KEY"), "{}", stdout(&called));

    let approved = world.run(&["approve", "--yes", "one"]);
    let said = stderr(&approved);
    assert_eq!(approved.status.code(), Some(0), "{said}");
    assert!(said.starts_with(taken) && !said.contains(KEY), "{said}");

    // What is set here counts, and is no news.
    world.set("API_KEY", "mine");
    let own = world.run(&["approve", "--yes", "one"]);
    assert!(
        own.status.success() && !stderr(&own).contains("is taken from"),
        "{}",
        stderr(&own)
    );
}

#[test]
fn a_package_is_locked_compared_and_upgraded_with_what_its_client_hands_over() {
    let Some((registry, world)) = lock_file::upgradable() else {
        return;
    };
    write(
        &world,
        ".cursor/mcp.json",
        &json!({ "mcpServers": { "pml": { "command": "pml", "args": ["stdio"], "env": { "API_KEY": KEY } } } }),
    );
    let declared = std::fs::read_to_string(world.project().join(".pml.json")).unwrap();
    let mut declared: Value = serde_json::from_str(&declared).unwrap();
    declared["mcpServers"]["hello"]["env"] = json!({ "API_KEY": "${API_KEY}" });
    world.configure(&declared);
    let taken = "note: `API_KEY` is taken from Cursor's entry of pml (~/.cursor/mcp.json)\n";
    for command in [
        &["lock"][..],
        &["diff", "hello"],
        &["outdated"],
        &["upgrade", "--yes", "hello"],
        &["uninstall", "hello"],
    ] {
        let output = world.run(command);
        let said = stderr(&output);
        assert!(
            output.status.code().is_some_and(|code| code < 2),
            "{command:?}: {said}"
        );
        assert!(
            !said.contains("API_KEY") || said.contains(taken),
            "{command:?}: {said}"
        );
        assert!(!format!("{said}{}", stdout(&output)).contains(KEY), "{command:?}");
    }
    let upgraded = std::fs::read_to_string(world.project().join(".pml.json")).unwrap();
    assert!(
        upgraded.contains("1.1.0") && upgraded.contains("${API_KEY}"),
        "{upgraded}"
    );
    drop(registry);
}

#[test]
fn a_package_is_installed_with_what_its_client_hands_over_and_is_given_none_of_it() {
    let Some((registry, world)) = lock_file::upgradable() else {
        return;
    };
    let own =
        json!({ "command": "pml", "args": ["stdio"], "env": { "API_KEY": KEY, "PROMPTED": "${input:p}" } });
    write(
        &world,
        ".cursor/mcp.json",
        &json!({ "mcpServers": { "pml": own } }),
    );
    let declared = std::fs::read_to_string(world.project().join(".pml.json")).unwrap();
    let mut declared: Value = serde_json::from_str(&declared).unwrap();
    let hello = &mut declared["mcpServers"]["hello"];
    hello["env"] = json!({ "API_KEY": "${API_KEY}", "PROMPTED": "${PROMPTED}" });
    world.configure(&declared);
    let installed = world.run(&["install", "--yes", "hello"]);
    let said = format!("{}{}", stderr(&installed), stdout(&installed));
    assert_eq!(installed.status.code(), Some(0), "{said}");
    assert!(stdout(&installed).starts_with("hello: hello@"), "{said}");
    assert!(!said.contains(KEY) && !said.contains("PROMPTED"), "{said}");

    // What the line is made of is asked for, and never made up.
    let args = declared["mcpServers"]["hello"]["args"].as_array_mut().unwrap();
    args.push(json!("--as=${PROMPTED}"));
    world.configure(&declared);
    let refused = world.run(&["install", "--yes", "hello"]);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.starts_with(
            "note: gets `PROMPTED` from Cursor's entry of pml (~/.cursor/mcp.json), and only there"
        ),
        "{said}"
    );
    drop(registry);
}

#[test]
fn a_value_on_which_two_clients_do_not_agree_is_not_chosen() {
    let world = imported();
    let own = json!({ "command": "pml", "args": ["stdio"], "env": { "API_KEY": "another" } });
    write(
        &world,
        ".codeium/windsurf/mcp_config.json",
        &json!({ "mcpServers": { "pml": own } }),
    );
    let approved = world.run(&["approve", "--yes", "one"]);
    let said = stderr(&approved);
    assert_eq!(approved.status.code(), Some(2), "{said}");
    assert!(
        said.starts_with(
            "note: gets `API_KEY` from Cursor's entry of pml (~/.cursor/mcp.json) and from Windsurf's entry of pml \
             (~/.codeium/windsurf/mcp_config.json), and only there: to use it here, set `API_KEY` in this terminal\n"
        ),
        "{said}"
    );
}

#[test]
fn the_names_in_a_file_of_variables_are_handed_over_too() {
    let world = World::new();
    world.write("a.env", "FOO_A=secret-of-foo\n");
    let own = json!({ "command": "pml", "args": ["stdio"], "envFile": "a.env" });
    write(
        &world,
        ".cursor/mcp.json",
        &json!({ "mcpServers": { "pml": own } }),
    );
    world.configure(&json!({ "mcpServers": {
        "a": { "command": fake_server(), "env": { "FOO": "${FOO_A}" } },
        "b": { "command": fake_server(), "env": { "FOO": "${FOO_B}" } },
    } }));
    world.set(
        "PATH",
        &format!(
            "{}:/usr/bin:/bin",
            crate::support::pml().parent().unwrap().display()
        ),
    );
    let found = json_of_problems(&world);
    let about: Vec<&str> = found
        .iter()
        .map(|problem| problem["about"].as_str().unwrap())
        .collect();
    assert_eq!(about, ["`b`"], "{found:?}");
    let said = stderr(&world.run(&["list"]));
    assert!(
        said.contains("`a`: gets `FOO_A` from Cursor's entry of pml"),
        "{said}"
    );
    assert!(!said.contains("secret-of-foo"), "{said}");
}

fn json_of_problems(world: &World) -> Vec<Value> {
    let found: Value = serde_json::from_slice(&world.run(&["doctor", "--json"]).stdout).unwrap();
    found["problems"].as_array().unwrap().clone()
}

#[test]
fn from_a_subdirectory_the_repository_is_the_project() {
    if !have(&["git"]) {
        return;
    }
    let world = World::new();
    let made = world
        .program(Path::new("git"))
        .args(["init", "--quiet"])
        .status()
        .unwrap();
    assert!(made.success());
    let fake = json!({ "command": fake_server(), "env": { "PML_TEST_MARK": world.mark() } });
    write(
        &world,
        "project/.mcp.json",
        &json!({ "mcpServers": { "one": fake } }),
    );
    write(
        &world,
        "project/.vscode/mcp.json",
        &json!({ "servers": { "two": fake } }),
    );
    let sub = world.path("a/sub");
    std::fs::create_dir_all(&sub).unwrap();
    let run = |arguments: &[&str]| world.command(arguments).current_dir(&sub).output().unwrap();

    let found: Value = serde_json::from_slice(&run(&["doctor", "--json"]).stdout).unwrap();
    let about: Vec<&Value> = found["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| &problem["about"])
        .collect();
    assert_eq!(about, ["Claude Code (project)", "VS Code (project)"]);

    let done = run(&["import", "--yes"]);
    assert!(done.status.success(), "{}", stderr(&done));
    let written: Value = serde_json::from_str(&world.read(".pml.json")).unwrap();
    let names: Vec<&String> = written["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["one", "two"]);
    assert!(!sub.join(".pml.json").exists());
    let healthy = run(&["doctor"]);
    assert_eq!(healthy.status.code(), Some(0), "{}", stdout(&healthy));
    let undone = run(&["import", "--undo", "--yes"]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert!(!world.path(".pml.json").exists());
}
