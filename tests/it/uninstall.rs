//! `pml uninstall`: what is taken back stays taken back, and what a server wrote is not lost.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::packages::{files_below, publish_server};
use crate::support::registry::Registry;
use crate::support::world::{World, asks};
use crate::support::{DEADLINE, eventually, have};

/// A world whose user has `registry`, with the servers `servers` and the rule that everything asks.
fn world(registry: &Registry, servers: &Value) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.configure(&json!({ "permissions": { "ask": ["*"] }, "mcpServers": servers }));
    world
}

fn approvals(world: &World) -> PathBuf {
    world.home().join(".local/state/pml/approved")
}

/// Tells whether a process has the directory of approvals open: it holds their lock, or waits for it.
#[cfg(target_os = "linux")]
fn is_at_the_approvals(world: &World, process: u32) -> bool {
    let approvals = approvals(world);
    let open = std::fs::read_dir(format!("/proc/{process}/fd"));
    { open.into_iter().flatten().flatten() }
        .any(|descriptor| std::fs::read_link(descriptor.path()).is_ok_and(|path| path == approvals))
}

#[test]
#[cfg(target_os = "linux")]
fn an_uninstall_during_the_first_use_is_not_undone_by_it() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    let gate = tempfile::tempdir().unwrap();
    let gate = gate.path().join("gate");
    let servers = json!({ "hello": { "command": "npx", "args": ["hello@1.0.0"], "env": { "GATE": gate } } });
    let world = world(&registry, &servers);
    let mut client = world.legacy();
    let asked = client.call("hello__look", &json!({}));
    let id = &asked["approval_context"]["workflow_id"];
    let going_on = json!({ "continue_workflow": { "workflow_id": id, "approved": true } });
    let call = client.send(
        "tools/call",
        &json!({ "name": "hello__look", "arguments": going_on }),
    );
    eventually("the approval is recorded", DEADLINE, || {
        !files_below(&approvals(&world)).is_empty() && !is_at_the_approvals(&world, client.id())
    });

    // The first use has the integrity to add, and waits; the uninstall comes before it gets its turn.
    let held = File::open(approvals(&world)).unwrap();
    held.lock().unwrap();
    std::fs::write(&gate, "").unwrap();
    eventually("the first use waits for the approvals", DEADLINE, || {
        is_at_the_approvals(&world, client.id())
    });
    let mut uninstall = world
        .command(&["uninstall", "hello"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually(
        "the uninstall is done or waits for the approvals",
        DEADLINE,
        || uninstall.try_wait().unwrap().is_some() || is_at_the_approvals(&world, uninstall.id()),
    );
    drop(held);
    assert!(uninstall.wait().unwrap().success());
    client.answer(call);
    assert_eq!(files_below(&approvals(&world)), Vec::<String>::new());
    assert!(asks(&client.call("hello__look", &json!({}))));
}
