//! Everything that an answer is bound to, changed at every step between the question and the run: what was changed does
//! not run without a new question, or a refusal that names it.

mod changed_parts;

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use self::changed_parts::Step::{Answered, Asked, Installed, Stopped};
use self::changed_parts::{MARK, Packages, Part, SERVER, Step, ran_as_approved, server};
use crate::support::have;
use crate::support::world::{Client, World, asks, stdout, texts};

/// What must come of it.
#[derive(Debug)]
enum Expected {
    /// The call runs as it was approved: what was changed is not used.
    Runs,
    /// A person is asked, or the call is refused, in these words.
    Stops(&'static str),
}
use Expected::{Runs, Stops};

/// Calls the server, once more where pml only learns from the call that it has ended.
fn look(client: &mut Client) -> Value {
    let result = client.call("hello__look", &json!({}));
    if texts(&result).concat().contains("was ended by signal 9") {
        return client.call("hello__look", &json!({}));
    }
    result
}

#[test]
fn whatever_changes_between_the_question_and_the_run_does_not_run() {
    if !have(&["node", "npm"]) {
        return;
    }
    let packages = Packages::publish();
    let mut failures = Vec::new();
    for (part, step, expected) in CASES {
        let (world, mut client, asked) = packages.world_at(*step);
        packages.tamper(&world, *part);
        let result = if *step == Asked {
            client.proceed("hello__look", &asked, &json!({ "approved": true }))
        } else {
            look(&mut client)
        };
        let pending = stdout(&world.run(&["pending"]));
        let met = match expected {
            Runs => ran_as_approved(&result),
            Stops(words) => {
                let stopped = asks(&result) || result["isError"] == true;
                stopped && format!("{}{pending}", texts(&result).concat()).contains(words)
            }
        };
        let left = world.home().join("mark").exists();
        if !met || left {
            failures.push(format!(
                "{part:?} at {step:?}: mark {left}, {expected:?}: {result:#} {pending}"
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn an_answer_is_bound_to_everything_that_was_shown_where_no_lock_names_it() {
    if !have(&["node", "npm"]) {
        return;
    }
    let packages = Packages::publish();
    for rule in ["*", "hello:look"] {
        for part in [Part::KeptLockText, Part::KeptLock, Part::Record] {
            let (world, mut client, asked) = packages.unlocked(rule);
            packages.tamper(&world, part);
            let result = client.proceed("hello__look", &asked, &json!({ "approved": true }));
            assert!(
                asks(&result) || result["isError"] == true,
                "{part:?} by `{rule}`: {result:#}"
            );
            assert!(!world.home().join("mark").exists(), "{part:?} by `{rule}`");
        }
    }
}

#[test]
fn a_rule_that_allows_a_server_lets_no_other_launch_of_it_run() {
    if !have(&["node", "npm"]) {
        return;
    }
    let packages = Packages::publish();
    let mut failures = Vec::new();
    for (part, step, differs) in ALLOWED_CASES {
        let (world, mut client) = packages.allowed_at(*step);
        packages.tamper(&world, *part);
        let result = client.call("hello__look", &json!({}));
        let pending = stdout(&world.run(&["pending"]));
        let is_integrity = result["approval_context"]["type"] == "integrity";
        let left = world.home().join("mark").exists();
        if !is_integrity || !pending.contains(differs) || left {
            failures.push(format!("{part:?} at {step:?}: mark {left}: {result:#} {pending}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// What is asked about although a rule allows it; before the first use, what the lock says is compared.
const ALLOWED_CASES: &[(Part, Step, &str)] = &[
    (Part::Arguments, Installed, "+ npx hello@1.0.0 --evil"),
    (Part::CommandLine, Installed, "own.js"),
    (Part::Arguments, Stopped, "+ npx hello@1.0.0 --evil"),
    (Part::Variables, Stopped, "+ gets the variable EVIL"),
    (Part::Directory, Stopped, "+ runs in "),
    (Part::CommandLine, Stopped, "own.js"),
];

/// The refusal of an answer to a question about something else.
const NOT_SHOWN: &str = "what would run is not what was shown";

const CASES: &[(Part, Step, Expected)] = &[
    (Part::KeptLockText, Asked, Stops("dep")),
    (Part::KeptLockText, Answered, Stops("dep")),
    (Part::KeptLockText, Installed, Runs),
    (Part::KeptLockText, Stopped, Runs),
    (Part::KeptLock, Asked, Stops("dep")),
    (Part::KeptLock, Answered, Stops("dep")),
    (Part::KeptLock, Installed, Stops("dep")),
    (Part::KeptLock, Stopped, Stops("dep")),
    (Part::Record, Asked, Stops("6.6.6")),
    (Part::Record, Answered, Stops("6.6.6")),
    (Part::Record, Installed, Stops("6.6.6")),
    (Part::Record, Stopped, Stops("6.6.6")),
    (Part::StoreFile, Installed, Stops(SERVER)),
    (Part::StoreFile, Stopped, Stops(SERVER)),
    (
        Part::StoreDependency,
        Installed,
        Stops("node_modules/dep/index.js"),
    ),
    (Part::StoreDependency, Stopped, Stops("node_modules/dep/index.js")),
    (Part::Manifest, Installed, Stops("pml-manifest.json")),
    (Part::Manifest, Stopped, Stops("pml-manifest.json")),
    (Part::AcceptedPin, Stopped, Stops("other content")),
    // An answer counts for what was shown, whatever a lock says since.
    (Part::LockFile, Asked, Runs),
    (Part::LockFile, Answered, Stops("other content")),
    (Part::LockFile, Installed, Stops("other content")),
    (Part::LockFile, Stopped, Runs),
    (Part::Arguments, Asked, Stops(NOT_SHOWN)),
    (Part::Arguments, Answered, Stops("--evil")),
    (Part::Arguments, Installed, Stops("--evil")),
    (Part::Arguments, Stopped, Stops("--evil")),
    (Part::Variables, Asked, Stops(NOT_SHOWN)),
    (Part::Variables, Answered, Stops("EVIL")),
    (Part::Variables, Installed, Stops("EVIL")),
    (Part::Variables, Stopped, Stops("EVIL")),
    (Part::Directory, Asked, Stops(NOT_SHOWN)),
    (Part::Directory, Answered, Stops("evil")),
    (Part::Directory, Installed, Stops("evil")),
    (Part::Directory, Stopped, Stops("evil")),
    (Part::CommandLine, Asked, Stops(NOT_SHOWN)),
    (Part::CommandLine, Answered, Stops("own.js")),
    (Part::CommandLine, Installed, Stops("own.js")),
    (Part::CommandLine, Stopped, Stops("own.js")),
    // Last: it stays published.
    (Part::Tarball, Installed, Runs),
    (Part::Tarball, Stopped, Runs),
    (Part::Tarball, Asked, Stops("hello")),
    (Part::Tarball, Answered, Stops("hello")),
];

/// What `pml verify` says of the server, after its first line.
fn faults(world: &World) -> Vec<String> {
    let verified = stdout(&world.run(&["verify", "hello"]));
    verified
        .lines()
        .skip(1)
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn verification_names_exactly_what_was_changed() {
    if !have(&["node", "npm"]) {
        return;
    }
    let packages = Packages::publish();
    let dependency = "changed: node_modules/dep/index.js";
    for (part, named) in [
        (None, &[] as &[&str]),
        (Some(Part::StoreFile), &["changed: node_modules/hello/server.js"]),
        (Some(Part::StoreDependency), &[dependency]),
        (Some(Part::Manifest), &["changed: pml-manifest.json"]),
        (
            Some(Part::KeptLockText),
            &["its kept lock was edited: it does not fit its digest"],
        ),
        (
            Some(Part::KeptLock),
            &["its kept lock is not the one that it was installed from"],
        ),
        (Some(Part::AcceptedPin), &[]),
        (Some(Part::LockFile), &[]),
        (Some(Part::Arguments), &[]),
        (Some(Part::Tarball), &[]),
    ] {
        let (world, client, _) = packages.world_at(Stopped);
        if let Some(part) = part {
            packages.tamper(&world, part);
        }
        assert_eq!(faults(&world), named, "{part:?}");
        drop(client);
    }
}

#[test]
fn a_replaced_program_of_an_own_command_runs_and_its_other_tools_ask() {
    if !have(&["node"]) {
        return;
    }
    let world = World::new();
    let program = world.path("own.js");
    let install = |text: &str| {
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    };
    install(&server(""));
    world.configure(&json!({
        "permissions": { "ask": ["*"] }, "mcpServers": { "hello": { "command": program } },
    }));
    let (asked, ran) = world.legacy().call_agreeing(&world, "hello__look", &json!({}));
    assert!(asks(&asked) && !asks(&ran), "{ran}");

    // What SECURITY.md says of it: its words were approved.
    install(&server(MARK));
    let ran = world.legacy().call("hello__look", &json!({}));
    assert!(!asks(&ran) && world.home().join("mark").exists(), "{ran}");
    install(&server("").replace("({ name,", "({ name, description: 'Looks elsewhere.',"));
    let asked = world.legacy().call("hello__look", &json!({}));
    assert_eq!(asked["approval_context"]["type"], "integrity", "{asked}");
}
