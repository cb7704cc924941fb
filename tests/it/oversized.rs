//! A limit on the size of files (`ulimit -f`) costs what could not be written, never pml.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;

use crate::support::world::{Client, World, asks, stderr, texts};

/// A `pml` command that may write so many blocks of 512 bytes to a file.
fn limited(world: &World, blocks: u32, arguments: &[&str]) -> Command {
    let mut command = world.program(Path::new("/bin/sh"));
    command
        .args(["-c", &format!("ulimit -f {blocks} && exec \"$0\" \"$@\"")])
        .arg(crate::support::pml())
        .args(arguments);
    command
}

#[test]
fn an_ask_over_the_size_limit_costs_that_ask_only() {
    let permissions = json!({ "allow": ["fake:echo"] });
    let world = World::with_fake(&permissions, &[]);
    // What is first used is remembered, and that needs more than this.
    world.legacy().call("fake__echo", &json!({}));
    // The database of what waits needs more than this, and so does the catalog.
    let mut client = Client::start(limited(&world, 4, &["stdio"]));
    client.initialize("2025-06-18");
    let echoed = client.call("fake__echo", &json!({ "a": 1 }));
    assert_ne!(echoed["isError"], true, "{echoed}");
    let asked = client.call("fake__big", &json!({ "bytes": 1 }));
    assert!(!asks(&asked), "{asked}");
    assert_eq!(asked["isError"], true, "{asked}");
    let told = texts(&asked).join("\n");
    assert!(told.contains("workflows.db"), "{told}");
    let echoed = client.call("fake__echo", &json!({ "a": 2 }));
    assert_ne!(echoed["isError"], true, "{echoed}");
    assert!(client.close().success());
}

#[test]
fn a_server_has_the_usual_action_for_the_size_limit() {
    let world = World::with_fake(&json!({ "allow": ["*"] }), &["--started", "started"]);
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    let id = world.read("started");
    let status = std::fs::read_to_string(format!("/proc/{}/status", id.trim())).unwrap();
    let signals = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    let bit = 1_u64 << (Signal::XFSZ.as_raw() - 1);
    assert_eq!((signals("SigIgn:") | signals("SigCgt:")) & bit, 0, "{status}");
}

#[test]
fn a_command_over_the_size_limit_says_so_and_leaves_the_file() {
    let world = World::new();
    let rules: Vec<String> = (0..200).map(|number| format!("server{number}:*")).collect();
    world.configure(&json!({ "permissions": { "deny": rules } }));
    let before = world.read(".pml.json");
    let output = limited(&world, 2, &["deny", "other:*"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(2),
        "{:?} {}",
        output.status,
        stderr(&output)
    );
    assert!(stderr(&output).contains("File too large"), "{}", stderr(&output));
    assert_eq!(world.read(".pml.json"), before);
}
