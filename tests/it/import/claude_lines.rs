//! The file of Claude Code is written by `claude` alone: what pml asks of it, what a person types instead, and what pml
//! believes of it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{read, write};
use crate::support::claude::{claude_environment, claude_program};
use crate::support::recorder::Recorder;
use crate::support::world::{World, stderr};
use crate::support::{have, pml};

/// Does what `claude mcp` does, but for what the file `habit` says: `idle` does nothing, a number fails at that call.
const STUB: &str = r#"#!/usr/bin/env python3
import json, os, sys
home = os.environ["HOME"]
words = sys.argv[1:]
with open(home + "/argv", "a") as log:
    log.write(json.dumps(words) + "\n")
calls = sum(1 for _ in open(home + "/argv"))
habit = open(home + "/habit").read() if os.path.exists(home + "/habit") else ""
if habit == "idle":
    sys.exit(0)
if habit == str(calls):
    sys.exit(1)
path = home + "/.claude.json"
file = json.load(open(path)) if os.path.exists(path) else {}
assert words[0] == "mcp" and words[2] == "-s", words
scope, rest = words[3], words[4:]
place = file if scope == "user" else file.setdefault("projects", {}).setdefault(os.getcwd(), {})
servers = place.setdefault("mcpServers", {})
rest = rest[1:] if rest[0] == "--" else rest
if words[1] == "add-json":
    name, entry = rest
    assert name not in servers, name
    servers[name] = json.loads(entry)
else:
    (name,) = rest
    del servers[name]
json.dump(file, open(path, "w"))
"#;

/// A world in which Claude Code has two servers, and there is no `claude`.
fn without_claude() -> World {
    let world = World::new();
    world.set("PATH", "/usr/bin:/bin");
    let server = json!({ "type": "stdio", "command": "FAKE", "env": { "PML_TEST_MARK": "MARK" } });
    let file = json!({ "mcpServers": { "c1": server, "it's -c 2": server } });
    write(&world, ".claude.json", &file.to_string());
    world
}

fn with_stub(world: &World) {
    let bin = world.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("claude"), STUB).unwrap();
    std::fs::set_permissions(bin.join("claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
    world.set("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
}

fn servers(world: &World) -> Vec<String> {
    let file: Value = serde_json::from_str(&read(world, ".claude.json")).unwrap();
    file["mcpServers"].as_object().unwrap().keys().cloned().collect()
}

fn calls(world: &World) -> Vec<Vec<String>> {
    let lines = read(world, "argv");
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Types what was printed, in the directory that was printed.
fn typed(world: &World, said: &str) {
    let (_, after) = said.split_once("; in ").unwrap();
    let (directory, after) = after.split_once(", type:\n").unwrap();
    let lines: Vec<&str> = after
        .lines()
        .take_while(|line| line.starts_with("  claude "))
        .collect();
    assert!(!lines.is_empty(), "{said}");
    let script = format!("set -e\ncd {directory}\n{}", lines.join("\n"));
    let mut sh: Command = world.program(Path::new("sh"));
    let done = sh.args(["-c", &script]).current_dir("/").output().unwrap();
    assert!(done.status.success(), "{script}: {}", stderr(&done));
}

#[test]
fn what_is_printed_without_claude_does_what_pml_would_have_done() {
    if !have(&["python3"]) {
        return;
    }
    let world = without_claude();
    let done = world.run(&["import", "--yes"]);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(1), "a person has to finish it: {said}");
    let (_, shown) = said.split_once("works, ").unwrap();
    let (_, shown) = shown.split_once("~/.claude.json is written").unwrap();
    let project = world.project().canonicalize().unwrap();
    let shown = shown
        .replace(pml().to_str().unwrap(), "PML")
        .replace(project.to_str().unwrap(), "PROJECT");
    insta::assert_snapshot!(format!("~/.claude.json is written{shown}"), @r#"
    ~/.claude.json is written by Claude Code alone; in PROJECT, type:
      claude mcp add-json -s user pml '{"type":"stdio","command":"PML","args":["stdio"]}'
      claude mcp remove -s user c1
      claude mcp remove -s user 'it'\''s -c 2'
    note: until then Claude Code starts these servers without pml

    to take it back: pml import --undo; what was not done stands above
    "#);

    with_stub(&world);
    typed(&world, &said);
    assert_eq!(servers(&world), ["pml"]);
    let calls = calls(&world);
    assert_eq!(calls[0][..5], ["mcp", "add-json", "-s", "user", "pml"]);
    assert_eq!(calls[2], ["mcp", "remove", "-s", "user", "it's -c 2"]);
    let undone = world.run(&["import", "--undo", "--yes"]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert_eq!(servers(&world), ["c1", "it's -c 2"]);
}

#[test]
fn what_is_printed_is_what_the_real_claude_takes() {
    let Some(claude) = claude_program() else { return };
    let world = without_claude();
    let api = Recorder::start();
    for (name, value) in claude_environment(world.home(), &api.url) {
        world.set(name, &value);
    }
    world.set("PATH", "/usr/bin:/bin");
    let done = world.run(&["import", "--yes"]);
    let said = stderr(&done);
    let bin = world.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(&claude, bin.join("claude")).unwrap();
    world.set(
        "PATH",
        &format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
    );
    typed(&world, &said);
    assert_eq!(servers(&world), ["pml"]);
}

#[test]
fn a_claude_that_does_nothing_and_says_nothing_is_not_believed() {
    if !have(&["python3"]) {
        return;
    }
    let world = without_claude();
    with_stub(&world);
    write(&world, "habit", "idle");
    let done = world.run(&["import", "--yes"]);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains("`claude mcp` reports success, and its file is as before"),
        "{said}"
    );
    assert!(!said.contains("starts pml instead of"), "{said}");
    assert_eq!(servers(&world), ["c1", "it's -c 2"]);
    write(&world, "habit", "");
    typed(&world, &said);
    assert_eq!(servers(&world), ["pml"]);
}

#[test]
fn a_registration_without_claude_prints_a_line_that_works() {
    if !have(&["python3"]) {
        return;
    }
    let world = World::new();
    world.set("PATH", "/usr/bin:/bin");
    let done = world.run(&["init", "--yes", "--client", "claude"]);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    with_stub(&world);
    typed(&world, &said);
    assert_eq!(servers(&world), ["pml"]);
    let again = world.run(&["init", "--yes", "--client", "claude"]);
    assert!(again.status.success(), "{}", stderr(&again));
    assert!(stderr(&again).contains("is registered"), "{}", stderr(&again));
}

#[test]
fn an_import_that_claude_breaks_off_anywhere_can_be_finished_and_taken_back() {
    if !have(&["python3"]) {
        return;
    }
    for after in ["import", "undo"] {
        for nth in 1..=3 {
            let world = without_claude();
            with_stub(&world);
            write(&world, "habit", &nth.to_string());
            let broken = world.run(&["import", "--yes"]);
            assert_eq!(broken.status.code(), Some(1), "{}", stderr(&broken));
            write(&world, "habit", "");
            let told = format!("{after} after call {nth}");
            if after == "import" {
                let done = world.run(&["import", "--yes"]);
                assert!(done.status.success(), "{told}: {}", stderr(&done));
                assert_eq!(servers(&world), ["pml"], "{told}");
            } else {
                let done = world.run(&["import", "--undo", "--yes"]);
                assert!(done.status.success(), "{told}: {}", stderr(&done));
                let mut names = servers(&world);
                names.sort();
                assert_eq!(names, ["c1", "it's -c 2"], "{told}");
                assert!(!world.home().join(".config/pml/pml.json").exists(), "{told}");
            }
        }
    }
}
