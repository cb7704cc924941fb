//! An installation, and its removal, with each write of the store failing once.
//!
//! Each run starts the real installer, so the kinds of failure take turns instead of all being tried at each call.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::io::Errno;
use serde_json::{Value, json};

use super::{CALLS, FAULTS, THREADS, age, assert_intact_history, leftovers};
use crate::support::faults::inject_nth;
use crate::support::have;
use crate::support::packages::{files_below, publish_server};
use crate::support::registry::Registry;
use crate::support::world::{World, json_of, stderr, stdout};

fn world(registry: &Registry) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.configure(&json!({
        "permissions": { "allow": ["hello"] },
        "mcpServers": { "hello": { "command": "npx", "args": ["hello@1.0.0"] } },
    }));
    world
}

fn data(world: &World) -> PathBuf {
    let data = world.home().join(".local/share/pml");
    std::fs::create_dir_all(&data).unwrap();
    data
}

/// Runs a command with the `nth` write below the data directory failing; returns which call it was.
fn run(world: &World, arguments: &[&str], nth: u32, errno: Option<Errno>) -> (Output, Option<String>) {
    let mut command = world.command(arguments);
    let met = inject_nth(&mut command, &data(world), nth, errno);
    let output = command.output().unwrap();
    (output, met.call())
}

fn installs(world: &World) -> Value {
    json_of(&world.run(&["install", "--json"]))[0].clone()
}

/// Whether an installation counts: it lies in its place, and it is recorded that its package is resolved to it.
fn is_installed(world: &World) -> bool {
    let files = files_below(&data(world).join("store"));
    let is_there = files.iter().any(|file| file.ends_with("pml-manifest.json"));
    let resolved = files_below(&data(world).join("resolved"));
    is_there && resolved.iter().any(|file| !file.starts_with(".tmp"))
}

/// Checks that `pml verify` says of the store what is true: it is whole, or not there. Returns whether something is.
fn verifies(world: &World, told: &str) -> bool {
    let output = world.run(&["verify"]);
    let said = stdout(&output) + &stderr(&output);
    assert!(
        output.status.success() && !said.contains("not verifiable"),
        "{said}: {told}"
    );
    assert_intact_history(world, told);
    !stdout(&output).is_empty()
}

fn told(what: &str, nth: u32, call: Option<&str>, output: &Output) -> String {
    let call = call.unwrap_or("none").trim_end();
    let said = stdout(output) + &stderr(output);
    format!("{what}, call {nth} ({call}), {}: {said}", output.status)
}

fn meet_installing(registry: &Registry, nth: u32, errno: Option<Errno>) -> bool {
    let world = world(registry);
    let (output, call) = run(&world, &["install"], nth, errno);
    let told = told("install", nth, call.as_deref(), &output);
    match output.status.code() {
        Some(0) => assert!(is_installed(&world), "{told}"),
        Some(_) => assert!(
            !is_installed(&world) || told.contains("did not confirm"),
            "{told}"
        ),
        None => assert_eq!(errno, None, "{told}"),
    }
    let there = verifies(&world, &told);
    assert!(there || !is_installed(&world), "{told}");
    if call.is_some() {
        for file in leftovers(&world) {
            age(&world.home().join(file));
        }
        installs(&world);
        assert!(is_installed(&world) && verifies(&world, &told), "{told}");
        assert_eq!(leftovers(&world), Vec::<String>::new(), "{told}");
        let workspaces = files_below(&data(&world).join("temporary"));
        assert_eq!(workspaces, Vec::<String>::new(), "{told}");
    }
    call.is_some()
}

fn copy_data(from: &Path, world: &World) {
    let copied = Command::new("cp")
        .arg("-a")
        .arg(from.join("."))
        .arg(data(world))
        .status();
    assert!(copied.unwrap().success());
}

fn meet_locking(installed: &Path, new: &str, registry: &Registry, nth: u32, errno: Option<Errno>) -> bool {
    const OLD: &str = "{\n  \"version\": 1,\n  \"servers\": {}\n}\n";
    let world = world(registry);
    copy_data(installed, &world);
    world.write(".pml.lock", OLD);
    let mut command = world.command(&["lock"]);
    let met = inject_nth(&mut command, world.home(), nth, errno);
    let output = command.output().unwrap();
    let call = met.call();
    let told = told("lock", nth, call.as_deref(), &output);
    let now = world.read(".pml.lock");
    match output.status.code() {
        Some(0) => assert_eq!(now, new, "{told}"),
        Some(_) => assert!(now == OLD || now == new, "{now}: {told}"),
        None => {
            assert_eq!(errno, None, "{told}");
            assert!(now == OLD || now == new, "{now}: {told}");
        }
    }
    assert!(verifies(&world, &told), "{told}");
    let again = world.run(&["lock"]);
    assert!(again.status.success(), "{}: {told}", stderr(&again));
    assert_eq!(world.read(".pml.lock"), new, "{told}");
    call.is_some()
}

/// A command that removes the package.
#[derive(Debug, Clone, Copy)]
enum Removal {
    Uninstall,
    /// Nothing declares it any more.
    Collect,
}

fn meet_removing(
    removal: Removal,
    installed: &Path,
    registry: &Registry,
    nth: u32,
    errno: Option<Errno>,
) -> bool {
    let world = world(registry);
    copy_data(installed, &world);
    let command = match removal {
        Removal::Uninstall => ["uninstall", "hello"],
        Removal::Collect => {
            world.configure(&json!({}));
            ["gc", "--yes"]
        }
    };
    let (output, call) = run(&world, &command, nth, errno);
    let told = told(command[0], nth, call.as_deref(), &output);
    match output.status.code() {
        Some(0) => assert!(!is_installed(&world), "{told}"),
        Some(_) => {}
        None => assert_eq!(errno, None, "{told}"),
    }
    if call.is_some() {
        // What a removal has begun with is whole or gone.
        let verified = stdout(&world.run(&["verify"]));
        let is_true = |line: &str| line.ends_with(": ok") || line.ends_with(": MISSING");
        assert!(verified.lines().all(is_true), "{verified}: {told}");
        let again = world.run(&command);
        assert!(again.status.success(), "{}: {told}", stderr(&again));
    }
    for folder in ["store", "checksums", "frozen"] {
        let left = files_below(&data(&world).join(folder));
        assert_eq!(left, Vec::<String>::new(), "{folder}: {told}");
    }
    assert!(!verifies(&world, &told), "{told}");
    call.is_some()
}

/// Tries the calls one after the other on several threads until one meets no fault.
fn sweep(meet: impl Fn(u32, Option<Errno>) -> bool + Sync) {
    let (next, ended) = (AtomicU32::new(1), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !ended.load(Ordering::SeqCst) {
                    let nth = next.fetch_add(1, Ordering::SeqCst);
                    assert!(nth < CALLS, "it does not end");
                    let errno = FAULTS[usize::try_from(nth).unwrap() % FAULTS.len()];
                    if !meet(nth, errno) {
                        ended.store(true, Ordering::SeqCst);
                    }
                }
            });
        }
    });
}

#[test]
fn an_installation_is_whole_or_not_there_whichever_write_fails() {
    if !have(&["cc", "node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    sweep(|nth, errno| meet_installing(&registry, nth, errno));
}

#[test]
fn a_removal_that_breaks_off_is_finished_by_the_next() {
    if !have(&["cc", "node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    let installed = world(&registry);
    installs(&installed);
    let folder = data(&installed);
    for removal in [Removal::Uninstall, Removal::Collect] {
        sweep(|nth, errno| meet_removing(removal, &folder, &registry, nth, errno));
    }
}

#[test]
fn a_lock_is_the_old_one_or_the_new_one_whichever_write_fails() {
    if !have(&["cc", "node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    let installed = world(&registry);
    installs(&installed);
    assert!(installed.run(&["lock"]).status.success());
    let (folder, new) = (data(&installed), installed.read(".pml.lock"));
    sweep(|nth, errno| meet_locking(&folder, &new, &registry, nth, errno));
}
