//! The history: what is recorded, that a change of it is found, and that nothing is installed without it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::faults::inject_nth;
use crate::support::packages::{files_below, publish_server};
use crate::support::registry::Registry;
use crate::support::world::{World, asks, json_of, state, stderr, stdout, texts};
use crate::support::{DEADLINE, eventually, have};

fn directory(world: &World) -> PathBuf {
    state(world).join("history")
}

fn part(world: &World) -> PathBuf {
    directory(world).join("part-00000001.jsonl")
}

fn text(world: &World) -> String {
    std::fs::read_to_string(part(world)).unwrap_or_default()
}

/// The events that are no lines of the chain itself.
fn events(world: &World) -> Vec<Value> {
    let lines = text(world);
    let parsed = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    parsed.filter(|line| line["event"] != "part").collect()
}

fn of_kind(world: &World, kind: &str) -> Vec<Value> {
    let mut events = events(world);
    events.retain(|event| event["event"] == kind);
    events
}

fn verified(world: &World) -> Value {
    let printed = world.run(&["history", "verify", "--json"]);
    serde_json::from_slice(&printed.stdout).unwrap_or_else(|_| panic!("{}", stderr(&printed)))
}

fn assert_intact(world: &World, told: &str) {
    let verdict = verified(world);
    assert_eq!(verdict["intact"], true, "{told}: {verdict}");
}

#[test]
fn asks_answers_rules_starts_ends_and_refusals_are_recorded_in_their_order() {
    let world = World::with_fake(&json!({ "ask": ["*"] }), &[]);
    let mut client = world.legacy();
    let asked = client.call("fake__echo", &json!({ "text": "c4nary" }));
    assert!(asks(&asked), "{asked}");
    let decision = json!({ "approved": true, "always": true });
    assert!(!asks(&client.proceed("fake__echo", &asked, &decision)));
    for _ in 0..20 {
        client.call("fake__echo", &json!({ "text": "c4nary" }));
    }
    assert!(world.run(&["deny", "fake:echo"]).status.success());
    eventually("the call is refused", DEADLINE, || {
        texts(&client.call("fake__echo", &json!({})))[0].contains("is denied")
    });
    for _ in 0..20 {
        client.call("fake__echo", &json!({}));
    }
    client.close();
    eventually("the end is recorded", DEADLINE, || {
        of_kind(&world, "exit").len() == 1 && of_kind(&world, "refusal").len() == 1
    });
    let count = |events: &[Value]| {
        let mut counted = BTreeMap::<String, usize>::new();
        for event in events {
            *counted
                .entry(event["event"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
        counted
    };
    let found = events(&world);
    let expected = [
        ("ask", 1),
        ("answer", 1),
        ("rule", 2),
        ("start", 1),
        ("exit", 1),
        ("refusal", 1),
    ];
    let expected = expected.map(|(event, count)| (event.to_owned(), count));
    assert_eq!(
        count(&found),
        BTreeMap::from(expected),
        "calls leave no trace: {found:#?}"
    );
    let answer = &of_kind(&world, "answer")[0];
    assert_eq!(
        (&answer["by"], &answer["answer"]),
        (&json!("continuation"), &json!("always"))
    );
    assert_eq!(answer["id"], of_kind(&world, "ask")[0]["id"]);
    assert_eq!(of_kind(&world, "start")[0]["sandbox"], "none");
    let rules: Vec<Value> = of_kind(&world, "rule")
        .iter()
        .map(|rule| rule["change"].clone())
        .collect();
    assert_eq!(
        rules,
        [json!({ "allow": "fake:echo" }), json!({ "deny": "fake:echo" })]
    );
    assert!(!text(&world).contains("c4nary"));
    assert_intact(&world, "after everything");
}

#[test]
fn trust_and_its_end_are_recorded() {
    let world = World::new();
    let user = world.home().join(".config/pml");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("pml.json"), r#"{ "projectTrust": "strict" }"#).unwrap();
    world.configure(&json!({ "permissions": { "allow": ["fake"] } }));
    assert!(world.run(&["trust", "--yes"]).status.success());
    assert!(world.run(&["untrust"]).status.success());
    let kinds: Vec<Value> = events(&world)
        .iter()
        .map(|event| event["event"].clone())
        .collect();
    assert_eq!(kinds, [json!("trust"), json!("untrust")]);
    assert_intact(&world, "after both");
}

#[test]
fn a_change_that_is_accepted_or_refused_is_recorded_with_the_digest_that_was_shown() {
    let world = World::new();
    let list = |description: &str| {
        let schema = json!({ "type": "object" });
        let tool = json!({ "name": "echo", "description": description, "inputSchema": schema });
        world.write("tools.json", &json!({ "tools": [tool] }).to_string());
    };
    list("Says it.");
    let file = world.path("tools.json");
    let server = world.fake(&["--answer", "tools/list", file.to_str().unwrap()]);
    world.configure(&json!({ "permissions": { "allow": ["fake"] }, "mcpServers": { "fake": server } }));
    assert!(!asks(&world.legacy().call("fake__echo", &json!({}))));
    let mut contents = Vec::new();
    for (description, answer) in [("Sends it.", "refuse"), ("Sells it.", "approve")] {
        list(description);
        let mut client = world.legacy();
        assert!(asks(&client.call("fake__echo", &json!({}))));
        let pending = json_of(&world.run(&["pending", "--json"]));
        let ask = pending["pending"].as_array().unwrap().last().unwrap();
        let shown = ask["dependency"]["change"]["content"].clone();
        assert_eq!(shown.as_str().map(str::len), Some(64), "{ask}");
        let answered = world.run(&[answer, ask["code"].as_str().unwrap()]);
        assert!(answered.status.success(), "{}", stderr(&answered));
        for event in ["ask", "answer"] {
            let record = of_kind(&world, event).pop().unwrap();
            assert_eq!(
                (&record["kind"], &record["of"], &record["content"]),
                (&json!("integrity"), &json!("tools"), &shown),
                "{record}"
            );
        }
        contents.push(shown);
        client.close();
    }
    assert_ne!(contents[0], contents[1]);
    assert!(!text(&world).contains("Sells"));
    assert_intact(&world, "after both");
}

#[test]
fn an_ask_that_many_processes_find_over_lapses_once() {
    let world = World::with_fake(&json!({ "ask": ["*"] }), &[]);
    let mut client = world.legacy();
    assert!(asks(&client.call("fake__echo", &json!({}))));
    let id = of_kind(&world, "ask")[0]["id"].as_str().unwrap().to_owned();
    let database = state(&world).join("workflows.db");
    // As though its time had passed: no command waits for it.
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection
        .execute(
            "UPDATE workflow SET created_at = 0, expires_at = 1 WHERE id = ?1",
            [&id],
        )
        .unwrap();
    let looking: Vec<_> = (0..8)
        .map(|_| {
            let mut command = world.command(&["pending"]);
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut process in looking {
        assert!(process.wait().unwrap().success());
    }
    client.close();
    let lapses = of_kind(&world, "lapse");
    assert_eq!(lapses.len(), 1, "{lapses:#?}");
    assert_eq!(
        (&lapses[0]["id"], &lapses[0]["why"]),
        (&json!(id), &json!("expired"))
    );
    assert_intact(&world, "after the lapse");
}

#[test]
fn an_edited_line_is_named_by_its_file_and_line_and_an_untouched_history_is_intact() {
    let world = World::new();
    assert!(
        world.run(&["history", "verify"]).status.success(),
        "nothing is recorded yet"
    );
    for number in 0..5 {
        assert!(world.run(&["allow", &format!("a:{number}")]).status.success());
    }
    assert_eq!(world.run(&["history", "verify"]).status.code(), Some(0));
    std::fs::write(part(&world), text(&world).replace("a:2", "a:7")).unwrap();
    let broken = world.run(&["history", "verify"]);
    assert_eq!(broken.status.code(), Some(1), "{}", stderr(&broken));
    assert!(
        stdout(&broken).starts_with("part-00000001.jsonl:4: "),
        "{}",
        stdout(&broken)
    );
    assert_eq!(verified(&world)["faults"][0]["line"], 4);
}

#[test]
fn pruning_is_for_a_person_and_says_what_it_removed() {
    let world = World::new();
    assert!(world.run(&["allow", "a:b"]).status.success());
    let young = world.run(&["history", "prune", "--older", "90d", "--json"]);
    assert_eq!(json_of(&young)["removedParts"], 0);
    world.set("CLAUDECODE", "1");
    for by in ["client", "human"] {
        world.configure(&json!({ "approvals": { "by": by } }));
        let refused = world.run(&["history", "prune", "--older", "0d"]);
        assert_eq!(refused.status.code(), Some(1), "{by}: {}", stderr(&refused));
        assert!(text(&world).contains("a:b"), "{by}");
    }
    world.set("CLAUDECODE", "");
    let old = world.run(&["history", "prune", "--older", "0d"]);
    assert!(
        stderr(&old).contains("removed 1 part(s) with 2 lines"),
        "{}",
        stderr(&old)
    );
    assert_intact(&world, "after pruning");
    assert_eq!(
        verified(&world)["notes"][0]["what"],
        "the 2 lines before it were pruned"
    );
}

#[test]
fn many_processes_that_record_at_once_make_one_chain() {
    let world = World::new();
    let children: Vec<_> = (0..40)
        .map(|number| {
            // Each writes a file of its own, so that the history is all they share.
            let directory = world.path(&format!("project-{number}"));
            std::fs::create_dir(&directory).unwrap();
            let config = directory.join(".pml.json");
            let mut command =
                world.command(&["--config", config.to_str().unwrap(), "allow", "a:b", "c:d", "e:f"]);
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(of_kind(&world, "rule").len(), 120);
    assert_intact(&world, "after forty processes");
}

#[test]
fn a_process_that_is_killed_leaves_a_history_that_is_intact_or_torn_and_closed() {
    let world = World::new();
    for number in 0..60_u64 {
        let mut command = world.command(&["allow", &format!("a:{number}")]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From before the first step to after the last one.
        std::thread::sleep(Duration::from_micros(number * 700));
        let _ = child.kill();
        child.wait().unwrap();
        assert_intact(&world, &format!("killed in round {number}"));
    }
    assert!(world.run(&["allow", "last:one"]).status.success());
    assert_intact(&world, "after the last one");
}

#[test]
fn every_write_of_the_history_may_fail_or_be_the_last_and_it_stays_intact() {
    if !have(&["cc"]) {
        return;
    }
    for errno in [Some(rustix::io::Errno::NOSPC), Some(rustix::io::Errno::IO), None] {
        for begun in [false, true] {
            for nth in 1.. {
                let world = World::new();
                std::fs::create_dir_all(directory(&world)).unwrap();
                if begun {
                    assert!(world.run(&["allow", "a:b"]).status.success());
                }
                let mut command = world.command(&["allow", "c:d"]);
                let met = inject_nth(&mut command, &directory(&world), nth, errno);
                let output = command.output().unwrap();
                let told = format!("{errno:?} at call {nth}, begun: {begun}: {}", stderr(&output));
                assert_intact(&world, &told);
                if errno.is_some() {
                    assert!(output.status.success(), "the rule stands: {told}");
                    assert!(world.read(".pml.json").contains("c:d"), "{told}");
                }
                if met.call().is_none() {
                    assert!(nth > 1, "no call met a fault");
                    break;
                }
                assert!(nth < 100, "it does not end");
                assert!(world.run(&["allow", "e:f"]).status.success(), "{told}");
                assert_intact(&world, &told);
                assert!(text(&world).contains("e:f"), "{told}");
            }
        }
    }
}

fn with_package(registry: &Registry) -> World {
    let world = World::new();
    std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
    world.configure(&json!({
        "permissions": { "allow": ["hello"] },
        "mcpServers": { "hello": { "command": "npx", "args": ["hello@1.0.0"] } },
    }));
    world
}

fn installed(world: &World) -> Vec<String> {
    files_below(&world.home().join(".local/share/pml/store"))
}

fn best_effort(world: &World) {
    let user = world.home().join(".config/pml");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("pml.json"), r#"{ "audit": "best-effort" }"#).unwrap();
}

/// Puts a file where the directory of the history should be: not even the superuser can write there.
fn block(world: &World) {
    std::fs::create_dir_all(state(world)).unwrap();
    let _ = std::fs::remove_dir_all(directory(world));
    std::fs::write(directory(world), "").unwrap();
}

#[test]
fn nothing_is_installed_that_cannot_be_recorded_unless_the_user_said_so() {
    if !have(&["node", "npm"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    let world = with_package(&registry);
    block(&world);
    let refused = world.run(&["install"]);
    let told = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(
        told.contains("nothing was installed") && told.contains("/.local/state/pml/history"),
        "{told}"
    );
    assert!(
        told.contains("hint: ") && told.contains("\"audit\": \"best-effort\""),
        "{told}"
    );
    assert_eq!(installed(&world), Vec::<String>::new());
    let archive = Registry::tarball("hello", "1.0.0");
    assert_eq!(registry.hits(&archive), 0, "nothing was fetched");

    best_effort(&world);
    let done = world
        .command(&["install"])
        .env("PML_LOG", "warn")
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(stderr(&done).contains("not recorded"), "{}", stderr(&done));
    assert_ne!(installed(&world), Vec::<String>::new());
}

#[test]
fn an_installation_is_recorded_with_its_digests_and_fails_with_each_write_of_the_record() {
    if !have(&["node", "npm", "cc"]) {
        return;
    }
    let registry = Registry::start();
    publish_server(&registry, "1.0.0", &json!({}));
    let mut calls = 0;
    for nth in 1.. {
        let world = with_package(&registry);
        std::fs::create_dir_all(directory(&world)).unwrap();
        let errno = [rustix::io::Errno::NOSPC, rustix::io::Errno::IO][nth as usize % 2];
        let mut command = world.command(&["install"]);
        let met = inject_nth(&mut command, &directory(&world), nth, Some(errno));
        let output = command.output().unwrap();
        let told = format!("{errno:?} at call {nth} ({:?}): {}", met.call(), stderr(&output));
        let is_there = installed(&world)
            .iter()
            .any(|file| file.ends_with("pml-manifest.json"));
        assert_eq!(output.status.success(), is_there, "{told}");
        assert_intact(&world, &told);
        assert_eq!(is_there, met.call().is_none(), "{told}");
        if met.call().is_none() {
            let [fetch, install] = &events(&world)[..] else {
                panic!("{:#?}", events(&world));
            };
            assert_eq!(
                (&fetch["event"], &fetch["scripts"]),
                (&json!("fetch"), &json!("off"))
            );
            assert_eq!(install["package"], "npm:hello@1.0.0");
            assert!(
                install["integrity"].as_str().unwrap().starts_with("sha512-"),
                "{install}"
            );
            assert_eq!(install["lock"].as_str().unwrap().len(), 64);
            break;
        }
        calls += 1;
        assert!(calls < 60, "it does not end");
    }
    assert!(calls > 4, "only {calls} calls met a fault");
}

#[test]
fn what_was_never_started_does_not_start_without_a_record_and_what_was_does() {
    let world = World::with_fake(&json!({ "allow": ["fake"] }), &[]);
    block(&world);
    let mut client = world.legacy();
    let refused = client.call("fake__echo", &json!({}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(texts(&refused)[0].contains("for the first time"), "{refused}");
    assert!(texts(&refused)[1].contains("best-effort"), "{refused}");
    assert_eq!(world.running().len(), 1, "pml itself: {:?}", world.running());
    // It is written again, and the next call goes through.
    std::fs::remove_file(directory(&world)).unwrap();
    eventually("it starts", DEADLINE, || {
        client.call("fake__echo", &json!({}))["isError"] != true
    });
    client.close();
    block(&world);
    let mut client = world.legacy();
    let known = client.call("fake__echo", &json!({}));
    assert_ne!(known["isError"], true, "{known}");
    client.close();
}

#[test]
fn five_hundred_secrets_leave_no_trace_in_the_history() {
    let world = World::new();
    let mut secrets = Vec::new();
    let mut secret = |kind: &str| {
        let value = format!("c4nary-{kind}-{}", uuid::Uuid::new_v4().simple());
        secrets.push(value.clone());
        value
    };
    let mut fake = world.fake(&["--a", &secret("argument")]);
    for number in 0..100 {
        fake["env"][format!("TOKEN_{number}")] = json!(secret("variable"));
    }
    world.configure(&json!({ "permissions": { "ask": ["fake:*"] }, "mcpServers": { "fake": fake } }));
    let mut client = world.legacy();
    for number in 0..200 {
        let asked = client.call(
            "fake__echo",
            &json!({ "text": secret("text"), secret("key"): number }),
        );
        // Only so many may wait at a time.
        if number % 20 == 0 {
            let id = asked["approval_context"]["workflow_id"].as_str().unwrap();
            let refused = world.run(&["refuse", id, "--reason", &secret("reason")]);
            assert!(refused.status.success(), "{}", stderr(&refused));
        } else {
            client.proceed("fake__echo", &asked, &json!({ "approved": number % 2 == 0 }));
        }
    }
    client.close();
    assert!(secrets.len() >= 500, "{}", secrets.len());
    let mut lines = 0;
    for file in files_below(&directory(&world)) {
        let text = std::fs::read_to_string(directory(&world).join(file)).unwrap();
        lines += text.lines().count();
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{secret}");
        }
        assert!(!text.contains("c4nary"));
    }
    assert!(lines > 250, "only {lines} lines were written");
}
