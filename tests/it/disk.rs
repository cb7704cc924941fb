//! A disk that fails: what pml says is what stands there.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use rustix::io::Errno;
use serde_json::{Value, json};

use crate::home::names;
use crate::support::faults::{Fault, inject};
use crate::support::have;
use crate::support::packages::publish_server;
use crate::support::registry::Registry;
use crate::support::world::{Client, World, approvals, asks, state, stderr, stdout, texts};

fn failing<'a>(call: &'static str, nth: u32, path: &'a Path) -> Fault<'a> {
    let errno = Some(Errno::IO);
    Fault {
        call,
        nth,
        errno,
        path,
    }
}

fn run(world: &World, arguments: &[&str], faults: &[Fault<'_>]) -> Output {
    let mut command = world.command(arguments);
    inject(&mut command, faults);
    command.stdin(Stdio::null()).output().unwrap()
}

fn client(world: &World, faults: &[Fault<'_>]) -> Client {
    let mut command = world.command(&["stdio"]);
    inject(&mut command, faults);
    let mut client = Client::start(command);
    client.initialize("2025-06-18");
    client
}

/// The log of the database: an approval counts once the disk confirmed it there.
fn log(world: &World) -> PathBuf {
    state(world).join("workflows.db-wal")
}

#[test]
fn an_approval_that_the_disk_does_not_confirm_does_not_count() {
    if !have(&["cc"]) {
        return;
    }
    let mut met = 0;
    // Which of the syncs is that of the approval depends on SQLite: each fails once.
    for nth in 1..=4 {
        let world = World::with_fake(&json!({}), &[]);
        let mut client = client(&world, &[failing("fsync", nth, &log(&world))]);
        let asked = client.call("fake__echo", &json!({}));
        if !asks(&asked) {
            continue;
        }
        let result = client.proceed("fake__echo", &asked, &json!({ "approved": true }));
        let told = texts(&result).join("\n");
        if result.get("isError").is_none() {
            continue;
        }
        met += 1;
        assert!(
            told.starts_with("the approval could not be recorded, so nothing was run"),
            "{told}"
        );
        assert_eq!(approvals(&world), Vec::<Value>::new());
        let again = client.call("fake__echo", &json!({}));
        assert!(asks(&again), "what was not recorded does not count: {again}");
        // The disk recovers.
        let result = client.proceed("fake__echo", &again, &json!({ "approved": true }));
        assert_eq!(result.get("isError"), None, "{result}");
        assert!(!asks(&client.call("fake__echo", &json!({}))));
    }
    assert!(met > 0, "no sync of an approval failed");
}

/// The commit that failed is whole in the log: who recovers the log after a crash must not find it.
#[test]
fn an_approval_that_was_not_confirmed_does_not_come_back_after_a_crash() {
    if !have(&["cc"]) {
        return;
    }
    for nth in 1..=4 {
        let world = World::with_fake(&json!({}), &[]);
        let mut client = client(&world, &[failing("fsync", nth, &log(&world))]);
        let asked = client.call("fake__echo", &json!({}));
        if !asks(&asked) {
            continue;
        }
        let result = client.proceed("fake__echo", &asked, &json!({ "approved": true }));
        let recorded = result.get("isError").is_none();
        client.signal(rustix::process::Signal::KILL);
        assert!(!client.close().success());
        assert_eq!(
            approvals(&world).len(),
            usize::from(recorded),
            "sync {nth}: {result}"
        );
        assert_eq!(asks(&world.legacy().call("fake__echo", &json!({}))), !recorded);
    }
}

#[test]
fn a_rule_that_the_disk_does_not_confirm_stands_and_is_said_to() {
    if !have(&["cc"]) {
        return;
    }
    let world = World::new();
    let project = world.project();
    for arguments in [&["allow", "a:b"][..], &["ask", "c:d"], &["forget", "a:b"]] {
        let output = run(&world, arguments, &[failing("fsync", 1, &project)]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        assert!(
            said.contains("note: the change stands, but a power cut may undo it"),
            "{said}"
        );
    }
    let text = world.read(".pml.json");
    assert!(text.contains("c:d") && !text.contains("a:b"), "{text}");
}

#[test]
fn always_says_that_a_power_cut_may_take_the_rule() {
    if !have(&["cc"]) {
        return;
    }
    let world = World::with_fake(&json!({}), &[]);
    let mut client = client(&world, &[failing("fsync", 1, &world.project())]);
    let asked = client.call("fake__echo", &json!({}));
    let result = client.proceed("fake__echo", &asked, &json!({ "approved": true, "always": true }));
    let told = texts(&result).join("\n");
    assert!(told.contains("is in the allow list of"), "{told}");
    assert!(told.contains("a power cut may undo it"), "{told}");
    assert!(world.read(".pml.json").contains("fake:echo"));
}

#[test]
fn a_write_that_fails_before_the_rename_changes_nothing() {
    if !have(&["cc"]) {
        return;
    }
    let world = World::new();
    world.write(".pml.json", "{}");
    let file = world.path(".pml.json");
    let temporary = world.path(".pml.json.tmp");
    for fault in [
        failing("write", 1, &temporary),
        failing("fsync", 1, &temporary),
        failing("rename", 1, &file),
    ] {
        let call = fault.call;
        let output = run(&world, &["allow", "a:b"], &[fault]);
        assert_eq!(output.status.code(), Some(2), "{call}: {}", stderr(&output));
        assert_eq!(world.read(".pml.json"), "{}", "{call}");
        assert_eq!(names(&world.project()), [".pml.json"], "{call}");
    }
}

#[test]
fn an_installation_that_the_disk_does_not_confirm_says_so_and_the_next_one_is_fine() {
    if !have(&["cc", "node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    for folder in ["frozen", "store/npm"] {
        let world = World::new();
        std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
        world.configure(&json!({
            "permissions": { "allow": ["hello"] },
            "mcpServers": { "hello": { "command": "npx", "args": ["hello@1.0.0"] } },
        }));
        let directory = world.home().join(".local/share/pml").join(folder);
        let output = run(&world, &["install"], &[failing("fsync", 1, &directory)]);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{folder}: {}",
            stdout(&output) + &stderr(&output)
        );
        let told = stdout(&output) + &stderr(&output);
        let expected = format!(
            "`{}` is changed, but the disk did not confirm it",
            directory.display()
        );
        assert!(told.contains(&expected), "{told}");
        let again = world.run(&["install"]);
        assert!(again.status.success(), "{folder}: {}", stderr(&again));
    }
}
