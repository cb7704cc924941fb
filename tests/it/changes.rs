//! The world changes while a call waits or a server runs: what counts is what holds right before the effect.

use serde_json::{Value, json};

use crate::support::world::{Client, World, asks, texts};
use crate::support::{DEADLINE, eventually, marked};

/// Something that takes the leave of a server or a tool back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Deny,
    Remove,
    Disable,
    Uninstall,
    Redeclare,
}

const CHANGES: [Change; 5] = [
    Change::Deny,
    Change::Remove,
    Change::Disable,
    Change::Uninstall,
    Change::Redeclare,
];

fn config(world: &World, options: &[&str]) -> Value {
    json!({ "permissions": { "ask": ["*"] }, "mcpServers": { "fake": world.fake(options) } })
}

fn inject(world: &World, options: &[&str], change: Change) {
    let mut config = config(world, options);
    match change {
        Change::Deny => config["permissions"]["deny"] = json!(["fake"]),
        Change::Remove => config["mcpServers"] = json!({}),
        Change::Disable => config["mcpServers"]["fake"]["disabled"] = json!(true),
        Change::Redeclare => {
            let mut options = options.to_vec();
            options.push("--banner");
            config["mcpServers"]["fake"] = world.fake(&options);
        }
        Change::Uninstall => {
            assert!(world.run(&["uninstall", "fake"]).status.success());
            return;
        }
    }
    // In place of the old file, as every editor writes it.
    world.write("next.json", &config.to_string());
    std::fs::rename(world.path("next.json"), world.path(".pml.json")).unwrap();
}

fn called(world: &World) -> usize {
    let seen = std::fs::read_to_string(world.path("seen")).unwrap_or_default();
    seen.lines().filter(|line| line.contains("tools/call")).count()
}

/// The servers that run; pml and its supervisors carry the mark as well.
fn servers(world: &World) -> Vec<String> {
    let server = crate::support::fake_server().display().to_string();
    marked(world.mark())
        .into_iter()
        .filter(|line| line.split(' ').nth(1) == Some(server.as_str()))
        .collect()
}

fn gone(world: &World, told: &str) {
    eventually(told, DEADLINE, || servers(world).is_empty());
}

/// Approves the server once, and lets it end, so that the next call starts it without a question.
fn approved(options: &[&str]) -> World {
    let world = World::new();
    world.configure(&config(&world, options));
    world.write("go", "");
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({}));
    assert!(asks(&asked));
    client.proceed("fake__echo", &asked, &json!({ "approved": true }));
    drop(client);
    world.assert_no_survivor("the first conversation is over");
    std::fs::remove_file(world.path("go")).unwrap();
    std::fs::remove_file(world.path("seen")).unwrap();
    world
}

/// A call that the change came before: it is refused, or a person is asked about what it is now.
fn assert_not_run(answer: &Value, told: &str) {
    let result = &answer["result"];
    let refused = answer.get("error").is_some() || result["isError"] == true;
    assert!(refused || asks(result), "{told}: {answer}");
}

#[test]
fn what_is_taken_back_while_a_server_starts_does_not_run() {
    let options = ["--start-when", "go", "--record", "seen", "--started", "started"];
    for change in CHANGES {
        let world = approved(&options);
        let before = world.read("started").lines().count();
        let mut client = world.legacy();
        let id = client.send(
            "tools/call",
            &json!({ "name": "fake__echo", "arguments": { "n": 1 } }),
        );
        eventually("it starts", DEADLINE, || {
            std::fs::read_to_string(world.path("seen")).is_ok_and(|seen| seen.contains("initialize"))
        });
        inject(&world, &options, change);
        // It may get ready only after the change.
        gone(&world, "a start that may not go on is ended");
        world.write("go", "");
        assert_not_run(&client.answer(id), &format!("{change:?}"));
        assert_eq!(called(&world), 0, "{change:?}");
        gone(&world, "nothing runs");
        if change != Change::Redeclare {
            let starts = world.read("started").lines().count();
            assert_eq!(starts, before + 1, "{change:?}: it was not started again");
        }
    }
}

#[test]
fn what_is_taken_back_while_a_person_is_asked_does_not_run() {
    let options = ["--record", "seen", "--started", "started"];
    for change in CHANGES.into_iter().filter(|change| *change != Change::Uninstall) {
        let world = World::new();
        world.configure(&config(&world, &options));
        let mut client = world.client();
        client.initialize_with_forms();
        let id = client.send("tools/call", &json!({ "name": "fake__echo", "arguments": {} }));
        let request = client.notified("elicitation/create");
        inject(&world, &options, change);
        client.reply(
            &request,
            &json!({ "action": "accept", "content": { "decision": "continue" } }),
        );
        assert_not_run(&client.answer(id), &format!("{change:?}"));
        assert_eq!(called(&world), 0, "{change:?}");
        assert!(!world.path("started").exists(), "{change:?}");
    }
}

#[test]
fn what_is_taken_back_while_a_package_is_installed_is_not_started() {
    if !crate::support::have(&["npm", "node"]) {
        return;
    }
    for change in [Change::Deny, Change::Remove, Change::Disable, Change::Uninstall] {
        let registry = crate::support::registry::Registry::start();
        let script = "#!/usr/bin/env node\nrequire('fs').writeFileSync(process.env.RAN, 'ran');\n";
        let manifest = json!({ "bin": { "slow": "server.js" } });
        registry.publish("slow", "1.0.0", &manifest, &[("server.js", script)]);
        let world = World::new();
        std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
        // An installer that waits until the test lets it go on.
        let bin = world.home().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let npm = which::which("npm").unwrap();
        let (began, go) = (world.path("began"), world.path("go"));
        let shim = format!(
            "#!/bin/sh\ncase \"$1\" in install|ci) : > '{}'; while [ ! -e '{}' ]; do sleep 0.01; done;; esac\nexec '{}' \"$@\"\n",
            began.display(),
            go.display(),
            npm.display()
        );
        std::fs::write(bin.join("npm"), shim).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(bin.join("npm"), executable).unwrap();
        world.set(
            "PATH",
            &format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
        );
        let entry =
            json!({ "command": "npx", "args": ["-y", "slow@1.0.0"], "env": { "RAN": world.path("ran") } });
        let mut config = json!({ "permissions": { "ask": ["*"] }, "mcpServers": { "slow": entry } });
        world.configure(&config);

        let mut client = world.legacy();
        let asked = client.call("slow__connect", &json!({}));
        let id = client.send(
            "tools/call",
            &json!({ "name": "slow__connect", "arguments": { "continue_workflow": {
                "workflow_id": asked["approval_context"]["workflow_id"], "approved": true,
            } } }),
        );
        eventually("the package is being installed", DEADLINE, || began.exists());
        match change {
            Change::Deny => config["permissions"]["deny"] = json!(["slow"]),
            Change::Remove => config["mcpServers"] = json!({}),
            Change::Disable => config["mcpServers"]["slow"]["disabled"] = json!(true),
            Change::Uninstall | Change::Redeclare => {
                assert!(world.run(&["uninstall", "slow"]).status.success());
            }
        }
        if change != Change::Uninstall {
            world.configure(&config);
        }
        world.write("go", "");
        assert_not_run(&client.answer(id), &format!("{change:?}"));
        assert!(!world.path("ran").exists(), "{change:?}: its code ran");
    }
}

/// A client whose server runs and has a question open.
fn questioned(world: &World) -> (Client, u64, Value) {
    let mut client = world.client();
    client.initialize_with_forms();
    let id = client.send("tools/call", &json!({ "name": "fake__ask", "arguments": {} }));
    loop {
        let request = client.notified("elicitation/create");
        let asks_for_approval = request["params"]["requestedSchema"]["properties"]["decision"].is_object();
        if !asks_for_approval {
            return (client, id, request);
        }
        client.reply(
            &request,
            &json!({ "action": "accept", "content": { "decision": "continue" } }),
        );
    }
}

#[test]
fn a_server_that_may_no_longer_run_is_stopped_and_what_it_asked_is_withdrawn() {
    let options = ["--record", "seen"];
    for change in CHANGES.into_iter().filter(|change| *change != Change::Redeclare) {
        let world = World::new();
        world.configure(&config(&world, &options));
        let (mut client, id, question) = questioned(&world);
        assert_eq!(servers(&world).len(), 1);
        inject(&world, &options, change);
        let withdrawn = client.notified("notifications/cancelled");
        assert_eq!(withdrawn["params"]["requestId"], question["id"], "{change:?}");
        let stopped = client.answer(id)["result"].clone();
        assert_eq!(stopped["isError"], true);
        assert!(
            texts(&stopped)[0].starts_with("`fake` was stopped: "),
            "{change:?}: {stopped}"
        );
        gone(
            &world,
            &format!("{change:?}: the server is stopped without a further call"),
        );
        // What comes after that reaches nobody.
        client.reply(&question, &json!({ "action": "accept", "content": {} }));
        assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    }
}

#[test]
fn a_server_that_may_run_goes_on_whatever_else_changes() {
    let world = World::new();
    world.configure(&json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": world.fake(&["--started", "started"]) } }));
    let mut client = world.legacy();
    client.call("fake__echo", &json!({}));
    for permissions in [
        json!({ "allow": ["fake"], "deny": ["fake:closed"] }),
        json!({ "allow": ["fake:echo"], "ask": ["*"] }),
        json!({ "allow": ["fake", "other:*"] }),
    ] {
        world.configure(&json!({ "permissions": permissions, "mcpServers": { "fake": world.fake(&["--started", "started"]) } }));
        assert!(!asks(&client.call("fake__echo", &json!({}))));
    }
    assert_eq!(world.read("started").lines().count(), 1);
}

#[test]
fn a_server_whose_declaration_changes_while_it_starts_leaves_no_process_behind() {
    let options = ["--start-when", "go", "--record", "seen"];
    let world = World::new();
    world.configure(
        &json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": world.fake(&options) } }),
    );
    let mut client = world.legacy();
    let first = client.send(
        "tools/call",
        &json!({ "name": "fake__echo", "arguments": { "n": 1 } }),
    );
    eventually("it starts", DEADLINE, || world.path("seen").exists());
    let other = ["--record", "seen", "--started", "started"];
    world.configure(
        &json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": world.fake(&other) } }),
    );
    let second = client.call("fake__echo", &json!({ "n": 2 }));
    assert!(second.get("isError").is_none(), "{second}");
    // The first call goes to the server as it is declared now.
    let first = client.answer(first)["result"].clone();
    assert!(first.get("isError").is_none(), "{first}");
    eventually("one server is left", DEADLINE, || servers(&world).len() == 1);
    assert_eq!(world.read("started").lines().count(), 1);
}

#[test]
fn a_grant_for_the_session_ends_with_the_command_it_was_given_for() {
    let world = World::new();
    let rules = json!({ "ask": ["fake:echo"] });
    let entry =
        |options: &[&str]| json!({ "permissions": rules, "mcpServers": { "fake": world.fake(options) } });
    world.configure(&entry(&[]));
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({ "n": 1 }));
    client.proceed(
        "fake__echo",
        &asked,
        &json!({ "approved": true, "scope": "session" }),
    );
    assert!(
        !asks(&client.call("fake__echo", &json!({ "n": 2 }))),
        "granted for the session"
    );
    world.configure(&entry(&["--started", "started"]));
    assert!(
        asks(&client.call("fake__echo", &json!({ "n": 3 }))),
        "another command is another thing to grant"
    );
    assert!(!world.path("started").exists());
    world.configure(&entry(&[]));
    assert!(
        !asks(&client.call("fake__echo", &json!({ "n": 4 }))),
        "what was granted is granted"
    );
}

#[test]
fn a_large_configuration_is_read_again_beside_the_thread_that_answers() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    let mut client = world.legacy();
    assert!(!asks(&client.call("fake__echo", &json!({}))));
    // Close to the bound of 1 MiB, and all of it is looked at.
    let large = |last: &str| {
        let mut allowed: Vec<String> = (0..4_500)
            .map(|number| format!("{last}-{number}:{}", "x".repeat(190)))
            .collect();
        allowed.push(last.to_owned());
        world.configure(&json!({
            "permissions": { "allow": allowed },
            "mcpServers": { "fake": world.fake(&[]) },
        }));
        assert!(world.read(".pml.json").len() > 900_000);
    };
    // A stall of the runtime thread fails the world at its end.
    for _ in 0..3 {
        large("other");
        assert!(
            asks(&client.call("fake__echo", &json!({}))),
            "the edit counts for the next call"
        );
        large("fake");
        assert!(!asks(&client.call("fake__echo", &json!({}))));
        large("none");
        client.tools();
        large("fake");
        client.request("prompts/list", &json!({}));
        assert!(!asks(&client.call("fake__echo", &json!({}))));
    }
}

#[test]
fn an_edit_in_place_of_the_same_length_counts_from_the_next_call_on() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    let server = world.fake(&[]);
    // Neither the inode nor the size tells one text from the other, and often not even the time of change.
    let text = |list: &str| {
        let config = json!({ "permissions": { list: ["fake"] }, "mcpServers": { "fake": server } });
        format!("{:1000}", config.to_string())
    };
    world.write(".pml.json", &text("allow"));
    let mut client = world.legacy();
    for round in 0..200 {
        // In no period that the clock of the file system could share.
        let list = if (round * round) % 7 < 3 { "allow" } else { "deny" };
        world.write(".pml.json", &text(list));
        for _ in 0..=round % 2 {
            let answer = client.call("fake__echo", &json!({}));
            assert_eq!(answer["isError"] == true, list == "deny", "{round}: {answer}");
        }
    }
}
