//! An upgrade, and the acceptance of install scripts, with a write failing here and there: configuration, lock, what was
//! accepted, the history and the installation are the old ones or the new ones afterwards, and the next run ends well.
//!
//! Each run starts the real installer, so that not every call has its turn: a few of them in each part of the work.

use std::path::Path;
use std::process::{Command, Output};

use rustix::io::Errno;
use serde_json::{Value, json};

use super::{CALLS, FAULTS};
use crate::support::faults::inject_nth;
use crate::support::have;
use crate::support::packages::{SERVER_JS, files_below};
use crate::support::registry::Registry;
use crate::support::world::{World, asks, stderr, stdout, texts};

/// Prime to the number of kinds of failure, so that each meets other calls.
const STEP: usize = 16;

/// A user at one moment, to whom a test can go back: paths are part of what was accepted.
struct Moment<'a> {
    world: &'a World,
    kept: tempfile::TempDir,
}

impl<'a> Moment<'a> {
    fn of(world: &'a World) -> Self {
        let kept = tempfile::tempdir().unwrap();
        copy(world.home(), kept.path());
        Self { world, kept }
    }

    fn go_back(&self) {
        for entry in std::fs::read_dir(self.world.home()).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                std::fs::remove_dir_all(entry.path()).unwrap();
            } else {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        copy(self.kept.path(), self.world.home());
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
    assert!(copied.unwrap().success());
}

fn publish(registry: &Registry, version: &str, more: &Value) {
    let mut manifest = json!({ "bin": "server.js" });
    manifest
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    registry.publish("hello", version, &manifest, &[("server.js", SERVER_JS)]);
}

fn world(registry: &Registry) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world
}

fn assert_well(output: &Output, told: &str) {
    let said = format!("{}{}", stdout(output), stderr(output));
    assert!(output.status.success(), "{said}: {told}");
}

/// Checks that `pml verify` and `pml history verify` find nothing wrong.
fn assert_verified(world: &World, told: &str) {
    for command in [&["verify"][..], &["history", "verify"]] {
        assert_well(&world.run(command), &format!("{command:?}: {told}"));
    }
}

/// Runs a command from one moment on again and again, each time with another write failing, and has the state checked.
fn sweep(moment: &Moment<'_>, root: &Path, arguments: &[&str], check: impl Fn(&Output, &str)) {
    for (met, nth) in (1..CALLS).step_by(STEP).enumerate() {
        moment.go_back();
        let errno: Option<Errno> = FAULTS[usize::try_from(nth).unwrap() / STEP % FAULTS.len()];
        let mut command = moment.world.command(arguments);
        let injected = inject_nth(&mut command, root, nth, errno);
        let output = command.output().unwrap();
        let Some(call) = injected.call() else {
            assert_well(&output, "no write failed");
            assert!(met > 2, "{met} writes failed");
            return;
        };
        let told = format!(
            "{arguments:?} met {errno:?} at call {nth} ({}), {}: {}",
            call.trim_end(),
            output.status,
            stderr(&output)
        );
        check(&output, &told);
        assert_verified(moment.world, &told);
        let again = moment.world.run(arguments);
        // An upgrade that was done all the same has nothing left to do.
        if !stderr(&again).contains("is at 1.1.0 already") {
            assert_well(&again, &format!("the next run: {told}"));
        }
        assert_verified(moment.world, &told);
    }
    panic!("it does not end");
}

#[test]
fn an_upgrade_is_the_old_version_or_the_new_one_whichever_write_fails() {
    if !have(&["cc", "node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish(&registry, "1.0.0", &json!({}));
    let world = world(&registry);
    assert_well(
        &world.run(&["add", "--yes", "hello", "--", "npx", "-y", "hello"]),
        "add",
    );
    publish(&registry, "1.1.0", &json!({}));
    let _ = std::fs::remove_dir_all(world.home().join(".cache/pml/npm"));
    assert_well(&world.run(&["allow", "hello"]), "allow");
    let before = Moment::of(&world);
    let read = || (world.read(".pml.json"), world.read(".pml.lock"));
    let old = read();
    let upgrade = ["upgrade", "--yes", "hello", "--to", "1.1.0"];
    assert_well(&world.run(&upgrade), "upgrade");
    let new = read();
    assert_ne!(old.0, new.0);
    sweep(&before, world.home(), &upgrade, |output, told| {
        let now = read();
        assert!(now.0 == old.0 || now.0 == new.0, "{}: {told}", now.0);
        assert!(now.1 == old.1 || now.1 == new.1, "{}: {told}", now.1);
        if output.status.success() {
            assert_eq!(now.0, new.0, "{told}");
        }
        // What is declared runs: as it was accepted before, or as it was a moment ago.
        let ran = world.legacy().call("hello__look", &json!({}));
        let is_held = asks(&ran) || ran["isError"] == true;
        assert!(
            now.0 == new.0 || !is_held,
            "the old one does not run: {ran}: {told}"
        );
        assert!(!output.status.success() || !is_held, "{ran}: {told}");
    });
    let ran = world.legacy().call("hello__look", &json!({}));
    assert_eq!(texts(&ran), ["dep none"], "{ran}");
}

#[test]
fn install_scripts_are_accepted_and_recorded_or_neither_whichever_write_fails() {
    if !have(&["cc", "node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    let script =
        "node -e \"require('fs').writeFileSync(process.env.npm_config_cache + '/../../../ran', '')\"";
    publish(
        &registry,
        "1.0.0",
        &json!({ "scripts": { "postinstall": script } }),
    );
    let world = world(&registry);
    world.configure(&json!({
        "permissions": { "allow": ["hello"] },
        "mcpServers": { "hello": { "command": "npx", "args": ["-y", "hello@1.0.0"], "allowScripts": true } },
    }));
    std::fs::create_dir_all(world.home().join(".local/state/pml")).unwrap();
    let before = Moment::of(&world);
    let install = ["install", "--yes", "hello"];
    let state = world.home().join(".local/state/pml");
    sweep(&before, &state, &install, |output, told| {
        if output.status.success() {
            assert_eq!(world.recorded("accept").len(), 1, "{told}");
        }
        let pins = files_below(&state.join("pins"));
        let accepted = pins
            .iter()
            .any(|file| Path::new(file).extension() == Some("json".as_ref()));
        let ran = world.home().join("ran").exists();
        assert!(
            !ran || accepted || !output.status.success(),
            "it ran, and is not accepted: {told}"
        );
    });
    assert_eq!(world.recorded("accept").len(), 1);
}
